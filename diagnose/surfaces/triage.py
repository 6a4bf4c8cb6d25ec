"""Many jobs at once: diagnosed on all cores, exported as JSON lines, grouped by cause."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from diagnose.complaints import Complaint
from diagnose.phrases import Lang, phrase
from diagnose.record import replace
from diagnose.surfaces import answer, speak
from diagnose.surfaces.inputs import trouble
from diagnose.surfaces.jobs import Job, jobs
from diagnose.surfaces.summary import SUMMARIES, Row

if TYPE_CHECKING:
    from diagnose.report import Diagnosis
    from diagnose.surfaces.answer import Asked, Shown

#: Jobs per errand of a worker: few enough to keep all busy, enough to make the errand worth it.
CHUNK = 32


def triage(paths: Sequence[str], asked: Asked, shown: Shown, workers: int | None = None, export: str | None = None) -> int:
    """Diagnose every job under some paths and print the failures grouped by cause; 1 where some could not be read."""
    answer.of_many(shown)
    found = jobs(paths)
    if not found:
        raise trouble("triage_none", where=", ".join(paths), hint="name_the_log")
    logs = sum(len(job.logs) for job in found)
    speak.warn(phrase("cli.triage_jobs", jobs=len(found), logs=logs).to(shown.lang))
    rows: list[Row] = []
    exports = 0
    with exported(export) as line, progress(len(found), shown.lang) as advance:
        for row in diagnosed(found, asked, shown, min(workers or os.cpu_count() or 1, len(found)), bool(export)):
            advance()
            if row.report:
                line(row.report)
                exports += 1
            rows.append(replace(row, report=""))  # what is written need not be held
    if export:
        speak.warn(phrase("cli.triage_exported", count=exports, file=export_file(export)).to(shown.lang))
    speak.say(SUMMARIES[shown.format](rows, shown.lang, speak.view(shown.top)))
    return 1 if any(row.status == "unread" for row in rows) else 0


# -- the work, on all cores


def diagnosed(found: Sequence[Job], asked: Asked, shown: Shown, workers: int, reports: bool) -> Iterator[Row]:
    """A row per job, as they come. A job that takes its worker down is tried once more, alone; then it is a row that says so."""
    chunk = max(1, min(CHUNK, len(found) // (workers * 4)))
    chunks = [list(found[start : start + chunk]) for start in range(0, len(found), chunk)]
    if workers == 1:
        for part in chunks:
            yield from rows_of(part, asked, shown, reports)
        return
    broken: list[Job] = []
    yield from errands(chunks, asked, shown, reports, workers, broken.extend)
    for job in broken:
        died: list[Job] = []
        yield from errands([[job]], asked, shown, reports, 1, died.extend)
        for lost in died:
            yield unread(lost, phrase("cli.triage_worker_died").to(shown.lang))


def errands(
    chunks: Iterable[list[Job]], asked: Asked, shown: Shown, reports: bool, workers: int, lose: Callable[[list[Job]], None]
) -> Iterator[Row]:
    """The rows of chunks of jobs from a pool of processes; chunks whose process died go to `lose`.

    A process that dies takes its pool along, with all that the pool was given: so that is little, and a new pool goes on.
    """
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait

    context = multiprocessing.get_context("forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn")
    waiting = deque(chunks)
    while waiting:
        pending: dict[Future[list[Row]], list[Job]] = {}
        broken = False
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            while pending or (waiting and not broken):
                while waiting and not broken and len(pending) <= workers:
                    try:
                        pending[pool.submit(rows_of, waiting[0], asked, shown, reports)] = waiting[0]
                    except BrokenExecutor:
                        broken = True
                    else:
                        waiting.popleft()
                for done in wait(pending, return_when=FIRST_COMPLETED).done:
                    chunk = pending.pop(done)
                    try:
                        rows = done.result()
                    except BrokenExecutor:
                        broken = True
                        lose(chunk)
                    else:
                        yield from rows


def rows_of(chunk: Sequence[Job], asked: Asked, shown: Shown, reports: bool) -> list[Row]:
    """The rows of some jobs; never raises for one of them."""
    return [row_of(job, asked, shown, reports) for job in chunk]


def row_of(job: Job, asked: Asked, shown: Shown, reports: bool) -> Row:
    from diagnose.explain import explain

    try:
        options = asked.options()
        options["configs"] = [*options["configs"], *job.configs]
        diagnosis = shown.masked(explain(list(job.logs), **options, trial=asked.trial))
        return row(job, diagnosis, shown.lang, reports)
    except Complaint as refusal:
        return unread(job, refusal.to(shown.lang))
    except Exception as error:  # one job's crash is its own row
        return unread(job, phrase("cli.triage_crashed", error=f"{type(error).__name__}: {error}"[:300]).to(shown.lang))


def unread(job: Job, error: str) -> Row:
    return Row(job.name, tuple(map(str, job.logs)), error=error)


def row(job: Job, diagnosis: Diagnosis, lang: Lang, reports: bool) -> Row:
    """What is kept of a diagnosis."""
    first = next(iter(diagnosis.judgement.causes), None)
    outcome = diagnosis.outcome
    step = outcome.plan.steps[0] if outcome.plan and outcome.plan.steps else None
    best = next((remedy for remedy in outcome.remedies if step in (None, remedy.id)), None)
    logs = tuple(map(str, job.logs))
    line = json.dumps({"path": job.name, "logs": logs, **diagnosis.to_dict(lang)}, ensure_ascii=False) if reports else ""
    return Row(
        job.name,
        logs,
        diagnosis.verdict.status,
        first.cause if first else "unknown",
        first.title.to(lang) if first else phrase("cli.triage_no_cause").to(lang),
        diagnosis.verdict.headline.to(lang),
        best.title.to(lang) if best else "",
        line,
    )


# -- what is written beside


def export_file(export: str) -> Path:
    """FILE.jsonl as named, or reports.jsonl in a folder."""
    path = Path(export)
    return path if path.suffix in (".jsonl", ".json", ".ndjson") and not path.is_dir() else path / "reports.jsonl"


@contextmanager
def exported(export: str | None) -> Iterator[Callable[[str], None]]:
    """A function that writes a line to the export, or none. Raises Complaint where it cannot be written."""
    if export is None:
        yield lambda _: None
        return
    path = export_file(export)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file: TextIO = path.open("w", encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise trouble("cannot_write", where=str(path), hint="check_target", why=error.strerror or str(error)) from error
    with file:
        yield lambda line: print(line, file=file)


@contextmanager
def progress(total: int, lang: Lang) -> Iterator[Callable[[], None]]:
    """A bar on standard error, where that is a terminal; a function that moves it on."""
    import sys

    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(phrase("cli.triage_progress").to(lang), total=total)
        yield lambda: bar.advance(task)
