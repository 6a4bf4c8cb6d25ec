"""Reads and diagnoses one job: the work of a worker process, local or on a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, TypeAlias

from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.job.named_files import find_named_files
from diagnose.cluster.cluster_errors import error_text
from diagnose.cluster.find.job_files import last_modified, open_inputs, stamp
from diagnose.cluster.run.content_hash import ContentHash
from diagnose.cluster.run.dedupe_key import diagnosis_key
from diagnose.cluster.run.task import JobOptions, Task
from diagnose.cluster.store.digests import digest
from diagnose.cluster.store.group_fingerprint import fingerprint
from diagnose.cluster.store.result import EventRow, InputFault, Result, crashed_result, unread_result
from diagnose.errors import UserError
from diagnose.inputs.caller_arguments import as_config, convert_each
from diagnose.phrases import Text, phrase
from diagnose.pipeline import diagnose, read
from diagnose.render.parts import redaction

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis
    from diagnose.inputs.caller_arguments import Material
    from diagnose.parse.model.event import Event

#: Asks whether this job is to make the diagnosis of a key; if not, another job has made it or is making it.
Claim: TypeAlias = Callable[[str], bool]

#: Faults by the key of an error; errors of other keys are "unreadable".
_FAULTS: Mapping[str, str] = {"no_such_file": "vanished", "no_log": "no_log", "too_many_logs": "too_many_logs"}


def work(task: Task, options: JobOptions, claim: Claim = lambda _: True) -> Result:
    """The job's result; errors of a job become part of it. `reused`: the job's content has not changed."""
    start = process_time()
    try:
        result = _read_and_diagnose(task, options, claim)
    except UserError as error:
        result = unread_result(task.job, fault_of(error), error_text(error))
    except MemoryError:
        result = unread_result(task.job, "out_of_memory", phrase("cluster.out_of_memory"))
    except Exception as error:  # one job's crash is its own row
        if os.environ.get("OOMDOCTOR_DEBUG"):
            raise
        result = crashed_result(task.job, error)
    return replace(result, seconds=process_time() - start)


def _read_and_diagnose(task: Task, options: JobOptions, claim: Claim) -> Result:
    job = task.job
    stamp_before = stamp(job)
    logs, configs = open_inputs(job)
    content = ContentHash(job)
    wants_report = options.reports is not None
    reading, materials, refused = read([content.track(log) for log in logs], [*options.configs, *configs], healthy=wants_report)
    settings, unusable = with_named_configs(materials)
    content_digest = content.hexdigest(settings)
    if content_digest == task.content:
        return Result(job, stamp=stamp_before, content=content_digest, modified=last_modified(job), reused=True)
    damaged = [notice.message for notice in reading.notices if notice.code in ("input_damaged", "input_expands")]
    faults = input_faults([*refused, *unusable], damaged, content.truncated)
    result = Result(job, stamp=stamp_before, content=content_digest, bytes=content.bytes, modified=last_modified(job), troubles=faults)
    root = reading.root
    if root is not None:
        event = reading.events[root]
        events = tuple(event_row(event, index == root) for index, event in enumerate(reading.events))
        key = diagnosis_key(reading, settings, options.basis, own_rules=bool(options.rules))
        result = replace(result, status=event.status, family=event.family, phase=event.phase, events=events, same=key)
        if not wants_report and not claim(key):
            return result
    elif not wants_report:
        return replace(result, status="none", headline=phrase("headline.none"))
    diagnosis = diagnose(reading, settings, options.facts(), list(map(Path, options.rules)), options.trial, refused)
    return with_diagnosis(result, diagnosis, options)


def with_named_configs(materials: Sequence[Material | ConfigSource]) -> tuple[list[ConfigSource], list[UserError]]:
    """The configs and the files beside them that they name, on which a diagnosis depends; and errors of unreadable ones."""
    sources, unusable = convert_each(as_config, list(materials))
    if any(source.folder is not None for source in sources):
        sources += [config.source for config in find_named_files([open_document(source) for source in sources])]
    return sources, unusable


def with_diagnosis(result: Result, diagnosis: Diagnosis, options: JobOptions) -> Result:
    """The result completed by a diagnosis."""
    report = ""
    if options.reports is not None:
        visible = redaction.mask_diagnosis(diagnosis) if options.redact else diagnosis
        report = json.dumps({"path": result.job.id, "logs": result.job.logs, **visible.to_dict(options.reports)}, ensure_ascii=False)
    if diagnosis.verdict.event is None:
        return replace(result, status="none", headline=diagnosis.verdict.headline, report=report)
    headline = diagnosis.verdict.headline
    return replace(result, headline=headline, digest=digest(diagnosis), fingerprint=fingerprint(diagnosis), report=report)


def input_faults(refused: Sequence[UserError], damaged: Sequence[Text], truncated: Sequence[str]) -> tuple[InputFault, ...]:
    """Unusable inputs: refused files, archives that are cut off or expand too far, files that shrank while being read."""
    return (
        *(InputFault(fault_of(error), error_text(error)) for error in refused),
        *(InputFault("broken_archive", message) for message in damaged),
        *(InputFault("shrunk", phrase("cluster.shrunk", name=name)) for name in truncated),
    )


def fault_of(error: UserError) -> str:
    """The kind of an error, as a word."""
    package, _, name = error.key.rpartition(".")
    return _FAULTS.get(name) or ("broken_archive" if package == "packed" else "unreadable")


def event_row(event: Event, is_root: bool) -> EventRow:
    first = next(iter(event.evidence), None)
    sizes = {name: getattr(event, name) for name in ("requested", "capacity", "free", "allocated", "reserved_unallocated")}
    return EventRow(
        family=event.family,
        status=event.status,
        exception=event.exception,
        fatal=event.fatal,
        attempt=event.attempt,
        rank=event.rank,
        host=event.host or "",
        gpu=event.gpu,
        phase=event.phase,
        **{name: None if size is None else size.bytes for name, size in sizes.items()},
        source=first.source if first else "",
        line=first.line if first else None,
        root=is_root,
    )
