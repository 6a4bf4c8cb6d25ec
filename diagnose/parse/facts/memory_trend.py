"""Classify a series of sizes: flat, step_change, linear_growth, per_epoch_reset, spikes or unknown, with slope or jump; and tie its
changes to what the job did between two prints."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from diagnose.parse.facts.memory_points import FEW, FEWEST
from diagnose.records import NamedTuple
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Growth that each third of the prints must show over the one before: less is noise, or a plateau.
_GROWTH = 1.03
#: So little of the variation that a line leaves is none: it rises in a few prints as it would in many.
_STRAIGHT = 0.02
#: Differences below this share of the level are none.
_LEVEL = 0.03
#: What stands out of a level by this share of it.
_OUT = 0.10
#: Few prints are in proportion where the growth per step differs by this factor at most, and all of it is such a share of the first.
_ALIKE, _MUCH = 1.5, 0.5


class Trend(NamedTuple):
    """The kind of course. `per_step`: growth per step (linear_growth); `jump`: index of the first point on the new level (step_change)."""

    word: str
    per_step: Size | None = None
    jump: int | None = None


def classify_trend(sizes: Sequence[Size], steps: Sequence[int] | None = None) -> Trend:
    """The trend of sizes in the order they were printed; `steps`: their training steps, if known."""
    values = [float(size.bytes) for size in sizes]
    slop = float(max((size.high - size.low for size in sizes), default=0))
    if len(sizes) < FEWEST:
        proportional = steps is not None and _is_proportional(values, steps)
        return Trend("linear_growth", _slope(values, steps or (), slop)) if proportional else Trend("unknown")
    warm = _without_warm_up(values)
    if _is_flat(values, slop) or _is_flat(warm, slop):
        return Trend("flat")
    if _is_periodic(values):
        return Trend("per_epoch_reset")
    if _has_spikes(warm):
        return Trend("spikes")
    jump, apart = _best_split(values)
    if _grows(values) and _line_residual(values) <= apart:
        return Trend("linear_growth", _slope(values, steps, slop) if steps else None)
    if _is_step(values, jump, apart):
        return Trend("step_change", jump=jump)
    return Trend("unknown")


def _without_warm_up(values: list[float]) -> list[float]:
    """The sizes without the first ones, during which optimizer states and caches are created."""
    return values[max(1, len(values) // 10) :] if len(values) > FEWEST else values


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _is_flat(values: Sequence[float], slop: float) -> bool:
    return max(values) - min(values) <= max(_LEVEL * _median(values), slop)


def _grows(values: Sequence[float]) -> bool:
    """Whether each third of the prints shows growth, or a straight line leaves next to nothing to explain."""
    if values[-1] > values[0] and _line_residual(values) <= _STRAIGHT * _squares(values):
        return True
    third = len(values) // 3
    early, middle, late = _mean(values[:third]), _mean(values[third:-third]), _mean(values[-third:])
    return middle >= early * _GROWTH and late >= middle * _GROWTH


def _is_proportional(values: Sequence[float], steps: Sequence[int]) -> bool:
    """Whether so few prints all grow by about as much per step, and by much in all."""
    if len(values) < FEW or any(later <= sooner for sooner, later in pairwise(steps)):
        return False
    rates = [change / step for change, step in zip(_differences(values), _differences(steps), strict=True)]
    return min(rates) > 0 and max(rates) <= _ALIKE * min(rates) and values[-1] - values[0] >= _MUCH * values[0]


def _differences(values: Sequence[float]) -> list[float]:
    return [later - sooner for sooner, later in pairwise(values)]


def _is_periodic(values: Sequence[float]) -> bool:
    """Whether sizes rise slowly and fall suddenly, two or more times, at even distances."""
    spread = max(values) - min(values)
    if spread < 2 * _LEVEL * _median(values):
        return False
    falls = [index for index in range(1, len(values)) if values[index - 1] - values[index] > 0.5 * spread]
    edges = [0, *falls, len(values)]
    rises = [values[start:stop] for start, stop in pairwise(edges)]
    whole = rises[:-1]
    if len(falls) < 2 or any(len(rise) < 3 or not _is_slow(rise, spread) for rise in whole):
        return False
    between = [later - sooner for sooner, later in pairwise(edges[:-1])]
    return max(between) <= 1.5 * min(between) and len(rises[-1]) <= 1.5 * max(between)


def _is_slow(rise: Sequence[float], spread: float) -> bool:
    """Whether a rise is spread over several prints."""
    leaps = [later - sooner for sooner, later in pairwise(rise)]
    return rise[-1] - rise[0] > 0.5 * spread and max(leaps) < 0.8 * (rise[-1] - rise[0])


def _has_spikes(values: Sequence[float]) -> bool:
    """Whether a few sizes stand out above a level, each for a moment only (or at the end)."""
    level = _median(values)
    high = [value > level * (1 + _OUT) for value in values]
    usual = [value for value, out in zip(values, high, strict=True) if not out]
    longest = run = 0
    for out in high:
        run = run + 1 if out else 0
        longest = max(longest, run)
    return 0 < sum(high) <= len(values) / 4 and longest <= max(1, len(values) // 12) and max(usual) - min(usual) <= _OUT * level


def _squares(values: Sequence[float]) -> float:
    mean = _mean(values)
    return sum((value - mean) ** 2 for value in values)


def _best_split(values: Sequence[float]) -> tuple[int, float]:
    """(index, remaining sum of squares) of the split into the two most distinct levels."""
    total, count = sum(values), len(values)
    whole = sum(value * value for value in values)
    best, left_sum, at = float("inf"), 0.0, 1
    for index in range(1, count):
        left_sum += values[index - 1]
        residual = whole - left_sum * left_sum / index - (total - left_sum) ** 2 / (count - index)
        if residual < best:
            best, at = residual, index
    return at, max(best, 0.0)


def _line_residual(values: Sequence[float]) -> float:
    """The sum of squared residuals of a straight line."""
    slope, start = _fit(list(range(len(values))), values)
    return sum((value - start - slope * index) ** 2 for index, value in enumerate(values))


def _fit(where: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    middle, mean = _mean(where), _mean(values)
    square = sum((position - middle) ** 2 for position in where)
    slope = sum((position - middle) * (value - mean) for position, value in zip(where, values, strict=True)) / square if square else 0.0
    return slope, mean - slope * middle


def _is_step(values: Sequence[float], jump: int, apart: float) -> bool:
    """Whether there are two quiet levels, with most of the variation between them."""
    values_before, values_after = values[:jump], values[jump:]
    return (
        len(values_before) >= 2
        and len(values_after) >= 2
        and abs(_mean(values_after) - _mean(values_before)) > _LEVEL * _median(values)
        and apart < 0.2 * _squares(values)
    )


def _slope(values: Sequence[float], steps: Sequence[int], slop: float) -> Size | None:
    """Growth per step by least squares, within twice its standard error and the rounding of the prints; None without growth."""
    slope, start = _fit(steps, values)
    middle = _mean(steps)
    square = sum((step - middle) ** 2 for step in steps)
    residual = sum((value - start - slope * step) ** 2 for step, value in zip(steps, values, strict=True))
    error = 2 * (residual / max(1, len(values) - 2) / square) ** 0.5 + slop / (steps[-1] - steps[0])
    if slope <= 0:
        return None
    return Size.between(max(0, int(slope - error)), int(slope + error) + 1, int(slope))


# -- what the job did between two prints

#: Share of all growth that must stand at the marks of one kind, and share of its usual step that growth elsewhere may have.
_AT_MARKS, _ELSEWHERE = 0.8, 0.2
#: So many marks show that something happens at each; and so many pairs without one, that it happens only there.
_TIMES = 2


class Tie(NamedTuple):
    """Changes of a series at the marks of a kind (save, eval, epoch): the usual change at one mark, the last pair that shows it."""

    kind: str
    change: Size
    pair: int


def growth_at_marks(sizes: Sequence[Size], marks: Sequence[frozenset[str] | None]) -> list[Tie]:
    """The kinds of marks at which a series grows, and elsewhere not; the most telling first, several where they always coincide.

    `marks[i]`: the kinds of marks between sizes i and i + 1; None where part of the log between them was not read. Growth at each save or
    evaluation shows only against prints without one between them. An epoch needs no such prints: so much more per epoch is true anyway.
    """
    pairs = _changes(sizes, marks)
    slop = max((size.high - size.low for size in sizes), default=0)
    rise = sum(change for _, change in pairs)
    level = _median([float(size.bytes) for size in sizes]) if sizes else 0.0
    if len(pairs) < _TIMES or rise <= max(_LEVEL * level, 2 * slop):
        return []
    ties = []
    for kind in ("epoch", "eval", "save"):
        at = [(pair, change) for pair, change in pairs if kind in (marks[pair] or ())]
        rest = [change for pair, change in pairs if kind not in (marks[pair] or ())]
        if len(at) < _TIMES or (kind != "epoch" and len(rest) < _TIMES):
            continue
        usual = _median([change for _, change in at])
        steady = sum(change > usual / 2 for _, change in at) >= _AT_MARKS * len(at)
        elsewhere = sum(rest) / len(rest) if rest else 0.0
        if usual > slop and steady and sum(change for _, change in at) >= _AT_MARKS * rise and elsewhere <= _ELSEWHERE * usual:
            ties.append((len(at), Tie(kind, _spread([change for _, change in at], usual, slop), at[-1][0])))
    fewest = min((count for count, _ in ties), default=0)
    return [tie for count, tie in ties if count == fewest]


def falls_at_marks(sizes: Sequence[Size], marks: Sequence[frozenset[str] | None]) -> list[Tie]:
    """The kinds of marks at which a series falls by more than half of its spread, each time, and hardly elsewhere."""
    pairs = _changes(sizes, marks, warm_up=False)
    values = [float(size.bytes) for size in sizes]
    slop = max((size.high - size.low for size in sizes), default=0)
    spread = max(values, default=0.0) - min(values, default=0.0)
    if not pairs or spread <= max(2 * _LEVEL * _median(values), 2 * slop):
        return []
    falls = {pair: -change for pair, change in pairs if -change > spread / 2}
    ties = []
    for kind in ("epoch", "eval", "save"):
        at = [pair for pair, _ in pairs if kind in (marks[pair] or ())]
        here = [falls[pair] for pair in at if pair in falls]
        if len(here) >= max(_TIMES, _AT_MARKS * len(at)) and len(here) >= _AT_MARKS * len(falls) and len(at) < len(pairs):
            ties.append(Tie(kind, _spread(here, _median(here), slop), at[-1]))
    return ties


def _changes(sizes: Sequence[Size], marks: Sequence[frozenset[str] | None], warm_up: bool = True) -> list[tuple[int, float]]:
    """(pair, change) between neighbours that were read without a gap; `warm_up`: without a first change that dwarfs the others,
    during which optimizer states and caches are created."""
    pairs = [(i, float(later.bytes - sooner.bytes)) for i, (sooner, later) in enumerate(pairwise(sizes)) if marks[i] is not None]
    others = [abs(change) for _, change in pairs[1:]]
    if warm_up and len(others) >= 2 * _TIMES and pairs[0][0] == 0 and pairs[0][1] > 3 * max(others):
        return pairs[1:]
    return pairs


def _spread(changes: Sequence[float], usual: float, slop: int) -> Size:
    """The usual change, within what most changes were and the rounding of the prints."""
    ordered = sorted(changes)
    tail = len(ordered) // 10
    low, high = ordered[tail] - slop, ordered[-1 - tail] + slop
    return Size.between(max(0, int(low)), int(high) + 1, int(usual))
