"""Excerpts to events and facts; a module per grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.facts import Notice
from diagnose.parse.events.timeline import happened, notices, of_launch
from diagnose.parse.facts import echoed_commands, environment, failure_facts, log_facts, node_memory, run_memory, settings_dumps
from diagnose.parse.model.reading import Reading
from diagnose.parse.text.lines import Page, Prefix
from diagnose.phrases import Text, phrase
from diagnose.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from diagnose.facts import Fact, Value
    from diagnose.parse.events.log_events import Seen
    from diagnose.parse.model.event import Event
    from diagnose.scan.log_scan import Scanned


def read(scanned: Sequence[Scanned], healthy: bool = True) -> Reading:
    """All that the logs of one job say; of a job that did not fail only where it is asked for (`healthy`).

    Never raises for what a log contains.
    """
    pages = [[Page(one.input.name, excerpt, _writer(one)) for excerpt in one.excerpts] for one in scanned]
    state = happened(scanned, pages)
    if not healthy and not state.events:
        return Reading(tuple(one.input for one in scanned), notices=tuple(_notices(scanned, state.messages)))
    every = of_launch(state, [page for of_input in pages for page in of_input])
    reading = Reading(
        tuple(one.input for one in scanned),
        state.events,
        commands=tuple(echoed_commands.read(every)),
        dumps=settings_dumps.read(every),
        since=state.since,
    )
    root = None if reading.root is None else reading.events[reading.root]
    reading = replace(reading, notices=(*_notices(scanned, state.messages), *notices(state, root)))
    looks = [Page(one.input.name, sample, _writer(one)) for one in scanned for sample in one.samples]
    failed = (root, state.failure(root)) if root else None
    return _with_step(replace(reading, facts=tuple(_each_once(_facts(reading, failed, every, looks)))))


def _writer(one: Scanned) -> Prefix:
    """Which process wrote an input, as its path says."""
    return Prefix(one.label.rank, one.label.local_rank, one.label.pid, host=one.label.host)


def _with_step(reading: Reading) -> Reading:
    """The root event with the optimizer step that the bars show."""
    step = next((fact.value for fact in reading.facts if fact.name == "log.step"), None)
    if reading.root is None or not isinstance(step, int):
        return reading
    changed = [replace(event, step=step) if index == reading.root else event for index, event in enumerate(reading.events)]
    return replace(reading, events=tuple(changed))


def _each_once(facts: Iterable[Fact]) -> Iterator[Fact]:
    """The facts without those that say the same of the same once more: a card's name stands in a report and in a table."""
    first: dict[str, Value] = {}  # most names are told once, and no value is written out
    told: dict[str, set[str]] = {}
    for fact in facts:
        if fact.name in first:
            known = told.setdefault(fact.name, {repr(first[fact.name])})
            if (written := repr(fact.value)) in known:
                continue
            known.add(written)
        else:
            first[fact.name] = fact.value
        yield fact


def _facts(reading: Reading, failed: tuple[Event, Seen] | None, pages: Sequence[Page], looks: Sequence[Page]) -> Iterator[Fact]:
    """The failure's own facts, then what was launched, then what the run printed; each name once for all but the first kind."""
    root, one = failed or (None, None)
    end = {one.page.source: one.offset} if one is not None else {}
    if root is not None and one is not None:
        yield from failure_facts.facts(root, one)
    yield from echoed_commands.facts(reading.commands)
    yield from environment.facts(pages)
    yield from log_facts.facts(pages, end)
    yield from node_memory.pasted(pages)
    yield from run_memory.facts(pages, looks, root, one)
    if root is not None:
        yield from failure_facts.trainer(root)


def _notices(scanned: Sequence[Scanned], all_seen: Sequence[Seen]) -> Iterator[Notice]:
    for one in scanned:
        for note in one.input.notes:
            if note in ("empty", "binary", "nul-filled"):
                yield Notice("warning", f"input_{note.replace('-', '_')}", phrase(f"parse.{note.replace('-', '_')}", name=one.input.name))
        if one.reduced:
            kinds = [phrase(f"parse.of_{grammar}") for grammar in one.reduced if grammar.endswith("_oom")]
            missing = Text(", ".join(kind.en for kind in kinds), "、".join(kind.zh for kind in kinds))
            yield Notice("warning", "reduced_search", phrase("parse.reduced_search", name=one.input.name, missing=missing))
        if one.dropped:
            yield Notice("info", "more_messages", phrase("parse.more_messages", name=one.input.name, count=one.dropped))
    for message in all_seen:
        if message.message.status == "oom" and message.message.reason:
            yield Notice("warning", message.message.reason, phrase(f"reason.{message.message.reason}"), message.evidence[0])
        if message.message.unread:
            yield Notice("warning", "message_not_understood", phrase("parse.message_not_understood"), message.evidence[0])
