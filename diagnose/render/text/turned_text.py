"""A job before and after some of its knobs were turned, in text: two bars on one scale, the differences by part, and whether it fits."""

from __future__ import annotations

from diagnose.phrases import Lang
from diagnose.plan.outlook.turned_knobs import Turned
from diagnose.render.parts import turned_view, words
from diagnose.render.parts.turned_view import say
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.wrapping import Page, cells, pad
from diagnose.render.text import character_bar


def render(turned: Turned, lang: Lang = "en", view: View = PLAIN) -> str:
    """The comparison as text."""
    page = Page(view.width, view.colour)
    page.say(turned_view.heading(turned, lang), style="heading")
    states = {"before": turned.before, "after": turned.after} if turned.changes else {"now": turned.before}
    cards = {side: turned_view.bar(state, lang) for side, state in states.items()}
    whole = max((max(memory.total, memory.edge) for memory in cards.values() if memory is not None), default=0)
    for side, state in states.items():
        page.gap()
        lead = say("peak", lang, side=say(side, lang), need=turned_view.need(state, lang), verdict=turned_view.verdict(state, lang))
        page.say(lead if state.need is not None else turned_view.need(state, lang))
        memory = cards[side]
        if memory is not None and whole:
            own = max(memory.total, memory.edge) / whole
            page.row("  " + character_bar.line(memory, max(round((page.width - 4) * own), 12), page.colour))
    legend = cards.get("after") or cards.get("before") or cards.get("now")
    for row in character_bar.legend(legend, page.width - 2, lang) if legend is not None else ():
        page.row("  " + row)
    _differences(page, turned, lang)
    for text in turned_view.remarks(turned, lang):
        page.say(text)
    return page.text()


def _differences(page: Page, turned: Turned, lang: Lang) -> None:
    """The parts that differ, in columns."""
    rows = turned_view.differences(turned)
    before, after = turned.before.need, turned.after.need
    if not turned.changes or before is None or after is None:
        return
    page.heading(say("difference", lang))
    if not rows:
        page.say(say("same", lang))
        return
    table = [(turned_view.part_name(row.kind, lang), row.before, row.after) for row in rows]
    table.append((say("sum", lang), before.bytes, after.bytes))
    texts = [(name, words.gib(old), words.gib(new), turned_view.signed(new - old)) for name, old, new in table]
    widths = [max(cells(row[at]) for row in texts) for at in range(4)]
    for name, old, new, difference in texts:
        columns = (
            pad(name, widths[0]),
            pad(old, widths[1], right=True),
            "→",
            pad(new, widths[2], right=True),
            pad(difference, widths[3], right=True),
        )
        page.row("  " + "  ".join(columns))
