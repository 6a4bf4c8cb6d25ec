"""The log against the ledger: figures that the log prints at a known moment confirm the ledger or contradict it.

A contradiction is put to the settings that would explain it (rules/ledger.yaml, suppositions): each is tried as if it were not in
effect, and the one that alone makes every printed figure agree is named. Where none or several do, nothing is named.
"""

from __future__ import annotations

from diagnose.budget.known import table
from diagnose.budget.ledger import Ledger, Moment
from diagnose.budget.ledgers import ledgers as accounts
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.units import Size

#: Printed figure -> the moment that it belongs to and the fact that says how the two meet.
PRINTED = {"log.allocated_after_load": ("load", "ledger.load_verdict"), "log.allocated_after_init": ("init", "ledger.init_verdict")}

#: Two figures meet where they are no further apart than this share: libraries and small buffers that no formula counts.
NEAR = 0.1


def against(book: FactBook, ledger: Ledger) -> list[Fact]:
    """How the printed figures meet the ledger, and what setting they speak against."""
    words = {name: word for name in PRINTED if (word := _meets(book, ledger, name))}
    made = [_fact(PRINTED[name][1], word, f"{PRINTED[name][0]} against {name}") for name, word in words.items()]
    if "below" not in words.values() or not ledger.complete:
        return made
    return [*made, *_explained(book, tuple(words))]


def _meets(book: FactBook, ledger: Ledger, name: str) -> str | None:
    """agrees, below (the ledger explains less), above; None where either side is missing."""
    seen, moment = book.size(name), ledger.moment(PRINTED[name][0])
    if seen is None or moment is None or not moment.terms or not seen.bytes:
        return None
    return compare(moment, seen)


def compare(moment: Moment, seen: Size) -> str:
    """How a moment's sum meets a printed figure."""
    whole = moment.total
    if whole.high < (1 - NEAR) * seen.low:
        return "below"
    return "above" if whole.low > (1 + NEAR) * seen.high else "agrees"


def _explained(book: FactBook, names: tuple[str, ...]) -> list[Fact]:
    """The one setting whose absence makes every figure agree."""
    found = [entry for entry in table()["suppositions"] if _asks(book, entry) and _agrees(book.changed(_changes(entry)), names)]
    if len(found) != 1:
        return []
    told = "the only setting without which ledger and log agree"
    return [_fact("ledger.contradicts", found[0]["knob"], told)]


def _asks(book: FactBook, entry: dict[str, Value]) -> bool:
    """Whether the job asks for the setting at all."""
    value = book.value(str(entry["knob"]))
    return value is not None and value not in (False, 0, "none", "disabled", "full", entry.get("instead"))


def _changes(entry: dict[str, Value]) -> dict[str, Value]:
    return {str(entry["knob"]): entry.get("instead")}


def _agrees(book: FactBook, names: tuple[str, ...]) -> bool:
    other = accounts(book)
    return bool(other) and all(_meets(book, other[0], name) == "agrees" for name in names)


def _fact(name: str, value: Value, formula: str) -> Fact:
    return Fact(name, value, "derived", Witness("derived", text=formula))
