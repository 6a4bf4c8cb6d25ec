"""Excerpts to events and facts; a module per grammar."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from diagnose.facts import Notice
from diagnose.parse import commands, environment, events, failure, fold, log_facts
from diagnose.parse.event import Event
from diagnose.parse.lines import Page
from diagnose.parse.reading import Reading
from diagnose.phrases import phrase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.facts import Fact
    from diagnose.parse.events import Seen
    from diagnose.scan import Scanned

MOST = 64  # messages that are looked at closely
_START = b"***** Running training"
_TIME_LIMIT = b"DUE TO TIME LIMIT"  # the scheduler killed it, not the kernel
_ECHOES = ("SIGTERM", "ChildFailedError", "DistBackendError")


def read(scanned: Sequence[Scanned]) -> Reading:
    """All that the logs of one job say. Never raises for what a log contains."""
    pages = [[Page(one.input.name, excerpt) for excerpt in one.excerpts] for one in scanned]
    all_seen = _seen(scanned, pages)
    failures = _root_first(fold.once(all_seen), pages)
    happened = fold.folded([events.event(one) for one in failures])
    happened += _echoes(scanned, pages, happened, failures)
    every = [page for of_input in pages for page in of_input]
    launched = commands.read(every)
    reading = Reading(
        tuple(one.input for one in scanned), tuple(happened), commands=tuple(launched), notices=tuple(_notices(scanned, all_seen))
    )
    return _with_step(replace(reading, facts=tuple(_facts(reading, failures, every))))


def _with_step(reading: Reading) -> Reading:
    """The root event with the optimizer step that the bars show."""
    step = next((fact.value for fact in reading.facts if fact.name == "log.step"), None)
    if reading.root is None or not isinstance(step, int):
        return reading
    changed = [replace(event, step=step) if index == reading.root else event for index, event in enumerate(reading.events)]
    return replace(reading, events=tuple(changed))


def _facts(reading: Reading, failures: Sequence[Seen], pages: Sequence[Page]) -> Iterator[Fact]:
    """The failure's own facts, then what was launched, then what the run printed; each name once for all but the first kind."""
    end: dict[str, int] = {}
    if reading.root is not None:
        root = reading.events[reading.root]
        one = next(one for one in failures if one.evidence[0] == root.evidence[0])
        end[one.page.source] = one.offset
        yield from failure.facts(root, one)
    yield from commands.facts(reading.commands)
    yield from environment.facts(pages)
    yield from log_facts.facts(pages, end)


def _seen(scanned: Sequence[Scanned], pages: Sequence[Sequence[Page]]) -> list[Seen]:
    found: list[Seen] = []
    for number, one in enumerate(scanned):
        starts = [hit.offset for hit in one.hits if hit.grammar == "landmark" and _text_at(pages[number], hit.offset).startswith(_START)]
        attempt, failed = 1, 0
        for message in events.seen(pages[number], one.hits, number):
            if failed and bisect_right(starts, message.offset) > bisect_right(starts, failed):
                attempt += 1  # training began anew after a failure
            message.attempt, failed = attempt, message.offset
            found.append(message)
            if len(found) >= MOST:
                break
        if any(_text_at(pages[number], hit.offset).startswith(_TIME_LIMIT) for hit in one.hits if hit.grammar == "landmark"):
            found = [message for message in found if message.order[0] != number or message.message.status != "suspected"]
    return [events.placed(one) for one in found]


def _root_first(failures: list[Seen], pages: Sequence[Sequence[Page]]) -> list[Seen]:
    """Within one log the first failure is the root. Across the logs of several ranks the launcher names it, if anyone does."""
    named = next((fact.value for of_input in pages for fact in log_facts.root_rank(of_input)), None) if len(pages) > 1 else None
    return failures if named is None else sorted(failures, key=lambda one: one.prefix.rank != named)


def _text_at(pages: Sequence[Page], offset: int) -> bytes:
    """A few bytes at an offset of the input."""
    page = next((page for page in pages if offset in page.excerpt), None)
    return page.excerpt.raw[offset - page.excerpt.offset :][: len(_START)] if page else b""


def _echoes(
    scanned: Sequence[Scanned], pages: Sequence[Sequence[Page]], happened: Sequence[Event], failures: Sequence[Seen]
) -> list[Event]:
    """What launchers and collectives print when one process has failed: the first line of each kind after the root."""
    root = Reading(events=tuple(happened)).root
    if root is None:
        return []
    place = next(one for one in failures if one.evidence[0] == happened[root].evidence[0])
    found: dict[str, Event] = {}
    for number, one in enumerate(scanned):
        for hit in one.hits:
            if hit.grammar != "consequence" or (number == place.order[0] and hit.offset < place.offset):
                continue
            page = next((page for page in pages[number] if hit.offset in page.excerpt), None)
            word = _text_at(pages[number], hit.offset)
            kind = next((kind for kind in _ECHOES if word.startswith(kind.encode())), None)
            if page is not None and kind is not None and kind not in found:
                family = "nccl" if kind == "DistBackendError" else "other"
                found[kind] = Event(family=family, status="none", exception=kind, consequence_of=root, evidence=(page.witness(hit.offset),))
    return list(found.values())


def _notices(scanned: Sequence[Scanned], all_seen: Sequence[Seen]) -> Iterator[Notice]:
    for one in scanned:
        for note in one.input.notes:
            if note in ("empty", "binary", "nul-filled"):
                yield Notice("warning", f"input_{note.replace('-', '_')}", phrase(f"parse.{note.replace('-', '_')}", name=one.input.name))
        if one.dropped:
            yield Notice("info", "more_messages", phrase("parse.more_messages", name=one.input.name, count=one.dropped))
    for message in all_seen:
        if message.message.unread:
            yield Notice("warning", "message_not_understood", phrase("parse.message_not_understood"), message.evidence[0])
