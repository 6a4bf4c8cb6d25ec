"""The saving of a change at one moment of the ledger, and the choice of the ledger that is asked."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.budget.model.ledger import Ledger
from diagnose.facts import FactBook, Value
from diagnose.records import NamedTuple
from diagnose.units import Size


class Saving(NamedTuple):
    """The bytes that a change saves; `moment` names the moment, empty for the peak."""

    bytes: Size
    moment: str = ""
    #: It saves only under one explanation of a ledger that falls short.
    supposed: tuple[tuple[str, Value], ...] = ()


def pick(ledgers: Sequence[Ledger], role: str | None) -> Ledger | None:
    """The ledger of the role that failed, else of the role that fits worst."""
    named = [ledger for ledger in ledgers if role is not None and ledger.role == role]
    failing = [ledger for ledger in ledgers if ledger.failing is not None]
    return next(iter(named or failing), None) or max(ledgers, key=_fullness, default=None)


def _fullness(ledger: Ledger) -> float:
    room = ledger.usable or ledger.capacity
    return ledger.peak.total.bytes / room.bytes if ledger.peak and room and room.bytes else 0.0


def difference(before: Size, after: Size) -> Size:
    """The difference of two totals. Terms in both have the same uncertainty, so that their widths cancel."""
    ends = (before.low - after.low, before.high - after.high, before.bytes - after.bytes)
    return Size(min(ends), max(ends), ends[2])


def beyond(saved: Size, book: FactBook) -> bool:
    """Whether a saving exceeds the capacity of the card that ran out."""
    capacity = book.size("log.capacity")
    return capacity is not None and saved.low > capacity.high
