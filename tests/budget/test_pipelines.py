"""Micro batches that pipeline stages hold, second partitions of ZeRO++, shards of MiCS, and reductions in fp32."""

from __future__ import annotations

from typing import Any

import pytest
from books import book
from collected import for_each

from diagnose import catalogue
from diagnose.budget.model.ledger import Ledger
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook
from diagnose.units import Size

#: Four stages of seven layers, without checkpointing, as many micro batches as it takes.
JOB: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B",
    "train.framework": "megatron",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "train.micro_batch_size": 1,
    "train.max_seq_len": 4096,
    "train.gradient_checkpointing": "disabled",
    "train.gradient_accumulation": 32,
    "model.attention": "flash_attention_2",
    "parallel.world": 4,
    "parallel.pipeline": 4,
}
ZERO: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B",
    "train.framework": "deepspeed",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "train.micro_batch_size": 1,
    "train.max_seq_len": 2048,
    "train.gradient_checkpointing": "enabled",
    "model.attention": "flash_attention_2",
    "zero.stage": 3,
    "zero.reduce_bucket": 200000000,
    "parallel.world": 64,
}


def first(facts: FactBook) -> Ledger:
    return ledgers(facts)[0]


def kept(**changes: Any) -> Size:
    """What the layers of the first stage keep when its backward begins."""
    moment = first(book(JOB, **changes)).moment("layer_backward")
    assert moment is not None
    return moment.only("layers")


def one() -> int:
    """What one micro batch keeps in the seven layers of a stage: the last one's under 1F1B."""
    moment = first(book(JOB)).moment("forward_end")
    assert moment is not None
    return moment.only("layers").bytes


@for_each(
    "changes, micro_batches",
    [
        ({}, 4),
        ({"parallel__schedule": "1f1b"}, 4),
        ({"parallel__schedule": "gpipe"}, 32),
        ({"train__gradient_accumulation": 2}, 2),
        ({"parallel__schedule": "gpipe", "train__gradient_accumulation": 6}, 6),
        ({"parallel__virtual": 7}, 4 + 3 / 7),
        ({"parallel__chunk_layers": 1}, 4 + 3 / 7),
        ({"parallel__virtual": 7, "train__gradient_accumulation": 4}, 4),
    ],
)
def test_micro_batches_of_the_first_stage(changes: dict[str, Any], micro_batches: float) -> None:
    """1F1B: one per stage; GPipe: all; interleaved: (pp - 1)/v more (arXiv 2205.05198: a factor of 1 + (pp-1)/(pp*v)); never more than a
    step has."""
    assert kept(**changes).bytes == pytest.approx(micro_batches * one(), rel=1e-9)


def test_an_interleaved_schedule_has_two_chunks_where_nobody_says() -> None:
    """Half a micro batch per stage but one: 3/2 of seven layers, rounded up to whole layers."""
    assert kept(parallel__schedule="interleaved").bytes == pytest.approx(one() * (28 + 11) / 7, rel=1e-9)


@for_each(
    "changes, micro_batches",
    [
        ({}, 1),
        ({"parallel__schedule": "gpipe"}, 32),
        ({"parallel__virtual": 7}, 4 - 3 / 7),
        ({"parallel__virtual": 7, "train__gradient_accumulation": 2}, 2),
    ],
)
def test_micro_batches_of_the_last_stage(changes: dict[str, Any], micro_batches: float) -> None:
    """When it computes a loss: 1F1B its own; interleaved v - 1 chunks of each of pp micro batches and one more; never more than a step."""
    moment = first(book(JOB, **changes)).moment("loss_call")
    assert moment is not None
    assert moment.only("layers").bytes == pytest.approx(micro_batches * one(), rel=1e-9)


def test_a_zero_bubble_schedule_keeps_up_to_twice() -> None:
    plain, other = kept(), kept(parallel__schedule="zero_bubble")
    assert (other.low, other.bytes, other.high) == (plain.bytes, plain.bytes, 2 * plain.bytes)


def test_a_second_partition_lies_within_a_node() -> None:
    """64 ranks, eight per node: 2*P/64 and 2*P/8; the first forward makes the second one."""
    model = catalogue.model("Qwen/Qwen2.5-7B")
    assert model is not None
    plain, second = first(book(ZERO)), first(book(ZERO, zero__hpz_partition=8))
    before, after = plain.moment("loss_backward"), second.moment("loss_backward")
    assert before is not None and after is not None
    assert after.total.bytes - before.total.bytes == after.only("weights_second").bytes == -(-2 * model.params // 8)
    init = second.moment("init")
    assert init is not None and init.only("weights_second").bytes == 0


def test_a_partition_of_one_is_none() -> None:
    assert ledgers(book(ZERO)) == ledgers(book(ZERO, zero__hpz_partition=1))


def test_mics_divides_states_among_fewer_ranks() -> None:
    """Eight ranks share one copy, whatever the other 56 hold."""
    few, mics = first(book(ZERO, parallel__world=8)), first(book(ZERO, zero__mics_shard=8))
    for name in ("init", "optimizer_step"):
        one, other = few.moment(name), mics.moment(name)
        assert one is not None and other is not None
        assert one.of("weights", "gradients", "optimizer_states") == other.of("weights", "gradients", "optimizer_states")


def test_a_reduction_in_fp32_makes_copies_of_a_bucket() -> None:
    """4 bytes for the cast and 4 for what it is reduced into (ArcticTraining counts so): 1.49 GiB for a bucket of 2e8."""
    wide = first(book(ZERO, train__reduce_dtype="fp32")).moment("layer_backward")
    ring = first(book(ZERO, parallel__context=8)).moment("layer_backward")
    narrow = first(book(ZERO, train__reduce_dtype="bf16", parallel__context=8)).moment("layer_backward")
    assert wide is not None and ring is not None and narrow is not None
    assert wide.only("reduce_wide").bytes == 8 * 200_000_000
    assert (ring.only("reduce_wide").low, ring.only("reduce_wide").high) == (0, 8 * 200_000_000)
    assert narrow.only("reduce_wide").high == 0
