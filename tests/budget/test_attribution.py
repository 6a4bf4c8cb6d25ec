"""Which tensor the request was: the allocator's rounding, frames and phases, lengths solved from the figure."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from books import AXOLOTL_2143, CONFIG_INCOMPLETE, DEEPSEEK, LLAMAFACTORY_6800, OPENRLHF_392, OPENRLHF_964, TRL_3172, book, event, size
from checkout import ROOT
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st

from diagnose import families, rule_files
from diagnose.budget.attribution.request_tensor import attribute
from diagnose.budget.attribution.tensor_table import CONDITIONS, every_tensor
from diagnose.budget.model.block_rounding import CUDA, OWN, block, is_ambiguous_block, prints_as, window
from diagnose.budget.model.formulas import formula
from diagnose.budget.model.ledger import Attribution
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import names
from diagnose.parse.model.event import Event
from diagnose.units import Size, torch_prints

CROSS_ENTROPY = "torch/nn/functional.py:cross_entropy|return torch._C._nn.cross_entropy_loss("
MLP = "transformers/models/qwen2/modeling_qwen2.py:forward|down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))"
MIB = 2**20


def found(facts: dict[str, Any], failure: Event) -> tuple[Attribution, ...]:
    known = book(facts)
    return attribute(known, ledgers(known), failure, 0)


@for_each(
    "tensor, family, asked",
    [
        (1, "torch_cuda", 2 * MIB),
        (MIB, "torch_cuda", 2 * MIB),
        (MIB + 1, "torch_cuda", 20 * MIB),
        (10 * MIB - 512, "torch_cuda", 20 * MIB),
        (10 * MIB, "torch_cuda", 10 * MIB),
        (10 * MIB + 1, "torch_cuda", 12 * MIB),
        (384 * MIB, "torch_cuda", 384 * MIB),
        (384 * MIB, "torch_npu", 386 * MIB),
        (384 * MIB + 7, "torch_mps", 384 * MIB + 7),
    ],
)
def test_block_of_a_tensor(tensor: int, family: str, asked: int) -> None:
    """The rounding of CUDACachingAllocator.cpp; Ascend adds 32 bytes first; MPS asks for what it needs."""
    assert block(tensor, OWN.get(families.of(family).allocator, CUDA)) == asked


@given(st.integers(21 * MIB, 2**38), st.sampled_from(["torch_cuda", "torch_npu"]))
def test_window_holds_what_prints_alike(tensor: int, family: str) -> None:
    """A tensor lies in the window of its own request, and the ends of the window print as it."""
    kind = OWN.get(families.of(family).allocator, CUDA)
    requested = size(torch_prints(block(tensor, kind)))
    low, high = window(requested, kind)
    assert low <= tensor <= high
    assert prints_as(high, requested, kind)
    assert prints_as(low, requested, kind)
    assert not is_ambiguous_block(requested, kind)


def test_section_19_worked_checks() -> None:
    """Figures that maintainers matched by hand: 4.64 GiB and its 16-bit half, 9.47 GiB, and 2**30 bytes as 1024.00 MiB."""
    assert torch_prints(block(2 * 4096 * 152064 * 4)) == "4.64 GiB"
    assert torch_prints(block(2 * 4096 * 152064 * 2)) == "2.32 GiB"
    assert torch_prints(block(2 * 248320 * 5120 * 4)) == "9.47 GiB"
    assert torch_prints(block(2**30)) == "1024.00 MiB"


@pytest.mark.parametrize("text", ["2.00 MiB", "20.00 MiB"])
def test_sizes_that_name_nothing(text: str) -> None:
    """Any small tensor prints so: silence."""
    assert found(AXOLOTL_2143, event(text, "backward", "torch/autograd/graph.py:_engine_run_backward")) == ()


def test_log_softmax_of_a_pair() -> None:
    """4.64 GiB in cross_entropy is the log-softmax of chosen + rejected; logits of the same size are told, with another vocabulary too."""
    made = found(LLAMAFACTORY_6800, event("4.64 GiB", "loss", CROSS_ENTROPY))
    best = made[0]
    assert (best.key, best.bytes, best.block_bytes // MIB) == ("ledger.t_log_softmax", 2 * 4095 * 152064 * 4, 4752)
    assert best.exact
    assert best.agrees
    assert best.tokens == 8192
    assert {2 * 4096 * 152064 * 4, 2 * 4096 * 151936 * 4} <= {each.bytes for each in made}
    assert [each.agrees for each in made if each.key == "ledger.t_logits_fp32"] == [False]
    assert best.coincidence >= 2


def test_without_a_frame_the_phase_decides() -> None:
    """No traceback: what may be allocated in the phase agrees, the rest does not."""
    made = found(LLAMAFACTORY_6800, event("4.64 GiB", "backward"))
    assert made[0].agrees
    assert made[0].key == "ledger.t_logits_gradient"


def test_a_frozen_embedding_has_no_gradient() -> None:
    """2 x 152064 x 3584 in backward is the embedding's gradient where it is trained; adapters leave it as it is."""
    job: dict[str, Any] = {"model": "Qwen/Qwen2.5-7B", "train.precision": "bf16", "train.load_dtype": "bf16", "train.finetuning": "full"}
    job |= {"train.micro_batch_size": 1, "train.max_seq_len": 512, "parallel.world": 1}
    asked = event("1.02 GiB", "backward", "torch/autograd/graph.py:_engine_run_backward")
    named = {each.key for each in found(job, asked)}
    frozen = {each.key for each in found({**job, "train.finetuning": "lora", "lora.rank": 16, "lora.targets": "q_proj,v_proj"}, asked)}
    assert ("ledger.t_embedding_gradient" in named, "ledger.t_embedding_gradient" in frozen) == (True, False)


def test_length_solved_from_the_request() -> None:
    """1.43 GiB of an 18,944-wide 16-bit product is 40,352 to 40,627 tokens: 16 rows of 2,528, below the cap of 2,560."""
    best = found(TRL_3172, event("1.43 GiB", "forward", MLP))[0]
    assert (best.key, best.tokens, best.bytes) == ("ledger.t_mlp_product", 16 * 2528, 16 * 2528 * 18944 * 2)
    assert best.numbers == "2*16*2528*18944"
    assert best.span == (40352, 40627)
    assert "about 16 x 2,528 tokens" in best.tensor.en


def test_an_adapter_cast_would_show_its_frame() -> None:
    """Half the tokens in fp32 print alike, but the traceback is the bare MLP."""
    made = found(TRL_3172, event("1.43 GiB", "forward", MLP))
    cast = [each for each in made if each.key == "ledger.t_lora_cast"]
    assert [each.agrees for each in cast] == [False]
    shown = found(TRL_3172, event("1.43 GiB", "forward", "peft/tuners/lora/layer.py:_cast_input_dtype|return x.to(dtype)"))[0]
    assert shown.key == "ledger.t_lora_cast"


def test_exactly_one_gibibyte_of_scores() -> None:
    """Printed as 1024.00 MiB: fp32 probabilities of four rows, sixteen heads, 2048 by 2048."""
    made = found(DEEPSEEK, event("1024.00 MiB", "attention", "torch/nn/functional.py:softmax|ret = input.softmax(dim, dtype=dtype)"))
    assert (made[0].key, made[0].bytes, made[0].coincidence) == ("ledger.t_scores_fp32", 2**30, 0)


def test_a_tie_rounds_to_even() -> None:
    """3.125 GiB prints as 3.12."""
    best = found(OPENRLHF_392, event("3.12 GiB", "loss", "torch/nn/functional.py:log_softmax|ret = input.log_softmax(dim)", role="actor"))[
        0
    ]
    assert (best.bytes, best.block_bytes // MIB) == (4 * 2047 * 102400 * 4, 3200)


def test_pickled_samples_are_a_lower_bound() -> None:
    """The list is at least its tensors; texts make up the rest, so it is never exact."""
    best = found(OPENRLHF_964, event("2.14 GiB", "generation", "torch/distributed/distributed_c10d.py:_object_to_tensor"))[0]
    assert (best.bytes, best.at_least, best.exact, best.agrees) == (2273312768, True, False, True)


def test_a_cap_that_is_not_enforced() -> None:
    """Logits of 45,056 tokens under a cap of 4,096: the request says so where the frame says that it is the loss."""
    requested = Size.exactly(block(4 * 45055 * 152064))
    facts = LLAMAFACTORY_6800 | {"train.stage": "sft"}
    made = found(facts, event(torch_prints(requested.bytes), "loss", CROSS_ENTROPY))
    assert made[0].tokens == 45056
    assert made[0].agrees


def test_patches_solved_from_the_request() -> None:
    """23.41 GiB in the attention of a vision model whose decoder rows are short: patches by patches, and how many."""
    frame = "transformers/models/qwen2_vl/modeling_qwen2_vl.py:forward|attn_output = F.scaled_dot_product_attention("
    facts = LLAMAFACTORY_6800 | {"train.stage": "sft", "train.max_seq_len": 2048}
    best = found(facts, event("23.41 GiB", "attention", frame))[0]
    assert (best.group, best.named, best.exact) == ("mm_inputs", True, False)
    assert "28,0" in best.tensor.en
    short = found(facts, event("200.00 MiB", "attention", frame))
    assert not [each for each in short if each.group == "mm_inputs"]


@pytest.mark.parametrize(
    ("key", "phase", "frame"),
    [
        ("f_vocabulary", "loss", CROSS_ENTROPY),
        ("f_moment", "optimizer_step", 'torch/optim/adamw.py:_init_group|state["exp_avg"] = torch.zeros_like('),
        ("f_scores", "attention", "vision_transformer.py:forward|attn = (q @ k.transpose(-2, -1)) * self.scale"),
        (
            "f_pairs",
            "loss",
            "ultralytics/utils/tal.py:select_candidates_in_gts|bbox_deltas = torch.cat((xy_centers[None] - lt,",
        ),
        ("f_feature", "forward", "torch/nn/modules/conv.py:_conv_forward|return F.conv3d("),
        ("f_weight", "model_load", "torch/nn/modules/module.py:convert|return t.to("),
    ],
)
def test_of_an_unknown_model_the_frame_tells_what_it_shows(key: str, phase: str, frame: str) -> None:
    """Without dimensions there is nothing to multiply: the tensor has a name, no formula, and proves nothing by its size."""
    (best,) = found({"train.framework": "trl"}, event("4.64 GiB", phase, frame))
    assert (best.key, best.formula, best.named, best.exact, best.by_frame) == (f"ledger.{key}", "", True, False, True)


def test_of_an_unknown_model_a_size_names_nothing() -> None:
    assert found({"train.framework": "trl"}, event("4.64 GiB", "loss")) == ()
    assert found({"train.framework": "trl"}, event("4.64 GiB", "loss", "train.py:step|loss = loss / steps")) == ()


def test_host_failures_are_not_tensors_of_the_card() -> None:
    """What the frame makes has its name, in host memory, and no figure of the card's tensors; what it depends on lowers it there too."""
    (made,) = found(CONFIG_INCOMPLETE, event("4.64 GiB", "loss", CROSS_ENTROPY, family="cpu_allocator"))
    assert (made.group, made.formula, made.exact) == ("host_ram", "", False)
    assert {"train.max_seq_len", "train.micro_batch_size"} <= set(made.lowered_by)
    assert made.tensor.en.endswith(", in host memory")
    assert found(CONFIG_INCOMPLETE, event("4.64 GiB", "loss", family="cpu_allocator")) == ()


def test_the_table_is_sound() -> None:
    """Every entry has a name in both languages, formulas that parse, conditions and phases that exist."""
    phrases, phases = rule_files.table("phrases")["ledger"], rule_files.table("vocabulary")["phase"]
    for tensor in every_tensor():
        assert {"en", "zh"} <= set(phrases[tensor.key])
        assert set(tensor.when) <= set(CONDITIONS)
        assert set(tensor.phases) <= set(phases)
        assert all(formula(symbols).names for symbols in tensor.bytes)
        assert tensor.bytes or tensor.at or tensor.within or tensor.printed or tensor.says or tensor.equals
    assert "data.tokens_in_batch" in names()


def test_every_entry_has_its_source() -> None:
    """The file of the software that makes it; of its release it says no more than where files moved."""
    entries = [
        entry
        for path in (ROOT / "rules" / "tensors").glob("*.yaml")
        for entry in yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    ]
    assert {entry["key"] for entry in entries} == {tensor.key for tensor in every_tensor()}
    assert not [entry["key"] for entry in entries if not re.search(r"\w\.(?:py|cc?|cpp|pyx|cu|h|yaml)\b|\*\.py", entry.get("source", ""))]


#: A Qwen2.5 of 72B served on four cards with 1,024 sequences at once, 8,192 tokens per pass (vLLM 0.8's own numbers).
SERVED: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-72B-Instruct",
    "rollout.engine": "vllm",
    "rollout.tensor_parallel": 4,
    "rollout.max_num_seqs": 1024,
    "rollout.prefill_tokens": 8192,
    "rollout.cache_tokens": 122880,
}
SAMPLER = "vllm/v1/sample/ops/topk_topp_sampler.py:apply_top_k_top_p|logits_sort, logits_idx = logits.sort(dim=-1, descending=False)"


@for_each(
    "key, facts, text, phase, frame, bytes_",
    [
        # vllm-project/vllm issue 15105: a sampler tried with 1,024 sequences of a vocabulary of 152,064
        ("t_engine_sort", {}, "1.74 GiB", "init", SAMPLER, 12 * 1024 * 152064),
        (
            "t_engine_logits",
            {},
            "594.00 MiB",
            "generation",
            "vllm/v1/sample/sampler.py:compute_logprobs|return logits.log_softmax(dim=-1, dtype=torch.float32)",
            4 * 1024 * 152064,
        ),
        (
            "t_engine_cache",
            {},
            "120.00 MiB",
            "kv_cache",
            "vllm/worker/cache_engine.py:_allocate_kv_cache|layer_kv_cache = torch.zeros(alloc_shape,",
            2 * 2 * 256 * 122880,
        ),
        (
            "t_engine_cache",
            {"rollout.engine": "sglang", "rollout.tensor_parallel": 1},
            "240.00 MiB",
            "kv_cache",
            "sglang/srt/mem_cache/memory_pool.py:_create_buffers|torch.zeros(",
            2 * 1024 * 122880,
        ),
        (
            "t_engine_mlp",
            {},
            "232.00 MiB",
            "init",
            "vllm/model_executor/models/qwen2.py:forward|gate_up, _ = self.gate_up_proj(x)",
            2 * 8192 * 2 * 29568 // 4,
        ),
        (
            "t_engine_workspace",
            {"model": "mistralai/Mixtral-8x7B-Instruct-v0.1", "rollout.tensor_parallel": 2},
            "448.00 MiB",
            "init",
            "vllm/model_executor/layers/fused_moe/fused_moe.py:fused_experts_impl|intermediate_cache1 = torch.empty(",
            2 * 8192 * 2 * 14336,
        ),
        (
            "t_engine_experts",
            {"model": "mistralai/Mixtral-8x7B-Instruct-v0.1", "rollout.tensor_parallel": 2},
            "896.00 MiB",
            "model_load",
            "vllm/model_executor/layers/fused_moe/layer.py:create_weights|w13_weight = torch.nn.Parameter(torch.empty(",
            2 * 8 * 2 * 14336 * 4096 // 2,
        ),
        (
            "t_engine_weight",
            {"model": "Qwen/Qwen2.5-32B-Instruct", "rollout.tensor_parallel": 1},
            "540.00 MiB",
            "model_load",
            "vllm/model_executor/layers/linear.py:create_weights|weight = Parameter(torch.empty(sum(output_partition_sizes),",
            2 * 2 * 27648 * 5120,
        ),
    ],
)
def test_tensors_of_an_inference_engine(key: str, facts: dict[str, Any], text: str, phase: str, frame: str, bytes_: int) -> None:
    """Its pool, the logits of its trial run, its experts' workspace, its weights: each over its cards and as many tokens as it takes."""
    best = found(SERVED | facts, event(text, phase, frame, role="engine"))[0]
    assert (best.key, best.bytes, best.agrees, best.group) == (f"ledger.{key}", bytes_, True, "rollout_engine")


def test_an_engine_has_no_tensor_of_a_trainer_and_a_trainer_none_of_an_engine() -> None:
    """The same figure in the same frame is read by whose request it is; of sequences that nobody counts, the round number that fits."""
    unsaid = found({"model": "Qwen/Qwen2.5-72B-Instruct"}, event("1.74 GiB", "init", SAMPLER, role="engine"))[0]
    assert (unsaid.key, unsaid.numbers) == ("ledger.t_engine_sort", "12*1024*152064")
    (shown,) = found({"model": "Qwen/Qwen2.5-72B-Instruct"}, event("1.60 GiB", "init", SAMPLER, role="engine"))
    assert (shown.key, shown.by_frame, shown.exact) == ("ledger.f_engine_logits", True, False)
    trained = TRL_3172 | {"rollout.max_num_seqs": 1024, "rollout.tensor_parallel": 4}
    assert all(not each.key.startswith("ledger.t_engine") for each in found(trained, event("1.74 GiB", "loss", CROSS_ENTROPY)))
    served = found(SERVED, event("1.74 GiB", "loss", SAMPLER, role="engine"))
    assert all(each.key.startswith("ledger.t_engine") for each in served)


@pytest.mark.parametrize("text", ["2.00 MiB", "20.00 MiB"])
def test_small_requests_of_an_engine_name_nothing_either(text: str) -> None:
    assert not found(SERVED, event(text, "init", SAMPLER, role="engine"))


def test_the_tokens_of_rows_that_nobody_counts_are_solved_where_the_traceback_shows_the_tensor() -> None:
    """4 bytes x 8,192 tokens x 152,064 words is 4.64 GiB; without the frame any tensor has such a length."""
    known = {"model": "Qwen/Qwen2.5-7B"}
    shown = event("4.64 GiB", "loss", "transformers/models/qwen2/modeling_qwen2.py:forward|logits = logits.float()")
    best = found(known, shown)[0]
    assert (best.group, best.tokens, best.solved) == ("logits", 8192, True)
    assert not [made for made in found(known, event("4.64 GiB", "loss")) if made.solved and made.named]


def test_a_length_found_for_what_evaluation_keeps_makes_no_exact_size_with_another_vocabulary() -> None:
    """Any request is some number of tokens: that other models of the family have more rows in their heads makes it no surer."""
    known = book({"model": "meta-llama/Llama-2-7b-hf", "train.micro_batch_size": 1, "train.max_seq_len": 2048, "train.precision": "bf16"})
    made = attribute(known, ledgers(known), event("6.32 GiB", phase="unknown"), 0)
    assert len(made) > 1 and all(one.solved for one in made)
