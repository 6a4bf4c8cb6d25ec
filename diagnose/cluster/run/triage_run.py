"""A triage run: finds jobs, has an engine diagnose them, and stores results as they complete. An interrupted run is continued by the
next."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Literal

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.cluster.find.job import Job, UnreadableJob
from diagnose.cluster.find.job_files import stamp
from diagnose.cluster.find.job_finder import find
from diagnose.cluster.run.local_engine import run_local
from diagnose.cluster.run.ray_engine import run_ray
from diagnose.cluster.run.task import LIMITS, JobOptions, Limits, Task, with_basis
from diagnose.cluster.store.result import Result, crashed_result
from diagnose.cluster.store.result_store import NEVER_READ, LastRead, Store
from diagnose.errors import UserError, log_crash
from diagnose.phrases import Text, phrase

Engine = Literal["local", "ray"]

#: Results that are stored at once, and the seconds after which fewer are.
STORE_BATCH, STORE_SECONDS = 256, 2.0
#: Jobs that are looked up in the database at once.
LOOKUP_BATCH = 256


@dataclass(slots=True)
class RunPlan:
    """How jobs are found and where they are read. `workers` None: one per core; `since`: seconds since 1970."""

    paths: tuple[str, ...]
    pattern: str | None = None
    since: float | None = None
    engine: Engine = "local"
    address: str | None = None  # of the Ray cluster
    workers: int | None = None
    limits: Limits = LIMITS
    export: str = ""  # where Ray writes its partitions


def triage(
    paths: Sequence[str | Path],
    *,
    store: str | Path | None = None,
    engine: Engine = "local",
    address: str | None = None,
    workers: int | None = None,
    pattern: str | None = None,
    since: float | None = None,
    configs: Sequence[Path] = (),
    model: str | None = None,
    gpu: str | None = None,
    gpus: int | None = None,
    set: Mapping[str, str] | None = None,
    rules: Sequence[Path] = (),
    trial: bool = False,
) -> Iterator[Result]:
    """The results of all jobs under some paths (folders, logs, archives, lists, manifests, exports of schedulers, s3:// and gs://), as
    they come.

        for result in triage([Path("jobs")]):
            print(result.job.id, result.status, result.headline.en)

    With a `store` (a DuckDB file, docs/triage.md) results are kept in it, and jobs that have not changed since are neither read nor
    yielded again. `since`: only jobs that ended then or later, in seconds since 1970. `digest` of a result is the diagnosis as JSON; it is
    empty where the diagnosis of an earlier result with the same `same` answers this job too. The other options are those of `explain`.
    Raises UserError where nothing can be found or stored, or an option is wrong. Closing the iterator ends the run; what was done is kept.
    """
    options = JobOptions(tuple(map(ConfigSource.file, configs)), model, gpu, gpus, set or {}, tuple(map(str, rules)), trial)
    plan = RunPlan(tuple(map(str, paths)), pattern, since, engine, address, workers)
    with tempfile.TemporaryDirectory(prefix="oomdoctor-") as folder:
        database = Store.open(Path(store) if store is not None else Path(folder) / "triage.duckdb")
        try:
            yield from Run(database, plan, options).results()
        finally:
            database.close()


class Run:
    """One run. `found`: number of jobs, `done`: those with a result; `finished`: the search is complete.

    With `is_ready` the run is a round of a watch: unchanged jobs are skipped, new and changed ones read if `is_ready(job)`, and a round
    without new jobs is not recorded.
    """

    def __init__(
        self,
        store: Store,
        plan: RunPlan,
        options: JobOptions,
        say: Callable[[Text], None] = lambda _: None,
        is_ready: Callable[[Job], bool] | None = None,
    ) -> None:
        self.store, self.plan, self.options, self.say, self.is_ready = store, plan, with_basis(options), say, is_ready
        self.found = self.done = self.reused = self.errors = 0
        self.finished = False
        self.on_result: Callable[[], None] | None = None
        self._has_gaps = False  # something could not be searched, so a job that is missing need not be gone
        self._batch: list[Result] = []
        self._stored_at = monotonic()

    def results(self) -> Generator[Result]:
        """Yield new and changed results as they complete, after storing them."""
        arguments = {"paths": list(self.plan.paths), "pattern": self.plan.pattern, "since": self.plan.since}
        self.options.facts()  # raises before any work where an option is wrong
        if self.store.begin_run(self.options.basis, self.plan.engine, arguments):
            self.say(phrase("cluster.resumed"))
        state = "failed"
        try:
            with closing(self._engine()) as engine:  # no worker outlives the run
                for result in engine:
                    self.done += 1
                    self.reused += result.reused
                    self.errors += bool(result.error is not None or result.troubles)
                    self._keep(result)
                    if self.on_result is not None:
                        self.on_result()
                    if not result.reused:
                        yield result
            state = "done"
        except (GeneratorExit, KeyboardInterrupt):
            state = "stopped"
            raise
        finally:
            self._end(state)

    def _end(self, state: str) -> None:
        """Store the remaining results. If the run failed, its own error is raised instead of one from here."""
        with suppress(*([UserError] if state == "failed" else [])):
            self._flush()
            if self.is_ready is not None and state == "done" and self.done == self.reused:
                self.store.discard_run()
            else:
                saw_all = self.is_ready is None and self.plan.since is None and not self._has_gaps
                self.store.end_run(state, complete=state == "done" and saw_all)

    def _engine(self) -> Generator[Result]:
        plan, lookup = self.plan, self.store.diagnosis_summary
        if plan.engine == "ray":
            partitions = f"{plan.export}/results/{self.store.run:05d}" if plan.export else ""
            return run_ray(self._tasks(), self.options, plan.address, plan.workers, plan.limits, lookup, partitions)
        return run_local(self._tasks(), self.options, plan.workers, plan.limits, lookup)

    def _tasks(self) -> Iterator[Task | Result]:
        """Tasks for new and possibly changed jobs; results for unchanged and unreadable ones."""
        for jobs in batches(find(self.plan.paths, self.plan.pattern, self.plan.since, self.say), LOOKUP_BATCH):
            last_reads = self.store.last_read([job.id for job in jobs if isinstance(job, Job)])
            for job in jobs:
                if isinstance(job, UnreadableJob):
                    self._has_gaps = True
                    self.found += 1
                    yield Result(job.job, error=job.error, fault=job.fault)
                    continue
                try:
                    task = self._task(job, last_reads.get(job.id, NEVER_READ))
                except Exception as error:  # one job's crash is its own row
                    log_crash("finding a job", error)
                    task = crashed_result(job, error)
                if task is not None:
                    self.found += 1
                    yield task
        self.finished = True

    def _task(self, job: Job, last_read: LastRead) -> Task | Result | None:
        """The task of reading a job, or the result of one that has not changed; None for a job that this round of a watch leaves."""
        current = stamp(job) if last_read is not NEVER_READ or self.is_ready is not None else ""
        is_unchanged = bool(current) and current == last_read.stamp
        if self.is_ready is not None and (is_unchanged or not self.is_ready(job)):
            return None
        if is_unchanged:
            return Result(job, stamp=current, content=last_read.content, reused=True)
        return Task(job, last_read.content)

    def _keep(self, result: Result) -> None:
        self._batch.append(replace(result, report=""))
        if len(self._batch) >= STORE_BATCH or monotonic() - self._stored_at > STORE_SECONDS:
            self._flush()

    def _flush(self) -> None:
        if self._batch:
            self.errors += len(self.store.add(self._batch))
        self._batch = []
        self._stored_at = monotonic()


def batches(jobs: Iterable[Job | UnreadableJob], size: int) -> Iterator[list[Job | UnreadableJob]]:
    """Lists of limited length. The first ones are short, so that work begins at once."""
    remaining, current_size = iter(jobs), 16
    while batch := list(islice(remaining, current_size)):
        yield batch
        current_size = min(2 * current_size, size)
