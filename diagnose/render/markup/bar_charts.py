"""Bar charts as values for page templates: the card, and every moment of a ledger against the usable memory."""

from __future__ import annotations

from typing import NamedTuple

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.phrases import Lang
from diagnose.render.markup import page_templates
from diagnose.render.parts import card_bar, memory_rows, words
from diagnose.render.parts.words import word

#: A letter stands in a part that is at least so many per cent of the bar.
ROOM_FOR_LETTER = 3.0


class Part(NamedTuple):
    """A segment of a bar: start and width in per cent, letter, name, and size as text."""

    kind: str
    left: float
    width: float
    letter: str = ""
    name: str = ""
    size: str = ""


class Bar(NamedTuple):
    """The bar of the card: heading, total as text, segments, and the card's edge in per cent (0: no segment lies beyond it)."""

    heading: str
    label: str
    parts: list[Part]
    edge: float


def card_chart(bar: card_bar.Card, lang: Lang) -> Bar:
    """The bar of the card with letters; `≈` marks segments that the ledger estimates and the log does not print."""
    whole = max(bar.total, bar.edge, 1)
    parts = []
    for part, start, width in page_templates.stretches(((part, part.bytes) for part in bar.parts), whole):
        letter = card_bar.SIGNS[part.kind] if width >= ROOM_FOR_LETTER and part.kind not in ("free", "unused") else ""
        size = ("≈ " if part.estimated else "") + f"{card_bar.figure(part)} GiB"
        parts.append(Part(part.kind, start, width, letter, part.name(lang), size))
    label = words.comma(lang).join(f"{part.name(lang)} {card_bar.figure(part)} GiB" for part in bar.parts)
    return Bar(card_bar.heading(bar, lang), label, parts, 100 * bar.edge / whole if 0 < bar.edge < bar.total else 0.0)


def moments_chart(ledger: Ledger, lang: Lang) -> dict[str, object]:
    """A row per moment, and the position of the usable memory in per cent (`edge` 0: unknown)."""
    room = ledger.usable or ledger.capacity
    scale = max([moment.total.bytes for moment in ledger.moments] + ([room.bytes] if room else []) + [1]) * 1.02
    rows = [_row(ledger, moment, scale, room.bytes if room else 0, lang) for moment in ledger.moments]
    caption = words.sentence(word("moments_caption", lang, who=memory_rows.role_title(ledger, lang)), lang)
    caption_usable = word("usable_line", lang, size=words.amount(room, lang)) if room else ""
    return {"caption": caption, "room": caption_usable, "rows": rows, "edge": 100 * room.bytes / scale if room else 0.0}


def _row(ledger: Ledger, moment: Moment, scale: float, room: int, lang: Lang) -> dict[str, object]:
    """The row of a moment: segments and sum; whether the job failed in it, whether it is the peak, whether it exceeds the usable memory."""
    sums = card_bar.bytes_by_part(moment)
    stretches = page_templates.stretches(((kind, sums[kind]) for kind in card_bar.SIGNS if kind in sums), scale)
    return {
        "name": words.moment(moment.name, lang),
        "parts": [Part(*part) for part in stretches],
        "total": words.amount(moment.total, lang),
        "failing": moment.name == ledger.failing,
        "peak": ledger.peak is not None and moment.name == ledger.peak.name,
        "over": bool(room) and moment.total.bytes > (moment.room.bytes if moment.room else room),
    }
