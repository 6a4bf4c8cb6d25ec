"""Bar charts as values for page templates: the card, and every moment of a ledger against the usable memory."""

from __future__ import annotations

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.records import NamedTuple
from diagnose.render.markup import page_templates
from diagnose.render.parts import advice_text, card_bar, failure_text, memory_rows, words
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
    return Bar(bar.title, label, parts, 100 * bar.edge / whole if 0 < bar.edge < bar.total else 0.0)


def scaled_chart(memory: card_bar.Card, whole: int, lang: Lang) -> Bar:
    """A bar on a scale of `whole` bytes, so that several can be compared."""
    drawn = card_chart(memory, lang)
    scale = max(memory.total, memory.edge, 1) / max(whole, 1)
    parts = [part._replace(left=part.left * scale, width=part.width * scale) for part in drawn.parts]
    edge = 100 * memory.edge / max(whole, 1) if memory.edge else 0.0
    return drawn._replace(parts=[part._replace(letter=part.letter if part.width >= ROOM_FOR_LETTER else "") for part in parts], edge=edge)


class Side(NamedTuple):
    """One of two bars: its name, the figure beside it, the bar, and whether it is within the limit."""

    name: str
    figure: str
    bar: Bar
    fits: bool


def plan_bars(diagnosis: Diagnosis, lang: Lang) -> list[Side]:
    """The need as configured and after the plan on one scale, with what torch can use as the edge; empty where the plan is not priced."""
    plan, ledger = diagnosis.outcome.plan, memory_rows.main_ledger(diagnosis)
    if plan is None or plan.before is None or plan.after is None or plan.predicted_peak is None or ledger is None or ledger.usable is None:
        return []
    if memory_rows.estimate_deviation(diagnosis) in advice_text.UNRELIABLE or failure_text.on_host(diagnosis):
        return []
    event = diagnosis.root
    refused = event.requested.bytes if event is not None and event.requested is not None and plan.before.name == ledger.failing else 0
    room = plan.predicted_peak.bytes + plan.margin.bytes if plan.margin is not None else ledger.usable.bytes  # another card's, perhaps
    cards = [_need(plan.before, refused, ledger.usable.bytes, lang), _need(plan.after, 0, room, lang)]
    whole = max(max(memory.total, memory.edge) for memory in cards)
    names = (word("plan_before", lang), word("plan_after", lang))
    figures = (words.gib(plan.before.total.bytes + refused), words.amount(plan.predicted_peak, lang))
    return [
        Side(name, figure, scaled_chart(memory, whole, lang), memory.total <= memory.edge)
        for name, figure, memory in zip(names, figures, cards, strict=True)
    ]


def _need(moment: Moment, refused: int, room: int, lang: Lang) -> card_bar.Card:
    """What one point of a step needs, with the request that was refused there."""
    sums = card_bar.bytes_by_part(moment)
    parts = [card_bar.Part(kind, sums[kind], True) for kind in card_bar.SIGNS if kind in sums]
    parts += [card_bar.Part("request", refused)] if refused else []
    return card_bar.Card(words.moment(moment.name, lang), card_bar.visible_parts(parts, room), room)


def moments_chart(ledger: Ledger, lang: Lang) -> dict[str, object]:
    """A row per moment, and the position of the usable memory in per cent (`edge` 0: unknown)."""
    room = ledger.usable or ledger.capacity
    scale = max([moment.total.bytes for moment in ledger.moments] + ([room.bytes] if room else []) + [1]) * 1.02
    rows = [_row(ledger, moment, scale, room.bytes if room else 0, lang) for moment in ledger.moments if moment.terms]
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
