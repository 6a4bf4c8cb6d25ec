"""What the layers keep for backward: the formulas against bytes that real models saved, and how they move with the job."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from activations.compare import Compared, compared, job, measured, working_sets
from books import book
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as some

from diagnose.budget.model.job_roles import roles
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import setup
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.budget.terms import activations
from diagnose.catalogue import model_of_config


@cache
def rows() -> list[Compared]:
    return list(compared())


#: Bytes per layer of three layers less two, 992 tokens, as benchmarks/activations/measure.py counted them on fake CUDA tensors with
#: torch 2.13.0, transformers 5.23.0 and peft 0.21.2.
COUNTED = {
    ("Llama-3.1-8B", "full"): 199233280,
    ("Llama-3.1-8B", "full padded"): 212280064,
    ("Llama-3.1-8B", "full eager"): 400236288,
    ("Llama-3.1-8B", "full autocast"): 239865600,
    ("Llama-3.1-8B", "lora autocast"): 215708416,
    ("Llama-3.1-8B", "lora dropout autocast"): 254309120,
    ("Llama-3.1-8B", "lora fp32 adapters"): 293132032,
    ("Qwen3-8B", "full"): 213613312,
    ("Gemma-2-9B", "full eager"): 400244224,
    ("Phi-3-mini", "full"): 156569344,
    ("GLM-4-9B-0414", "full autocast"): 281013760,
    ("OLMo-7B", "full"): 168766976,
    ("GPT-2-XL", "full"): 92172672,
    ("GPT-2-XL", "full autocast"): 136614272,
    ("Pythia-6.9B", "full"): 146419200,
    ("Mixtral-8x7B", "full"): 345624704,
    ("DeepSeek-V3", "full"): 729592192,
}


def test_every_layer_measured_is_met_within_one_percent() -> None:
    """A formula that drifts from what the library saves would make every remedy's price wrong."""
    wrong = [f"{row.model} {row.setup}: {row.error:+.2%}" for row in rows() if abs(row.error) > 0.01 and not row.known]
    assert not wrong
    assert len({row.model for row in rows()}) >= 10
    assert len(rows()) >= 200


def test_the_measurements_have_not_been_edited() -> None:
    """The figures in this file and those of the script are the same counts."""
    found = {(row.model, row.setup): row.measured for row in rows()}
    assert {pair: found[pair] for pair in COUNTED} == COUNTED
    assert measured()["versions"] == {"torch": "2.13.0+cpu", "transformers": "5.23.0", "peft": "0.21.2"}


#: Granite multiplies what it adds to the residual stream: a further gradient of the layer's width, which the formula leaves out.
FURTHER = {("Gemma-4-E2B", kind) for kind in ("lora attention", "lora autocast", "lora attention autocast")}


def test_the_working_set_of_a_recomputed_layer_is_met() -> None:
    """What checkpointing costs while one layer is computed again, counted on the meta device: within 3 % for trained weights, within
    4 % for adapters, on a quantised base as well."""
    sets = [row for row in working_sets() if not row.known_set and (row.model, row.setup) not in FURTHER]
    wrong = [f"{row.model} {row.setup}: {row.error:+.2%}" for row in sets if abs(row.error) > (0.03 if row.setup == "full" else 0.04)]
    assert not wrong
    assert sum(row.setup == "full" for row in sets) >= 20
    assert sum(row.setup.startswith("qlora") for row in sets) >= 15
    assert all(abs(row.error) < 0.05 for row in working_sets() if (row.model, row.setup) in FURTHER)


#: Bytes per token after the forward of three layers less two, and the most in the backward of two: every product of matrices kept, and
#: every second one, as torch.utils.checkpoint's selective contexts kept them on the meta device (torch 2.13.0).
SELECTIVE = {"Llama-3.1-8B": (102528, 63616, 346904), "Qwen3-8B": (94336, 59520, 349112)}


@pytest.mark.parametrize("name", SELECTIVE)
def test_selective_checkpointing_keeps_products(name: str) -> None:
    """The outputs that are kept are not computed again, so they do not count twice."""
    every, second, most = SELECTIVE[name]
    made = job(name, "checkpointing", 2, checkpointing="selective")
    kept, again = activations.checkpoints(made)[0].size, activations.recomputed_layer(made)[0].size
    tokens = measured()["tokens"]
    assert kept.bytes == pytest.approx(2 * second * tokens, rel=0.01)
    assert kept.high == pytest.approx(2 * every * tokens, rel=0.01)
    assert kept.bytes + again.bytes == pytest.approx(most * tokens, rel=0.01)


def test_recomputing_core_attention_keeps_the_rest() -> None:
    """Megatron's selective recomputation spares scores, not the layer."""
    found = terms(
        "meta-llama/Llama-3.1-8B", train__framework="megatron", train__gradient_checkpointing="selective", model__attention="eager"
    )
    assert "layers" in keys(found)
    assert not keys(found) & {"scores", "checkpoints_selective"}


@for_each(
    "model, changes, width",
    [
        ("meta-llama/Llama-3.1-8B", {"train__framework": "megatron"}, 2),
        ("meta-llama/Llama-3.1-8B", {"train__framework": "megatron", "train__max_seq_len": 8192}, 6),
        ("huggyllama/llama-7b", {"version__transformers": "4.30.2"}, 8),
        ("huggyllama/llama-7b", {"version__transformers": "4.31.0"}, 6),
        ("facebook/opt-1.3b", {"version__transformers": "4.48.3"}, 8),
        ("facebook/opt-1.3b", {"version__transformers": "4.49.0"}, 6),
        ("facebook/opt-1.3b", {}, 6),
    ],
)
def test_scores_by_who_takes_their_softmax(model: str, changes: dict[str, Any], width: int) -> None:
    """Megatron's kernel keeps one result of two bytes, up to 4096 keys; a clamp before the softmax keeps what it read."""
    said = {"train__precision": "bf16", "train__gradient_checkpointing": "disabled", "model__attention": "eager", **changes}
    scores = next(term for term in terms(model, **said) if term.key == "scores")
    assert f"{width}*B*a*s*s" in scores.symbols


def test_a_mask_is_sure_only_where_rows_differ() -> None:
    """Rows of one length carry no mask; where nobody knows it is the upper end."""
    sizes = {
        said: [
            term.size
            for term in terms("meta-llama/Llama-3.1-8B", train__micro_batch_size=4, **({"data__lengths_vary": said} if said else {}))
            if term.key == "masks"
        ]
        for said in ("", "true", "false")
    }
    assert sizes["false"] == []
    assert sizes["true"][0].low == sizes["true"][0].bytes > 0
    assert sizes[""][0].low == 0 < sizes[""][0].bytes


def test_a_boolean_mask_stays_beside_its_copies() -> None:
    """transformers from 4.53 on: one byte per pair of positions for all layers, and an additive copy of two in each; before that the
    additive mask alone."""
    rows = {"train__micro_batch_size": 4, "data__lengths_vary": "true"}
    sizes = {
        release: {
            term.key: term.size.bytes
            for term in terms("meta-llama/Llama-3.1-8B", **rows, version__transformers=release)
            if term.key in ("mask", "masks")
        }
        for release in ("4.52.0", "4.53.0")
    }
    assert sizes["4.52.0"] == {"mask": 2 * 4 * 1024 * 1024}
    assert sizes["4.53.0"] == {"mask": 4 * 1024 * 1024, "masks": 32 * 2 * 4 * 1024 * 1024}


def test_a_row_of_a_padded_round_has_padding() -> None:
    """One completion per micro batch is still as long as the longest of its round, where the framework pads before it cuts."""
    one = {"train__stage": "grpo", "train__micro_batch_size": 1}
    masked = {
        framework: "masks" in keys(terms("meta-llama/Llama-3.1-8B", **one, train__framework=framework)) for framework in ("trl", "verl")
    }
    assert masked == {"trl": True, "verl": False}
    assert "masks" not in keys(terms("meta-llama/Llama-3.1-8B", **one, train__framework="trl", data__lengths_vary="false"))
    assert "masks" not in keys(terms("meta-llama/Llama-3.1-8B", train__framework="trl"))


def test_gptq_weights_that_are_made_anew_stay_until_backward() -> None:
    """In 16 bits: of the layer that is computed again, or without checkpointing of all; kernels that keep none are the lower end, and
    bitsandbytes keeps none."""
    adapters = {"train__finetuning": "lora", "lora__rank": 8, "model__quantization": "gptq"}
    layer, largest = 218_112_000, 4096 * 14336
    found = {term.key: term for term in terms("meta-llama/Llama-3.1-8B", **adapters)}
    assert found["remade"].size.bytes == pytest.approx(32 * 2 * layer, rel=0.001)
    assert found["remade"].size.low == 0
    made = book(FACTS, **adapters, train__gradient_checkpointing="enabled")
    job_ = setup(made, roles(made)[0])
    assert "remade" not in keys(activations.stored_activations(job_))
    again = {term.key: term for term in activations.recomputed_layer(job_)}
    assert again["remade"].size.bytes == pytest.approx(2 * layer + 3 * largest, rel=0.001)
    assert "remade" not in keys(terms("meta-llama/Llama-3.1-8B", **adapters | {"model__quantization": "nf4"}))


def test_autocast_keeps_a_copy_of_every_matrix() -> None:
    """fp32 weights under autocast cost two bytes more per parameter from forward to backward: the measured copies of one layer."""
    found = [row for row in rows() if row.setup == "full autocast" and not row.known]
    assert found
    assert [row.formula_weights for row in found] == [pytest.approx(row.measured_weights, rel=0.01) for row in found]


FACTS = {
    "model": "meta-llama/Llama-3.1-8B",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "train.load_dtype": "fp32",
    "model.attention": "sdpa",
    "version.transformers": "4.57.1",
    "train.micro_batch_size": 1,
    "train.max_seq_len": 1024,
    "parallel.world": 1,
}


def terms(model: str, **knobs: Any) -> list[Term]:
    """What is stored by a small job with these knobs."""
    made = book(FACTS | {"model": model}, **knobs)
    return activations.stored_activations(setup(made, roles(made)[0]))


def keys(found: list[Term]) -> set[str]:
    return {term.key for term in found}


@for_each("torch, width", [("2.1.0", 2), ("2.5.0", 4), (None, 4)])
def test_the_math_kernel_computes_in_fp32_from_torch_2_5_on(torch: str | None, width: int) -> None:
    """Falcon's one key head fits no fused kernel; whether its scores are twice as wide depends on torch; without a release a width."""
    found = terms("tiiuae/falcon-7b", train__precision="pure_bf16", version__torch=torch, train__gradient_checkpointing="disabled")
    (scores,) = [term for term in found if term.key == "scores_math"]
    size = width * 71 * 1024**2 * 32
    assert (scores.size.bytes, scores.size.low) == (size, size if torch else size // 2)


def test_sharded_mixed_precision_makes_no_copies() -> None:
    """FSDP casts the weights it gathers: the stream is 16-bit and autocast finds nothing to copy."""
    sharded = terms("meta-llama/Llama-3.1-8B", fsdp__sharding="full_shard", parallel__world=8)
    assert "autocast_copies" in keys(terms("meta-llama/Llama-3.1-8B"))
    assert "autocast_copies" not in keys(sharded)
    assert [term.symbols for term in sharded] == ["L*(16*h + 4*q + 4*k + 8*f)*T"]


def test_checkpointing_keeps_the_copies_until_the_loss() -> None:
    """The cache of autocast lives as long as its region, which the loss is part of; then only the head's copy is held."""
    made = book(
        {
            "model": "meta-llama/Llama-3.1-8B",
            "train.stage": "sft",
            "train.finetuning": "full",
            "train.precision": "bf16",
            "train.load_dtype": "fp32",
            "train.gradient_checkpointing": "enabled",
            "train.micro_batch_size": 1,
            "train.max_seq_len": 1024,
            "parallel.world": 1,
        }
    )
    moments = {moment.name: {term.key: term.size.bytes for term in moment.terms} for moment in ledgers(made)[0].moments}
    linears = 2 * (8030261248 - 128256 * 4096 * 2 + 128256 * 4096)
    held = moments["loss_call"]["autocast_copies"] + moments["loss_call"]["autocast_head"]
    assert held == pytest.approx(linears, rel=0.001)
    assert "autocast_copies" not in moments["loss_backward"]
    assert moments["loss_backward"]["autocast_head"] == 2 * 128256 * 4096
    assert moments["layer_backward"]["autocast_layer"] == pytest.approx(2 * 218_112_000, rel=0.001)


@pytest.mark.parametrize(("kind", "bytes_per_width"), [("enabled", 2 * 32), ("offload", 2 * 2)])
def test_checkpoints_are_the_inputs_of_the_layers(kind: str, bytes_per_width: int) -> None:
    """Two bytes per hidden width and token for each of 32 layers; offloaded, for the two in flight."""
    found = terms("meta-llama/Llama-3.1-8B", train__gradient_checkpointing=kind, train__precision="pure_bf16", train__load_dtype="bf16")
    assert sum(term.size.bytes for term in found) == bytes_per_width * 4096 * 1024


def test_a_norm_behind_the_block_needs_more_when_recomputed() -> None:
    """Backward of a sandwich layer starts with a norm while all else is still saved: 16 bytes per width in fp32 temporaries."""
    found = activations.recomputed_layer(job("Gemma-3-4B", "checkpointing"))
    assert "max(4*f + 2*h, 16*h)" in found[0].symbols


NAMES = some.deferred(lambda: some.sampled_from(sorted({row.model for row in rows()})))
SETUPS = some.deferred(lambda: some.sampled_from(sorted({row.setup for row in rows()})))


def total(name: str, chosen: str, **knobs: int) -> int:
    made = job(name, chosen).book.changed({fact.replace("__", "."): value for fact, value in knobs.items()})
    return sum(term.size.bytes for term in activations.stored_activations(setup(made, roles(made)[0])))


@settings(max_examples=60, deadline=None)
@given(NAMES, SETUPS, some.integers(1, 64), some.integers(1, 100_000), some.integers(1, 64))
def test_more_tokens_never_take_less(name: str, chosen: str, rows: int, length: int, more: int) -> None:
    """Neither longer rows nor further ones lower what is stored, whatever kernel they lead to."""
    small = total(name, chosen, train__micro_batch_size=rows, train__max_seq_len=length)
    assert total(name, chosen, train__micro_batch_size=rows + more, train__max_seq_len=length) >= small
    assert total(name, chosen, train__micro_batch_size=rows, train__max_seq_len=length + more) >= small


@settings(max_examples=40, deadline=None)
@given(NAMES, SETUPS, some.integers(2, 60), some.integers(1, 40))
def test_more_layers_never_take_less(name: str, chosen: str, layers: int, more: int) -> None:
    """Every further layer keeps something."""

    def kept(count: int) -> int:
        return sum(term.size.bytes for term in activations.stored_activations(job(name, chosen, count)))

    assert kept(layers + more) >= kept(layers)


PLAIN = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}


@for_each(
    "config, trait, value",
    [
        (PLAIN, "act", "written"),
        (PLAIN | {"activation_function": "gelu_pytorch_tanh"}, "act", "fused"),
        (PLAIN | {"activation_function": ["gelu"]}, "act", "written"),
        (PLAIN, "dropouts", 2),
        (PLAIN | {"resid_pdrop": 0.0}, "dropouts", 0),
        (PLAIN | {"resid_pdrop": "none"}, "dropouts", 2),
        (PLAIN | {"model_type": "gemma2", "attn_logit_softcapping": None}, "softcap", False),
        (PLAIN | {"model_type": "falcon", "parallel_attn": True}, "norms", 1),
        (PLAIN | {"model_type": "falcon", "parallel_attn": True, "new_decoder_architecture": True}, "norms", 2),
    ],
)
def test_what_a_config_says_counts_before_its_family(config: dict[str, Any], trait: str, value: object) -> None:
    """A config without the key, or with nonsense under it, is read as its family is; nothing in it raises."""
    assert getattr(model_of_config(config), trait) == value
