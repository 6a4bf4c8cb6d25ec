"""How far a number can be raised before it is too much."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def furthest(over: Callable[[int], float], start: int, top: int, known: Mapping[int, float] | None = None) -> int:
    """The largest n of 1..top at which `over` is not positive, where it never falls as n grows; 0: at none.

    `over` says by how much n is too much (negative: what is left), so that the next n to ask about is where a straight line
    through the two nearest ones meets zero: memory grows almost in proportion, and a few questions are enough. Where it does
    not, the interval is halved, so that there are never more than about twice its logarithm. `known` is what `over` says of some n
    without being asked.
    """
    low, high = 0, top + 1  # holds, holds no more
    left: float | None = None  # what `over` said there
    right: float | None = None
    for at, said in (known or {}).items():
        if said > 0 and at < high:
            high, right = at, said
        elif said <= 0 and at > low:
            low, left = at, said
    at, halve = start if left is None or right is None else _between(low, left, high, right), False
    while high - low > 1:
        at = min(max(at, low + 1), high - 1)
        said, width = over(at), high - low
        low, left, high, right = (low, left, at, said) if said > 0 else (at, said, high, right)
        if right is None:
            at = min(2 * low, top)
        elif left is None:
            at = high // 2
        else:
            at = (low + high) // 2 if halve else _between(low, left, high, right)
        halve = right is not None and left is not None and not halve and 2 * (high - low) > width
    return low


def _between(low: int, left: float, high: int, right: float) -> int:
    """Where a straight line through both ends meets zero."""
    return low + int((high - low) * (-left / (right - left)))
