"""A job before and after some of its knobs were turned, as values for terminal and page: bars, differences, moments, the map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.phrases import Lang, phrase
from diagnose.plan.outlook.turned_knobs import Cell, State, Turned
from diagnose.plan.pricing.fit import MARGIN
from diagnose.records import NamedTuple
from diagnose.render.parts import card_bar, words
from diagnose.render.parts.words import word


class Difference(NamedTuple):
    """A part of the card before and after, in bytes."""

    kind: str
    before: int
    after: int


class Column(NamedTuple):
    """A moment of the step: its parts in bytes in the order of the bar, its sum, and what torch can use then."""

    name: str
    parts: Mapping[str, int]
    total: int
    room: int


def say(key: str, lang: Lang, **values: object) -> str:
    """A phrase of rules/phrases/what_if.yaml."""
    return phrase(f"what_if.{key}", **values).to(lang)


def bar(state: State, lang: Lang) -> card_bar.Card | None:
    """The card at the tightest moment by the estimate, with the request that was refused there; None where nothing can be counted."""
    if state.ledger is None or state.moment is None or not state.moment.terms:
        return None
    memory = card_bar.estimated_card(state.ledger, state.moment, None, lang)
    refused = state.need.bytes - state.moment.total.bytes if state.need is not None else 0
    if refused > 0:
        kept = [part for part in memory.parts if part.kind != "free"]
        free = max(memory.edge - sum(part.bytes for part in kept) - refused, 0)
        parts = [*kept, card_bar.Part("free", free, True), card_bar.Part("request", refused, True)]
        memory.parts = card_bar.visible_parts(parts, memory.edge or memory.total)
    return memory


def verdict(state: State, lang: Lang) -> str:
    """Whether it fits, with the room that is left or what is too much."""
    if state.need is None or state.room is None:
        return say("fits_unknown", lang)
    spare = state.room.bytes - state.need.bytes
    if state.fits in ("yes", "likely") and spare < 0:
        return say("fits_unlikely", lang, share=f"{MARGIN:.0%}")
    return say(f"fits_{state.fits}", lang, room=words.gib(abs(spare)), over=words.gib(abs(spare)), share=f"{MARGIN:.0%}")


def need(state: State, lang: Lang) -> str:
    """What is needed at which moment, and what is usable."""
    if state.need is None or state.moment is None:
        return say("not_counted", lang)
    moment, amount = words.moment(state.moment.name, lang), words.gib(state.need.bytes)
    if state.room is None:
        return say("need", lang, need=amount, moment=moment)
    key = "need_of" if state.need.bytes <= state.room.bytes else "need_over"
    return say(key, lang, need=amount, usable=words.gib(state.room.bytes), moment=moment)


def heading(turned: Turned, lang: Lang) -> str:
    """The changes in one line."""
    if not turned.changes:
        return say("unchanged", lang)
    return say("heading", lang, changes=words.comma(lang).join(change(turned, knob, lang) for knob in turned.changes))


def change(turned: Turned, knob: str, lang: Lang) -> str:
    before, after = (words.value_text(values.get(knob), lang) for values in (turned.old, turned.changes))
    return say("change", lang, what=words.meaning(knob, lang), before=before, after=after)


def remarks(turned: Turned, lang: Lang) -> list[str]:
    """What else is to be said: what is as it was or moves nothing, that the tightest moment is another one, why settings exclude each
    other."""
    moments = [words.moment(state.moment.name, lang) for state in (turned.before, turned.after) if state.moment is not None]
    moved = [say("other_moment", lang, before=moments[0], after=moments[1])] if len(dict.fromkeys(moments)) == 2 else []
    held = [
        words.sentence(say("already", lang, what=words.meaning(knob, lang), value=words.value_text(value, lang)), lang)
        for knob, value in turned.changes.items()
        if turned.old.get(knob) == value
    ]
    idle = [words.sentence(say("idle", lang, what=words.meaning(knob, lang)), lang) for knob in turned.idle]
    return [*held, *idle, *moved, *(words.sentence(text.to(lang), lang) for text in turned.contradictions)]


def differences(turned: Turned) -> list[Difference]:
    """The parts of the card that differ between the tightest moments, the largest change first."""
    old, new = (needed_by_part(state) for state in (turned.before, turned.after))
    rows = [Difference(kind, old.get(kind, 0), new.get(kind, 0)) for kind in card_bar.SIGNS if kind in old or kind in new]
    return sorted((row for row in rows if row.before != row.after), key=lambda row: -abs(row.after - row.before))


def needed_by_part(state: State) -> dict[str, int]:
    """The bytes of each part of the bar at the tightest moment, the refused request among them: together what is needed."""
    if state.moment is None:
        return {}
    refused = state.need.bytes - state.moment.total.bytes if state.need is not None else 0
    return {**card_bar.bytes_by_part(state.moment), **({"request": refused} if refused > 0 else {})}


def signed(count: int) -> str:
    """A difference in GiB with its sign."""
    return f"{'+' if count > 0 else '−' if count < 0 else ''}{words.gib(abs(count))}"


def part_name(kind: str, lang: Lang) -> str:
    return word(f"bar_{kind}", lang)


def columns(state: State, lang: Lang) -> list[Column]:
    """The moments of the step in their order."""
    return [] if state.ledger is None else columns_of(state.ledger, lang)


def columns_of(ledger: Ledger, lang: Lang) -> list[Column]:
    """The moments of a ledger that hold anything, in their order."""
    room = ledger.usable or ledger.capacity
    limit = room.bytes if room else 0
    return [_column(moment, limit, lang) for moment in ledger.moments if moment.terms]


def _column(moment: Moment, limit: int, lang: Lang) -> Column:
    sums = card_bar.bytes_by_part(moment)
    parts = {kind: sums[kind] for kind in card_bar.SIGNS if kind in sums}
    return Column(words.moment(moment.name, lang), parts, sum(parts.values()), moment.room.bytes if moment.room else limit)


def cell_text(cell: Cell, lang: Lang) -> str:
    """A field of the map in words."""
    amount = words.gib(cell.need.bytes) if cell.need else "–"
    return say("map_cell", lang, rows=cell.rows, length=cell.length, need=amount, verdict=say(f"map_{cell.fits}", lang))


def is_worth_drawing(cells: Sequence[Sequence[Cell]]) -> bool:
    """Whether a map tells anything: some field is judged."""
    return any(cell.fits != "unknown" for row in cells for cell in row)
