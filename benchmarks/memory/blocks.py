"""What torch's caching allocator keeps in blocks that nothing asked for fits in, by the rules that allocator.py simulates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from diagnose.budget.model.non_torch import MIB
from diagnose.units import Size

#: Large blocks are a multiple of this (c10/cuda/CUDACachingAllocator.cpp kRoundLarge): rows of nearly one length share them.
STEP = 2 * MIB

EULER = 0.5772156649

#: The ends of `gaps` and `stuck` as shares of a layer's working set: the tables that gaps.py and stuck.py print.
GAPS = (0, 0.22)
STUCK = (0.45, 1.08)


def gaps(layer: Size) -> Size:
    """What stays reserved between the blocks of a `layer` that is computed again in backward, of its bytes: gradients and copies of its
    inner widths find no freed block of their own size, or leave a part of a larger one (simulated by gaps.py)."""
    low, high = GAPS
    return Size.between(round(low * layer.low), round(high * layer.high), round((low + high) / 2 * layer.bytes))


def stuck(layer: Size) -> Size:
    """What stays reserved beside whole logits where every `layer` is computed again, of the bytes that it takes: its blocks lie in segments
    of their own, in which no block of logits finds room, and wait there while the loss is computed (simulated by stuck.py)."""
    low, high = STUCK
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
