"""Bars as inline SVG: the card, and every moment of a ledger against what the card can give. No style attributes, so that a strict
content security policy can hold."""

from __future__ import annotations

from functools import cache

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.phrases import Lang
from diagnose.render.markup.elements import Html, el, inside
from diagnose.render.parts import card, memory_rows, words
from diagnose.render.parts.words import word

#: Parts that are drawn with a pattern over their colour, for eyes and printers that see none.
PATTERNED = ("unused", "foreign", "engine", "request", "outside")

#: A letter stands in a part that is at least so many per cent of the bar.
ROOM_FOR_LETTER = 3.0


def patterns() -> Html:
    """The patterns that the bars refer to; once in a page."""
    lines = el("path", d="M-2 2L2 -2M0 8L8 0M6 10L10 6", class_="ink")
    dots = inside(el("rect", x=1, y=1, width=2, height=2, class_="dot"), el("rect", x=5, y=5, width=2, height=2, class_="dot"))
    cross = el("path", d="M0 0L8 8M8 0L0 8", class_="ink")
    drawn = {"unused": lines, "foreign": dots, "engine": dots, "request": cross, "outside": lines}
    made = [el("pattern", inside(el("rect", width=8, height=8, class_=f"p-{kind}"), shape), id=f"pat-{kind}", width=8, height=8,
               patternUnits="userSpaceOnUse") for kind, shape in drawn.items()]  # fmt: skip
    return el("svg", el("defs", *made), width=0, height=0, class_="defs", aria_hidden="true", focusable="false")


def rect(kind: str, left: float, width: float, height: int) -> Html:
    """One part of a bar; `left` and `width` in per cent."""
    fill = f"url(#pat-{kind})" if kind in PATTERNED else None
    return el("rect", x=f"{left:.3f}%", width=f"{width:.3f}%", height=height, class_=f"p-{kind}", fill=fill)


def of_card(shown: card.Card, lang: Lang) -> Html:
    """The bar with its letters, the card's edge, and the legend as a list."""
    whole, left, drawn = max(shown.total, shown.edge, 1), 0.0, []
    for part in shown.parts:
        share = 100 * part.bytes / whole
        drawn.append(rect(part.kind, left, share, 44))
        if share >= ROOM_FOR_LETTER and part.kind not in ("free", "unused"):
            drawn.append(el("text", card.SIGNS[part.kind], x=f"{left + share / 2:.3f}%", y=28, class_="letter"))
        left += share
    if shown.edge and shown.total > shown.edge:
        at = f"{100 * shown.edge / whole:.3f}%"
        drawn.append(el("line", x1=at, x2=at, y1=-6, y2=50, class_="edge"))
    said = words.comma(lang).join(f"{part.name(lang)} {card.figure(part)} GiB" for part in shown.parts)
    bar = el("svg", *drawn, class_="bar", width="100%", height=44, role="img", aria_label=said)
    return el("figure", el("figcaption", card.heading(shown, lang)), bar, legend(shown, lang))


def legend(shown: card.Card, lang: Lang) -> Html:
    """Swatch, name and GiB of each part; `≈` where the ledger says so and not the log."""
    items = []
    for part in shown.parts:
        size = ("≈ " if part.estimated else "") + f"{card.figure(part)} GiB"
        items.append(el("li", _swatch(part.kind), " ", el("span", part.name(lang), class_="name"), " ", el("span", size, class_="figure")))
    return el("ul", *items, class_="legend")


@cache
def _swatch(kind: str) -> Html:
    return el("svg", rect(kind, 0, 100, 14), class_="swatch", width=14, height=14, aria_hidden="true")


def of_moments(ledger: Ledger, lang: Lang) -> Html:
    """A row for each moment: its name, its parts, its sum; a line where the room of torch ends."""
    room = ledger.usable or ledger.capacity
    most = max([moment.total.bytes for moment in ledger.moments] + ([room.bytes] if room else []) + [1]) * 1.02
    rows = [row(ledger, moment, most, room.bytes if room else 0, lang) for moment in ledger.moments]
    head = el("tr", el("th", word("moment_column", lang), scope="col"), el("th", word("usable_line", lang, size=words.amount(room, lang))
              if room else "", scope="col", class_="chart"), el("th", word("size", lang), scope="col", class_="figure"))  # fmt: skip
    caption = words.sentence(word("moments_caption", lang, who=memory_rows.on_gpus(ledger, lang)), lang)
    return el("table", el("caption", caption), el("thead", head), el("tbody", *rows), class_="moments")


def row(ledger: Ledger, moment: Moment, most: float, room: int, lang: Lang) -> Html:
    sums, left, drawn = card.grouped(moment), 0.0, []
    for kind in card.SIGNS:
        if kind in sums:
            share = 100 * sums[kind] / most
            drawn.append(rect(kind, left, share, 18))
            left += share
    if room:
        at = f"{100 * room / most:.3f}%"
        drawn.append(el("line", x1=at, x2=at, y1=0, y2=18, class_="edge"))
    chips: list[str] = []
    if moment.name == ledger.failing:
        chips.append(el("span", word("moment_failing", lang), class_="chip bad"))
    if ledger.peak is not None and moment.name == ledger.peak.name:
        chips.append(el("span", word("moment_peak", lang), class_="chip"))
    over = bool(room) and moment.total.bytes > (moment.room.bytes if moment.room else room)
    return el(
        "tr",
        el("th", words.moment(moment.name, lang), *(inside(" ", chip) for chip in chips), scope="row"),
        el("td", el("svg", *drawn, class_="small", width="100%", height=18, aria_hidden="true"), class_="chart"),
        el("td", words.amount(moment.total, lang), class_="figure over" if over else "figure"),
    )
