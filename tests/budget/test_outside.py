"""What the caching allocator keeps beside what is in use: the rules of the simulation, and the steps that are played through it."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from memory.allocator import GIB, MIB, Allocator, Block, Rules, rounded
from memory.played import INPUTS, REAL, Job, Player, Sharded, full
from memory.reserved import outgrown


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


ROUNDED = [(513, (), 1024), (5 * MIB + 1, (), 5 * MIB + 512), (5 * MIB + 1, (4,) * 16, 6 * MIB), (9 * MIB, (1,) * 16, 9 * MIB)]


@for_each("request_, divisions, size", ROUNDED)
def test_requests_are_rounded(request_: int, divisions: tuple[int, ...], size: int) -> None:
    assert rounded(request_, divisions) == size


def test_a_stream_has_blocks_of_its_own() -> None:
    store = Allocator()
    store.give(store.take(64 * MIB, 1))
    store.take(64 * MIB)
    assert store.reserved == 128 * MIB


def test_large_blocks_are_not_split_beyond_the_limit() -> None:
    store = Allocator(Rules(max_split=32 * MIB))
    store.give(store.take(64 * MIB))
    store.take(16 * MIB)
    store.take(40 * MIB)
    assert store.reserved == (64 + 16 + 40) * MIB


def test_an_expandable_segment_grows_and_keeps_its_holes() -> None:
    store = Allocator(Rules(expandable=True))
    held = [store.take(40 * MIB) for _ in range(3)]
    store.give(held[2])
    store.take(60 * MIB)  # the free end counts
    assert store.reserved == 140 * MIB
    store.give(held[0])
    store.take(60 * MIB)  # the hole does not
    assert store.reserved == 200 * MIB
    store.give(held[1])
    store.take(80 * MIB)
    assert store.reserved == 200 * MIB


def test_whole_segments_go_back_when_the_card_is_full() -> None:
    store = Allocator(capacity=100 * MIB)
    store.give(store.take(64 * MIB))
    store.take(80 * MIB)
    assert store.reserved == 80 * MIB


def test_records_of_one_block_are_as_long_as_expected() -> None:
    """A block per row, every size as likely as any other: the mean of what longer rows left behind, over many orders, is the upper end."""
    sizes, left = 48, []
    for seed in range(100):
        store, source = Allocator(), random.Random(seed)
        for _ in range(40 * sizes):
            store.give(store.take(source.randint(6, sizes) * 2 * MIB))  # below 10 MiB segments are of another kind
        left.append(store.reserved - sizes * 2 * MIB)
    expected = outgrown([sizes * 2 * MIB]).high
    assert sum(left) / len(left) == pytest.approx(expected, rel=0.1)


def test_small_blocks_outgrow_nothing() -> None:
    assert outgrown([]).high == 0
    assert outgrown([MIB] * 3).high == 0
    assert outgrown([GIB] * 3).high == pytest.approx(3 * outgrown([GIB]).high)
    assert outgrown([GIB]).high > GIB


JOBS = [full(widths, 4, 32000, 2048, inputs) for widths, *_ in REAL[:2] for inputs in INPUTS]


class Counted(Allocator):
    """How many blocks are held."""

    held = 0

    def take(self, request: int, stream: int = 0) -> Block:
        self.held += 1
        return super().take(request, stream)

    def give(self, *blocks: Block) -> None:
        self.held -= len(blocks)
        super().give(*blocks)


@pytest.mark.parametrize("expandable", [False, True])
@for_each("job", JOBS)
def test_every_block_of_a_step_is_given_back(job: Job, expandable: bool) -> None:
    """A block that the player forgets would be a gap that there is not."""
    units = Sharded(2, 10**8, 10**8, 0, 10**8, 2)
    for played in (job, job._replace(checkpoint=0), job._replace(fused=True, sharded=units, micro_batches=2)):
        player, store = Player(played), Counted(Rules(expandable))
        player.store = store
        player.play()
        tensors = len(job.ends) + len(job.matrices) * job.layers
        gathered = 1 if played.sharded.version else 0  # FSDP2 lets go of it at the next
        assert store.held == tensors * (3 if job.states else 1) + gathered
        assert store.most_reserved >= store.most_allocated


@for_each("job", JOBS)
def test_a_layer_is_as_large_as_the_ledger_says(job: Job) -> None:
    player = Player(job._replace(layer=10**9))
    player.play()
    assert player.most == pytest.approx(10**9, rel=0.05)
