"""Reports of one failure in different words: an allocator's log line and the exception after it, a warning with figures that the exception
lacks, a message cut short. Also library errors that follow from an earlier device fault and say nothing about memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from diagnose import families
from diagnose.parse.messages.lookalike import FAULTS
from diagnose.parse.text.lines import Prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.model.event import Event
    from diagnose.units import Size

NEAR = 200  # lines within which it is told again
BACK = 8  # messages that are looked back at


def join_duplicates(all_seen: Iterable[PlacedMessage], merge: Callable[[PlacedMessage, PlacedMessage], None]) -> list[PlacedMessage]:
    """Merge each message that reports an earlier failure again into that failure's first report."""
    unique: list[PlacedMessage] = []
    for placed in all_seen:
        first = next((earlier for earlier in reversed(unique[-BACK:]) if _is_duplicate(earlier, placed)), None)
        if first is None:
            unique.append(placed)
            continue
        if first.message.family != placed.message.family:
            first.message.family = placed.message.family = max((first, placed), key=lambda report: report.message.weight).message.family
        first.message.gpu = placed.message.gpu = placed.message.gpu if first.message.gpu is None else first.message.gpu
        merge(first, placed)
    return unique


def _is_duplicate(first: PlacedMessage, second: PlacedMessage) -> bool:
    near = first.page is second.page and second.index - first.index < NEAR and first.attempt == second.attempt
    if not near or "lookalike" in (first.message.status, second.message.status):
        return False
    if first.prefix != second.prefix and Prefix() not in (first.prefix, second.prefix):
        return False
    family = families.of(first.message.family)
    if second.message.retells:
        return bool(family.allocator) or family.retold
    if family.shared and families.of(second.message.family).shared:  # two frameworks, one allocator
        return _sizes_agree(first.message.figures.get("requested"), second.message.figures.get("requested"))
    own_tracebacks = first.trace.frames and second.trace.frames and first.trace.places != second.trace.places
    if first.message.family != second.message.family or family.kill or family.collective or own_tracebacks:
        return False
    if None not in (first.message.gpu, second.message.gpu) and first.message.gpu != second.message.gpu:
        return False
    ours, theirs = first.message.figures, second.message.figures
    if ours.keys() == theirs.keys() or not (ours.keys() <= theirs.keys() or theirs.keys() <= ours.keys()):
        return False
    return all(_sizes_agree(ours[name], theirs[name]) for name in ours.keys() & theirs.keys())


def _sizes_agree(first: Size | None, second: Size | None) -> bool:
    """Whether two printed sizes may be equal; a missing size agrees with any."""
    return first is None or second is None or (first.low <= second.high and second.low <= first.high)


def blame_earlier_fault(events: Sequence[Event], number: int) -> Event:
    """The event of this number, as a consequence if it only follows from an earlier device fault, or quotes beforehand one that does."""
    event = events[number]
    if not families.of(event.family).handles or event.requested is not None or event.status not in ("oom", "suspected"):
        return event
    faulty = any(
        other.reason in FAULTS and other.attempt == event.attempt and (at < number or _stands_before(other, event))
        for at, other in enumerate(events)
    )
    return replace(event, status="none", reason="") if faulty else event


def _stands_before(fault: Event, event: Event) -> bool:
    """Whether a fault stands above a place where the event is reported, though a person quotes that above both."""
    first, places = fault.evidence[0], event.evidence
    return any(place.source == first.source and place.line > first.line for place in places)
