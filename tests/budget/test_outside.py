"""What the caching allocator keeps beside what is in use: the rules of the simulation, and the formulas against it."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from memory import blocks, stuck
from memory.allocator import GIB, MIB, Allocator, Block, Shape, loss, reserved
from memory.gaps import INPUTS, REAL, Steps, share

from diagnose.budget.model import non_torch
from diagnose.units import Size


@for_each("request_, segment", [(1, 2 * MIB), (MIB, 2 * MIB), (MIB + 1, 20 * MIB), (10 * MIB, 10 * MIB), (11 * MIB, 12 * MIB)])
def test_segments(request_: int, segment: int) -> None:
    store = Allocator()
    store.take(request_)
    assert store.reserved == segment


def test_the_smallest_block_that_is_large_enough_is_taken() -> None:
    store = Allocator()
    blocks = [store.take(size * MIB) for size in (64, 32, 48)]
    store.give(*blocks)
    taken = store.take(31 * MIB + 512)
    assert taken is blocks[1] and taken.size == 32 * MIB  # no more than 1 MiB would be left
    assert store.take(40 * MIB) is blocks[2] and blocks[2].size == 40 * MIB
    assert store.reserved == 144 * MIB


def test_neighbours_merge_and_segments_do_not() -> None:
    store = Allocator()
    whole = store.take(64 * MIB)
    store.give(whole)
    parts = [store.take(16 * MIB) for _ in range(4)]
    store.give(*parts)
    store.take(64 * MIB)
    assert store.reserved == 64 * MIB
    other = store.take(64 * MIB)
    store.give(other)
    store.take(65 * MIB)
    assert store.reserved == (64 + 64 + 66) * MIB


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40 * MIB)), max_size=60))
def test_blocks_in_use_never_overlap(moves: list[tuple[bool, int]]) -> None:
    store = Allocator()
    held: list[Block] = []
    for back, size in moves:
        if back and held:
            store.give(held.pop(size % len(held)))
        else:
            held.append(store.take(size))
        ends = sorted((block.address, block.address + block.size) for block in held)
        assert all(first[1] <= second[0] for first, second in pairwise(ends))
        assert store.allocated == sum(block.size for block in held) <= store.reserved
    store.give(*held)
    assert store.allocated == 0


@pytest.mark.parametrize("tokens", [512, 2048])
def test_blocks_of_a_loss_that_nothing_fits_in(tokens: int) -> None:
    """16-bit logits serve no fp32 ones: with one length what is reserved is what `laid` says, but for whole segments of 2 MiB."""
    store, shape = Allocator(), Shape(vocab=32000, hidden=1024, layers=1, width=4096)
    for _ in range(3):
        loss(store, shape, tokens)
    one = 4 * shape.vocab * tokens
    call, backward = {"half": one // 2, "fp32": one, "kept": one}, {"kept": one, "gradient": one, "of_logits": one}
    found = blocks.laid(call, backward)
    assert sum(found) == 7 * one // 2
    assert 0 <= store.most_reserved - sum(found) <= 4 * 2 * MIB
    assert store.most_allocated == 3 * one


def test_records_of_one_block_are_as_long_as_expected() -> None:
    """A block per row, every size as likely as any other: the mean of what longer rows left behind, over many orders, is the upper end."""
    sizes, left = 48, []
    for seed in range(100):
        store, source = Allocator(), random.Random(seed)
        for _ in range(40 * sizes):
            store.give(store.take(source.randint(6, sizes) * 2 * MIB))  # below 10 MiB segments are of another kind
        left.append(store.reserved - sizes * 2 * MIB)
    expected = blocks.outgrown([sizes * 2 * MIB]).high
    assert sum(left) / len(left) == pytest.approx(expected, rel=0.1)


def test_lengths_that_vary_reserve_more() -> None:
    shape = Shape(vocab=32000, hidden=1024, layers=2, width=4096)
    source = random.Random(1)
    steady = reserved(shape, [1024] * 30).most_reserved
    assert reserved(shape, [*(source.randint(1, 1024) for _ in range(30)), 1024]).most_reserved > steady


def test_small_blocks_outgrow_nothing() -> None:
    assert blocks.outgrown([]).high == 0
    assert blocks.outgrown([MIB] * 3).high == 0
    assert blocks.outgrown([GIB] * 3).high == pytest.approx(3 * blocks.outgrown([GIB]).high)
    assert blocks.outgrown([GIB]).high > GIB


@for_each("inputs", INPUTS)
def test_gaps_of_a_layer_lie_within_their_ends(inputs: str) -> None:
    """The ends are those of the simulation, for real widths, where a layer outweighs the loss."""
    layer = Size.between(10**9, 10**9)
    low, high = blocks.gaps(layer).low / 10**9, blocks.gaps(layer).high / 10**9
    assert all(low <= share(widths, 16384, inputs) <= high for widths in REAL)


@for_each("inputs", INPUTS)
def test_what_waits_beside_the_loss_lies_within_its_ends(inputs: str) -> None:
    """The share of a layer that stays reserved beside whole logits, for real widths and both kinds of loss."""
    layer = Size.between(10**9, 10**9)
    low, high = blocks.stuck(layer).low / 10**9, blocks.stuck(layer).high / 10**9
    for upcast in (False, True):
        assert all(low <= stuck.share(*real, 4096, inputs, upcast=upcast) <= high for real in stuck.REAL)


@for_each("inputs", INPUTS)
def test_every_block_of_a_layer_is_given_back(inputs: str) -> None:
    """A block that the simulated layer forgets would be a gap that there is not."""
    for steps in (Steps(REAL[0], 2048, inputs), stuck.WithLoss(REAL[0], 2048, inputs, 2, upcast=True)):
        steps.run(1)
        assert steps.store.allocated == 0


@given(st.lists(st.integers(6, 200), min_size=1, max_size=5), st.lists(st.integers(6, 200), max_size=4), st.integers(0, 30))
def test_blocks_of_the_loss_that_the_step_cannot_use(freed: list[int], large: list[int], small: int) -> None:
    """The rules reserve what is left idle and what is in use, but for small tensors that straddle the ends of two blocks."""
    store = Allocator()
    store.give(*[store.take(2 * count * MIB) for count in freed])
    for count in large:
        store.take(2 * count * MIB)
    for _ in range(small):
        store.take(2 * MIB)
    asked = [2 * count * MIB for count in large]
    left = blocks.idle([2 * count * MIB for count in freed], asked, 2 * small * MIB)
    assert 0 <= store.reserved - left - store.allocated <= 20 * MIB * (1 + len(freed))
    assert left <= sum(freed) * 2 * MIB


def test_expandable_segments_keep_a_few_blocks_and_no_share() -> None:
    """Free memory of such a segment lies together, whatever was cut out of it (c10/cuda/CUDACachingAllocator.cpp ExpandableSegment)."""
    peak = Size.exactly(40 * GIB)
    assert non_torch.allocator_slack(peak, expandable=True).bytes < GIB // 8 < non_torch.allocator_slack(peak).bytes
