"""From the bytes of a tensor to the size that its device's allocator prints when it asks for a block, and back."""

from __future__ import annotations

import re
from functools import cache

from diagnose import families
from diagnose.facts import FactBook
from diagnose.parse.model.event import Event
from diagnose.records import NamedTuple
from diagnose.traits import during, traits_of
from diagnose.units import Size, torch_prints

MIB = 2**20

#: From here on a tensor has a block of its own, in bytes (kMinLargeAlloc).
OWN_BLOCK = 10 * MIB

#: What every tensor is rounded up to first, in bytes (kMinBlockSize).
GRAIN = 512

#: What Ascend's copy of the allocator puts in front of every tensor, in bytes.
NPU_HEADER = 32

#: The first power of two that roundup_power2_divisions tells apart (1 MiB), and how many it does (up to 64 GiB).
FIRST_POWER, POWERS = 20, 16

#: A figure as torch's format_size prints it; others were printed by somebody else, or edited.
TORCH_FIGURE = r"\d+\.\d\d [KMG]iB|\d+ bytes"


class Allocator(NamedTuple):
    """How an allocator turns a tensor into a request, in bytes.

    `exact`: it asks for what the tensor needs. `header`: bytes in front of every tensor. `large`: the block shared by tensors of 1 to 10
    MiB. `divisions`: for each power of two from 1 MiB on, into how many steps it is divided (roundup_power2_divisions; 0: none).
    """

    exact: bool = False
    header: int = 0
    large: int = 20 * MIB
    divisions: tuple[int, ...] = ()


#: CUDA's, which ROCm, XPU, MLU, MUSA and GCU copied with their constants (c10/cuda/CUDACachingAllocator.cpp).
CUDA = Allocator()

#: Allocators of their own: Apple's and cudaMallocAsync's ask for what is needed (aten/src/ATen/mps/MPSAllocator.mm,
#: c10/cuda/CUDAMallocAsyncAllocator.cpp).
EXACT = Allocator(exact=True)
OWN = {"exact": EXACT, "npu": Allocator(header=NPU_HEADER)}


def allocators(book: FactBook, event: Event) -> tuple[Allocator, ...]:
    """The allocators that may have printed this request. A framework's own rounding can be undone by an environment variable that the log
    need not show: then both are possible."""
    family = families.of(event.family)
    base = OWN.get(family.allocator, CUDA)
    asynchronous = book.word("alloc.backend") == "cuda_async" or book.switch("log.request_exact") is True
    segment = book.size("alloc.large_segment")
    large = segment.bytes if segment is not None and segment.bytes > 0 else base.large
    if base.exact or asynchronous or (event.requested is not None and _is_unblocked(event.requested, large)):
        return (EXACT,)
    plain = Allocator(False, base.header, large)
    if not family.divides:
        return (plain,)
    roundup_fact = book.fact("alloc.roundup")
    if roundup_fact is not None:
        return (Allocator(False, base.header, large, parse_divisions(str(roundup_fact.value))),)
    steps = _framework_divisions(book)
    return (plain, Allocator(False, base.header, large, steps)) if any(steps) else (plain,)


def _framework_divisions(book: FactBook) -> tuple[int, ...]:
    """The roundup_power2_divisions that the framework sets in releases that may be this run's; empty where the user's variable replaces
    them."""
    roundup, expandable_fact = traits_of(book.word("train.framework")).roundup, book.fact("alloc.expandable_segments")
    if roundup is None or (expandable_fact is not None and expandable_fact.origin != "default"):
        return ()
    return parse_divisions(roundup.divisions) if during(roundup.releases, book) is not False else ()


def _is_unblocked(requested: Size, large: int) -> bool:
    """Whether no caching allocator asks for this size (below 2 MiB, or an odd number of MiB), so that it is the tensor's own."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) (MiB|KiB|bytes)", requested.text)
    return match is not None and (match[2] != "MiB" or float(match[1]) % 2 != 0) and large not in requested


@cache
def parse_divisions(text: str) -> tuple[int, ...]:
    """roundup_power2_divisions as written, `16` or `[256:1,512:2,>:4]`, as the number of steps for each power of two; empty where
    malformed.

    As in torch, powers below the first that is named are divided as that one, those between two named ones not at all.
    """
    text = text.replace(" ", "")
    if re.fullmatch(r"\d{1,9}", text):
        return (int(text),) * POWERS if _power(int(text)) else ()
    match = re.fullmatch(r"\[((?:\d{1,9}|>):\d{1,9}(?:,(?:\d{1,9}|>):\d{1,9}){0,31})\]", text)
    if not match:
        return ()
    steps, last = [0] * POWERS, -1
    for bound, _, count in (pair.partition(":") for pair in match[1].split(",")):
        parts = int(count)
        if parts and not _power(parts):
            return ()
        if bound == ">":
            steps[last + 1 :] = [parts] * (POWERS - last - 1)
            continue
        if not _power(int(bound)):
            return ()
        index = min(int(bound).bit_length() - 1, POWERS - 1)
        if last < 0:
            steps[:index] = [parts] * index
        steps[index], last = parts, index
    return tuple(steps)


def _power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def block(tensor: int, kind: Allocator = CUDA) -> int:
    """Bytes of the block that a tensor of so many bytes asks for: the tensor rounded up to 512 bytes or a division of a power of two, and
    that to 2 MiB (up to 1 MiB), 20 MiB (below 10 MiB), or the next multiple of 2 MiB."""
    if kind.exact:
        return tensor
    size = _round_up(tensor + kind.header, kind.divisions)
    if size <= MIB:
        return 2 * MIB
    if size < OWN_BLOCK:
        return kind.large
    return -(-size // (2 * MIB)) * 2 * MIB


def _round_up(size: int, steps: tuple[int, ...]) -> int:
    power = size.bit_length() - 1
    parts = steps[min(max(power - FIRST_POWER, 0), POWERS - 1)] if steps and size >= GRAIN else 0
    if parts <= 1 or size <= GRAIN * parts:
        return -(-size // GRAIN) * GRAIN
    step = (1 << power) // parts
    return -(-size // step) * step


def prints_as(tensor: int, requested: Size, kind: Allocator = CUDA) -> bool:
    """Whether a tensor of so many bytes would have been printed as this request."""
    return _compare_block(block(tensor, kind), requested) == 0


def is_ambiguous_block(requested: Size, kind: Allocator = CUDA) -> bool:
    """Whether the request is a block size that any small tensor asks for (2 and 20 MiB)."""
    return not kind.exact and any(requested.low <= size <= requested.high for size in (2 * MIB, kind.large))


def window(requested: Size, kind: Allocator = CUDA) -> tuple[int, int]:
    """The smallest and largest tensor, in bytes, that would print as this request; the first above the second where none would.

    Block sizes never fall as tensors above 10 MiB grow, so that either end is found by bisection.
    """
    return max(1, _smallest_tensor(requested, kind, 0)), _smallest_tensor(requested, kind, 1) - 1


def _smallest_tensor(requested: Size, kind: Allocator, side: int) -> int:
    """The smallest tensor that prints as the request or as more; with `side` 1 the smallest that prints as more."""
    low, high = 0, 2 * max(requested.high, OWN_BLOCK)
    while low < high:
        middle = (low + high) // 2
        own = kind.exact or _round_up(middle + kind.header, kind.divisions) >= OWN_BLOCK
        if own and _compare_block(block(middle, kind), requested) >= side:
            high = middle
        else:
            low = middle + 1
    return low


def _compare_block(whole: int, requested: Size) -> int:
    """-1, 0 or 1: a block of so many bytes prints as less than the request, as it, or as more."""
    rounded = requested.low < requested.high and re.fullmatch(TORCH_FIGURE, requested.text)
    alike = torch_prints(whole) == requested.text if rounded else whole in requested
    return 0 if alike else 1 if whole > requested.bytes else -1
