"""The charts of the report as inline SVG: each with its figures as text beside it, so that nobody needs the colours."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.cluster.report import report_words as told
from diagnose.cluster.report.failure_groups import Summary, Times
from diagnose.cluster.report.report_queries import FIRST_BIN
from diagnose.cluster.report.report_words import say
from diagnose.phrases import Lang
from diagnose.render.markup.elements import Child, Html, el, inside
from diagnose.render.parts.words import colon, comma
from diagnose.units import show

#: Height of the chart of times in pixels; rows of a bar chart; marks below the axis.
HEIGHT, ROWS, MARKS = 168, 8, 6

#: A column is at most so many per cent wide.
WIDEST = 8.0


def colour(number: int) -> int:
    """The colour of a group: the first five have their own, all others share one."""
    return number if 1 <= number <= 5 else 0


def badge(number: int) -> Html:
    """A group's number in its colour."""
    return el("span", str(number) if number else "…", class_=f"badge b{colour(number)}")


def split(summary: Summary, lang: Lang) -> Html:
    """All failures as one bar, a part for each of the first groups."""
    failed = max(summary.counts.failed, 1)
    first = [group for group in summary.groups if colour(group.number)]
    parts = [(group.number, group.jobs, told.title(group, summary.by, lang)) for group in first]
    rest = failed - sum(jobs for _, jobs, _ in parts)
    if rest > 0:
        parts.append((0, rest, say("others", lang)))
    left, drawn = 0.0, []
    for number, jobs, _ in parts:
        share = 100 * jobs / failed
        drawn.append(el("rect", x=f"{left:.3f}%", width=f"{share:.3f}%", height=22, rx=3, class_=f"g{colour(number)}"))
        left += share
    said = comma(lang).join(f"{title} {told.percent(jobs, failed)}" for _, jobs, title in parts)
    keys = [
        el("li", badge(number), el("span", title, class_="t"), el("span", told.number(jobs), class_="figure"))
        for number, jobs, title in parts
    ]
    bar = el("svg", *drawn, width="100%", height=22, role="img", aria_label=said)
    return el("div", bar, el("ul", *keys, class_="keys"), class_="split")


# -- over time


def times(summary: Summary, lang: Lang) -> Html:
    """Columns of failures, a colour for each of the first groups."""
    of = summary.times
    if not of.slots:
        return framed(say("chart_times", lang), None, el("p", say("chart_times_none", lang)), whole=True)
    most = max(map(sum, of.slots))
    top = ceiling(most)
    drawn: list[Child] = []
    steps = [(HEIGHT - HEIGHT * share, told.number(top * share)) for share in (0.5, 1.0)]
    drawn += [el("line", x1="0", x2="100%", y1=y, y2=y, class_="grid") for y, _ in steps]
    wide = min(100 / len(of.slots), WIDEST)
    drawn += [column(of, at, wide, top, lang) for at in range(len(of.slots))]
    drawn += [el("text", figure, x="0", y=y - 4) for y, figure in steps]
    drawn.append(el("line", x1="0", x2="100%", y1=HEIGHT, y2=HEIGHT, class_="axis"))
    drawn += marks(of, wide)
    figures = [f"{moment(of, at)} {sum(slot)}" for at, slot in enumerate(of.slots) if sum(slot)]
    said = f"{say('chart_times', lang)}{colon(lang)}{comma(lang).join(figures)}"
    picture = el("svg", *drawn, width="100%", height=HEIGHT + 22, role="img", aria_label=said[:2000])
    failed, dated, by_log = summary.counts.failed, summary.period.dated, summary.period.by_log
    notes = [say("chart_times_undated", lang, count=told.number(failed - dated), jobs=told.number(failed))] if dated < failed else []
    notes += [say("chart_times_by_log", lang, count=told.number(by_log))] if by_log else []
    held = el("div", picture, class_="plot")
    return framed(
        say("chart_times", lang),
        per(of.width, lang),
        held,
        el("p", ("" if lang == "zh" else " ").join(notes)) if notes else None,
        as_table(of, lang),
        whole=True,
    )


def ceiling(most: int) -> int:
    """The smallest of 1, 2, 5 times a power of ten that is at least that (and even, so that its half is a number)."""
    power = 1
    while True:
        for step in (2, 4, 10):
            if most <= step * power:
                return step * power
        power *= 10


def column(of: Times, at: int, wide: float, top: int, lang: Lang) -> Html:
    """One slot, the first group at the bottom."""
    x, y, drawn = at * wide, float(HEIGHT), []
    for index, jobs in enumerate(of.slots[at]):
        high = HEIGHT * jobs / top
        if not jobs:
            continue
        y -= high
        kind = index + 1 if index < of.groups else 0
        drawn.append(
            el(
                "rect",
                x=f"{x + wide * 0.12:.3f}%",
                width=f"{wide * 0.76:.3f}%",
                y=f"{y:.2f}",
                height=f"{max(high - 0.6, 0.6):.2f}",
                class_=f"g{kind}",
            )
        )
    whole = el("rect", x=f"{x:.3f}%", width=f"{wide:.3f}%", y=0, height=HEIGHT, class_="hit")
    return el("g", el("title", f"{moment(of, at)}{colon(lang)}{sum(of.slots[at])}"), whole, *drawn, class_="slot")


def marks(of: Times, wide: float) -> list[Child]:
    """Dates below the axis, as many as have room; every other one is left out where the page is narrow."""
    days = [at for at in range(len(of.slots)) if at == 0 or moment(of, at)[:10] != moment(of, at - 1)[:10]]
    hourly = of.width < 86400 and len(days) < 3
    places = list(range(len(of.slots))) if hourly else days
    every = max(1, -(-len(places) // MARKS))
    shown = [at for at in places[::every] if len(of.slots) - at > len(of.slots) // 20 or at == 0]
    part = slice(11, 16) if hourly else slice(5, 10) if of.width < 28 * 86400 else slice(0, 7)
    return [
        el("text", moment(of, at)[part], x=f"{at * wide:.3f}%", y=HEIGHT + 16, class_="narrow-off" if index % 2 else None)
        for index, at in enumerate(shown)
    ]


def moment(of: Times, at: int) -> str:
    """When a slot begins: with the hour where slots are shorter than a day."""
    begin = of.start + at * of.width
    return told.minute(begin) if of.width < 86400 else told.date(begin)


def per(width: int, lang: Lang) -> str:
    """How wide a slot is."""
    if width < 86400:
        return say("chart_times_hour", lang, count=width // 3600)
    return say("chart_times_day", lang) if width == 86400 else say("chart_times_days", lang, count=width // 86400)


def as_table(of: Times, lang: Lang) -> Html:
    """The same figures as a table, for those who do not see the columns."""
    numbers = [str(number) for number in range(1, of.groups + 1)]
    head = el("tr", *(el("th", name, scope="col", class_="figure" if at else None) for at, name in
                      enumerate((say("column_time", lang), *numbers, say("others", lang), say("column_failures", lang)))))  # fmt: skip
    rows = [
        el("tr", el("th", moment(of, at), scope="row"), *(el("td", told.number(jobs), class_="figure") for jobs in (*slot, sum(slot))))
        for at, slot in enumerate(of.slots)
    ]
    table = el("div", el("table", el("thead", head), el("tbody", *rows)), class_="scroll", tabindex=0)
    return el("details", el("summary", say("chart_table", lang)), table)


# -- bars


def cost(summary: Summary, lang: Lang) -> Html:
    """GPU-hours of the groups that cost most."""
    known = sorted((group for group in summary.groups if group.cost.known), key=lambda group: -group.cost.seconds)[:ROWS]
    if not known:
        return framed(say("chart_cost", lang), None, el("p", say("chart_cost_none", lang)))
    rows = [
        (inside(badge(group.number), told.title(group, summary.by, lang)), group.cost.seconds / 3600, colour(group.number))
        for group in known
    ]
    of = summary.cost
    note = el("p", told.hours(of, lang)) if of.known < of.jobs else None
    return framed(say("chart_cost", lang), None, bars(rows, say("chart_cost", lang)), note)


def causes(summary: Summary, lang: Lang) -> Html:
    """Failures by leading cause."""
    rows = [(inside(told.value("cause", each.cause, lang)), float(each.jobs), -1) for each in summary.causes[:ROWS]]
    return framed(say("chart_causes", lang), None, bars(rows, say("chart_causes", lang)))


def lack(summary: Summary, lang: Lang) -> Html:
    """How much memory was missing, from little to much."""
    of = summary.lack
    if not of.known:
        return framed(say("chart_lack", lang), None, el("p", say("chart_lack_none", lang)))
    used = [at for at, jobs in enumerate(of.bins) if jobs]
    rows = [(inside(bin_name(at, len(of.bins), lang)), float(of.bins[at]), -1) for at in range(used[0], used[-1] + 1)]
    notes = [say("chart_lack_median", lang, size=show(of.median))] if of.median else []
    notes += [say("chart_lack_pieces", lang, count=told.count(of.bins[0], lang))] if of.bins[0] else []
    notes += (
        [say("chart_lack_known", lang, known=told.number(of.known), jobs=told.number(summary.counts.failed))]
        if of.known < summary.counts.failed
        else []
    )
    return framed(say("chart_lack", lang), None, bars(rows, say("chart_lack", lang)), el("p", ("" if lang == "zh" else " ").join(notes)))


def bin_name(at: int, bins: int, lang: Lang) -> str:
    if at == 0:
        return say("bin_none", lang)
    if at == bins - 1:
        return say("bin_more", lang, size=size(at - 2))
    return say("bin_upto", lang, size=size(at - 1))


def size(power: int) -> str:
    """256 MiB and its doubles, without a fraction."""
    count = FIRST_BIN << power
    return f"{count >> 30} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"


def bars(rows: Sequence[tuple[Html, float, int]], name: str) -> Html:
    """A table whose middle column is a bar; colour -1: that of no group."""
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    drawn = []
    for label, value, kind in rows:
        bar = el(
            "rect",
            x="0",
            width=f"{max(100 * value / most, 0.5 if value else 0):.2f}%",
            height=13,
            rx=2,
            class_="gx" if kind < 0 else f"g{kind}",
        )
        picture = el("svg", bar, width="100%", height=13, aria_hidden="true")
        drawn.append(
            el("tr", el("th", el("span", label, class_="t"), scope="row"), el("td", picture), el("td", told.number(value), class_="figure"))
        )
    columns = el("colgroup", el("col", class_="l"), el("col"), el("col", class_="f"))
    return el("table", columns, el("tbody", *drawn), class_="bars", aria_label=name)


def framed(title: str, small: str | None, *children: Child, whole: bool = False) -> Html:
    head = el("h2", title, inside(" ", el("small", small)) if small else None)
    return el("section", head, *children, class_="chart whole" if whole else "chart")
