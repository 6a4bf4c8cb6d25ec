"""The whole story in one short function; read this first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose import plan
from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.budget import accounting
from diagnose.budget.attribution import snapshot_failure
from diagnose.decide import judging
from diagnose.diagnosis import Diagnosis, Verdict
from diagnose.errors import UserError
from diagnose.facts import Fact, FactBook, Notice
from diagnose.headlines import contradicted, headline
from diagnose.inputs import job_reader
from diagnose.inputs.given import Material, as_config, as_notice, each, listed, options
from diagnose.parse import log_reader
from diagnose.parse.model.reading import Reading
from diagnose.phrases import phrase
from diagnose.recognition import recognise
from diagnose.record import replace
from diagnose.scan.source import Source

if TYPE_CHECKING:
    from diagnose.facts import Notice
    from diagnose.parse.model.event import Event
    from diagnose.snapshot.measure import Snapshot


def explain(
    logs: Material | Sequence[Material] = (),
    *,
    configs: Sequence[Material | ConfigSource] = (),
    model: str | Path | None = None,
    gpu: str | None = None,
    gpus: int | None = None,
    set: Mapping[str, str] | None = None,
    rules: Sequence[Path] = (),
    trial: bool = False,
    snapshot: Path | Source | None = None,
) -> Diagnosis:
    """What a failed job left behind, read; what filled the memory and what to change.

    Several `logs` are one job. `model` is a catalogue id, a config.json (Path) or its text; `set` gives knobs or facts
    by name; `snapshot` is a file that torch.cuda.memory._dump_snapshot wrote: without `logs` the failure is what it recorded.
    Raises UserError where no log can be read or an option is wrong; never on what a log or config contains.
    """
    given = options(model, gpu, gpus, set or {})
    materials = listed(logs)
    if snapshot is not None and not materials:
        return _of_snapshot(snapshot, configs, given, rules, trial)
    reading, sources, refused = read(materials, configs)
    taken, unread = _taken(snapshot)
    return diagnose(reading, sources, given, rules, trial, [*refused, *unread], taken)


def read(
    logs: Sequence[Material], configs: Sequence[Material | ConfigSource] = (), healthy: bool = True
) -> tuple[Reading, list[Material | ConfigSource], list[UserError]]:
    """What the logs of one job say, the configs that count (the given ones and what lay beside the logs or in them), and what could
    not be used; of a job that did not fail no facts, unless it is asked for (`healthy`). Raises UserError where no log can be read."""
    found = job_reader.job(logs)
    if found.unread and not found.scanned:
        raise found.unread[0]
    reading = log_reader.read_logs(found.scanned, healthy)
    if healthy or reading.events:
        found.pasted()
    reading = found.enriched(reading)
    if not found.configs:
        return reading, list(configs), found.unread
    from diagnose.inputs import config_choice

    taken, notices = config_choice.that_count(configs, found.configs, reading)
    return replace(reading, notices=(*reading.notices, *notices)), [*configs, *taken], found.unread


def check(
    configs: Sequence[Material | ConfigSource],
    *,
    model: str | Path | None = None,
    gpu: str | None = None,
    gpus: int | None = None,
    set: Mapping[str, str] | None = None,
    rules: Sequence[Path] = (),
    frontier: bool = True,
) -> Diagnosis:
    """The same without a log: will it fit, and how far can it go? Without `frontier` only what was read and what it needs."""
    found = replace(diagnose(Reading(), configs, options(model, gpu, gpus, set or {}), rules), asked="check")
    if not frontier:
        return found
    from diagnose.plan.choose.advice import job_of
    from diagnose.plan.edits.setting_conflicts import oddities
    from diagnose.plan.outlook.frontier import outlook
    from diagnose.plan.rules.remedy_rules import with_folders

    book = FactBook(found.facts)
    seen = outlook(job_of(book, found.ledgers, found.judgement, found.documents, with_folders(rules)[0]))
    verdict = replace(found.verdict, headline=contradicted(seen.contradictions)) if seen.contradictions else found.verdict
    return replace(found, outlook=seen, verdict=verdict, notices=(*found.notices, *oddities(book)))


def diagnose(
    reading: Reading,
    configs: Sequence[Material | ConfigSource] = (),
    given: Sequence[Fact] = (),
    rules: Sequence[Path] = (),
    trial: bool = False,
    unread: Sequence[UserError] = (),
    snapshot: Snapshot | None = None,
) -> Diagnosis:
    """From what the logs say to the finished value. Each step is a function of the ones before."""
    sources, unusable = each(as_config, list(configs))
    sources, records, dumps = job_reader.recorded(sources)
    book = FactBook(given).learn(reading.facts)
    settings = config_reader.read(sources, replace(reading, dumps=(*reading.dumps, *dumps)) if dumps else reading, book)
    book.learn(settings.facts)
    book.learn(recognise(book))

    root = reading.root
    event = None if root is None else reading.events[root]
    doubts = _learned(book, snapshot, event) if snapshot is not None else []
    known = Diagnosis(
        verdict=Verdict("none", None, None, phrase("headline.none_to_check" if settings.documents else "headline.none"), None),
        inputs=(*reading.inputs, *records, *settings.inputs),
        events=reading.events,
        facts=tuple(book),
        notices=(*reading.notices, *settings.notices, *doubts, *(as_notice(trouble) for trouble in (*unread, *unusable))),
        documents=settings.documents,
        snapshot=snapshot,
    )
    if event is None and reading.inputs:
        return known

    ledgers, attributions = accounting.account(book, event, root)
    if snapshot is not None and event is not None and root is not None and snapshot.failure is not None and not doubts:
        verdict, tensor = snapshot_failure.compare_attribution(book, ledgers, event, root, attributions)
        known = replace(known, snapshot=replace(snapshot, verdict=verdict, tensor=tensor))
    judgement = judging.judge(book, rules, trial)
    memory = event is None or event.status != "lookalike"  # nothing about memory cures what is none of it
    outcome = plan.make(book, ledgers, judgement, settings.documents, trial, rules) if memory else plan.Outcome()
    judgement = replace(judgement, faults=(*judgement.faults, *outcome.faults))
    return replace(
        known,
        verdict=Verdict(
            status=event.status if event else "none",
            family=event.family if event else None,
            phase=event.phase if event else None,
            headline=headline(event, attributions, ledgers, judgement),
            event=root,
        ),
        facts=tuple(book),
        notices=(*known.notices, *(Notice("warning", "rule", phrase("judge.rule_sits_out", fault=fault)) for fault in judgement.faults)),
        attributions=attributions,
        ledgers=ledgers,
        judgement=judgement,
        outcome=outcome,
    )


def _of_snapshot(
    given: Path | Source, configs: Sequence[Material | ConfigSource], options: Sequence[Fact], rules: Sequence[Path], trial: bool
) -> Diagnosis:
    """The diagnosis of the failure that a memory snapshot recorded. Raises UserError where it cannot be read."""
    taken, unread = _taken(given)
    if taken is None:
        raise unread[0]
    return diagnose(snapshot_failure.snapshot_reading(taken), configs, options, rules, trial, snapshot=taken)


def _taken(given: Path | Source | None) -> tuple[Snapshot | None, list[UserError]]:
    """The memory snapshot, or why it cannot be used."""
    if given is None:
        return None, []
    from diagnose.snapshot import snapshot_reader

    try:
        return snapshot_reader.read(given if isinstance(given, Source) else Source.file(given)), []
    except UserError as trouble:
        return None, [trouble]


def _learned(book: FactBook, taken: Snapshot, event: Event | None) -> list[Notice]:
    """Let the book learn what the snapshot says; of another failure than the log's it says nothing about this one's request."""
    from diagnose.snapshot import snapshot_reader

    other = snapshot_failure.different_failure_notices(taken, book, event)
    book.learn(snapshot_reader.facts(taken, request=not other))
    return other
