"""What collectives, launchers and engines print because another process has failed: one event per kind, linked to that failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.parse.event import Event
from diagnose.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from diagnose.parse.lines import Page
    from diagnose.parse.nearby import Mark

#: Kinds of rules/messages.yaml, under `near`, and the family that each is of.
KINDS = {
    "collective_timeout": "nccl",
    "collective_error": "nccl",
    "gloo": "other",
    "store": "other",
    "connection": "other",
    "sigterm": "other",
    "abort": "other",
    "engine": "other",
    "actor": "other",
    "exit": "other",
}


def after(
    events: Sequence[Event], marks: Iterable[Mark], attempt_at: Callable[[str, int], int], place_of: Callable[[Event], tuple[str, int]]
) -> list[Event]:
    """What follows from failures, in order of its first line, with the ranks that print it and how often it stands in what was read.

    It follows from the first fatal failure of its attempt, and what its own log printed before that does not. `attempt_at`: the
    attempt of a place; `place_of`: source and offset of an event.
    """
    causes: dict[int, int] = {}
    for index, event in enumerate(events):
        if event.fatal and event.consequence_of is None and event.status != "lookalike":
            causes.setdefault(event.attempt, index)
    places = {attempt: place_of(events[index]) for attempt, index in causes.items()}
    found: dict[tuple[int, str], Event] = {}
    last: tuple[Page | None, int] = (None, -1)
    for mark in marks:
        if mark.kind not in KINDS or (mark.page is last[0] and mark.offset < last[1]):
            continue
        attempt = attempt_at(mark.source, mark.offset)
        if attempt not in causes or (mark.source == places[attempt][0] and mark.offset < places[attempt][1]):
            continue
        index = mark.page.index(mark.offset)
        last = (mark.page, mark.page.excerpt.offset + mark.page.bounds(index)[1])  # a line is one thing, whatever else it names
        found[attempt, mark.kind] = _more(found.get((attempt, mark.kind)), mark, causes[attempt], attempt)
    return list(found.values())


def _more(event: Event | None, mark: Mark, cause: int, attempt: int) -> Event:
    """The event of a kind with one more line that says it."""
    prefix = mark.page.around(mark.offset)[0] if event is None or event.count < 1024 else None
    rank = prefix.rank if prefix is not None else None
    if event is None:
        assert prefix is not None
        return Event(
            family=KINDS[mark.kind],
            status="none",
            exception=mark.words,
            attempt=attempt,
            rank=rank,
            local_rank=prefix.local_rank,
            ranks=(rank,) if rank is not None else (),
            host=prefix.host or None,
            pid=prefix.pid,
            consequence_of=cause,
            evidence=(mark.page.witness(mark.offset),),
        )
    ranks = (*event.ranks, rank) if rank is not None and rank not in event.ranks else event.ranks
    return replace(event, ranks=ranks, count=event.count + 1)
