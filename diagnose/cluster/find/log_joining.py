"""Jobs as schedulers and manifests list them, and the logs that were found for them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from diagnose.cluster.find import addresses, job_folders, list_files, object_stores
from diagnose.cluster.find.file_stamp import modified
from diagnose.cluster.find.job import Job, Unfound
from diagnose.cluster.find.job_index import Listed, Shelf, failed
from diagnose.cluster.find.path_words import home_of, refused, where_of
from diagnose.cluster.find.synthesize_log import of_memory
from diagnose.errors import UserError
from diagnose.phrases import Text, phrase

Say: TypeAlias = Callable[[Text], None]
Logs: TypeAlias = Callable[[Sequence[tuple[str, str]]], Iterator[Job | Unfound]]

#: What lists jobs, and not files.
LISTS = ("slurm", "kubernetes", "manifest")


def joined(given: Sequence[tuple[str, str]], logs_of: Logs, since: float | None, say: Say) -> Iterator[Job | Unfound]:
    """The jobs of exports and manifests with the logs that were found for them, and the logs of no such job. `logs_of` finds the jobs of
    folders and logs."""
    with Shelf() as shelf:
        for kind, path in given:
            if kind in LISTS:
                try:
                    yield from _shelve(shelf, say, list_files.jobs(where_of(path), kind, home_of(path)), kind, path)  # type: ignore[arg-type]
                except (UserError, OSError) as trouble:
                    yield refused(path, trouble)
        others = [(kind, path) for kind, path in given if kind not in LISTS]
        for job in logs_of(others):
            number = None if isinstance(job, Unfound) else _number(shelf, job)
            if number is None or isinstance(job, Unfound):
                if isinstance(job, Unfound) or since is None or (modified(job) or since) >= since:
                    yield job
            else:
                shelf.put(number, job.logs, job.configs)
        shelf.ready()
        logs = 0
        for listed, found, configs in shelf.jobs():
            made = _of_list(listed, found, configs, since)
            if made is not None:
                logs += isinstance(made, Job) and bool(made.logs)
                yield made
        say(phrase("finding.joined", logs=logs, count=shelf.count))


def _shelve(shelf: Shelf, say: Say, rows: Iterator[Listed | int], kind: str, path: str) -> Iterator[Unfound]:
    before, bad, first = shelf.count, 0, 0
    for row in rows:
        if isinstance(row, Listed):
            shelf.add(row)
            continue
        bad, first = bad + 1, first or row
    where = addresses.shown(path)
    say(phrase("finding.listed", where=where, count=shelf.count - before, what=phrase(f"finding.as_{kind}")))
    if bad:
        yield refused(path, object_stores.trouble("skipped", where, "see_inputs", count=bad, line=first))


def _of_list(listed: Listed, found: list[str], configs: list[str], since: float | None) -> Job | Unfound | None:
    """A listed job with its logs: those that were found, else those that it names. One that did not fail and has none is left out."""
    about = listed.about
    if since is not None and about.ended is not None and about.ended < since:
        return None
    logs = list(dict.fromkeys((*found, *(log for log in listed.logs if _is_there(log)))))
    logs = logs or [log for log in listed.guessed if _is_there(log)]
    used = tuple(dict.fromkeys((*listed.configs, *configs)))
    job = Job(listed.id, tuple(logs), used if listed.configs or len(used) <= job_folders.MOST else (), about, listed.said)
    if logs or of_memory(about):
        return job
    if listed.logs and (failed(about) or about.scheduler == "manifest"):
        return Unfound(job, "log_missing", phrase("finding.log_gone", log=listed.logs[0]))
    if not failed(about):
        return None
    says = phrase("finding.log_missing", scheduler=about.scheduler, state=about.state or f"exit {about.exit_code}")
    hint = phrase("finding.give_logs")
    return Unfound(job, "log_missing", Text(f"{says.en}; {hint.en}", f"{says.zh}；{hint.zh}"))


def _is_there(where: str) -> bool:
    return addresses.is_stored(where) or os.path.lexists(addresses.path_of(addresses.parted(where)[0]))


def _number(shelf: Shelf, job: Job) -> int | None:
    """The listed job that a found one is, by where its logs are: paths; else the names of files and of the folders that they are in, and a
    scheduler's number at the end of one; else any number in them. What fits several is none of them."""
    logs = job.logs[:64]
    names: list[str] = []
    numbers: list[str] = []
    for log in (*logs, job.id):
        *above, last = log.replace(addresses.INSIDE, "/").split("/")[-3:]
        plain = job_folders.stem(last)
        names += [
            last,
            plain,
            job_folders.number_of(last),
            *above,
            *plain.split("_"),
            *(part for name in above for part in name.split("_")),
        ]
        numbers += re.findall(r"\d{3,12}(?:_\d{1,9})?", plain)
    tiers = ([f"log {log}" for log in logs], names, numbers)
    return next((number for tier in tiers if (number := shelf.whose(list(dict.fromkeys(filter(None, tier))))) is not None), None)
