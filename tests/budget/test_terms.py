"""Terms that only some set-ups have, each against a pencil: Qwen2.5-7B with 7615616512 parameters."""

from __future__ import annotations

from typing import Any

import pytest
from books import GIB, book

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.units import Size

P, VH, LARGEST = 7615616512, 152064 * 3584, 3584 * 18944

JOB: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B",
    "train.framework": "transformers",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "train.load_dtype": "bf16",
    "train.micro_batch_size": 2,
    "train.max_seq_len": 2048,
    "train.packing": True,
    "train.gradient_checkpointing": "enabled",
    "model.attention": "flash_attention_2",
    "parallel.world": 8,
}
LORA = {"train.finetuning": "lora", "lora.rank": 8}


def ledger(**changes: Any) -> Ledger:
    return ledgers(book(JOB, **changes))[0]


def moment(name: str, **changes: Any) -> Moment:
    found = ledger(**changes).moment(name)
    assert found is not None
    return found


def test_megatron_has_18_bytes_per_parameter() -> None:
    """Weights 2, one gradient buffer in fp32, master 4, moments 8; the distributed optimizer divides the last twelve, and its step reads
    the buffer in place."""
    plain = moment("optimizer_step", train__framework="megatron", zero__stage=0)
    assert plain.total.bytes == 18 * P
    divided = moment("optimizer_step", train__framework="megatron", zero__stage=1, parallel__tensor=1)
    assert divided.total.bytes == 6 * P + 12 * P // 8


def test_deepspeed_adds_16_bit_gradients_up_in_fp32() -> None:
    """The buffer is there from initialisation on, and part of the six bytes at the end of backward."""
    stage: dict[str, Any] = {"zero__stage": 0, "zero__config": "ds.json"}
    assert moment("init", **stage).only("gradients_accumulated").bytes == 4 * P
    assert moment("loss_call", **stage).of("gradients").bytes == 4 * P
    assert moment("layer_backward", **stage).of("gradients").bytes == 6 * P
    assert moment("init", **stage, train__precision="fp16").only("gradients_accumulated").bytes == 0


@pytest.mark.parametrize(("stage", "bytes_"), [(1, 2 * VH), (2, 2 * VH), (3, 0)])
def test_offloaded_gradients_come_back_through_a_buffer(stage: int, bytes_: int) -> None:
    assert moment("init", zero__stage=stage, zero__offload_optimizer="cpu").only("offload_staging").bytes == bytes_
    assert moment("init", zero__stage=stage).only("offload_staging").bytes == 0


def on_host(**settings: Any) -> dict[str, Size]:
    return {term.key: term.size for term in ledger(zero__offload_optimizer="cpu", **settings).host.terms}


def test_host_memory_of_offload_by_stage() -> None:
    """18 bytes per parameter under ZeRO-3: its partition of gradients, their fp32 copy, master weights, moments. Under ZeRO-2 16, a
    staging buffer per rank, and 16-bit gradients while they add up."""
    three = on_host(zero__stage=3, zero__pin_memory=False)
    assert {key: size.bytes for key, size in three.items()} == {
        "host_gradients": 2 * P,
        "host_gradients_fp32": 4 * P,
        "host_states": 12 * P,
    }
    assert all(size.low == size.high for size in three.values())
    two = on_host(zero__stage=2, zero__pin_memory=False, version__deepspeed="0.16.3")
    assert two["host_gradients"].bytes == 4 * P
    assert two["host_states"].bytes == 8 * P
    assert two["host_staging"].bytes == 16 * VH
    assert "host_accumulated" not in two
    assert on_host(zero__stage=2, train__gradient_accumulation=4)["host_accumulated"].bytes == 2 * P


def test_what_is_pinned_is_rounded_up_to_a_power_of_two() -> None:
    """Gradients of a rank are one tensor, 1.77 GiB in 16 bits: 2 GiB. Master weights and moments are never pinned under ZeRO-3."""
    pinned, silent = on_host(zero__stage=3, zero__pin_memory=True), on_host(zero__stage=3)
    assert pinned["host_gradients"].bytes == 8 * 2 * GIB
    assert pinned["host_gradients_fp32"].bytes == 8 * 4 * GIB
    assert pinned["host_states"].low == pinned["host_states"].high == 12 * P
    assert (silent["host_gradients"].bytes, silent["host_gradients"].high) == (2 * P, 16 * GIB)


@pytest.mark.parametrize(("release", "pinned"), [("0.13.2", False), ("0.16.3", True), ("0.18.3", False)])
def test_master_weights_of_zero2_were_pinned_whatever_was_asked(release: str, pinned: bool) -> None:
    """From 0.14.1 until 0.18.3 asked."""
    master = on_host(zero__stage=2, zero__pin_memory=False, version__deepspeed=release)["host_master"]
    assert master.bytes == (8 * 4 * GIB if pinned else 4 * P)


@pytest.mark.parametrize(("release", "bytes_"), [("0.16.3", 0), ("0.17.0", 2 * P)])
def test_a_16_bit_partition_on_the_way_back_since_0_17(release: str, bytes_: int) -> None:
    found = on_host(zero__stage=2, zero__pin_memory=False, version__deepspeed=release)
    assert found.get("host_weights_buffer", Size.exactly(0)).bytes == bytes_
    unknown = on_host(zero__stage=2, zero__pin_memory=False)["host_weights_buffer"]
    assert (unknown.bytes, unknown.high) == (0, 2 * P)


def test_parameters_that_learn_lie_in_a_pinned_buffer() -> None:
    """ZeRO-3 pins it whatever is asked."""
    assert on_host(zero__stage=3, zero__offload_param="cpu", zero__pin_memory=False)["host_parameters"].bytes == 8 * 2 * GIB


def test_nvme_leaves_buffers_on_the_host() -> None:
    """Four of a sub-group per rank, not the states themselves: that is what moving on from the host saves."""
    away: dict[str, Any] = {"zero__stage": 3, "zero__offload_optimizer": "nvme", "zero__offload_param": "nvme", "zero__sub_group": 10**8}
    found = {term.key: term.size.bytes for term in ledger(**away).host.terms}
    assert found == {"host_parameter_swap": 8 * 10**9, "host_gradients": 2 * P, "host_swap": 16 * 10**8 * 8}


def test_a_quantised_weight_is_whole_while_it_is_multiplied() -> None:
    for word, there in (("nf4", 2 * LARGEST), ("int8", 2 * LARGEST), ("gptq", 0), ("none", 0)):
        now = moment("layer_backward", **{name.replace(".", "__"): value for name, value in LORA.items()}, model__quantization=word)
        assert now.only("dequantized").bytes == there, word


def test_a_tied_embedding_needs_a_second_gradient() -> None:
    """At the end of backward the embedding's gradient is added to the head's: the peak of a checkpointed full fine-tune in fp32."""
    tied = moment("layer_backward", model="meta-llama/Llama-3.2-3B", parallel__world=1, train__precision="fp32")
    assert tied.only("embedding_gradient").bytes == 4 * 128256 * 3072
    assert tied.only("gradients").bytes == 4 * 3212749824
    assert moment("layer_backward", parallel__world=1).only("embedding_gradient").bytes == 0


def test_every_rank_collects_the_predictions_of_all() -> None:
    """Logits of an evaluation step are gathered before they are kept, on the card and, once they are moved, on the host of every rank."""
    rows: dict[str, Any] = {"eval__enabled": "enabled", "eval__batch_size": 1, "eval__metrics": True, "eval__accumulation_steps": 4}
    one = 4 * 2048 * 152064
    assert moment("eval", **rows, parallel__world=1).only("eval_kept").bytes == 4 * one
    assert moment("eval", **rows).only("eval_kept").bytes == 8 * 4 * one
    assert ledger(**rows).host.at("eval").bytes == 8 * 8 * 4 * one
    unsure = ledger(**rows | {"eval__metrics": None}).host.at("eval")
    assert (unsure.bytes, unsure.high) == (0, 8 * 8 * 4 * one)


def test_apollo_needs_no_svd() -> None:
    """Its projection is drawn at random; GaLore's is computed, which takes more than the largest parameter where that is small."""
    small: dict[str, Any] = {"model": "meta-llama/Llama-2-7b-hf", "parallel__world": 1}
    galore, apollo = (
        moment("optimizer_step", **small, train__optimizer=name).only("step_projection").bytes for name in ("galore", "apollo")
    )
    assert apollo == 4 * 32000 * 4096 < galore


def test_autocast_copies_fp32_adapters() -> None:
    """2 bytes of each: with checkpointing until the loss is computed, without until the layers' own backward; none where the engine casts
    or gathers the adapters in 16 bits."""
    lora = {name.replace(".", "__"): value for name, value in LORA.items()} | {"parallel__world": 1}
    trained = moment("init", **lora).only("adapters").bytes // 4
    assert moment("loss_call", **lora).only("adapter_copies").bytes == 2 * trained
    assert moment("loss_backward", **lora).only("adapter_copies").bytes == 0
    assert moment("loss_backward", **lora, train__gradient_checkpointing="disabled").only("adapter_copies").bytes == 2 * trained
    for engine in ({"zero__stage": 2}, {"fsdp__sharding": "full_shard"}):
        assert moment("loss_call", **lora | engine | {"parallel__world": 8}).only("adapter_copies").bytes == 0


def test_roles_on_one_card_leave_each_other_what_they_keep() -> None:
    """Between its own updates a critic keeps the moments of its optimizer, and so much less is there for the reward model."""
    shared: dict[str, Any] = {
        "train__framework": "openrlhf",
        "train__stage": "ppo",
        "rollout__prompt_len": 512,
        "rollout__completion_len": 512,
        "zero__stage": 2,
        "actor__gpus": 8,
        "critic__gpus": 2,
        "reward__gpus": 2,
        "colocate__critic_reward": True,
        "hardware__capacity": "80 GiB",
    }
    found = {each.role: each for each in ledgers(book(JOB, **shared))}
    assert found["reward"].usable is not None
    assert found["actor"].usable is not None
    rests = found["actor"].usable.bytes - found["reward"].usable.bytes
    assert rests > (2 + 12 // 2) * (P - VH)  # a value head takes the place of the output head
