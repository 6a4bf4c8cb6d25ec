"""What a training process takes of a card beside torch's allocated bytes: context, communicators, what the allocator keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from diagnose.budget.known import table
from diagnose.facts import FactBook
from diagnose.units import Size

MIB = 2**20

#: Large blocks are a multiple of this (c10/cuda/CUDACachingAllocator.cpp kRoundLarge): rows of nearly one length share them.
STEP = 2 * MIB

EULER = 0.5772156649


def context(book: FactBook, *, eager: bool = False) -> Size:
    """The CUDA context with its libraries, as measured on cards of this compute capability (rules/ledger.yaml, outside); `eager`:
    with every kernel loaded at once."""
    figures = table()["outside"]
    capability = book.version("hardware.compute_capability")
    low, high = figures["eager"] if eager else figures["context"].get(str(capability), figures["context"]["other"])
    return Size.between(low * MIB, high * MIB)


def modules() -> Size:
    """Kernels that a training run loads beside the context: cuDNN, flash attention, Triton."""
    low, high = table()["outside"]["modules"]
    return Size.between(low * MIB, high * MIB)


def process() -> Size:
    """What one process may hold beside torch, whatever its card and its communicators."""
    low, high = table()["outside"]["process"]
    return Size.between(low * MIB, high * MIB)


def communicators(cards: int, groups: int = 1) -> Size:
    """The NCCL communicators of a rank, one for each group that it exchanges with (data, tensor, pipeline, context, expert parallel);
    none on one card. A group beyond the first takes up to as much as the least that the first one takes."""
    if cards < 2:
        return Size.between(0, 0)
    low, high = table()["outside"]["nccl"]
    return Size.between(low * MIB, (high + low * max(0, groups - 1)) * MIB)


def groups(tensor: int, pipeline: int, context: int, expert: int, ranks: int | None) -> int:
    """How many kinds of groups a rank belongs to."""
    return max(1, sum(degree > 1 for degree in (tensor, pipeline, context, expert, ranks or 1)))


def kept(allocated: Size) -> Size:
    """What the allocator keeps above what is allocated at the peak where every micro batch has one shape: at least a few blocks that are
    not full, up to a share of it. Never less than nothing, and no estimate of fragmentation."""
    figures = table()["outside"]["kept"]
    low, high = figures["share"]
    least = figures["least"] * MIB
    return Size.between(
        round(low * allocated.low), max(least, round(high * allocated.high)), max(least, round((low + high) / 2 * allocated.bytes))
    )


def gaps(layer: Size) -> Size:
    """What stays reserved between the blocks of a `layer` that is computed again in backward, of its bytes: gradients and copies of its
    inner widths find no freed block of their own size, or leave a part of a larger one (simulated by the rules of
    c10/cuda/CUDACachingAllocator.cpp; rules/ledger.yaml, outside)."""
    low, high = table()["outside"]["gaps"]
    return Size.between(round(low * layer.low), round(high * layer.high), round((low + high) / 2 * layer.bytes))


def outgrown(blocks: Sequence[int]) -> Size:
    """What stays reserved of the blocks (bytes) of shorter rows, where rows differ in length. A block serves no longer row than its own,
    and goes back to the card only when that is full: each row that is longer than all before it takes all its `blocks` anew. Lengths of m
    distinguishable sizes, each as likely as any other, make records of (1 + 1/m)*H_m - 1 times the longest together, H_m = 1 + ... + 1/m,
    once every size has come up, and of one where the longest comes first: the longest itself less, both are the ends."""
    sizes = max(blocks, default=0) // STEP
    if sizes < 2:
        return Size.between(0, 0)
    harmonic = math.log(sizes) + EULER + 1 / (2 * sizes)
    high = round(max(0.0, (1 + 1 / sizes) * harmonic - 2) * sum(blocks))
    return Size.between(0, high)


def laid(call: Mapping[str, int], backward: Mapping[str, int]) -> list[int]:
    """The blocks of a loss where every micro batch has one shape, in bytes: those of its call, named and in order, and of backward those
    that find no freed block of at least their size (best fit, c10/cuda/CUDACachingAllocator.cpp get_free_block)."""
    free = sorted(size for name, size in call.items() if name not in backward)
    blocks = list(call.values())
    for size in (size for name, size in backward.items() if name not in call):
        place = _fitting(free, size)
        if place is None:
            blocks.append(size)
        else:
            free.pop(place)
    return blocks


def idle(blocks: Sequence[int], large: Sequence[int], small: int) -> int:
    """Bytes of freed `blocks` that serve nothing of what is asked for afterwards: `large` tensors, which take a part of the smallest block
    that is large enough, and so many bytes of `small` ones, which find room in any."""
    free = sorted(blocks)
    for size in large:
        place = _fitting(free, size)
        if place is not None:
            free = sorted([*free[:place], *free[place + 1 :], free[place] - size])
    return max(0, sum(free) - small)


def _fitting(free: Sequence[int], size: int) -> int | None:
    return next((index for index, block in enumerate(free) if block >= size), None)
