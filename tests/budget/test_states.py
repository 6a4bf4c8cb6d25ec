"""What stays on the card and what the optimizer's step takes: every figure here can be had with a pencil."""

from __future__ import annotations

from typing import Any

import pytest
from books import book, fact
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.budget.model.ledger import Ledger, Term
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook, Value
from diagnose.parse.model.reading import Reading

#: Llama 2 7B: P = 6738415616, V*h = 131072000, linears of the layers 6476005376, of a layer 202383360 parameters with its norms.
LLAMA: dict[str, Any] = {
    "model": "meta-llama/Llama-2-7b-hf",
    "train.framework": "trl",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "pure_bf16",
    "train.micro_batch_size": 1,
    "train.max_seq_len": 512,
    "train.gradient_checkpointing": "enabled",
    "parallel.world": 1,
}
P, VH, LINEARS, LAYER = 6738415616, 131072000, 6476005376, 202383360


def first(known: FactBook) -> Ledger:
    return ledgers(known)[0]


def term(known: FactBook, key: str, moment: str = "optimizer_step") -> Term | None:
    found = first(known).moment(moment)
    assert found is not None
    return next((each for each in found.terms if each.key == key), None)


def size(known: FactBook, key: str, moment: str = "optimizer_step") -> int:
    found = term(known, key, moment)
    assert found is not None, key
    return found.size.bytes


def job(**changes: Any) -> FactBook:
    return book(LLAMA, **changes)


@for_each(
    "optimizer, bytes_",
    [
        ("adamw", 4 * P),
        ("lion", 2 * P),
        ("adamw_4bit", 1.0625 * P),
        ("sgd", 0),
        ("paged_adamw_8bit", 0),
        ("muon", 2 * (LINEARS + 2 * (P - LINEARS))),
        ("adafactor", 4 * (32 * (4 * 8192 + 3 * 15104) + 2 * (32000 + 4096))),
    ],
)
def test_states_of_pure_bf16(optimizer: str, bytes_: float) -> None:
    """Two bytes per tensor and parameter; rows and columns of every matrix for Adafactor; nothing that torch counts for paged ones."""
    assert size(job(train__optimizer=optimizer), "moments") == pytest.approx(bytes_, rel=1e-4)


@pytest.mark.parametrize(("release", "exempt"), [("4.51.3", False), ("4.52.1", True)])
def test_embeddings_are_exempt_from_8_bits_since_4_52(release: str, exempt: bool) -> None:
    """transformers asked for a class that none of its 8-bit optimizers is, and asks for 8 bits since 4.52."""
    known = job(train__optimizer="adamw_8bit", version__transformers=release)
    assert size(known, "moments") == pytest.approx(2.03125 * (P - VH) + 8 * VH if exempt else 2.03125 * P, rel=1e-6)


def test_an_unknown_release_is_a_width() -> None:
    """Without a release both may hold, and so may the larger blocks of bitsandbytes before 0.44."""
    found = term(job(train__optimizer="adamw_8bit"), "moments")
    assert found is not None
    assert found.size.low == pytest.approx(2.00390625 * P, rel=1e-6)
    assert found.size.high == pytest.approx(2.03125 * (P - VH) + 8 * VH, rel=1e-6)


def test_small_adapters_are_not_paged() -> None:
    """bitsandbytes pages tensors from 1e5 elements on: matrices of rank 8 stay, of rank 64 they go."""
    small = job(train__finetuning="lora", lora__rank=8, train__optimizer="paged_adamw")
    assert size(small, "moments") > 0
    assert size(job(train__finetuning="lora", lora__rank=64, train__optimizer="paged_adamw"), "moments") == 0


def test_nothing_is_factored_where_an_engine_flattens() -> None:
    """ZeRO gives Adafactor one vector per partition: a value per element."""
    known = job(train__optimizer="adafactor", train__precision="bf16", zero__stage=2, parallel__world=4)
    assert size(known, "moments") == pytest.approx(P, rel=1e-6)


def test_galore_by_rank() -> None:
    """A projector of the short sides and moments of the long ones; embedding, head and norms as AdamW."""
    short, long = 32 * 7 * 4096, 32 * (4 * 4096 + 3 * 11008)
    known = job(train__optimizer="galore", galore__rank=128)
    assert size(known, "moments") == pytest.approx(2 * 128 * short + 4 * (128 * long + P - LINEARS), rel=1e-3)
    less = job(train__optimizer="galore", galore__rank=128, galore__embedding="enabled")
    assert size(less, "moments") < size(known, "moments")


@pytest.mark.parametrize(
    ("framework", "layerwise", "whole"), [("transformers", "enabled", False), ("transformers", None, True), ("swift", "enabled", True)]
)
def test_layerwise_galore_frees_gradients_only_inside_the_backward_pass(framework: str, layerwise: str | None, whole: bool) -> None:
    known = job(train__optimizer="galore", train__framework=framework, galore__layerwise=layerwise)
    assert (term(known, "gradients") is not None) == whole
    assert (term(known, "gradients_one") is None) == whole


@pytest.mark.parametrize("layers", [1, 3])
def test_badam_is_sixteen_bytes_per_parameter_of_the_block(layers: int) -> None:
    """An fp32 copy, its gradient and two moments of the layers in training; weights stay whole in 16 bits."""
    known = job(train__optimizer="badam", train__trainable_layers=layers)
    kept = sum(size(known, key) for key in ("master_block", "gradients", "moments"))
    assert kept == pytest.approx(16 * layers * LAYER, rel=1e-6)
    assert size(known, "weights_whole") == 2 * P


def test_a_step_inside_the_backward_pass_has_one_gradient_and_no_list() -> None:
    """One gradient as large as the embedding, and one temporary of it unless AdamW is fused."""
    known = job(train__optimizer="adamw", train__optimizer_in_backward="enabled")
    assert size(known, "gradients_one") == 2 * VH
    assert size(known, "step_one") == 2 * VH
    assert term(known, "step_foreach") is None
    assert term(job(train__optimizer="adamw_fused", train__optimizer_in_backward="enabled"), "step_one") is None


def test_gradients_that_are_freed_late_last_through_the_forward_pass() -> None:
    """zero_grad between loss and backward: there at the end of forward and in the loss call, gone in backward."""
    late = job(train__late_zero_grad=True)
    assert size(late, "gradients_stale", "forward_end") == size(late, "gradients_stale", "loss_call") == 2 * P
    for moment in ("loss_backward", "layer_backward", "optimizer_step"):
        assert term(late, "gradients_stale", moment) is None
    several = job(train__late_zero_grad=True, train__gradient_accumulation=4)  # those of this step are there
    assert term(several, "gradients_stale", "forward_end") is None


def test_deepspeed_without_zero_has_an_optimizer_for_fp16() -> None:
    """FP16_Optimizer: 16-bit gradients, states from initialisation on, casts of all gradients and what they are flattened into."""
    half = job(train__framework="deepspeed", train__precision="fp16", parallel__world=2, zero__stage=0, zero__config="ds.json")
    assert (size(half, "gradients"), size(half, "master"), size(half, "moments"), size(half, "step_flat")) == (2 * P, 4 * P, 8 * P, 8 * P)
    assert term(half, "gradients_accumulated", "forward_end") is None
    brain = job(train__framework="deepspeed", train__precision="bf16", parallel__world=2, zero__stage=0, zero__config="ds.json")
    assert size(brain, "gradients_accumulated", "forward_end") == 4 * P
    assert term(brain, "step_flat") is None


def test_recipes_ask_for_fused_adamw_unless_the_configuration_says_otherwise() -> None:
    """torchtune's recipes are fused from 0.4 on; a configuration that names AdamW alone is not."""
    said = job(train__framework="torchtune", train__optimizer="adamw")
    assert size(said, "step_foreach") == 2 * P
    asked = job(train__framework="torchtune", train__optimizer=None)
    found = term(asked, "step_foreach")
    assert found is not None
    assert (found.size.bytes, found.size.high) == (0, 2 * P)
    older = job(train__framework="torchtune", train__optimizer=None, version__torchtune="0.3.0")
    assert size(older, "step_foreach") == 2 * P


def test_adafactor_works_on_fp32_copies_of_the_largest_matrix() -> None:
    """Gradient, parameter and two temporaries in fp32; fp32 weights need the temporaries alone."""
    assert size(job(train__optimizer="adafactor"), "step_factored") == 16 * VH
    assert size(job(train__optimizer="adafactor", train__precision="fp32"), "step_factored") == 8 * VH


@pytest.mark.parametrize(("release", "there"), [("0.13.1", True), ("0.13.2", False), (None, False)])
def test_deepspeed_before_0_13_2_makes_moments_with_the_engine(release: str | None, there: bool) -> None:
    known = job(train__precision="bf16", zero__stage=2, parallel__world=4, version__deepspeed=release)
    assert (term(known, "moments", "init") is not None) == there
    assert (term(known, "moments_not_yet", "init") is None) == there


def test_deepspeed_with_16_bit_masters() -> None:
    """Two bytes each for weights, gradients, masters and moments, and flattened gradients that need no cast."""
    known = job(train__precision="bf16", zero__stage=3, parallel__world=4, train__master_dtype="bf16", train__states_dtype="bf16")
    assert size(known, "master_partition") == pytest.approx(2 * P / 4, rel=1e-6)
    assert size(known, "moments") == pytest.approx(4 * P / 4, rel=1e-6)
    assert size(known, "step_group") == 2 * 10**9


def test_a_norm_in_double_precision_outgrows_small_sub_groups() -> None:
    """8 bytes per element of the largest piece, where sub-groups are smaller than that."""
    known = job(train__precision="bf16", zero__stage=3, parallel__world=2, zero__sub_group=1000000)
    assert size(known, "step_norm") == 8 * VH // 2
    assert term(known, "step_group") is None


@for_each(
    "framework, quantization, rest",
    [("trl", "nf4", 4), ("torchtune", "nf4_double", 2), ("swift", "nf4", 2), ("trl", "gptq", 2), ("litgpt", "nf4", 2)],
)
def test_what_lies_beside_quantised_linears(framework: str, quantization: str, rest: int) -> None:
    """fp32 after prepare_model_for_kbit_training, which some do not call and which leaves GPTQ alone; LitGPT quantises the head as well."""
    known = job(train__framework=framework, train__finetuning="lora", model__quantization=quantization)
    others = P - LINEARS - (VH if framework == "litgpt" else 0)
    assert size(known, "weights_unquantized", "init") == pytest.approx(rest * others, rel=3e-3)  # norms count with the linears


@for_each(
    "said, width",
    [
        ({}, 4),
        ({"version__peft": "0.11.1"}, 2),
        ({"version__peft": "0.12.0"}, 4),
        ({"version__peft": "0.11.1", "train__framework": "llamafactory"}, 4),
        ({"train__framework": "torchtune"}, 2),
        ({"lora__dtype": "bf16"}, 2),
    ],
)
def test_precision_of_adapters(said: dict[str, Any], width: int) -> None:
    """PEFT casts them to fp32 since 0.12 and moved them to the weights' precision before; torchtune builds all in one."""
    known = job(train__finetuning="lora", lora__rank=8, **{"train__precision": "bf16", "train__load_dtype": "bf16", **said})
    trained = 32 * 8 * (4 * 8192 + 3 * 15104)
    assert size(known, "adapters", "init") == width * trained


def test_an_optimizer_that_offloads_itself() -> None:
    """torchao's CPUOffloadOptimizer leaves no states on the card."""
    assert term(job(train__optimizer_offload="cpu"), "moments") is None


@pytest.mark.parametrize(("release", "extra"), [("0.41.1", 4 * (2 * 4096 + 11008)), ("0.43.2", 0), (None, 0)])
def test_old_bitsandbytes_keeps_the_input_of_every_linear(release: str | None, extra: int) -> None:
    """Until 0.43.2 the inputs of attention, MLP and down_proj stay for every token and layer, where no adapter shares them, in the
    fp32 of a prepared model: its linears then computed in the precision of what they read."""
    said = {
        "train__finetuning": "lora",
        "model__quantization": "nf4",
        "train__gradient_checkpointing": "disabled",
        "lora__targets": "o_proj",
    }
    old, new = (size(job(**said, version__bitsandbytes=which), "layers", "loss_backward") for which in (release, "0.45.0"))
    assert old - new == 32 * 512 * extra


def told(name: str, text: str, *more: tuple[str, str]) -> FactBook:
    files = [ConfigSource(name, text.encode()), *(ConfigSource(other, body.encode()) for other, body in more)]
    return FactBook(config_reader.read(files, Reading(), FactBook()).facts)


@for_each(
    "name, text, knob, value",
    [
        (
            "c.yaml",
            "model:\n  _component_: torchtune.models.llama3.llama3_8b\noptimizer_in_bwd: True\n",
            "train.optimizer_in_backward",
            True,
        ),
        (
            "ds.json",
            '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true}}',
            "train.master_dtype",
            "bf16",
        ),
        (
            "ds.json",
            '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true, "bf16_optimizer_states": true}}',
            "train.states_dtype",
            "bf16",
        ),
        ("l.yaml", "model_name_or_path: a/b\nstage: sft\nfinetuning_type: full\nuse_galore: true\ngalore_rank: 64\n", "galore.rank", 64),
        ("l.yaml", "model_name_or_path: a/b\nstage: sft\nfinetuning_type: full\ngalore_rank: 64\n", "galore.rank", None),
    ],
)
def test_configurations_say_it(name: str, text: str, knob: str, value: Value) -> None:
    """The keys that frameworks have for these settings; GaLore's do nothing without GaLore."""
    assert told(name, text).value(knob) == value


OPTIMIZERS = [
    "adamw",
    "adamw_8bit",
    "adamw_4bit",
    "adafactor",
    "galore",
    "galore_8bit",
    "apollo",
    "badam",
    "lomo",
    "muon",
    "lion",
    "paged_adamw",
]


@settings(max_examples=60, deadline=None)
@given(
    optimizer=st.sampled_from(OPTIMIZERS),
    scheme=st.sampled_from([{}, {"zero__stage": 2}, {"zero__stage": 3}, {"fsdp__sharding": "full_shard"}]),
    ranks=st.integers(2, 64),
    tuning=st.sampled_from(["full", "lora"]),
    inside=st.booleans(),
)
def test_more_ranks_never_raise_a_state(optimizer: str, scheme: dict[str, Any], ranks: int, tuning: str, inside: bool) -> None:
    """Whatever the optimizer: sharding over twice the ranks never adds to weights, gradients or states."""
    said = {"train__optimizer": optimizer, "train__finetuning": tuning, "train__precision": "bf16", **scheme}
    said["train__optimizer_in_backward"] = "enabled" if inside and not scheme else None
    one, two = (first(job(**said, parallel__world=count)).moment("optimizer_step") for count in (ranks, 2 * ranks))
    assert one is not None
    assert two is not None
    groups = ("weights", "gradients", "optimizer_states")
    assert two.of(*groups).bytes <= one.of(*groups).bytes + 1024


@settings(max_examples=40, deadline=None)
@given(optimizer=st.sampled_from(OPTIMIZERS), ranks=st.lists(st.integers(1, 1024), min_size=2, max_size=2))
def test_a_higher_rank_never_lowers_a_state(optimizer: str, ranks: list[int]) -> None:
    """GaLore and APOLLO grow with the rank; the others do not know it."""
    low, high = sorted(ranks)
    small, large = (size(job(train__optimizer=optimizer, galore__rank=rank), "moments") for rank in (low, high))
    assert small <= large


@for_each("optimizer", OPTIMIZERS)
def test_an_unknown_model_is_no_error(optimizer: str) -> None:
    """Only a printed count of parameters: whatever needs dimensions is left out."""
    said: dict[str, Value] = {"train.optimizer": optimizer, "model.total_params": 7000000000, "train.precision": "bf16"}
    assert ledgers(FactBook([fact(name, value) for name, value in said.items()]))


def test_axolotl_leaves_fsdp2_weights_in_16_bits() -> None:
    """Its own preparation, from 0.12 on, takes the place of accelerate's, which makes fp32 of what learns."""
    sharded = {"train__precision": "bf16", "fsdp__sharding": "full_shard", "parallel__world": 4, "train__framework": "axolotl"}
    assert size(job(**sharded, fsdp__version=2), "weights_sharded") == 2 * P // 4
    assert size(job(**sharded, fsdp__version=1), "weights_sharded") == P
    assert size(job(**sharded, fsdp__version=2, version__axolotl="0.11.0"), "weights_sharded") == P


def test_packed_weights_are_sharded_where_they_are_stored_as_floats() -> None:
    packed = {
        "train__finetuning": "lora",
        "train__precision": "bf16",
        "lora__rank": 8,
        "lora__targets": "q_proj",
        "model__quantization": "gptq",
        "fsdp__sharding": "full_shard",
        "parallel__world": 2,
    }
    whole, shared = job(**packed), job(**packed, model__shards_packed=True)
    assert abs(size(whole, "weights_quantized") - 2 * size(shared, "weights_quantized")) < 2


def test_a_base_that_nobody_prepares_keeps_16_bits() -> None:
    """prepare_model_for_kbit_training turns embedding, head and norms into fp32."""
    base = {
        "train__finetuning": "lora",
        "train__precision": "bf16",
        "lora__rank": 8,
        "lora__targets": "q_proj",
        "model__quantization": "nf4",
        "train__framework": "transformers",
    }
    prepared, left = (size(job(**base, model__prepared=told), "weights_unquantized", "init") for told in (True, False))
    assert prepared == 2 * left == 8 * VH


def test_experts_of_gpt_oss_are_unpacked_as_they_are_loaded() -> None:
    """Blocks, scales, indices and 16-bit weights of gate and up of 32 experts, 2880 by 2880. Copies in 16 bits need none of that; a
    gradient is as large as the tensor until transformers 5 makes one product of all."""
    experts = 32 * 2880 * 2880
    known = job(model="openai/gpt-oss-20b", version__transformers="4.55.0")
    assert size(known, "unpacked_experts", "load") == round(19.25 * experts)
    assert term(job(model="unsloth/gpt-oss-20b-BF16", model__path="unsloth/gpt-oss-20b-BF16"), "unpacked_experts", "load") is None
    cards = {"fsdp__sharding": "full_shard", "parallel__world": 4, "model": "openai/gpt-oss-20b"}
    assert size(job(**cards, version__transformers="4.55.0"), "indexed_gradient", "layer_backward") == 4 * experts
    assert term(job(**cards, version__transformers="5.0.0"), "indexed_gradient", "layer_backward") is None


@pytest.mark.parametrize(("optimizer", "tensors"), [("prodigy", 4), ("adamw_kahan", 3), ("lion_kahan", 2)])
def test_states_of_optimizers_that_keep_more(optimizer: str, tensors: int) -> None:
    assert size(job(train__optimizer=optimizer), "moments") == tensors * 2 * P
