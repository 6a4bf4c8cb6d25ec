"""Verdicts on whether a need fits the memory that torch can use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from diagnose.budget.model.ledger import Ledger
from diagnose.plan.remedies.remedy import Fits
from diagnose.units import Size

#: What is kept free, because an estimate is one: the vocabulary's 94 %.
MARGIN = 0.06

#: Best first, as the vocabulary lists them.
ORDER: tuple[Fits, ...] = ("yes", "likely", "unlikely", "unknown", "no")


def fits(need: Size | None, usable: Size | None) -> Fits:
    """Compare a range of need with usable memory less the margin: upper end below it yes, middle below it likely; lower end above all of
    the usable memory no; otherwise unlikely. Unknown without either figure."""
    if need is None or usable is None or usable.bytes <= 0:
        return "unknown"
    room = (1 - MARGIN) * usable.bytes
    if need.high <= room:
        return "yes"
    if need.bytes <= room:
        return "likely"
    return "no" if need.low > usable.bytes else "unlikely"


def sits(ledger: Ledger | None) -> Fits:
    """Whether every moment of a ledger fits; unknown if resident terms are missing, unless the known ones alone are too large.

    All moments are checked: a smaller one with a wide range may reach higher than the largest.
    """
    if ledger is None or ledger.peak is None:
        return "unknown"
    verdict = reduce(worse, [fits(need, room) for need, room in against(ledger)])
    return verdict if ledger.complete or verdict == "no" else "unknown"


def against(ledger: Ledger) -> list[tuple[Size, Size | None]]:
    """Each moment's need, and the memory available to it (None if unknown)."""
    room = ledger.usable or ledger.capacity
    moments = (*ledger.moments, ledger.whole) if ledger.whole else ledger.moments
    return [(moment.total, moment.room or room) for moment in moments]


def may_exceed(ledgers: Iterable[Ledger]) -> bool:
    """Whether the upper end of an estimate exceeds what the card can give."""
    return any(room is not None and need.high > room.bytes for ledger in ledgers for need, room in against(ledger))


def beyond(ledger: Ledger) -> list[tuple[float, float]]:
    """For each moment with a known limit, the bytes by which its upper end and its middle exceed the limit less the margin."""
    return [(need.high - (1 - MARGIN) * room.bytes, need.bytes - (1 - MARGIN) * room.bytes) for need, room in against(ledger) if room]


def foremost(ledgers: Sequence[Ledger]) -> Ledger | None:
    """The ledger of the role that fits worst, preferably one that can be judged; of equals the one that fills its card most, or without
    a card the one that needs most."""

    def place(ledger: Ledger) -> tuple[bool, int, float]:
        verdict = sits(ledger)
        judged = ledger.complete or verdict == "no"
        return judged, ORDER.index(verdict), fullness(ledger)

    return max(ledgers, key=place, default=None)


def fullness(ledger: Ledger) -> float:
    """The share of the available memory that the largest moment takes; its bytes if no card is known."""
    peak, room = ledger.peak, ledger.usable or ledger.capacity
    peak_bytes = peak.total.bytes if peak else 0
    return peak_bytes / room.bytes if room and room.bytes > 0 else float(peak_bytes)


def margin(need: Size, usable: Size) -> Size:
    """The memory that stays free."""
    return usable - need


def worse(first: Fits, second: Fits) -> Fits:
    return max(first, second, key=ORDER.index)
