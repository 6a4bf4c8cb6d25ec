"""The charts of the report as template values; all figures are also present as text."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.cluster.report import report_words
from diagnose.cluster.report.report_queries import FIRST_BIN
from diagnose.cluster.report.report_words import say
from diagnose.cluster.report.summary_types import Summary, Times
from diagnose.phrases import Lang
from diagnose.records import NamedTuple
from diagnose.render.markup import page_templates
from diagnose.render.parts.words import colon, comma
from diagnose.units import show

#: Height of the chart of times in pixels; rows of a bar chart; marks below the axis.
HEIGHT, ROWS, MARKS = 168, 8, 6

#: A column is at most so many per cent wide.
WIDEST = 8.0


class Row(NamedTuple):
    """A bar with label: `width` in per cent, `number` of its group (0: none)."""

    label: str
    value: float
    width: float
    number: int = 0


class Bars(NamedTuple):
    """A bar chart and the note below it."""

    title: str
    rows: list[Row]
    note: str = ""


class Share(NamedTuple):
    """A group's share of all failures."""

    number: int
    jobs: int
    title: str


def colour(number: int) -> int:
    """The colour of a group: five colours for the first groups, one for all others."""
    return number if 1 <= number <= 5 else 0


def split(summary: Summary, lang: Lang) -> tuple[str, list[tuple[Share, float, float]]]:
    """All failures as one bar with a segment for each of the first groups; also as text. Positions in per cent."""
    failed = max(summary.counts.failed, 1)
    parts = [
        Share(group.number, group.jobs, report_words.title(group, summary.by, lang)) for group in summary.groups if colour(group.number)
    ]
    others = failed - sum(part.jobs for part in parts)
    if others > 0:
        parts.append(Share(0, others, say("others", lang)))
    label = comma(lang).join(f"{part.title} {report_words.percent(part.jobs, failed)}" for part in parts)
    return label, list(page_templates.stretches(((part, part.jobs) for part in parts), failed))


# -- over time


def times(summary: Summary, lang: Lang) -> dict[str, object]:
    """Failures over time as stacked columns of the first groups, with dates below and as a table; empty without dates."""
    chart = summary.times
    if not chart.slots:
        return {}
    top = ceiling(max(map(sum, chart.slots)))
    wide = min(100 / len(chart.slots), WIDEST)
    figures = [f"{moment(chart, at)} {sum(slot)}" for at, slot in enumerate(chart.slots) if sum(slot)]
    failed, dated, by_log = summary.counts.failed, summary.period.dated, summary.period.by_log
    notes = (
        [say("chart_times_undated", lang, count=report_words.number(failed - dated), jobs=report_words.number(failed))]
        if dated < failed
        else []
    )
    notes += [say("chart_times_by_log", lang, count=report_words.number(by_log))] if by_log else []
    numbers = [str(number) for number in range(1, chart.groups + 1)]
    return {
        "per": per(chart.width, lang),
        "label": f"{say('chart_times', lang)}{colon(lang)}{comma(lang).join(figures)}"[:2000],
        "height": HEIGHT,
        "width": wide,
        "grid": [(HEIGHT - HEIGHT * share, report_words.number(top * share)) for share in (0.5, 1.0)],
        "columns": [column(chart, at, wide, top, lang) for at in range(len(chart.slots))],
        "marks": marks(chart, wide),
        "note": ("" if lang == "zh" else " ").join(notes),
        "head": [say("column_time", lang), *numbers, say("others", lang), say("column_failures", lang)],
        "table": [(moment(chart, at), [*slot, sum(slot)]) for at, slot in enumerate(chart.slots)],
    }


def ceiling(value: int) -> int:
    """The next larger of 1, 2, 5 times a power of ten, even so that its half is an integer."""
    power = 1
    while True:
        for step in (2, 4, 10):
            if value <= step * power:
                return step * power
        power *= 10


def column(chart: Times, at: int, wide: float, top: int, lang: Lang) -> tuple[str, float, list[tuple[float, float, int]]]:
    """One time slot: title, position, and segments with top, height and colour, first group at the bottom."""
    y, parts = float(HEIGHT), []
    for index, jobs in enumerate(chart.slots[at]):
        if jobs:
            high = HEIGHT * jobs / top
            y -= high
            parts.append((y, max(high - 0.6, 0.6), index + 1 if index < chart.groups else 0))
    return f"{moment(chart, at)}{colon(lang)}{sum(chart.slots[at])}", at * wide, parts


def marks(chart: Times, wide: float) -> list[tuple[float, str]]:
    """Dates below the axis, as many as fit; every second one is hidden on narrow pages."""
    days = [at for at in range(len(chart.slots)) if at == 0 or moment(chart, at)[:10] != moment(chart, at - 1)[:10]]
    hourly = chart.width < 86400 and len(days) < 3
    places = list(range(len(chart.slots))) if hourly else days
    every = max(1, -(-len(places) // MARKS))
    marked = [at for at in places[::every] if len(chart.slots) - at > len(chart.slots) // 20 or at == 0]
    part = slice(11, 16) if hourly else slice(5, 10) if chart.width < 28 * 86400 else slice(0, 7)
    return [(at * wide, moment(chart, at)[part]) for at in marked]


def moment(chart: Times, at: int) -> str:
    """The begin of a slot, with the hour if slots are shorter than a day."""
    begin = chart.start + at * chart.width
    return report_words.minute(begin) if chart.width < 86400 else report_words.date(begin)


def per(width: int, lang: Lang) -> str:
    """The width of a slot in words."""
    if width < 86400:
        return say("chart_times_hour", lang, count=width // 3600)
    return say("chart_times_day", lang) if width == 86400 else say("chart_times_days", lang, count=width // 86400)


# -- bars


def cost(summary: Summary, lang: Lang) -> Bars:
    """GPU-hours of the most expensive groups."""
    costed = sorted((group for group in summary.groups if group.cost.known), key=lambda group: -group.cost.seconds)[:ROWS]
    if not costed:
        return Bars(say("chart_cost", lang), [], say("chart_cost_none", lang))
    rows = scaled([(report_words.title(group, summary.by, lang), group.cost.seconds / 3600, group.number) for group in costed])
    total = summary.cost
    return Bars(say("chart_cost", lang), rows, report_words.hours(total, lang) if total.known < total.jobs else "")


def causes(summary: Summary, lang: Lang) -> Bars:
    """Failures by leading cause."""
    rows = [(report_words.value("cause", cause.cause, lang), float(cause.jobs), 0) for cause in summary.causes[:ROWS]]
    return Bars(say("chart_causes", lang), scaled(rows))


def lack(summary: Summary, lang: Lang) -> Bars:
    """A histogram of how much memory was missing."""
    shortage = summary.lack
    if not shortage.known:
        return Bars(say("chart_lack", lang), [], say("chart_lack_none", lang))
    used = [at for at, jobs in enumerate(shortage.bins) if jobs]
    rows = [(bin_name(at, len(shortage.bins), lang), float(shortage.bins[at]), 0) for at in range(used[0], used[-1] + 1)]
    notes = [say("chart_lack_median", lang, size=show(shortage.median))] if shortage.median else []
    notes += [say("chart_lack_pieces", lang, count=report_words.count(shortage.bins[0], lang))] if shortage.bins[0] else []
    if shortage.known < summary.counts.failed:
        notes.append(
            say("chart_lack_known", lang, known=report_words.number(shortage.known), jobs=report_words.number(summary.counts.failed))
        )
    return Bars(say("chart_lack", lang), scaled(rows), ("" if lang == "zh" else " ").join(notes))


def bin_name(at: int, bins: int, lang: Lang) -> str:
    if at == 0:
        return say("bin_none", lang)
    if at == bins - 1:
        return say("bin_more", lang, size=size(at - 2))
    return say("bin_upto", lang, size=size(at - 1))


def size(power: int) -> str:
    """A power of two from 256 MiB up, without fraction."""
    count = FIRST_BIN << power
    return f"{count >> 30} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"


def scaled(rows: Sequence[tuple[str, float, int]]) -> list[Row]:
    """Rows with widths relative to the longest bar; small values stay visible."""
    largest = max((value for _, value, _ in rows), default=0.0) or 1.0
    return [Row(label, value, max(100 * value / largest, 0.5 if value else 0), number) for label, value, number in rows]
