"""torch's caching allocator by its rules, driven by the steps of a training run: what is reserved beside what is allocated.

    python benchmarks/memory/allocator.py [--vocab V] [--hidden H] [--layers L] [--width F] [--limit S] [--rows N] [--seeds K]

Nothing here is measured. The rules are those of c10/cuda/CUDACachingAllocator.cpp (2.1, without its settings): requests in multiples of
512 bytes; up to 1 MiB from segments of 2 MiB, up to 10 MiB from segments of 20 MiB, above from segments of their own in multiples of
2 MiB; the smallest free block that is large enough, split where more than 1 MiB (512 bytes in small segments) is left; neighbours in a
segment merge when they are free; segments go back only when the card is full. The table holds what blocks.py says of the
blocks that stay (`laid`, `outgrown`) against the simulation.
"""

from __future__ import annotations

import argparse
import random
import sys
from bisect import bisect_left, insort
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from memory import blocks  # noqa: E402 - found by the line above

MIB, GIB = 2**20, 2**30


class Block:
    """A piece of a segment, with its neighbours there."""

    __slots__ = ("address", "after", "before", "free", "size", "small")

    def __init__(self, address: int, size: int, *, small: bool) -> None:
        self.address, self.size, self.small, self.free = address, size, small, False
        self.before: Block | None = None
        self.after: Block | None = None


class Allocator:
    """Bytes `allocated` and `reserved` now, and the most there were of each."""

    def __init__(self) -> None:
        self.allocated = self.reserved = self.most_allocated = self.most_reserved = 0
        self._free: tuple[list[tuple[int, int, Block]], ...] = ([], [])  # by size, then address: large, small
        self._address = 0

    def take(self, request: int) -> Block:
        size = max(512, -(-request // 512) * 512)
        small = size <= MIB
        free = self._free[small]
        place = bisect_left(free, (size, 0))
        block = free.pop(place)[2] if place < len(free) else self._segment(size, small=small)
        left = block.size - size
        if left > MIB or (small and left >= 512):
            self._split(block, size)
        block.free = False
        self.allocated += block.size
        self.most_allocated = max(self.most_allocated, self.allocated)
        return block

    def give(self, *blocks: Block) -> None:
        for block in blocks:
            self.allocated -= block.size
            self._merged(block)
            block.free = True
            insort(self._free[block.small], (block.size, block.address, block))

    def _segment(self, size: int, *, small: bool) -> Block:
        whole = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        block = Block(self._address, whole, small=small)
        self._address += whole + 1
        self.reserved += whole
        self.most_reserved = max(self.most_reserved, self.reserved)
        return block

    def _split(self, block: Block, size: int) -> None:
        rest = Block(block.address + size, block.size - size, small=block.small)
        rest.before, rest.after, rest.free = block, block.after, True
        if block.after:
            block.after.before = rest
        block.after, block.size = rest, size
        insort(self._free[block.small], (rest.size, rest.address, rest))

    def _merged(self, block: Block) -> None:
        free = self._free[block.small]
        for near in (block.before, block.after):
            if near is None or not near.free:
                continue
            del free[bisect_left(free, (near.size, near.address))]
            block.address, block.size = min(block.address, near.address), block.size + near.size
            if near is block.before:
                block.before = near.before
                if near.before:
                    near.before.after = block
            else:
                block.after = near.after
                if near.after:
                    near.after.before = block


class Shape(NamedTuple):
    vocab: int
    hidden: int
    layers: int
    width: int


def loss(store: Allocator, shape: Shape, tokens: int) -> None:
    """Logits in 16 bits, in fp32, their log-softmax, and the gradients of both: the head's own are gone before the loss."""
    every = shape.vocab * tokens
    half = store.take(2 * every)
    full = store.take(4 * every)
    store.give(half)
    log_softmax = store.take(4 * every)
    store.give(full)
    gradient = store.take(4 * every)
    of_logits = store.take(4 * every)
    store.give(gradient, log_softmax)
    half = store.take(2 * every)
    store.give(of_logits, half)


def layer(store: Allocator, shape: Shape, tokens: int) -> list[Block]:
    """What a decoder layer makes for backward, in blocks: norms, projections, attention, MLP."""
    h, f = shape.hidden * tokens, shape.width * tokens
    return [store.take(size) for size in (4 * h, 2 * h, 6 * h, 2 * h, 2 * h, 2 * h, 4 * h, 2 * h, 2 * f, 2 * f, 2 * f, 2 * f)]


def step(store: Allocator, shape: Shape, tokens: int) -> None:
    """One micro batch with checkpointed layers and frozen weights."""
    kept = []
    for _ in range(shape.layers):
        kept.append(store.take(2 * shape.hidden * tokens))
        store.give(*layer(store, shape, tokens))
    loss(store, shape, tokens)
    for block in reversed(kept):
        store.give(*layer(store, shape, tokens), block)


def reserved(shape: Shape, lengths: list[int]) -> Allocator:
    """An allocator after steps of these lengths."""
    store = Allocator()
    for tokens in lengths:
        step(store, shape, tokens)
    return store


def main() -> None:
    ask = argparse.ArgumentParser(description="what the caching allocator keeps of a run")
    for name, default in (
        ("vocab", 151936),
        ("hidden", 4096),
        ("layers", 4),
        ("width", 11008),
        ("limit", 2048),
        ("rows", 300),
        ("seeds", 7),
    ):
        ask.add_argument(f"--{name}", type=int, default=default)
    asked = ask.parse_args()
    shape = Shape(asked.vocab, asked.hidden, asked.layers, asked.width)
    one = 4 * shape.vocab * asked.limit
    call, backward = {"half": one // 2, "fp32": one, "log_softmax": one}, {"log_softmax": one, "gradient": one, "of_logits": one}
    steady = reserved(shape, [asked.limit] * 3)
    print(f"one length     allocated {steady.most_allocated / GIB:6.2f}  reserved {steady.most_reserved / GIB:6.2f} GiB")
    print(f"  blocks of the loss beside those in use, laid: {(sum(blocks.laid(call, backward)) - 3 * one) / GIB:.2f} GiB")
    found = []
    for seed in range(asked.seeds):
        source = random.Random(seed)
        lengths = [source.randint(1, asked.limit) for _ in range(asked.rows)]
        found.append(reserved(shape, lengths).most_reserved - steady.most_reserved)
    spread = " ".join(f"{size / GIB:.2f}" for size in sorted(found))
    print(f"{asked.rows} rows of 1 to {asked.limit}: reserved beyond that {spread}, median {median(found) / GIB:.2f} GiB")
    print(f"  blocks of shorter rows, outgrown: {blocks.outgrown([one] * 3)}")


if __name__ == "__main__":
    main()
