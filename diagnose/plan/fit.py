"""Does it fit: a need against what torch can have on the card, in the words of the vocabulary."""

from __future__ import annotations

from diagnose.budget.ledger import Ledger
from diagnose.plan.remedy import Fits
from diagnose.units import Size

#: What is kept free, because an estimate is one: the vocabulary's 94 %.
MARGIN = 0.06

#: Best first, as the vocabulary lists them.
ORDER: tuple[Fits, ...] = ("yes", "likely", "unlikely", "unknown", "no")


def fits(need: Size | None, usable: Size | None) -> Fits:
    """Upper end within the margin: yes; middle within it: likely; lower end above the whole: no; between: unlikely."""
    if need is None or usable is None or usable.bytes <= 0:
        return "unknown"
    room = (1 - MARGIN) * usable.bytes
    if need.high <= room:
        return "yes"
    if need.bytes <= room:
        return "likely"
    return "no" if need.low > usable.bytes else "unlikely"


def sits(ledger: Ledger | None) -> Fits:
    """Whether the largest moment of a ledger fits; unknown where resident terms are missing, unless those there are too much."""
    if ledger is None or ledger.peak is None:
        return "unknown"
    room = ledger.usable or ledger.capacity
    verdict = fits(ledger.peak.total, room)
    return verdict if ledger.complete or verdict == "no" else "unknown"


def margin(need: Size, usable: Size) -> Size:
    """What stays free."""
    return usable - need


def worse(one: Fits, other: Fits) -> Fits:
    return max(one, other, key=ORDER.index)
