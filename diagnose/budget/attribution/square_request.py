"""A request that a message prints to the byte and that is a square: a number for each of n rows with each other, as attention and distances
make them. Of sizes that mean nothing one in some forty thousand is one, so that the figure alone names the tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt

from diagnose import families, rule_files
from diagnose.budget.attribution.tensor_table import Tensor, every_tensor
from diagnose.budget.attribution.told_by_log import shown_tensor
from diagnose.budget.model.ledger import Attribution
from diagnose.parse.model.event import Event
from diagnose.phrases import phrase, same

#: Bytes per element, the most common first, and how many such squares lie in one tensor: those of all heads, or one.
WIDTHS = (4, 2, 8)
#: In host memory programs compute in 32 or 64 bits; twice a square is that of half the side in 64.
HOST_WIDTHS = (4, 8, 2)
HEADS = (12, 16, 32, 8, 20, 24, 40, 64)
#: Sides below this are no rows: the size may be anything.
FEWEST = 1000
#: A side of no other prime factors is a width or a round figure: its square is also the product of other such sides.
SMALL_PRIMES = (2, 3, 5, 7)


def square_tensor(event: Event, index: int) -> Attribution | None:
    """The square that the request of this event (`index`: its number) is, None where it is none or not printed to the byte."""
    requested = event.requested
    if requested is None or requested.low < requested.high:
        return None
    on_host = families.of(event.family).memory == "host"
    counts = (1, *HEADS) if on_host else (*HEADS, 1)  # where 16 heads fit, a single square of four times the side does, too
    count, side, width = next(_squares(requested.bytes, counts, HOST_WIDTHS if on_host else WIDTHS), (0, 0, 0))
    if not count:
        return None
    entry = _entry("p_square" if count == 1 else "p_squares_of_heads")
    shape = " x ".join(map(str, (side, side) if count == 1 else (count, side, side)))
    name = phrase("ledger.tensor_shape", tensor=phrase(f"ledger.{entry.key}"), shape=same(shape))
    return shown_tensor(
        entry,
        index,
        phrase("ledger.host_tensor", tensor=name) if on_host else name,
        requested.bytes,
        group=rule_files.table("vocabulary")["fills_host"][0] if on_host else entry.group,
        numbers=f"{width}*{count}*{side}*{side}" if count > 1 else f"{width}*{side}*{side}",
        by_frame=False,
        chance=0.0,
        lowered_by=dict(entry.lowered),
        avoided_by=() if on_host else entry.avoided,
    )


def _squares(size: int, counts: Sequence[int], widths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """The (number of squares, side, bytes per element) that make a size."""
    for count in counts:
        for width in widths:
            side = isqrt(size // (count * width))
            if side >= FEWEST and side * side * count * width == size and _rest(side) > 1:
                yield count, side, width


def _rest(side: int) -> int:
    """What is left of a side without its small prime factors."""
    for prime in SMALL_PRIMES:
        while side % prime == 0:
            side //= prime
    return side


def _entry(key: str) -> Tensor:
    return next(tensor for tensor in every_tensor() if tensor.key == key)
