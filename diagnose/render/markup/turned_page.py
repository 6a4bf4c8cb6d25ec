"""A job with some of its knobs turned, for a page: bars on one scale, the step as a stacked area, the map of what fits, the controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnose.facts import Value, require_declared
from diagnose.phrases import Lang
from diagnose.plan.outlook.turned_knobs import Cell, Control, State, Turned
from diagnose.plan.remedies.remedy import Remedy
from diagnose.render.markup import bar_charts, page_templates, step_chart
from diagnose.render.parts import turned_view, words
from diagnose.render.parts.turned_view import say

#: The style of these parts, beside that of an answer.
SHEET = ("turned.css",)


def turned(of: Turned, lang: Lang) -> str:
    """What changes make: verdict, bars before and after, differences by part, the step."""
    states = {"before": of.before, "after": of.after} if of.changes else {"now": of.before}
    cards = {side: memory for side, state in states.items() if (memory := turned_view.bar(state, lang)) is not None}
    whole = max((max(memory.total, memory.edge) for memory in cards.values()), default=0)
    charts = {side: (bar_charts.scaled_chart(memory, whole, lang), states[side]) for side, memory in cards.items()}
    return _render(
        "turned",
        lang,
        turned=of,
        state=of.after,
        verdict=turned_view.verdict(of.after, lang),
        need=turned_view.need(of.after, lang),
        charts=charts,
        legend=next(reversed(charts.values()))[0] if charts else None,
        area=area(of, lang),
        rows=_rows(of, lang),
        remarks=turned_view.remarks(of, lang),
        say_verdict=turned_view.verdict,
        say_need=turned_view.need,
    )


def _rows(of: Turned, lang: Lang) -> list[tuple[str, str, str, str, str]]:
    """The parts that differ: kind, name, before, after, difference; the sum last."""
    before, after = of.before.need, of.after.need
    rows = [(row.kind, turned_view.part_name(row.kind, lang), row.before, row.after) for row in turned_view.differences(of)]
    if before is not None and after is not None and rows:
        rows.append(("", say("sum", lang), before.bytes, after.bytes))
    return [(kind, name, words.gib(old), words.gib(new), turned_view.signed(new - old)) for kind, name, old, new in rows]


def area(of: Turned, lang: Lang) -> step_chart.Area | None:
    """The points of the step after the changes as a stacked area, with what was before as a line."""
    return step_chart.draw(turned_view.columns(of.after, lang), lang, turned_view.columns(of.before, lang) if of.changes else ())


def fit_map(cells: Sequence[Sequence[Cell]], knobs: tuple[str, str], lang: Lang) -> str:
    """The map of what fits; empty where nothing is judged."""
    if not turned_view.is_worth_drawing(cells):
        return ""
    rows, length = (words.meaning(knob, lang) for knob in knobs)
    return _render("fit_map", lang, cells=cells, rows=rows, length=length, cell_text=turned_view.cell_text)


def controls(of: Sequence[Control], turned_to: Mapping[str, Value], lang: Lang) -> str:
    """The knobs as form controls."""
    return _render("controls", lang, controls=of, turned_to=turned_to, value=_value, entry=require_declared)


def switches(remedies: Sequence[Remedy], planned: Sequence[str], lang: Lang) -> str:
    """The remedies that turn knobs, those of the plan first, as switches."""
    ordered = sorted(remedies, key=lambda remedy: remedy.id not in planned)
    return _render("switches", lang, remedies=ordered, planned=planned)


def _value(value: Value, lang: Lang) -> str:
    """A value of a control for people."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else words.value_text(value, lang)


def _render(name: str, lang: Lang, **values: object) -> str:
    return "".join(page_templates.page(name, lang, say=lambda key, **more: say(key, lang, **more), **values))


def state_of(state: State) -> dict[str, object]:
    """A state as JSON: the figures that the page and `oomdoctor what-if` share."""
    figures = {name: None if size is None else size.bytes for name, size in (("need", state.need), ("usable", state.room))}
    return {**figures, "moment": state.moment.name if state.moment else None, "fits": state.fits}
