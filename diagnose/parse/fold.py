"""Which messages are one failure, and which failures follow from another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from diagnose.parse.host_oom import KILLS
from diagnose.parse.lines import Prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.parse.event import Event
    from diagnose.parse.events import Seen

NEAR = 200  # lines within which a bare message is the same one printed again
EVIDENCE = 6  # places that one event names

#: What a dying job prints besides its failure: a kill of what was left, a broken collective, a library that finds no memory any more.
_ECHOES = KILLS | {"nccl", "cublas", "cudnn"}


def once(all_seen: Sequence[Seen]) -> list[Seen]:
    """Every failure once: printed again by Ray, by `raise ... from` or by a logger it is the same."""
    kept: list[Seen] = []
    for one in all_seen:
        first = next((other for other in reversed(kept[-64:]) if _again(other, one)), None)
        if first is None:
            kept.append(one)
        else:
            _merge(first, one)
    return kept


def _again(first: Seen, one: Seen) -> bool:
    if first.message.family in KILLS and one.message.family in KILLS:
        return True  # kernel, scheduler and launcher each have a word for one death
    if first.message.family != one.message.family or first.attempt != one.attempt:
        return False
    if None not in (first.prefix.rank, one.prefix.rank) and first.prefix.rank != one.prefix.rank:
        return False
    if first.message.family == "nccl":
        return True
    same = (first.message.gpu, _figures(first), first.message.processes) == (one.message.gpu, _figures(one), one.message.processes)
    if not same or any(_figures(one)):
        return same
    alike = first.prefix == one.prefix or Prefix() in (first.prefix, one.prefix)  # C++ prints to the same log without a prefix
    return alike and first.page is one.page and one.index - first.index < NEAR


def _figures(one: Seen) -> tuple[str, ...]:
    return tuple(f"{name} {size}" for name, size in sorted(one.message.figures.items()))


def _merge(first: Seen, one: Seen) -> None:
    """What the second print adds to the first."""
    if one.message.weight > first.message.weight:
        first.message, one.message = one.message, first.message
        first.exception, first.words = one.exception or first.exception, one.words
    if first.message.family == one.message.family:
        for name, size in one.message.figures.items():
            first.message.figures.setdefault(name, size)
        first.message.processes = first.message.processes or one.message.processes
        first.message.said = first.message.said or one.message.said
    first.message.phase = first.message.phase or one.message.phase
    first.exception = first.exception or one.exception
    first.prefix = one.prefix if first.prefix == Prefix() else first.prefix
    if not first.trace.frames and one.trace.frames:
        first.trace = one.trace
    first.evidence += [place for place in one.evidence if place not in first.evidence][: EVIDENCE - len(first.evidence)]


def folded(events: Sequence[Event]) -> list[Event]:
    """Events with the equal failures of other ranks inside the first of them, and consequences marked."""
    if any(event.status != "lookalike" for event in events):
        events = [event for event in events if event.status != "lookalike"]
    kept: list[Event] = []
    for event in events:
        at = next((i for i, first in enumerate(kept) if _equal_elsewhere(first, event)), None)
        if at is None:
            kept.append(event)
        else:
            first = kept[at]
            ranks = first.ranks + tuple(rank for rank in event.ranks if rank not in first.ranks)
            kept[at] = replace(first, ranks=ranks, count=first.count + 1, members=(*first.members, event))
    return [_as_consequence(event, kept, i) for i, event in enumerate(kept)]


def _equal_elsewhere(first: Event, event: Event) -> bool:
    """The same failure of another process: same family and request, much the same figures, another rank or card."""
    if first.family != event.family or first.attempt != event.attempt or first.fatal != event.fatal or first.status != event.status:
        return False
    if first.requested != event.requested:
        return False
    if (
        first.allocated is not None
        and event.allocated is not None
        and abs(first.allocated.bytes - event.allocated.bytes) > first.allocated.bytes * 0.1
    ):
        return False
    members = (first, *first.members)
    for identity in ("rank", "gpu", "pid"):
        mine = getattr(event, identity)
        if mine is not None and all(getattr(member, identity) is not None for member in members):
            return all(getattr(member, identity) != mine for member in members) or (identity == "gpu" and _other_process(event, members))
    return False


def _other_process(event: Event, members: Sequence[Event]) -> bool:
    return event.pid is not None and all(member.pid not in (None, event.pid) for member in members)


def _as_consequence(event: Event, events: Sequence[Event], index: int) -> Event:
    """A failure of the kind that a dying job prints, after one that is none of that kind."""
    if event.family not in _ECHOES or (event.family in KILLS and event.status == "oom"):
        return event
    cause = next((i for i, other in enumerate(events[:index]) if other.fatal and other.family not in _ECHOES), None)
    return event if cause is None else replace(event, consequence_of=cause)
