"""Supervises one worker process: replaces it after a crash, a timeout or excessive growth, without losing a job."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from time import monotonic

from diagnose import workers
from diagnose.cluster import PRELOADED
from diagnose.cluster.run.task import JobOptions, Limits, Task
from diagnose.cluster.store.result import Result, unread_result
from diagnose.phrases import phrase
from diagnose.records import NamedTuple

#: Jobs after which a process is replaced.
JOBS_PER_PROCESS = 5000
#: Results that are sent together, and the seconds that the first of them waits for the others.
BATCH_SIZE, BATCH_SECONDS = 32, 0.05


class ClaimRequest(NamedTuple):
    """A worker's question whether it has to make a diagnosis."""

    key: str
    job: str


class ChunkDone(NamedTuple):
    """A worker has finished its tasks; `memory`: its resident memory in bytes."""

    memory: int


class Supervisor:
    """Feeds tasks to a worker. `claim(key, job)` decides whether this job makes the diagnosis of a key."""

    def __init__(self, options: JobOptions, limits: Limits, claim: Callable[[str, str], bool]) -> None:
        self.options, self.limits, self.claim = options, limits, claim
        self._worker: workers.Worker | None = None
        self._jobs_left = 0  # until the process is replaced
        self._stopped = False

    def results(self, tasks: Sequence[Task]) -> Iterator[Result]:
        """The results of tasks. After a crash or timeout the unfinished ones are retried individually; one that fails again gets an
        error as result."""
        if not tasks:
            return
        pending = list(tasks)
        try:
            for result in self._run_chunk(tasks):
                pending.pop(0)
                yield result
        except (EOFError, OSError, workers.Stopped):
            self.close()
        for task in pending:
            if not self._stopped:
                yield self._run_alone(task)

    def close(self) -> None:
        """Kill the process."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    def stop(self) -> None:
        """Kill the process from another thread; `results` then ends."""
        worker, self._stopped = self._worker, True
        if worker is not None:
            worker.process.kill()

    def _run_alone(self, task: Task) -> Result:
        try:
            [result] = self._run_chunk([task])
            return result
        except workers.Stopped:
            self.close()
            return unread_result(task.job, "timed_out", phrase("cluster.timed_out", seconds=f"{self.limits.seconds:g}"))
        except (EOFError, OSError):
            self.close()
            return unread_result(task.job, "worker_died", phrase("cluster.worker_died"))

    def _run_chunk(self, tasks: Sequence[Task]) -> Iterator[Result]:
        worker = self._ready_worker()
        worker.pipe.send(list(tasks))
        self._jobs_left -= len(tasks)
        while True:
            message = worker.receive(self.limits.seconds + BATCH_SECONDS)
            if isinstance(message, ClaimRequest):
                worker.pipe.send(self.claim(message.key, message.job))
            elif isinstance(message, ChunkDone):
                if message.memory > self.limits.idle_memory:
                    self._jobs_left = 0
                return
            else:
                yield from message

    def _ready_worker(self) -> workers.Worker:
        if self._jobs_left <= 0:
            self.close()
        if self._worker is None:
            self._worker = workers.Worker(worker_main, (self.options, self.limits), PRELOADED)
            self._jobs_left = JOBS_PER_PROCESS
        return self._worker


def worker_main(pipe: Connection, options: JobOptions, limits: Limits) -> None:
    """Main loop of a worker: receives tasks and sends results until the pipe is closed."""
    from diagnose.cluster.run import warmup  # noqa: F401 - diagnoses on import: in the worker, before the clock runs, never in its parent

    workers.confine(limits.memory)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        pipe.send("ready")
        while True:
            _answer(pipe, pipe.recv(), options)
            pipe.send(ChunkDone(_resident_bytes()))


def _answer(pipe: Connection, tasks: Sequence[Task], options: JobOptions) -> None:
    from diagnose.cluster.run.job_work import work  # the whole engine: the parent does without it

    batch: list[Result] = []
    last_sent = monotonic()

    def send() -> None:
        nonlocal last_sent
        pipe.send(batch)
        batch.clear()
        last_sent = monotonic()

    for task in tasks:

        def claim(key: str, job: str = task.job.id) -> bool:
            if batch:
                send()
            pipe.send(ClaimRequest(key, job))
            return bool(pipe.recv())

        batch.append(work(task, options, claim))
        if len(batch) >= BATCH_SIZE or monotonic() - last_sent > BATCH_SECONDS:
            send()
    if batch:
        send()


def _resident_bytes() -> int:
    """Resident memory of this process in bytes; 0 if unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - after every few jobs
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
