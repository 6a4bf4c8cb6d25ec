"""One job read and diagnosed: what a worker process does, on this machine or on a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, TypeAlias

from diagnose.adapters.documents.open_config import opened
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.job.named_files import looked_up
from diagnose.cluster.find.file_stamp import modified, stamp
from diagnose.cluster.find.job_opening import materials
from diagnose.cluster.run.content_hash import Content
from diagnose.cluster.run.dedupe_key import same
from diagnose.cluster.run.task import Asked, Task
from diagnose.cluster.store.result import Happened, Result, Trouble, unread
from diagnose.errors import UserError
from diagnose.inputs.materials import as_config, convert_each
from diagnose.phrases import Text, phrase
from diagnose.pipeline import diagnose, read
from diagnose.record import replace

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis
    from diagnose.inputs.materials import Material
    from diagnose.parse.model.event import Event

#: Asks whether a diagnosis that has this key is to be made here; no: another job brings it, or has brought it.
Claim: TypeAlias = Callable[[str], bool]


#: Complaints by the kind of error that they are; one of another key is "unreadable".
_FAULTS = {"no_such_file": "vanished", "no_log": "no_log", "too_many_logs": "too_many_logs"}


def work(task: Task, asked: Asked, claim: Claim = lambda _: True) -> Result:
    """The job's result; never raises for what a job holds. `reused`: its content is as it was."""
    begun = process_time()
    try:
        result = _worked(task, asked, claim)
    except UserError as refusal:
        result = unread(task.job, fault(refusal), both(refusal))
    except MemoryError:
        result = unread(task.job, "out_of_memory", phrase("cluster.out_of_memory"))
    except Exception as error:  # one job's crash is its own row
        if os.environ.get("OOMDOCTOR_DEBUG"):
            raise
        result = unread(task.job, "crashed", phrase("cluster.crashed", error=f"{type(error).__name__}: {error}"[:300]))
    return replace(result, seconds=process_time() - begun)


def _worked(task: Task, asked: Asked, claim: Claim) -> Result:
    job = task.job
    before = stamp(job)
    logs, configs = materials(job)
    total = Content(job)
    reading, given, refused = read([total.counted(log) for log in logs], [*asked.configs, *configs], healthy=asked.reports is not None)
    settings, unusable = followed(given)
    content = total.digest(settings)
    if content == task.content:
        return Result(job, stamp=before, content=content, modified=modified(job), reused=True)
    damaged = [notice.message for notice in reading.notices if notice.code in ("input_damaged", "input_expands")]
    beside = troubles([*refused, *unusable], damaged, total.short)
    found = Result(job, stamp=before, content=content, bytes=total.bytes, modified=modified(job), troubles=beside)
    root = reading.root
    if root is not None:
        event = reading.events[root]
        events = tuple(happened(event, index == root) for index, event in enumerate(reading.events))
        key = same(reading, settings, asked.basis, own_rules=bool(asked.rules))
        found = replace(found, status=event.status, family=event.family, phase=event.phase, events=events, same=key)
        if asked.reports is None and not claim(key):
            return found
    elif asked.reports is None:
        return replace(found, status="none", headline=phrase("headline.none"))
    return answered(found, diagnose(reading, settings, asked.given(), list(map(Path, asked.rules)), asked.trial, refused), asked)


def followed(given: Sequence[Material | ConfigSource]) -> tuple[list[ConfigSource], list[UserError]]:
    """The configs with the files that they name and that lie beside them, so that all that a diagnosis depends on is at hand; and
    what could not be read."""
    sources, unusable = convert_each(as_config, list(given))
    if any(source.folder is not None for source in sources):
        sources += [one.source for one in looked_up([opened(source) for source in sources])]
    return sources, unusable


def answered(found: Result, diagnosis: Diagnosis, asked: Asked) -> Result:
    """The result with what the diagnosis says."""
    from diagnose.cluster.store.digests import digest
    from diagnose.cluster.store.fingerprints import fingerprint

    report = ""
    if asked.reports is not None:
        from diagnose.render.parts import redaction

        shown = redaction.diagnosis(diagnosis) if asked.redact else diagnosis
        report = json.dumps({"path": found.job.id, "logs": found.job.logs, **shown.to_dict(asked.reports)}, ensure_ascii=False)
    if diagnosis.verdict.event is None:
        return replace(found, status="none", headline=diagnosis.verdict.headline, report=report)
    return replace(found, headline=diagnosis.verdict.headline, digest=digest(diagnosis), fingerprint=fingerprint(diagnosis), report=report)


def troubles(refused: Sequence[UserError], damaged: Sequence[Text], short: Sequence[str]) -> tuple[Trouble, ...]:
    """What could not be used beside the rest: files that were refused, archives that end or expand as none should, and files that shrank
    while they were read."""
    cut = [Trouble("broken_archive", message) for message in damaged]
    cut += [Trouble("shrunk", phrase("cluster.shrunk", name=name)) for name in short]
    return (*(Trouble(fault(refusal), both(refusal)) for refusal in refused), *cut)


def fault(refusal: UserError) -> str:
    """What kind of error a complaint is, in one word."""
    room, _, name = refusal.key.rpartition(".")
    return _FAULTS.get(name) or ("broken_archive" if room == "packed" else "unreadable")


def both(refusal: UserError) -> Text:
    return Text(refusal.to("en"), refusal.to("zh"))


def happened(event: Event, root: bool) -> Happened:
    """An event as a row."""
    first = next(iter(event.evidence), None)
    sizes = {name: getattr(event, name) for name in ("requested", "capacity", "free", "allocated", "reserved_unallocated")}
    return Happened(
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
        root=root,
    )
