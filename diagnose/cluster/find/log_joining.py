"""Joins the jobs of manifests and scheduler exports with logs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, cast

from diagnose.cluster.cluster_errors import finding_error
from diagnose.cluster.find import addresses, job_folders
from diagnose.cluster.find.job import Job, UnreadableJob, has_failed
from diagnose.cluster.find.job_files import last_modified
from diagnose.cluster.find.job_index import JobIndex, JobRecord
from diagnose.cluster.find.list_files import ListKind, read_records
from diagnose.cluster.find.path_words import PathKind, address_of, folder_of, unreadable_path
from diagnose.cluster.find.synthesize_log import memory_state
from diagnose.errors import UserError
from diagnose.phrases import Text, phrase

Say: TypeAlias = Callable[[Text], None]
FindLogs: TypeAlias = Callable[[Sequence[tuple[PathKind, str]]], Iterator[Job | UnreadableJob]]

#: Kinds of files that list jobs.
LIST_KINDS = ("slurm", "kubernetes", "manifest")


def join_logs(paths: Sequence[tuple[PathKind, str]], find_logs: FindLogs, since: float | None, say: Say) -> Iterator[Job | UnreadableJob]:
    """The listed jobs with their logs, then the jobs of logs that no list names. `find_logs` finds the jobs of folders and logs."""
    with JobIndex() as index:
        for kind, path in paths:
            if kind in LIST_KINDS:
                try:
                    yield from _index_list(index, say, cast("ListKind", kind), path)
                except (UserError, OSError) as error:
                    yield unreadable_path(path, error)
        others = [(kind, path) for kind, path in paths if kind not in LIST_KINDS]
        for job in find_logs(others):
            number = None if isinstance(job, UnreadableJob) else _find_number(index, job)
            if number is None or isinstance(job, UnreadableJob):
                if isinstance(job, UnreadableJob) or since is None or (last_modified(job) or since) >= since:
                    yield job
            else:
                index.add_logs(number, job.logs, job.configs)
        index.finish()
        with_logs = 0
        for record, logs, configs in index.jobs():
            listed_job = _listed_job(record, logs, configs, since)
            if listed_job is not None:
                with_logs += isinstance(listed_job, Job) and bool(listed_job.logs)
                yield listed_job
        say(phrase("finding.joined", logs=with_logs, count=index.count))


def _index_list(index: JobIndex, say: Say, kind: ListKind, path: str) -> Iterator[UnreadableJob]:
    """Add the jobs of a list to the index; its invalid lines become one error."""
    count_before, bad_lines, first_bad = index.count, 0, 0
    for item in read_records(address_of(path), kind, folder_of(path)):
        if isinstance(item, JobRecord):
            index.add(item)
            continue
        bad_lines, first_bad = bad_lines + 1, first_bad or item
    where = addresses.display_path(path)
    say(phrase("finding.listed", where=where, count=index.count - count_before, what=phrase(f"finding.as_{kind}")))
    if bad_lines:
        yield unreadable_path(path, finding_error("skipped", where, "see_inputs", count=bad_lines, line=first_bad))


def _listed_job(record: JobRecord, found_logs: list[str], found_configs: list[str], since: float | None) -> Job | UnreadableJob | None:
    """A listed job with its joined logs and the logs that it names; None for a job without logs that did not fail."""
    about = record.about
    if since is not None and about.ended is not None and about.ended < since:
        return None
    logs = list(dict.fromkeys((*found_logs, *(log for log in record.logs if _exists(log)))))
    logs = logs or [log for log in record.default_logs if _exists(log)]
    configs = tuple(dict.fromkeys((*record.configs, *found_configs)))
    job = Job(record.id, tuple(logs), configs if record.configs or len(configs) <= job_folders.MAX_LOGS else (), about, record.name)
    if logs or memory_state(about):
        return job
    if record.logs and (has_failed(about) or about.scheduler == "manifest"):
        return UnreadableJob(job, "log_missing", phrase("finding.log_gone", log=record.logs[0]))
    if not has_failed(about):
        return None
    message = phrase("finding.log_missing", scheduler=about.scheduler, state=about.state or f"exit {about.exit_code}")
    hint = phrase("finding.give_logs")
    return UnreadableJob(job, "log_missing", Text(f"{message.en}; {hint.en}", f"{message.zh}；{hint.zh}"))


def _exists(address: str) -> bool:
    """Whether a log exists; assumed for objects of a store."""
    return addresses.is_url(address) or os.path.lexists(addresses.to_path(addresses.split_member(address)[0]))


def _find_number(index: JobIndex, job: Job) -> int | None:
    """The listed job of some logs; None if none or several match.

    Matched by path; else by file and folder names, and a job number at their end; else by any number in the names.
    """
    logs = job.logs[:64]
    names: list[str] = []
    numbers: list[str] = []
    for log in (*logs, job.id):
        *folders, file = log.replace(addresses.MEMBER_SEPARATOR, "/").split("/")[-3:]
        stem = job_folders.log_stem(file)
        names += [
            file,
            stem,
            job_folders.job_number(file),
            *folders,
            *stem.split("_"),
            *(part for name in folders for part in name.split("_")),
        ]
        numbers += re.findall(r"\d{3,12}(?:_\d{1,9})?", stem)
    tiers = ([f"log {log}" for log in logs], names, numbers)
    return next((number for tier in tiers if (number := index.number_of(list(dict.fromkeys(filter(None, tier))))) is not None), None)
