"""Runs jobs on local worker processes: bounded queues, one diagnosis for equal jobs, no job lost if a process dies."""

from __future__ import annotations

import os
import queue
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias, TypeVar

from diagnose import workers
from diagnose.cluster.cluster_errors import cluster_error
from diagnose.cluster.run.task import LIMITS, JobOptions, Limits, Task
from diagnose.cluster.run.worker_supervisor import Supervisor
from diagnose.cluster.store.result import DiagnosisSummary, Result
from diagnose.records import NamedTuple

Item = TypeVar("Item")

#: The most tasks that one worker receives at once.
CHUNK = 32
#: Tasks that wait for a worker, so many that the remaining time is known early, at a kilobyte each; results that wait for the caller.
MAX_TASKS, MAX_RESULTS = 20_000, 1024
#: Seconds after which a waiting thread looks whether all is stopped.
TICK = 0.1
#: Summaries of diagnoses that are remembered; older ones are asked of the `Lookup`.
MAX_SUMMARIES = 4096

#: The stored diagnosis of a key; None where there is none.
Lookup: TypeAlias = Callable[[str], DiagnosisSummary | None]


class Deduplicator:
    """Tracks pending and finished diagnoses. A result is released only after the diagnosis that it shares.

    With `claims_elsewhere` another process decides who diagnoses, so that any missing diagnosis may still arrive; `unanswered` returns the
    jobs for which none did.
    """

    def __init__(self, lookup: Lookup = lambda _: None, claims_elsewhere: bool = False) -> None:
        self._lookup, self._claims_elsewhere = lookup, claims_elsewhere
        self._lock = threading.Lock()
        self._makers: dict[str, str] = {}  # by key: the job that makes the diagnosis
        self._summaries: OrderedDict[str, DiagnosisSummary] = OrderedDict()
        self._waiting: dict[str, list[Result]] = {}

    def claim(self, key: str, job: str) -> bool:
        """Whether this job has to be diagnosed: no diagnosis with its key exists or is pending."""
        with self._lock:
            maker = self._makers.get(key)
            if maker is None and self._summary(key) is None:
                self._makers[key] = maker = job
            return maker == job

    def add(self, result: Result) -> tuple[list[Result], list[Task]]:
        """The results that this one completes, in order; and the tasks to repeat because the job that claimed their diagnosis failed."""
        with self._lock:
            complete, repeat = self._release(result)
            for key in [key for key, maker in self._makers.items() if maker == result.job.id]:
                del self._makers[key]
                repeat += [Task(waiting.job) for waiting in self._waiting.pop(key, ())]
            return complete, repeat

    def unanswered(self) -> list[Task]:
        """Jobs whose diagnosis did not arrive."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        return [Task(result.job) for results in waiting.values() for result in results]

    def _release(self, result: Result) -> tuple[list[Result], list[Task]]:
        if result.digest:
            summary = DiagnosisSummary(result.headline, result.fingerprint)
            self._remember(result.same, summary)
            self._makers.pop(result.same, None)
            return [result, *(_with_summary(waiting, summary) for waiting in self._waiting.pop(result.same, ()))], []
        if not result.same:
            return [result], []
        known = self._summary(result.same)
        if known is not None:
            return [_with_summary(result, known)], []
        if result.same not in self._makers and not self._claims_elsewhere:
            return [], [Task(result.job)]
        self._waiting.setdefault(result.same, []).append(result)
        return [], []

    def _summary(self, key: str) -> DiagnosisSummary | None:
        summary = self._summaries.get(key)
        if summary is None:
            summary = self._lookup(key)
            if summary is not None:
                self._remember(key, summary)
        return summary

    def _remember(self, key: str, summary: DiagnosisSummary) -> None:
        self._summaries[key] = summary
        self._summaries.move_to_end(key)
        while len(self._summaries) > MAX_SUMMARIES:
            self._summaries.popitem(last=False)


def _with_summary(result: Result, summary: DiagnosisSummary) -> Result:
    return replace(result, headline=summary.headline, fingerprint=summary.fingerprint)


def run_local(
    tasks: Iterable[Task | Result],
    options: JobOptions,
    count: int | None = None,
    limits: Limits = LIMITS,
    lookup: Lookup = lambda _: None,
) -> Generator[Result]:
    """Yield results as they complete, from `count` worker processes (None: one per core), which end with the generator."""
    pool = _Pool(tasks, options, count or os.cpu_count() or 1, limits, Deduplicator(lookup))
    try:
        yield from pool.results()
    finally:
        pool.close()


class _Pool:
    """One thread per worker process, between a queue of tasks and a queue of results."""

    def __init__(self, tasks: Iterable[Task | Result], options: JobOptions, count: int, limits: Limits, deduplicator: Deduplicator) -> None:
        self._deduplicator = deduplicator
        self._tasks: queue.Queue[Task] = queue.Queue(MAX_TASKS)
        self._repeat: deque[Task] = deque()  # before all others
        self._results: queue.Queue[Result | Exception | _AllQueued] = queue.Queue(MAX_RESULTS)
        self._stop = threading.Event()
        self._supervisors = [Supervisor(options, limits, deduplicator.claim) for _ in range(count)]
        self._threads = [threading.Thread(target=self._guard, args=(self._feed, tasks), daemon=True)]
        self._threads += [threading.Thread(target=self._guard, args=(self._serve, item), daemon=True) for item in self._supervisors]

    def results(self) -> Iterator[Result]:
        for thread in self._threads:
            thread.start()
        done, total = 0, None
        while total is None or done < total:
            item = self._results.get()
            if isinstance(item, workers.Lost):
                raise cluster_error("no_worker", hint="fewer_workers", why=str(item)) from item
            if isinstance(item, Exception):
                raise item
            if isinstance(item, _AllQueued):
                total = item.tasks
                continue
            complete, repeat = self._deduplicator.add(item)
            self._repeat.extend(repeat)
            done += len(complete)
            yield from complete

    def close(self) -> None:
        """Stop threads and processes immediately."""
        self._stop.set()
        for supervisor in self._supervisors:
            supervisor.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(10)  # one that waits for a slow listing is left to itself

    # -- in the threads

    def _guard(self, target: Callable[[Item], None], argument: Item) -> None:
        """Run a thread's function; its exceptions reach the caller of `results`."""
        try:
            target(argument)
        except Exception as error:
            if not self._stop.is_set():
                self._put(self._results, error)

    def _feed(self, tasks: Iterable[Task | Result]) -> None:
        count = 0
        for count, task in enumerate(tasks, 1):  # noqa: B007 - used after the loop
            if not (self._put(self._tasks, task) if isinstance(task, Task) else self._put(self._results, task)):
                return
        self._put(self._results, _AllQueued(count))

    def _serve(self, supervisor: Supervisor) -> None:
        try:
            while not self._stop.is_set():
                for result in supervisor.results(self._next_chunk()):
                    if not self._put(self._results, result):
                        return
        finally:
            supervisor.close()

    def _next_chunk(self) -> list[Task]:
        """The next tasks for a worker; smaller chunks near the end, so that all workers finish together."""
        chunk: list[Task] = []
        size = min(CHUNK, max(1, self._tasks.qsize() // (2 * len(self._supervisors))))
        while len(chunk) < size:
            try:
                chunk.append(self._repeat.popleft() if self._repeat else self._tasks.get(timeout=0 if chunk else TICK))
            except (IndexError, queue.Empty):
                break
        return chunk

    def _put(self, target: queue.Queue[Item], item: Item) -> bool:
        """Put with waiting; False if the pool was stopped meanwhile."""
        while not self._stop.is_set():
            try:
                target.put(item, timeout=TICK)
            except queue.Full:
                continue
            return True
        return False


class _AllQueued(NamedTuple):
    """Marks the end of the task queue, with the number of tasks."""

    tasks: int
