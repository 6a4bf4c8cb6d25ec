"""Lines that collectives, launchers and engines print because another process has failed: one event per kind, linked to that failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.event import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from diagnose.parse.events.nearby_marks import Mark
    from diagnose.parse.text.lines import Page

COUNTED = 1024  # lines of one kind whose processes are told apart; more are only counted


def consequences_of(
    events: Sequence[Event], marks: Iterable[Mark], attempt_at: Callable[[str, int], int], place_of: Callable[[Event], tuple[str, int]]
) -> list[Event]:
    """Such events, in the order of their first lines, with the ranks that print them and how often.

    Each follows from the first fatal failure of its attempt; lines that its own log printed before that failure are not counted.
    `attempt_at`: the attempt of a place; `place_of`: source and offset of an event.
    """
    causes: dict[int, int] = {}
    for index, event in enumerate(events):
        if event.fatal and event.consequence_of is None and event.status != "lookalike":
            causes.setdefault(event.attempt, index)
    places = {attempt: place_of(events[index]) for attempt, index in causes.items()}
    groups: dict[tuple[int, str], list[Mark]] = {}
    last: tuple[Page | None, int] = (None, -1)
    for mark in marks:
        if mark.kind not in statement_specs("consequences") or (mark.page is last[0] and mark.offset < last[1]):
            continue
        attempt = attempt_at(mark.source, mark.offset)
        if attempt not in causes or (mark.source == places[attempt][0] and mark.offset < places[attempt][1]):
            continue
        last = (mark.page, mark.page.line_end(mark.offset))  # a line is one thing, whatever else it names
        groups.setdefault((attempt, mark.kind), []).append(mark)
    return [_build_event(marks, causes[attempt], attempt) for (attempt, _), marks in groups.items()]


def _build_event(marks: Sequence[Mark], cause: int, attempt: int) -> Event:
    """One event for all lines of one kind."""
    prefixes = [mark.page.writer_at(mark.offset) for mark in marks[:COUNTED]]
    first, prefix = marks[0], prefixes[0]
    return Event(
        family=statement_specs("consequences")[first.kind].family,
        status="none",
        exception=first.words.rstrip(" ()"),
        attempt=attempt,
        rank=prefix.rank,
        local_rank=prefix.local_rank,
        ranks=tuple(dict.fromkeys(own_prefix.rank for own_prefix in prefixes if own_prefix.rank is not None)),
        host=prefix.host or None,
        pid=prefix.pid,
        consequence_of=cause,
        count=len(marks),
        evidence=(first.page.witness(first.offset),),
    )
