"""The entry of the parser: excerpts of a job's logs to events and facts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from diagnose.facts import Notice, Witness, declared
from diagnose.parse.events.timeline import build_timeline, notices, pages_of_launch
from diagnose.parse.facts import (
    drawing_models,
    echoed_commands,
    environment,
    failure_facts,
    log_facts,
    mentioned_models,
    projects,
    run_memory,
    settings_dumps,
    text_figures,
)
from diagnose.parse.model.reading import Reading
from diagnose.parse.text.lines import Page, Prefix
from diagnose.phrases import Text, phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from diagnose.facts import Fact, Value
    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.model.event import Event
    from diagnose.parse.model.message import Message
    from diagnose.scan.log_scan import Scanned


def read_logs(scanned: Sequence[Scanned], healthy: bool = True) -> Reading:
    """All that the logs of one job say; of a job that did not fail only if `healthy`. Never raises for what a log contains."""
    pages = [[Page(scan.input.name, excerpt, _process_of_path(scan)) for excerpt in scan.excerpts] for scan in scanned]
    state = build_timeline(scanned, pages)
    if not healthy and not state.events:
        return Reading(tuple(scan.input for scan in scanned), notices=tuple(_notices(scanned, state.messages)))
    every = pages_of_launch(state, [page for of_input in pages for page in of_input])
    reading = Reading(
        tuple(scan.input for scan in scanned),
        state.events,
        commands=tuple(echoed_commands.read_commands(every)),
        dumps=settings_dumps.read_dumps(every),
        since=state.since,
    )
    root = None if reading.root is None else reading.events[reading.root]
    reading = reading._replace(notices=(*_notices(scanned, state.messages), *notices(state, root)))
    looks = [Page(scan.input.name, sample, _process_of_path(scan)) for scan in scanned for sample in scan.samples]
    failed = (root, state.failure(root)) if root else None
    return _with_step(reading._replace(facts=tuple(_without_duplicates(_facts(reading, failed, every, looks)))))


def _process_of_path(scan: Scanned) -> Prefix:
    """The process that wrote an input, as far as its path tells."""
    return Prefix(scan.label.rank, scan.label.local_rank, scan.label.pid, host=scan.label.host)


def _with_step(reading: Reading) -> Reading:
    """The root event with the optimizer step that the bars show."""
    step = next((fact.value for fact in reading.facts if fact.name == "log.step"), None)
    if reading.root is None or not isinstance(step, int):
        return reading
    changed = [replace(event, step=step) if index == reading.root else event for index, event in enumerate(reading.events)]
    return reading._replace(events=tuple(changed))


def _without_duplicates(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Drop facts that repeat name and value of an earlier one: a card's name stands in a report and in a table."""
    first: dict[str, Value] = {}  # most names are told once, and no value is written out
    seen_values: dict[str, set[str]] = {}
    for fact in facts:
        if fact.name in first:
            values = seen_values.setdefault(fact.name, {repr(first[fact.name])})
            if (written := repr(fact.value)) in values:
                continue
            values.add(written)
        else:
            first[fact.name] = fact.value
        yield fact


def _facts(reading: Reading, failed: tuple[Event, PlacedMessage] | None, pages: Sequence[Page], looks: Sequence[Page]) -> Iterator[Fact]:
    """The failure's own facts, then what was launched, then what the run printed; each name once for all but the first kind."""
    root, root_message = failed or (None, None)
    end = {root_message.page.source: root_message.offset} if root_message is not None else {}
    if root is not None and root_message is not None:
        yield from failure_facts.facts(root, root_message)
    yield from echoed_commands.facts(reading.commands)
    yield from projects.facts(pages)
    yield from drawing_models.facts(pages)
    if root is not None and root.requested is not None:
        yield from mentioned_models.facts(pages)
        yield from text_figures.facts(pages)
    printed = list(log_facts.facts(pages, end))
    served = {fact.value for fact in printed if fact.name == "rollout.model"}
    yield from (fact for fact in environment.facts(pages) if fact.origin == "log" or fact.value not in served)  # it is not trained
    yield from printed
    yield from run_memory.node_memory_from_free(pages)
    yield from run_memory.facts(pages, looks, root, root_message)
    if root is not None:
        yield from failure_facts.trainer(root)


def _notices(scanned: Sequence[Scanned], all_seen: Sequence[PlacedMessage]) -> Iterator[Notice]:
    for scan in scanned:
        for note in scan.input.notes:
            if note in ("empty", "binary", "nul-filled"):
                yield Notice("warning", f"input_{note.replace('-', '_')}", phrase(f"parse.{note.replace('-', '_')}", name=scan.input.name))
        if scan.reduced:
            kinds = [phrase(f"parse.of_{grammar}") for grammar in scan.reduced if grammar.endswith("_oom")]
            missing = Text(", ".join(kind.en for kind in kinds), "、".join(kind.zh for kind in kinds))
            yield Notice("warning", "reduced_search", phrase("parse.reduced_search", name=scan.input.name, missing=missing))
        if scan.skipped:
            text = phrase(
                "parse.too_many_messages", name=scan.input.name, skipped=max(1, scan.skipped >> 20), size=max(1, scan.input.bytes >> 20)
            )
            yield Notice("warning", "too_many_messages", text)
        if scan.dropped:
            yield Notice("info", "more_messages", phrase("parse.more_messages", name=scan.input.name, count=scan.dropped))
    yield from _notices_of_messages(all_seen)


def _notices_of_messages(all_seen: Sequence[PlacedMessage]) -> Iterator[Notice]:
    """What is wrong with messages: figures that contradict each other, requests of absurd size, words that are not understood."""
    contradictions: dict[tuple[str, str], PlacedMessage] = {}
    repeated: dict[tuple[str, str], list[Witness]] = {}  # every attempt and every rank prints it again: one notice, at the first
    for message in all_seen:
        if message.message.status == "oom" and message.message.reason:
            repeated.setdefault((message.message.reason, f"reason.{message.message.reason}"), []).append(message.evidence[0])
        if (names := message.message.contradiction()) is not None:
            contradictions.setdefault(names, message)
        if message.message.unread:
            repeated.setdefault(("message_not_understood", "parse.message_not_understood"), []).append(message.evidence[0])
    for names, message in contradictions.items():
        yield Notice("warning", "impossible_figures", _impossible(names, message.message), message.evidence[0])
    for (code, key), witnesses in repeated.items():
        text = phrase(key) if len(witnesses) == 1 else phrase("parse.times", what=phrase(key), count=len(witnesses))
        yield Notice("warning", code, text, witnesses[0])


def _impossible(names: tuple[str, str], message: Message) -> Text:
    """What a message prints of a part that is larger than its whole, in the words that the facts have for both."""
    part, whole = (declared(f"log.{name}") for name in names)
    words = {
        f"{role}_name": Text(entry.en, entry.zh) if entry is not None else Text(name, name)
        for role, entry, name in (("part", part, names[0]), ("whole", whole, names[1]))
    }
    return phrase("parse.impossible_figures", **words, part=str(message.figures[names[0]]), whole=str(message.figures[names[1]]))
