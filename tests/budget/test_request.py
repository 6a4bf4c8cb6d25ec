"""From a tensor to the printed request and back: every device's rounding, the whole table, widths and lengths that the request implies."""

from __future__ import annotations

from typing import Any

import pytest
from books import AXOLOTL_2143, DEEPSEEK, LLAMAFACTORY_6800, TRL_3172, book, event, size
from collected import for_each
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from diagnose import rule_files
from diagnose.budget.attribution.request_tensor import attribute
from diagnose.budget.attribution.tensor_table import Tensor, tensors
from diagnose.budget.derived.implied_by_request import implied_facts
from diagnose.budget.model.block_rounding import (
    CUDA,
    EXACT,
    OWN,
    POWERS,
    Allocator,
    allocators,
    block,
    is_ambiguous_block,
    parse_divisions,
    prints_as,
    window,
)
from diagnose.budget.model.ledger import Attribution
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import Value, declared
from diagnose.parse.log_reader import read_logs
from diagnose.parse.model.event import Event
from diagnose.release_spans import releases
from diagnose.scan.log_scan import scan
from diagnose.scan.source import Source
from diagnose.units import Size, torch_prints

MIB = 2**20
UNSLOTH = "[32:256,64:128,256:64,>:32]"
CROSS_ENTROPY = "torch/nn/functional.py:cross_entropy|return torch._C._nn.cross_entropy_loss("
MLP = "transformers/models/qwen2/modeling_qwen2.py:forward|down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))"
LOADING = "transformers/modeling_utils.py:_load_state_dict_into_meta_model|param = param[...].to(device)"

ASYNCHRONOUS = """torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)
Currently allocated     : 70.00 GiB
Requested               : 4.64 GiB
Device limit            : 79.15 GiB
"""
AHEAD = """torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed \
per_process_memory_fraction limit. Requested size: 4.64 GiB
"""

#: A plain supervised run of an 8B model, fully known.
PLAIN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "train.framework": "trl",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "train.load_dtype": "bf16",
    "train.micro_batch_size": 2,
    "train.max_seq_len": 4096,
    "model.attention": "sdpa",
    "train.packing": "disabled",
    "train.gradient_checkpointing": "disabled",
    "parallel.world": 1,
}

kinds = st.sampled_from(
    [CUDA, EXACT, OWN["npu"], Allocator(divisions=(16,) * POWERS), Allocator(divisions=parse_divisions(UNSLOTH)), Allocator(large=64 * MIB)]
)


def found(facts: dict[str, Any], failure: Event) -> tuple[Attribution, ...]:
    known = book(facts)
    return attribute(known, ledgers(known), failure, 0)


def said(facts: dict[str, Any], failure: Event) -> dict[str, Value]:
    known = book(facts)
    return {fact.name: fact.value for fact in implied_facts(known, attribute(known, ledgers(known), failure, 0))}


def printed(tensor: int, kind: Allocator = CUDA) -> str:
    return torch_prints(block(tensor, kind))


# -- the allocators


@given(st.integers(10 * MIB, 2**39), st.integers(0, 2**30), kinds)
def test_a_larger_tensor_never_asks_for_a_smaller_block(tensor: int, more: int, kind: Allocator) -> None:
    """Among those with a block of their own, or halving would not find the window; and no block is smaller than what it holds."""
    assert tensor <= block(tensor, kind) <= block(tensor + more, kind)


@given(st.integers(1, 2**39), st.integers(-3 * MIB, 3 * MIB), kinds)
def test_the_window_is_all_that_prints_alike(tensor: int, off: int, kind: Allocator) -> None:
    """A tensor lies in the window exactly if it prints as the request, where that names anything."""
    requested = size(printed(tensor, kind))
    assume(not is_ambiguous_block(requested, kind))
    low, high = window(requested, kind)
    assert low <= tensor <= high
    other = max(1, tensor + off)
    assert (low <= other <= high) == prints_as(other, requested, kind)


@for_each(
    "text, steps",
    [
        ("16", (16,) * 16),
        ("[256:1,512:2,1024:4,>:8]", (1,) * 9 + (2, 4) + (8,) * 5),
        (UNSLOTH, (256,) * 6 + (128, 0, 64) + (32,) * 7),
        ("[ 64 : 8 ]", (8,) * 7 + (0,) * 9),
        ("3", ()),
        ("[3:4]", ()),
        ("[64:3]", ()),
        ("", ()),
        ("[>:>]", ()),
        ("[" + "1:2," * 5000 + "1:2]", ()),
    ],
)
def test_divisions_as_torch_reads_them(text: str, steps: tuple[int, ...]) -> None:
    """c10/core/AllocatorConfig.cpp: powers below the first named one are as that one, `>` is all above the last; nonsense is nothing."""
    assert parse_divisions(text) == steps


@given(st.text(max_size=40))
def test_divisions_never_fail(text: str) -> None:
    """The setting comes from a file that anybody may have written."""
    assert len(parse_divisions(text)) in (0, POWERS)


def test_power_of_two_divisions_round_up() -> None:
    """1200 MiB with four divisions is 1280 MiB; a power of two stays; an undivided power is rounded to 2 MiB alone."""
    four = Allocator(divisions=(4,) * POWERS)
    assert block(1200 * MIB, four) == 1280 * MIB
    assert block(1024 * MIB, four) == 1024 * MIB
    assert block(129 * MIB + 1, Allocator(divisions=parse_divisions(UNSLOTH))) == 130 * MIB


@for_each(
    "family, text, kind",
    [
        ("torch_cuda", "386.00 MiB", CUDA),
        ("torch_hip", "386.00 MiB", CUDA),
        ("torch_xpu", "386.00 MiB", CUDA),
        ("torch_npu", "386.00 MiB", OWN["npu"]),
        ("torch_mps", "600.15 MB", EXACT),
        ("torch_cuda", "385.00 MiB", EXACT),
        ("torch_cuda", "385.50 MiB", EXACT),
        ("torch_cuda", "4.64 GiB", CUDA),
    ],
)
def test_the_allocator_of_a_device(family: str, text: str, kind: Allocator) -> None:
    """A figure that no block of a caching allocator has is the tensor itself, whoever printed it."""
    requested = Size.printed(*text.split(), binary=True)
    assert allocators(book({}), Event(family=family, requested=requested)) == (kind,)


def test_settings_of_the_allocator() -> None:
    """What a variable sets holds; what a framework sets by itself is one of two, and none where a variable was shown or torch is newer."""
    failure = event("4.75 GiB", "loss")
    assert allocators(book({"alloc.roundup": "16"}), failure) == (Allocator(divisions=(16,) * POWERS),)
    assert allocators(book({"alloc.backend": "cuda_async"}), failure) == (EXACT,)
    assert allocators(book({"alloc.large_segment": "64 MiB"}), failure)[0].large == 64 * MIB
    axolotl = {"train.framework": "axolotl", "version.axolotl": "0.8.0", "version.torch": "2.5.1"}
    assert len(allocators(book(axolotl), failure)) == 2
    assert len(allocators(book(axolotl | {"version.torch": "2.9.0"}), failure)) == 1
    assert len(allocators(book(axolotl | {"version.axolotl": "0.4.1"}), failure)) == 1
    assert len(allocators(book(axolotl | {"alloc.expandable_segments": "enabled"}), failure)) == 1


def test_a_moved_segment_names_nothing_either() -> None:
    """large_segment_size_mb moves the block of small tensors: 64.00 MiB is then any of them, 20.00 MiB is a tensor."""
    moved = Allocator(large=64 * MIB)
    assert is_ambiguous_block(size("64.00 MiB"), moved)
    assert not is_ambiguous_block(size("20.00 MiB"), moved)
    assert is_ambiguous_block(size("20.00 MiB"))


@pytest.mark.parametrize(
    "text",
    [
        ASYNCHRONOUS,
        AHEAD,
    ],
)
def test_messages_that_print_the_tensor_itself(text: str) -> None:
    """cudaMallocAsync, and torch's refusal ahead of the card."""
    facts = {fact.name: fact.value for fact in read_logs([scan(Source("log", text.encode()))]).facts}
    assert facts["log.request_exact"] is True


# -- the whole table


def frame_for(tensor: Tensor) -> str | None:
    """A frame that this tensor's own patterns accept, made of their plain words."""
    words = [
        pattern.replace("\\.", ".").replace("\\(", "(").replace("\\)", ")").replace("\\b", "").replace(".*", " ") for pattern in tensor.at
    ]
    within_words = [pattern.replace("\\.", ".").replace("\\(", "(").replace(".*", " ") for pattern in tensor.within] or [""]
    plain = [word for word in words or [""] if not set(word) & set("[]$?+^\\")]
    return f"x/{within_words[0]}.py:step|{plain[0]}" if plain else None


LETTERS = {
    "data.image_pixels": 2_000_000,
    "eval.batch_size": 3,
    "rollout.batch": 512,
    "rollout.num_generations": 8,
    "rollout.prompt_len": 1024,
    "rollout.completion_len": 3072,
    "lora.rank": 64,
}
RUNS: tuple[dict[str, Any], ...] = (
    PLAIN | {"parallel.world": 8, "train.finetuning": "lora", "model.quantization": "nf4"} | LETTERS,
    PLAIN | {"parallel.world": 8, "zero.stage": 3} | LETTERS,
    PLAIN | {"parallel.world": 8, "zero.stage": 2, "parallel.context": 2} | LETTERS,
    PLAIN | {"parallel.world": 8, "fsdp.sharding": "full_shard", "model.attention": "eager"} | LETTERS,
    PLAIN | {"parallel.world": 8, "model": "deepseek-ai/DeepSeek-V2-Lite", "train.finetuning": "lora"} | LETTERS,
    PLAIN | {"model": "Qwen/Qwen2-VL-7B-Instruct", "parallel.world": 8} | LETTERS,
    PLAIN | {"model": "microsoft/Phi-3-mini-4k-instruct", "train.stage": "grpo"} | LETTERS,
    PLAIN | {"train.optimizer": "adamw_8bit", "train.stage": "gkd"} | LETTERS,
    PLAIN | {"train.optimizer": "adafactor", "train.stage": "dpo", "train.precision": "fp32", "train.load_dtype": "fp32"} | LETTERS,
    PLAIN | {"train.optimizer": "muon"} | LETTERS,
)


def settled(facts: dict[str, Any]) -> Setup:
    from diagnose.budget.model.job_roles import roles
    from diagnose.budget.model.role_setup import setup

    known = book(facts)
    return setup(known, roles(known)[0])


@for_each("index", range(len(RUNS)))
def test_what_is_printed_is_read_back(index: int) -> None:
    """Round trip: each formula of each tensor that a run may have, printed as its device prints it, in the frame that makes it, is
    attributed to a tensor that this frame shows and that prints so; where another one goes first, that is counted as a coincidence."""
    from diagnose.budget.attribution.job_letters import extra_letters
    from diagnose.budget.attribution.tensor_candidate import evaluate_bytes
    from diagnose.budget.attribution.tensor_table import is_possible

    facts = RUNS[index]
    job = settled(facts)
    values = {**job.values, **extra_letters(job)}
    tried = 0
    for tensor in tensors():
        frame = frame_for(tensor)
        if frame is None or tensor.at_least or tensor.phases[0] == "eval":
            continue
        for symbols in tensor.bytes[:2]:
            bytes_ = evaluate_bytes(symbols, values)
            if not bytes_ or bytes_ <= 20 * MIB:
                continue
            failure = event(printed(bytes_), tensor.phases[0], frame)
            if not is_possible(tensor, job, failure) or not tensor.agrees(failure):
                continue
            made = found(facts, failure)
            assert made, (tensor.key, symbols)
            assert made[0].agrees, (tensor.key, symbols, [each.key for each in made])
            assert printed(made[0].bytes) == printed(bytes_)
            if symbols == tensor.bytes[0]:
                assert made[0].bytes == bytes_ or made[0].key != f"ledger.{tensor.key}" or made[0].coincidence, (tensor.key, symbols)
            tried += 1
    assert tried >= 10


@settings(max_examples=40, deadline=None)
@given(st.integers(64, 4096), st.integers(1, 16), kinds.filter(lambda kind: not kind.divisions))
def test_a_batch_is_solved_from_its_own_figure(length: int, rows: int, kind: Allocator) -> None:
    """Whatever the rows' length below the cap was, the tokens told hold it: here in the product of the MLP."""
    bytes_ = 2 * rows * length * 14336
    setting = {"alloc.backend": "cuda_async"} if kind.exact else {}
    family = "torch_npu" if kind.header else "torch_cuda"
    assume(bytes_ > 70 * MIB)
    if kind.large != 20 * MIB:
        setting = {"alloc.large_segment": "64 MiB"}
    made = found(PLAIN | setting | {"train.micro_batch_size": rows}, event(printed(bytes_, kind), "forward", MLP, family=family))
    best = made[0]
    assert (best.key, best.agrees) == ("ledger.t_mlp_product", True)
    low, high = best.span or (best.tokens or 0, best.tokens or 0)
    assert low <= rows * length <= high or (not best.solved and printed(best.bytes, kind) == printed(bytes_, kind))


@given(
    st.sampled_from(["2.00 MiB", "20.00 MiB"]),
    st.sampled_from([PLAIN, AXOLOTL_2143, DEEPSEEK, TRL_3172]),
    st.sampled_from(["loss", "backward"]),
)
def test_victims_are_not_named(text: str, facts: dict[str, Any], phase: str) -> None:
    """Any small tensor prints so: whatever the run and the phase, it is what fills the card that counts."""
    assert found(facts, event(text, phase, CROSS_ENTROPY)) == ()


@for_each(
    "key, facts, text, phase, frame",
    [
        ("t_weight_fused", {"model": "microsoft/Phi-3-mini-4k-instruct"}, 2 * 3072 * 9216, "model_load", LOADING),
        (
            "t_latent",
            {"model": "deepseek-ai/DeepSeek-V2-Lite"},
            2 * 8192 * 16 * 256,
            "attention",
            "modeling_deepseek.py:attn_forward|kv_b_proj(",
        ),
        (
            "t_one_hot",
            {"model": "deepseek-ai/DeepSeek-V2-Lite"},
            8 * 27 * 8192 * 6 * 64,
            "forward",
            "mixtral.py:load_balancing_loss_func|one_hot(",
        ),
        (
            "t_mask_layer",
            {"version.transformers": "4.56.0"},
            2 * 2 * 4096 * 4096,
            "attention",
            "sdpa_attention.py:f|scaled_dot_product_attention(",
        ),
        ("t_reducer", {"parallel.world": 8}, 2 * 4096 * 14336, "init", "torch/nn/parallel/distributed.py:_ddp_init_helper|x"),
        ("t_fused_loss_chunk", {}, 2 * 256 * 128256, "loss", "liger_kernel/ops/fused_linear_cross_entropy.py:f|logits_chunk = x @ w"),
        ("t_divergence", {"train.stage": "gkd"}, 4 * 8192 * 128256, "loss", "gkd_trainer.py:generalized_jsd_loss|F.kl_div("),
        (
            "t_adafactor",
            {"train.optimizer": "adafactor"},
            4 * 4096 * 14336,
            "optimizer_step",
            "transformers/optimization.py:step|p.float()",
        ),
        (
            "t_state_8bit",
            {"train.optimizer": "adamw_8bit"},
            4096 * 14336,
            "optimizer_step",
            "bitsandbytes/optim/optimizer.py:get_state_buffer|x",
        ),
        ("t_repeat_kv", {}, 2 * 8192 * 4096, "attention", "modeling_llama.py:repeat_kv|hidden_states.reshape("),
        (
            "t_flash_dq",
            {"model.attention": "flash_attention_2"},
            4 * 8192 * 4096,
            "backward",
            "flash_attn_interface.py:_flash_attn_backward|x",
        ),
        (
            "t_quantized",
            {"train.finetuning": "lora", "model.quantization": "nf4"},
            4096 * 14336 // 2,
            "model_load",
            "bitsandbytes/functional.py:quantize_4bit|out = torch.zeros(((n + 1) // mod, 1), dtype=quant_storage, device=A.device)",
        ),
        (
            "t_gradient_partition",
            {"parallel.world": 8, "zero.stage": 0, "zero.config": "ds.json"},
            4 * 8030261248,
            "init",
            "deepspeed/runtime/bf16_optimizer.py:_setup_for_real_optimizer|torch.zeros(num_elem, dtype=self.grad_acc_dtype)",
        ),
        ("t_merged", {"train.finetuning": "lora"}, 2 * 4096 * 14336, "checkpoint_save", "peft/tuners/lora/layer.py:get_delta_weight|x @ y"),
    ],
)
def test_tensors_of_the_table(key: str, facts: dict[str, Any], text: int, phase: str, frame: str) -> None:
    """Tensors by hand, each in the run, the phase and the frame that make it."""
    best = found(PLAIN | facts, event(printed(text), phase, frame))[0]
    assert (best.key, best.bytes, best.agrees) == (f"ledger.{key}", text, True)


def test_a_release_that_has_no_such_tensor() -> None:
    """The mask of every layer came with transformers 4.53: before, the same size in the same frame is something else."""
    failure = event(printed(2 * 2 * 4096 * 4096), "attention", "sdpa_attention.py:f|scaled_dot_product_attention(")
    keys = {made.key for made in found(PLAIN | {"version.transformers": "4.50.0"}, failure)}
    assert "ledger.t_mask_layer" not in keys
    assert "ledger.t_mask_layer" in {made.key for made in found(PLAIN, failure)}


def test_packed_sequences_that_were_padded() -> None:
    """flash-attn before 2.3.0 gave every packed sequence the length of the longest: 96 of 2,048 tokens in a row of 4,096."""
    frame = "flash_attn/flash_attn_interface.py:_flash_attn_varlen_backward|dq, dk, dv = flash_attn_cuda.varlen_bwd("
    failure = event(printed(4 * 96 * 2048 * 4096), "backward", frame)
    best = found(PLAIN, failure)[0]
    assert best.key == "ledger.t_flash_dq_packed"
    assert said(PLAIN, failure)["attribution.padded_tokens"] in range(96 * 2048 - 1000, 96 * 2048 + 1)
    assert "ledger.t_flash_dq_packed" not in {made.key for made in found(PLAIN | {"version.flash_attn": "2.5.8"}, failure)}
    assert "ledger.t_flash_dq_packed" not in {made.key for made in found(PLAIN, event(printed(4 * 96 * 2048 * 4096), "backward"))}


# -- what the request implies


def test_fp32_where_the_settings_say_bf16() -> None:
    """A weight matrix that is loaded with four bytes per element in a run that says two: a fact for whoever judges."""
    failure = event(printed(4 * 128256 * 4096), "model_load", LOADING)
    facts = said(PLAIN, failure)
    assert facts["attribution.element"] == "fp32"
    assert facts["attribution.against_precision"] is True
    assert "attribution.against_precision" not in said(PLAIN | {"train.load_dtype": None}, failure)
    fitting = said(PLAIN, event(printed(2 * 128256 * 4096), "model_load", LOADING))
    assert (fitting["attribution.element"], fitting["attribution.against_precision"]) == ("16_bit", False)


def test_a_length_is_solved_for_the_width_of_the_run() -> None:
    """The same figure is half as many tokens in an fp32 run; where nobody says how wide elements are, 16 bits come first."""
    failure = event(printed(2 * 2 * 3072 * 14336), "forward", MLP)
    wide = found(PLAIN | {"train.precision": "fp32", "train.load_dtype": "fp32"}, failure)[0]
    assert (found(PLAIN, failure)[0].tokens, wide.tokens) == (2 * 3072, 2 * 1536)


def test_rows_beyond_the_limit() -> None:
    """Logits of 2 x 6,144 tokens where the settings cut at 4,096: the rows, and that they are too long; at the limit they are not."""
    facts = said(PLAIN, event(printed(4 * 2 * 6143 * 128256), "loss", CROSS_ENTROPY))
    assert facts["attribution.over_cap"] is True
    row = facts["attribution.row_tokens"]
    assert isinstance(row, int)
    assert 6130 <= row <= 6144
    full = said(PLAIN, event(printed(4 * 2 * 4095 * 128256), "loss", CROSS_ENTROPY))
    assert (full["attribution.row_tokens"], full["attribution.over_cap"]) == (4096, False)


def test_rounding_that_nobody_showed_is_no_length() -> None:
    """Logits at the limit rounded up to a sixteenth of a power of two print as longer rows would: then nothing is said of the limit."""
    sixteen = Allocator(divisions=(16,) * POWERS)
    failure = event(printed(4 * 2 * 4095 * 152064, sixteen), "loss", CROSS_ENTROPY)
    facts = PLAIN | {"model": "Qwen/Qwen2-7B"}
    assert "attribution.over_cap" not in said(facts, failure)
    assert said(facts | {"alloc.roundup": "16"}, failure)["attribution.over_cap"] is False
    axolotl = facts | {"train.framework": "axolotl", "version.torch": "2.5.1"}
    assert found(axolotl, failure)[0].bytes == 4 * 2 * 4095 * 152064


def test_nothing_is_implied_without_a_frame_that_shows_it() -> None:
    """A size alone is a coincidence."""
    assert said(PLAIN, event(printed(4 * 128256 * 4096), "unknown", "somewhere.py:step|x = y")) == {}


def test_coincidence_counts_other_products() -> None:
    """112.00 MiB of Llama's widths is one weight in 16 bits and many other things; 1 GiB of scores is nothing else."""
    many = found(PLAIN, event(printed(2 * 4096 * 14336), "model_load", LOADING))[0]
    few = found(DEEPSEEK, event("1024.00 MiB", "attention", "torch/nn/functional.py:softmax|ret = input.softmax(dim, dtype=dtype)"))[0]
    assert many.coincidence > few.coincidence


def test_every_implied_fact_is_declared() -> None:
    """Rules may ask for them, so rules/facts.yaml says what they are."""
    names = ("element", "against_precision", "row_tokens", "over_cap", "padded_tokens")
    assert all(declared(f"attribution.{name}") for name in names)
    assert declared("log.request_exact")


def test_releases_that_narrow_a_tensor_down_are_spans_of_facts() -> None:
    """An unknown release stands in the way of no tensor."""
    for entry in (entry for entries in rule_files.table("tensors").values() for entry in entries):
        for name, span in entry.get("only", {}).items():
            if isinstance(span, str) and name not in ("framework", "stage", "family", "optimizer", "engine"):
                assert releases(span).holds(None) is None
                assert declared(f"version.{name}")


def test_llamafactory_reference_still_reads() -> None:
    """The reference failure keeps its reading under its own settings."""
    assert found(LLAMAFACTORY_6800, event("4.64 GiB", "loss", CROSS_ENTROPY))[0].bytes == 2 * 4095 * 152064 * 4
