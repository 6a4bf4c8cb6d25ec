"""torch's caching allocator by its rules (c10/cuda/CUDACachingAllocator.cpp, read at 2.5): what is reserved beside what is allocated.

Requests in multiples of 512 bytes, or of `roundup_power2_divisions`; up to 1 MiB from segments of 2 MiB, up to 10 MiB from segments of
20 MiB, above from segments of their own in multiples of 2 MiB; the smallest free block of the stream that is large enough, split where more
than 1 MiB (512 bytes in small segments) is left; neighbours in a segment merge when they are free; whole free segments go back only when
the card is full. An expandable segment is one range of addresses for a stream and a kind, mapped in pages of 2 and 20 MiB as far as it is
asked for: a request that no free block of it holds grows the last one. Left out: `garbage_collection_threshold`, blocks that wait for the
event of another stream, graphs' private pools.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import NamedTuple

from diagnose.budget.model.block_rounding import FIRST_POWER, GRAIN, POWERS

MIB, GIB = 2**20, 2**30


class Block:
    """A piece of a segment, with its neighbours there; `mapped` is false where an expandable segment has no memory behind it yet."""

    __slots__ = ("address", "after", "before", "free", "mapped", "pool", "size")

    def __init__(self, address: int, size: int, pool: Pool) -> None:
        self.address, self.size, self.pool, self.free, self.mapped = address, size, pool, False, True
        self.before: Block | None = None
        self.after: Block | None = None


class Pool:
    """The free blocks of one stream, those of up to 1 MiB or the others, by size and then address; `end` is what its expandable segment
    grows into."""

    __slots__ = ("end", "free", "small")

    def __init__(self, *, small: bool) -> None:
        self.small = small
        self.free: list[tuple[int, int, Block]] = []
        self.end: Block | None = None

    def put(self, block: Block) -> None:
        block.free = True
        insort(self.free, (block.size, block.address, block))

    def pick(self, block: Block) -> None:
        del self.free[bisect_left(self.free, (block.size, block.address))]
        block.free = False


class Rules(NamedTuple):
    """Settings of PYTORCH_CUDA_ALLOC_CONF: `expandable` segments; the steps that requests are rounded up to between two powers of two
    (`divisions`: roundup_power2_divisions from 1 MiB on, 0 or 1 for multiples of 512 bytes); `max_split` bytes from which on a block is not
    split (0: any is)."""

    expandable: bool = False
    divisions: tuple[int, ...] = ()
    max_split: int = 0


PLAIN = Rules()


class Allocator:
    """Bytes `allocated` and `reserved` now, and the most there were of each. Of `capacity` bytes whole cached segments go back first."""

    def __init__(self, rules: Rules = PLAIN, capacity: int = 0) -> None:
        self.rules, self.capacity = rules, capacity
        self.allocated = self.reserved = self.most_allocated = self.most_reserved = 0
        self._pools: dict[tuple[int, bool], Pool] = {}
        self._address = 0

    def take(self, request: int, stream: int = 0) -> Block:
        """A block for so many bytes (malloc)."""
        size = rounded(request, self.rules.divisions)
        small = size <= MIB
        pool = self._pools.get((stream, small)) or self._pools.setdefault((stream, small), Pool(small=small))
        block = self._fitting(pool, size)
        if block is None:
            block = self._grown(pool, size) if self.rules.expandable else self._segment(pool, size)
        if self._splits(pool, block.size, size):
            self._split(block, size)
        self.allocated += block.size
        self.most_allocated = max(self.most_allocated, self.allocated)
        return block

    def give(self, *blocks: Block) -> None:
        """Frees blocks (free_block): free neighbours of a segment become one."""
        for block in blocks:
            self.allocated -= block.size
            for near in (block.before, block.after):
                if near is not None and near.free and near.mapped:
                    block.pool.pick(near)
                    self._join(block, near)
            block.pool.put(block)

    def _fitting(self, pool: Pool, size: int) -> Block | None:
        """The smallest free block that is large enough (get_free_block). What an expandable segment may still grow by counts as a part of
        its last block."""
        place = bisect_left(pool.free, (size, 0))
        last = None if pool.end is None else pool.end.before
        if place < len(pool.free) and pool.free[place][2] is last and place + 1 < len(pool.free):
            place += 1
        if place == len(pool.free):
            return None
        block, limit = pool.free[place][2], self.rules.max_split
        if limit and ((size < limit <= block.size) or (size >= limit and block.size >= size + 20 * MIB)):
            return None
        pool.pick(block)
        return block

    def _segment(self, pool: Pool, size: int) -> Block:
        """A segment of its own (get_allocation_size, alloc_block)."""
        whole = 2 * MIB if pool.small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.capacity and self.reserved + whole > self.capacity:
            self._give_back()
        block = Block(self._address, whole, pool)
        self._address += whole + 1
        self._map(whole)
        return block

    def _grown(self, pool: Pool, size: int) -> Block:
        """The end of the stream's expandable segment, with as many pages more as the request needs (try_allocate_expandable_block)."""
        if pool.end is None:
            pool.end = Block(self._address, 0, pool)
            pool.end.mapped = False
            self._address += 2**60
        end, last, page = pool.end, pool.end.before, 2 * MIB if pool.small else 20 * MIB
        there = last.size if last is not None and last.free else 0
        more = -(-(size - there) // page) * page
        block = Block(end.address, more, pool)
        block.before, block.after, end.before = last, end, block
        if last is not None:
            last.after = block
        end.address += more
        self._map(more)
        if there and last is not None:
            pool.pick(last)
            self._join(block, last)
        return block

    def _map(self, size: int) -> None:
        self.reserved += size
        self.most_reserved = max(self.most_reserved, self.reserved)

    def _splits(self, pool: Pool, whole: int, size: int) -> bool:
        """Whether what is left of a block becomes one of its own (should_split)."""
        left = whole - size
        if pool.small or self.rules.expandable:
            return left >= 512
        return left > MIB and (not self.rules.max_split or size < self.rules.max_split)

    def _split(self, block: Block, size: int) -> None:
        rest = Block(block.address + size, block.size - size, block.pool)
        rest.before, rest.after = block, block.after
        if block.after:
            block.after.before = rest
        block.after, block.size = rest, size
        block.pool.put(rest)

    def _give_back(self) -> None:
        """Whole free segments go back to the card (release_cached_blocks)."""
        for pool in self._pools.values():
            for _, _, block in list(pool.free):
                if block.before is None and block.after is None:
                    pool.pick(block)
                    self.reserved -= block.size

    @staticmethod
    def _join(block: Block, near: Block) -> None:
        block.address, block.size = min(block.address, near.address), block.size + near.size
        if near is block.before:
            block.before = near.before
            if near.before:
                near.before.after = block
        else:
            block.after = near.after
            if near.after:
                near.after.before = block


def rounded(request: int, divisions: tuple[int, ...] = ()) -> int:
    """The size of a request's block (round_size): multiples of 512 bytes, or the next step between two powers of two."""
    power = min(max(request.bit_length() - 1 - FIRST_POWER, 0), POWERS - 1)
    steps = divisions[power] if divisions else 0
    grain = 1 << (request.bit_length() - steps.bit_length()) if steps > 1 and request > GRAIN * steps else GRAIN
    return max(GRAIN, -(-request // grain) * grain)
