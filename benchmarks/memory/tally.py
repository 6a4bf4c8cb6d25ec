"""Predictions against measurements: errors, statistics and their text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from memory.limits import Limit, limit
from memory.predict import GIB, Prediction
from memory.rows import Row, block, releases, source

from diagnose.units import Version

#: From this release on 4-bit weights are packed without the copy that stayed before (July 2024).
OLD_BITSANDBYTES = Version("0.43.2")


class Scored(NamedTuple):
    """A row with what was predicted."""

    row: Row
    made: Prediction

    @property
    def id(self) -> str:
        return str(self.row.get("id") or "?")

    @property
    def grade(self) -> str:
        return str(self.row.get("quality") or "?")

    @property
    def kind(self) -> str:
        """The kind of the row; 4-bit weights of an old bitsandbytes are one of their own."""
        kind = str(self.row.get("kind") or "?")
        return "qlora_old_bnb" if kind == "qlora" and old_bitsandbytes(self.row) else kind

    @property
    def source(self) -> str:
        return source(self.row)

    @property
    def measured(self) -> float | None:
        value = self.row.get("measured_gib")
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 and math.isfinite(value)
        return float(value) if good else None  # type: ignore[arg-type]

    @property
    def bound(self) -> bool:
        """Whether the figure bounds the prediction on one side only, so that an error says nothing."""
        return self.row.get("lengths") == "upper_bound" or bool(block(self.row, "facts").get("boundary"))

    @property
    def steady(self) -> Scored:
        """The same row with optimizer states as in every later update."""
        return self if self.made.later is None else self._replace(made=self.made._replace(bytes=self.made.later))

    @property
    def error(self) -> float | None:
        """Fraction of the measurement, above 0 where too much is predicted."""
        if self.made.refused or self.measured is None:
            return None
        return self.made.bytes / GIB / self.measured - 1


class Statistic(NamedTuple):
    rows: int
    modelled: int
    refused: int
    median: float | None
    p90: float | None
    worst: float | None
    below: float | None
    mean: float | None


def old_bitsandbytes(row: Row) -> bool:
    word = str(block(row, "knobs").get("model.quantization") or "")
    release = releases(row).get("bitsandbytes")
    return word.startswith(("nf4", "fp4")) and release is not None and Version(str(release)) < OLD_BITSANDBYTES


def counts(scored: Scored) -> bool:
    """Grades A and B count; C is a smoke test."""
    return scored.grade in ("A", "B")


def statistic(rows: Sequence[Scored]) -> Statistic:
    """Bounds count as modelled and have no error."""
    modelled = [one for one in rows if not one.made.refused]
    errors = [one.error for one in modelled if not one.bound]
    sizes = sorted(abs(error) for error in errors if error is not None)
    known = [error for error in errors if error is not None]
    return Statistic(
        len(rows),
        len(modelled),
        len(rows) - len(modelled),
        quantile(sizes, 0.5),
        quantile(sizes, 0.9),
        sizes[-1] if sizes else None,
        sum(error < 0 for error in known) / len(known) if known else None,
        sum(sizes) / len(sizes) if sizes else None,
    )


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Between the two nearest values in proportion."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def grouped(rows: Iterable[Scored], key: Callable[[Scored], str]) -> dict[str, list[Scored]]:
    groups: dict[str, list[Scored]] = {}
    for one in rows:
        groups.setdefault(key(one), []).append(one)
    return dict(sorted(groups.items()))


def as_json(rows: Sequence[Scored]) -> dict[str, Any]:
    """Overall and by kind count grades A and B; errors are fractions."""
    told = [one for one in rows if counts(one)]
    return {
        "overall": _plain(statistic(told)),
        "by_kind": {kind: _plain(statistic(group)) for kind, group in grouped(told, lambda one: one.kind).items()},
        "by_grade": {grade: _plain(statistic(group)) for grade, group in grouped(rows, lambda one: one.grade).items()},
        "rows": [_row(one) for one in rows],
    }


def _plain(found: Statistic) -> dict[str, Any]:
    return {name: value for name, value in found._asdict().items() if name != "mean"}


def _row(one: Scored) -> dict[str, Any]:
    made = one.made
    known = made.refused is None
    return {
        "id": one.id,
        "measured_gib": one.measured,
        "low": made.low / GIB if known else None,
        "predicted_gib": made.bytes / GIB if known else None,
        "high": made.high / GIB if known else None,
        "error": one.error,
        "peak_moment": made.peak_moment,
        "refused": made.refused,
    }


HEAD = f"{'':26}{'rows':>6}{'model':>6}{'refus':>6}{'median':>7}{'p90':>7}{'worst':>7}{'mean':>7}{'below':>7}"


def text(rows: Sequence[Scored]) -> str:
    """Everything in lines of 80 columns at most."""
    told = [one for one in rows if counts(one)]
    lines = [f"{len(rows)} rows; overall, kinds and sources count grades A and B", "", HEAD, _line("overall", told)]
    for title, groups in (
        ("kind", grouped(told, lambda one: one.kind)),
        ("grade", grouped(rows, lambda one: one.grade)),
        ("source, and its grades where it has two", by_source(told)),
    ):
        lines += ["", title, *(_line(f"  {name}", group) for name, group in groups.items())]
    return "\n".join([*lines, *_first_updates(told), *_limits(told), *_bounds(rows), *_refusals(rows), *_left_out(rows)])


def by_source(rows: Iterable[Scored]) -> dict[str, list[Scored]]:
    """Every source, and after it each of its grades where it has more than one."""
    groups: dict[str, list[Scored]] = {}
    for name, group in grouped(rows, lambda one: one.source).items():
        grades = grouped(group, lambda one: one.grade)
        groups |= {name: group} | ({f"{name} {grade}": each for grade, each in grades.items()} if len(grades) > 1 else {})
    return groups


def _line(name: str, group: Sequence[Scored]) -> str:
    found = statistic(group)
    shares = "".join(_percent(value) for value in (found.median, found.p90, found.worst, found.mean, found.below))
    return f"{name[:26]:26}{found.rows:6}{found.modelled:6}{found.refused:6}{shares}"


def _percent(value: float | None) -> str:
    return f"{'-':>7}" if value is None else f"{100 * value:6.1f}%" if value < 10 else f"{'>999%':>7}"


def _first_updates(rows: Sequence[Scored]) -> list[str]:
    """Sources whose tool measures a first update: as it is, and as somebody who trains on would count."""
    lines = []
    for name, group in by_source(rows).items():
        if any(one.made.later is not None for one in group):
            lines += [f"  {name}", _line("    of a first update", group), _line("    of every later one", [one.steady for one in group])]
    return ["", "where figures are of a first update, without optimizer states till its step", *lines] if lines else []


def _limits(rows: Sequence[Scored]) -> list[str]:
    """What no model can do better: where the settings agree and the figures do not."""
    lines = []
    for name, group in by_source(one for one in rows if one.measured and not one.bound).items():
        every, awake = (limit((one.row for one in group), asleep=asleep) for asleep in (True, False))
        if every:
            lines.append(_limit(f"  {name}", every))
        if awake and awake != every:
            lines.append(_limit("    but for a sleeping engine's", awake))
    return (
        ["", f"{'rows that agree in their settings: no model does better':57}{'rows':>6}{'worst':>7}{'mean':>7}", *lines] if lines else []
    )


def _limit(name: str, made: Limit) -> str:
    return f"{name:57}{made.rows:6}{_percent(made.worst)}{_percent(made.mean)}"


def _bounds(rows: Sequence[Scored]) -> list[str]:
    """Rows that only bound: how often below, and how far above."""
    errors = sorted(one.error for one in rows if one.bound and one.error is not None)
    if not errors:
        return []
    below = sum(error < 0 for error in errors)
    middle = quantile(errors, 0.5) or 0.0
    text = f"lengths or cards that only bound: {len(errors)} rows, {below} predicted below,"
    return ["", text, f"  from {100 * errors[0]:+.1f}% to {100 * errors[-1]:+.1f}%, median {100 * middle:+.1f}%"]


def _refusals(rows: Sequence[Scored]) -> list[str]:
    reasons = Counter(one.made.refused for one in rows if one.made.refused)
    if not reasons:
        return []
    return ["", "refused", *(f"{count:6}  {reason}"[:80] for reason, count in reasons.most_common())]


def _left_out(rows: Sequence[Scored]) -> list[str]:
    names = Counter(name for one in rows for name in one.made.left_out)
    if not names:
        return []
    title = "settings without a knob, left out of rows that are modelled"
    return ["", title, *(f"{count:6}  {name}"[:80] for name, count in names.most_common())]


def worst(rows: Sequence[Scored], count: int) -> str:
    """The rows with the largest errors, with the terms of their peak."""
    known = [(abs(one.error), one) for one in rows if one.error is not None and not one.bound]
    known.sort(key=lambda pair: -pair[0])
    return "\n".join(_told(one) for _, one in known[:count])


def _told(one: Scored) -> str:
    peak = next((moment for moment in one.made.moments if moment.name == one.made.peak_moment), None)
    terms = sorted(peak.terms, key=lambda term: -term.size.bytes) if peak else []
    parts = " + ".join(f"{term.key} {term.size.bytes / GIB:.2f}" for term in terms if term.size.bytes > GIB / 100)
    head = f"{one.id} {one.kind} {one.grade} {one.row.get('compare')} {one.row.get('model')}"
    figures = f"  {one.made.bytes / GIB:.2f} of {one.measured or 0:.2f} GiB ({100 * (one.error or 0):+.1f}%)"
    return f"{head}\n{figures} at {one.made.peak_moment}: {parts}"


def every_term(one: Scored) -> str:
    """All moments of a row, for finding out what is wrong with it."""
    lines = [_told(one) if one.error is not None else f"{one.id}: {one.made.refused or 'no measurement'}"]
    for moment in one.made.moments:
        lines.append(f"\n{moment.name}: {moment.total.bytes / GIB:.3f} GiB")
        for term in moment.terms:
            size = term.size
            figures = f"{size.bytes / GIB:9.3f} ({size.low / GIB:.3f} to {size.high / GIB:.3f})"
            lines.append(f"  {term.key:24} {figures}  {term.symbols} = {term.numbers}")
    return "\n".join(lines)
