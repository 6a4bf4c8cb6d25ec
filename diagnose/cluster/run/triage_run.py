"""The story of many jobs: found, read and diagnosed by an engine, stored as they come. What is cut off, the next run goes on with."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Literal

from diagnose import rule_files
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.cluster.find.file_stamp import stamp
from diagnose.cluster.find.job import Job, Unfound
from diagnose.cluster.find.job_finder import find
from diagnose.cluster.run import local_engine as here
from diagnose.cluster.run.task import Asked, Task
from diagnose.cluster.run.worker_supervisor import LIMITS, Limits
from diagnose.cluster.store.result import Result
from diagnose.cluster.store.result_store import NEVER, Store
from diagnose.errors import UserError
from diagnose.phrases import Text, phrase
from diagnose.record import record, replace
from diagnose.version import __version__

Engine = Literal["local", "ray"]

#: Results that are stored at once, and the seconds after which fewer are.
BATCH, PAUSE = 256, 2.0
#: Jobs that are looked up in the database at once.
LOOKED_UP = 256


@record
class Plan:
    """How jobs are found and who reads them. `workers` None: as many as there are cores; `since`: seconds since 1970."""

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
    asked = Asked(tuple(map(ConfigSource.file, configs)), model, gpu, gpus, set or {}, tuple(map(str, rules)), trial)
    plan = Plan(tuple(map(str, paths)), pattern, since, engine, address, workers)
    with tempfile.TemporaryDirectory(prefix="oomdoctor-") as folder:
        held = Store.open(Path(store) if store is not None else Path(folder) / "triage.duckdb")
        try:
            yield from Run(held, plan, asked).results()
        finally:
            held.close()


class Run:
    """One run over some jobs. `found` counts those that were found, `finished` is true once all were; `done` those that are answered.

    `ready(job)`, where given, says of a job that is new or has changed whether it is looked at now. Then this is one round of many: what
    is as it was is passed over, and a round that met nothing new leaves no trace.
    """

    def __init__(
        self,
        store: Store,
        plan: Plan,
        asked: Asked,
        say: Callable[[Text], None] = lambda _: None,
        ready: Callable[[Job], bool] | None = None,
    ) -> None:
        self.store, self.plan, self.asked, self.say, self.ready = store, plan, settled(asked), say, ready
        self.found = self.done = self.reused = self.errors = 0
        self.finished = False
        self.tick: Callable[[], None] | None = None  # called after every result
        self._unfound = False  # something could not be looked through, so what is missing need not be gone
        self._batch: list[Result] = []
        self._stored = monotonic()

    def results(self) -> Iterator[Result]:
        """What is new or has changed, as it comes; everything is stored on the way."""
        arguments = {"paths": list(self.plan.paths), "pattern": self.plan.pattern, "since": self.plan.since}
        self.asked.given()  # an option that cannot be meant is said before any work
        if self.store.begin(self.asked.basis, self.plan.engine, arguments):
            self.say(phrase("cluster.resumed"))
        state = "failed"
        try:
            with closing(self._engine()) as engine:  # whatever happens nobody works on when this is over
                for result in engine:
                    self.done += 1
                    self.reused += result.reused
                    self.errors += bool(result.error is not None or result.troubles)
                    self._keep(result)
                    if self.tick is not None:
                        self.tick()
                    if not result.reused:
                        yield result
            state = "done"
        except (GeneratorExit, KeyboardInterrupt):
            state = "stopped"
            raise
        finally:
            self._end(state)

    def _end(self, state: str) -> None:
        """Store what is left. A run that has failed keeps the error that it failed of."""
        with suppress(*([UserError] if state == "failed" else [])):
            self._flush()
            if self.ready is not None and state == "done" and self.done == self.reused:
                self.store.forget()
            else:
                every = self.ready is None and self.plan.since is None and not self._unfound
                self.store.end(state, whole=state == "done" and every)

    def _engine(self) -> Generator[Result]:
        plan = self.plan
        if plan.engine == "ray":
            from diagnose.cluster.run import ray_engine

            partitions = f"{plan.export}/results/{self.store.run:05d}" if plan.export else ""
            return ray_engine.cluster(self._tasks(), self.asked, plan.address, plan.workers, plan.limits, self.store.brought, partitions)
        return here.local(self._tasks(), self.asked, plan.workers, plan.limits, self.store.brought)

    def _tasks(self) -> Iterator[Task | Result]:
        """What there is to do, and what there is nothing to do about: jobs that are as they were, and what could not be found."""
        for some in parts(find(self.plan.paths, self.plan.pattern, self.plan.since, self.say), LOOKED_UP):
            was = self.store.was([one.id for one in some if isinstance(one, Job)])
            for one in some:
                if isinstance(one, Unfound):
                    self._unfound = True
                    self.found += 1
                    yield Result(one.job, error=one.error, fault=one.fault)
                    continue
                before = was.get(one.id, NEVER)
                now = stamp(one) if before is not NEVER or self.ready is not None else ""
                unchanged = bool(now) and now == before.stamp
                if self.ready is not None and (unchanged or not self.ready(one)):
                    continue
                self.found += 1
                yield Result(one, stamp=now, content=before.content, reused=True) if unchanged else Task(one, before.content)
        self.finished = True

    def _keep(self, result: Result) -> None:
        self._batch.append(replace(result, report=""))
        if len(self._batch) >= BATCH or monotonic() - self._stored > PAUSE:
            self._flush()

    def _flush(self) -> None:
        if self._batch:
            self.store.add(self._batch)
        self._batch = []
        self._stored = monotonic()


def parts(items: Iterable[Job | Unfound], most: int) -> Iterator[list[Job | Unfound]]:
    """Lists of at most so many items. The first are short, so that work begins at once."""
    rest, size = iter(items), 16
    while some := list(islice(rest, size)):
        yield some
        size = min(2 * size, most)


def settled(asked: Asked) -> Asked:
    """The same with its `basis`: what it was diagnosed with changes when the tool, a rule or an option does."""
    told = hashlib.sha256(repr((__version__, replace(asked, basis="", reports=None, redact=False))).encode(errors="surrogatepass"))
    folders = [rule_files.home() / "rules", rule_files.home() / "grammars", *map(Path, asked.rules)]
    for path in sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in (".yaml", ".yml", ".lark")):
        told.update(path.name.encode(errors="surrogatepass"))
        told.update(path.read_bytes())
    return replace(asked, basis=told.hexdigest()[:16])
