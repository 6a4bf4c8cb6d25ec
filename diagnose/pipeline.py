"""From logs and configs to a diagnosis: the stages in order. Read `diagnose` first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose import families, notebook, plan
from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.budget import accounting
from diagnose.budget.attribution.failed_tensor import identity
from diagnose.decide import hypotheses, judging, regime
from diagnose.decide.verdict import Judgement
from diagnose.diagnosis import Diagnosis, Verdict
from diagnose.errors import UserError
from diagnose.facts import Fact, FactBook, Notice
from diagnose.headlines import contradiction_headline, headline
from diagnose.inputs import job_reader
from diagnose.inputs.caller_arguments import Material, as_config, as_list, as_notice, convert_each, options
from diagnose.parse import log_reader
from diagnose.parse.model.reading import Reading
from diagnose.phrases import phrase
from diagnose.recognition import recognise, unlisted_model
from diagnose.scan.source import Source

if TYPE_CHECKING:
    from diagnose.parse.model.event import Event
    from diagnose.snapshot.measure import Snapshot

#: Notices of one kind about one file that are told.
MOST_ALIKE = 100


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
    notes: Sequence[notebook.Note] = (),
) -> Diagnosis:
    """Diagnose a failed job from its logs and configs: what filled the memory and what to change.

    Several `logs` are one job. `model`: a catalogue id, a config.json (Path) or its text; `set`: values of knobs or facts by name;
    `snapshot`: a file of torch.cuda.memory._dump_snapshot, which without `logs` is the failure itself;
    `notes`: what earlier answers led to, where the next one starts.
    Raises UserError if no log can be read or an option is invalid; never for what a log or config contains.
    """
    option_facts = options(model, gpu, gpus, set or {})
    materials = as_list(logs)
    if snapshot is not None and not materials:
        return _explain_snapshot(snapshot, configs, option_facts, rules, trial, notes)
    reading, sources, errors = read(materials, configs, supposing=True)
    snapshot_data, snapshot_errors = _read_snapshot(snapshot)
    return diagnose(reading, sources, option_facts, rules, trial, [*errors, *snapshot_errors], snapshot_data, notes)


def read(
    logs: Sequence[Material], configs: Sequence[Material | ConfigSource] = (), healthy: bool = True, supposing: bool = False
) -> tuple[Reading, list[Material | ConfigSource], list[UserError]]:
    """Read the logs of one job: the reading, the configs (explicit ones and those found with the logs), and errors of unusable inputs.

    `healthy`: extract facts of a job that did not fail too. `supposing`: suppose a failure of memory where a log
    ends in the middle of a traceback. Raises UserError if no log can be read.
    """
    inputs = job_reader.read_job(logs)
    if inputs.errors and not inputs.logs:
        raise inputs.errors[0]
    reading = log_reader.read_logs(inputs.logs, healthy)
    if healthy or reading.events:
        reading = inputs.read_pages(reading)
    if supposing and reading.root is None:
        from diagnose.inputs import cut_traceback  # most logs say what failed: not loaded at start

        reading = cut_traceback.suppose_memory(inputs.logs, reading)
    reading = inputs.enrich(reading)
    if not inputs.configs:
        return reading, list(configs), inputs.errors
    from diagnose.inputs import pasted_page  # few logs bring configs: not loaded at start

    selected, notices = pasted_page.select_configs(configs, inputs.configs, reading)
    return reading._replace(notices=(*reading.notices, *notices)), [*configs, *selected], inputs.errors


def check(
    configs: Sequence[Material | ConfigSource],
    *,
    model: str | Path | None = None,
    gpu: str | None = None,
    gpus: int | None = None,
    set: Mapping[str, str] | None = None,
    rules: Sequence[Path] = (),
    frontier: bool = True,
    notes: Sequence[notebook.Note] = (),
) -> Diagnosis:
    """Estimate from configs alone whether a job fits, and with `frontier` how far its settings can be raised."""
    diagnosis = replace(diagnose(Reading(), configs, options(model, gpu, gpus, set or {}), rules, notes=notes), asked="check")
    if not frontier:
        return diagnosis
    # not loaded at the start of `explain`
    from diagnose.plan.choose.advice import job_of
    from diagnose.plan.edits.setting_conflicts import oddities
    from diagnose.plan.outlook.frontier import outlook
    from diagnose.plan.remedies.remedy_rules import with_folders

    book = FactBook(diagnosis.facts)
    limits = outlook(job_of(book, diagnosis.ledgers, diagnosis.judgement, diagnosis.documents, with_folders(rules)[0]))
    verdict = diagnosis.verdict
    if limits.contradictions:
        verdict = verdict._replace(headline=contradiction_headline(limits.contradictions))
    return replace(diagnosis, outlook=limits, verdict=verdict, notices=(*diagnosis.notices, *oddities(book)))


def diagnose(
    reading: Reading,
    configs: Sequence[Material | ConfigSource] = (),
    option_facts: Sequence[Fact] = (),
    rules: Sequence[Path] = (),
    trial: bool = False,
    errors: Sequence[UserError] = (),
    snapshot: Snapshot | None = None,
    notes: Sequence[notebook.Note] = (),
) -> Diagnosis:
    """From a reading of the logs to the finished diagnosis; each step is a function of the steps before."""
    sources, config_errors = convert_each(as_config, list(configs))
    sources, record_inputs, dumps = job_reader.split_wandb(sources)
    book = FactBook(option_facts).learn(reading.facts)
    settings = config_reader.read(sources, reading._replace(dumps=(*reading.dumps, *dumps)) if dumps else reading, book)
    book.learn(settings.facts)
    root = reading.root
    event = None if root is None else reading.events[root]
    book.learn(recognise(book, event.requested if event is not None else None))
    if any(fact.origin == "said" for fact in reading.facts):
        from diagnose.inputs import prose  # few inputs are pages: not loaded at start

        reading = reading._replace(notices=(*reading.notices, *prose.contradictions(book)))

    book.learn(regime.project(book, sources))
    book.learn(regime.drawing_model(book, sources))
    if event is not None and event.requested is not None:
        from diagnose.adapters.python import script_tensors  # a check needs none: not loaded at start
        from diagnose.parse.facts import text_figures

        book.learn(regime.mentioned_models(book, sources))
        sides = dict(reversed(text_figures.told(book).sides))
        failed = [frame.statement for frame in reversed(event.frames[-3:])] or [event.source_line]
        book.learn(script_tensors.facts(sources, event.requested, failed, sides))
    book.learn(regime.facts(book, event, sources))
    contradictions = _learn_snapshot(book, snapshot, event) if snapshot is not None else []
    job = notebook.job_id(book, event)
    book.learn(noted := notebook.facts(notes, job))
    diagnosis = Diagnosis(
        verdict=Verdict("none", None, None, phrase("headline.none_to_check" if settings.documents else "headline.none"), None),
        inputs=(*reading.inputs, *record_inputs, *settings.inputs),
        events=reading.events,
        facts=tuple(book),
        notices=_few_of_each(
            *reading.notices,
            *settings.notices,
            *unlisted_model(book),
            *contradictions,
            *notebook.notices(noted),
            *(as_notice(error) for error in (*errors, *config_errors)),
        ),
        documents=settings.documents,
        snapshot=snapshot,
        job=job,
    )
    if event is None and reading.inputs:
        return diagnosis

    ledgers, attributions = accounting.account(book, event, root)
    if snapshot is not None and event is not None and root is not None and snapshot.failure is not None and not contradictions:
        from diagnose.budget.attribution import snapshot_failure  # few jobs have snapshots: not loaded at start

        verdict, tensor = snapshot_failure.compare_attribution(book, ledgers, event, root, attributions)
        diagnosis = replace(diagnosis, snapshot=replace(snapshot, verdict=verdict, tensor=tensor))
    judgement = judging.judge(book, rules, trial)
    if event is not None and event.status in ("oom", "suspected"):
        judgement = hypotheses.named(book, judgement)
    concerns_memory = event is None or event.status != "lookalike"  # remedies for memory do not cure a lookalike
    if event is not None and not concerns_memory and families.of(event.family).memory:
        judgement = judgement._replace(causes=())  # memory that did not run out was filled by nothing
    outcome = plan.Outcome()
    if concerns_memory or judgement.causes:
        asked_by = identity(attributions, book) if concerns_memory else None
        outcome = plan.make(book, ledgers, judgement, settings.documents, trial, rules, identity=asked_by)
    if not concerns_memory:
        outcome = _of_causes(outcome, judgement)
    judgement = judgement._replace(faults=(*judgement.faults, *outcome.faults))
    rule_notices = (Notice("warning", "rule", phrase("judge.rule_sits_out", fault=fault)) for fault in judgement.faults)
    return replace(
        diagnosis,
        verdict=Verdict(
            status=event.status if event else "none",
            family=event.family if event else None,
            phase=(book.word("log.phase") or event.phase) if event else None,
            headline=headline(event, attributions, ledgers, judgement, book.size("hardware.capacity")),
            event=root,
        ),
        facts=tuple(book),
        notices=(*diagnosis.notices, *rule_notices),
        attributions=attributions,
        ledgers=ledgers,
        judgement=judgement,
        outcome=outcome,
    )


def _of_causes(outcome: plan.Outcome, judgement: Judgement) -> plan.Outcome:
    """The outcome for what is no failure of memory: only the remedies that its cause names."""
    named = judgement.leading.remedies if judgement.leading is not None else ()
    kept = tuple(remedy for remedy in outcome.remedies if remedy.id in named)
    return plan.Outcome(remedies=kept, faults=outcome.faults)


def _explain_snapshot(
    file: Path | Source,
    configs: Sequence[Material | ConfigSource],
    options: Sequence[Fact],
    rules: Sequence[Path],
    trial: bool,
    notes: Sequence[notebook.Note],
) -> Diagnosis:
    """Diagnose the failure that a memory snapshot recorded. Raises UserError if it cannot be read."""
    from diagnose.budget.attribution import snapshot_failure  # few jobs have snapshots: not loaded at start

    snapshot, errors = _read_snapshot(file)
    if snapshot is None:
        raise errors[0]
    return diagnose(snapshot_failure.snapshot_reading(snapshot), configs, options, rules, trial, snapshot=snapshot, notes=notes)


def _read_snapshot(file: Path | Source | None) -> tuple[Snapshot | None, list[UserError]]:
    """The memory snapshot, or the error that prevents its use."""
    if file is None:
        return None, []
    from diagnose.snapshot import snapshot_reader  # few jobs have snapshots: not loaded at start

    try:
        return snapshot_reader.read(file if isinstance(file, Source) else Source.file(file)), []
    except UserError as error:
        return None, [error]


def _learn_snapshot(book: FactBook, snapshot: Snapshot, event: Event | None) -> list[Notice]:
    """Add the snapshot's facts to the book; those of the request only if it recorded the log's failure. Returns notices of differences."""
    # few jobs have snapshots: not loaded at start
    from diagnose.budget.attribution import snapshot_failure
    from diagnose.snapshot import snapshot_reader

    differences = snapshot_failure.different_failure_notices(snapshot, book, event)
    book.learn(snapshot_reader.facts(snapshot, request=not differences))
    return differences


def _few_of_each(*notices: Notice) -> tuple[Notice, ...]:
    """The notices without those beyond `MOST_ALIKE` of one kind about one file, which a last one counts."""
    counts = Counter((notice.code, notice.witness.source if notice.witness else "") for notice in notices)
    seen: Counter[tuple[str, str]] = Counter()
    kept: list[Notice] = []
    for notice in notices:
        kind = notice.code, notice.witness.source if notice.witness else ""
        seen[kind] += 1
        if seen[kind] <= MOST_ALIKE:
            kept.append(notice)
        elif seen[kind] == MOST_ALIKE + 1:
            kept.append(notice._replace(message=phrase("render.alike_notices", count=str(counts[kind] - MOST_ALIKE))))
    return tuple(kept)
