"""Search for the largest value of a knob at which a job still fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

#: By how much a number is too much, for each thing that limits it (negative: what is left). None of them falls as it grows.
Past: TypeAlias = "Sequence[float]"

#: Where so many questions have not halved the interval, the next one does, or doubles what holds.
PATIENCE = 3


def furthest(over: Callable[[int], Past], start: int, top: int, tried: Mapping[int, Past] | None = None) -> int:
    """The largest n in 1..top for which every figure of `over(n)` is at most 0; 0 if there is none.

    The limits grow almost linearly with n, so the search interpolates between known outcomes, and bisects where that does not narrow the
    interval: at most about 4 * log2(top) calls. `tried`: outcomes known beforehand; `start`: the first guess where they are too few to
    interpolate.
    """
    outcomes = {n: past for n, past in (tried or {}).items() if 0 < n <= top}
    low = max((n for n, past in outcomes.items() if holds(past)), default=0)
    high = min((n for n, past in outcomes.items() if not holds(past)), default=top + 1)
    widths = [high - low]
    while high - low > 1:
        stuck = len(widths) > PATIENCE and 2 * widths[-1] > widths[-1 - PATIENCE]
        if len(outcomes) > 1 and not stuck:
            at = _meeting(outcomes, low, high)
        elif high > top:
            at = start if low < start and not stuck else 2 * low
        else:
            at = (low + high) // 2
        at = min(max(at, low + 1), high - 1)
        outcomes[at] = over(at)
        low, high = (at, high) if holds(outcomes[at]) else (low, at)
        widths.append(high - low)
    return low


def holds(past: Past) -> bool:
    """Whether no limit is exceeded."""
    return max(past) <= 0


def _meeting(outcomes: Mapping[int, Past], low: int, high: int) -> int:
    """The value at which the first of the lines through two neighbouring outcomes crosses zero; `high` if none does before."""
    near = sorted(outcomes, key=lambda n: (n not in (low, high), min(abs(n - low), abs(n - high))))
    first, second = sorted(near[:2])
    left, right = outcomes[first], outcomes[second]
    if len(left) != len(right):  # other things limit it there
        left, right = (max(left),), (max(right),)
    met = [first - (second - first) * a / (b - a) if b > a else 0.0 for a, b in zip(left, right, strict=True) if b > a or b > 0]
    return int(max(0.0, min(met, default=high)))
