"""One worker process and the jobs that it is given: replaced when it dies, takes too long or has grown, without a job being lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from time import monotonic

from diagnose import workers
from diagnose.cluster import PRELOADED
from diagnose.cluster.run.task import Asked, Task
from diagnose.cluster.store.result import Result, unread
from diagnose.phrases import phrase
from diagnose.record import NamedTuple, record

#: Jobs after which a process is replaced.
LIFE = 5000
#: Results that travel together, and the seconds that the first of them waits for the others.
TOGETHER, WAIT = 32, 0.05


@record
class Limits:
    """What one job may take: seconds, and bytes of address space; `held`: bytes in memory at which an idle process is replaced."""

    seconds: float = 300.0
    memory: int = 4 << 30
    held: int = 200 << 20


LIMITS = Limits()


class Question(NamedTuple):
    """A worker asks whether it is to make the diagnosis that has this key."""

    same: str
    job: str


class Done(NamedTuple):
    """A worker has answered what it was given; the bytes that it holds."""

    held: int


class Minder:
    """`claim(same, job)` says whether the worker makes a diagnosis; `settled(job)` is called for every job whose worker is done with it."""

    def __init__(self, asked: Asked, limits: Limits, claim: Callable[[str, str], bool]) -> None:
        self.asked, self.limits, self.claim = asked, limits, claim
        self._worker: workers.Worker | None = None
        self._left = 0
        self._stopped = False

    def results(self, tasks: Sequence[Task]) -> Iterator[Result]:
        """The results of some tasks. Those under way when the process died or was stopped are tried once more, each alone; one that
        fails again is a row that says so."""
        if not tasks:
            return
        left = list(tasks)
        try:
            for result in self._tried(tasks):
                left.pop(0)
                yield result
        except (EOFError, OSError, workers.Stopped):
            self.close()
        for task in left:
            if not self._stopped:
                yield self._alone(task)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    def stop(self) -> None:
        """Let the process die now; whoever waits for it gets no more results. (From another thread.)"""
        worker, self._stopped = self._worker, True
        if worker is not None:
            worker.process.kill()

    def _alone(self, task: Task) -> Result:
        try:
            [result] = self._tried([task])
            return result
        except workers.Stopped:
            self.close()
            return unread(task.job, "timed_out", phrase("cluster.timed_out", seconds=f"{self.limits.seconds:g}"))
        except (EOFError, OSError):
            self.close()
            return unread(task.job, "worker_died", phrase("cluster.worker_died"))

    def _tried(self, tasks: Sequence[Task]) -> Iterator[Result]:
        worker = self._ready()
        worker.pipe.send(list(tasks))
        self._left -= len(tasks)
        while True:
            said = worker.hear(self.limits.seconds + WAIT)
            if isinstance(said, Question):
                worker.pipe.send(self.claim(said.same, said.job))
            elif isinstance(said, Done):
                if said.held > self.limits.held:
                    self._left = 0
                return
            else:
                yield from said

    def _ready(self) -> workers.Worker:
        if self._left <= 0:
            self.close()
        if self._worker is None:
            self._worker = workers.Worker(life, (self.asked, self.limits), PRELOADED)
            self._left = LIFE
        return self._worker


def life(pipe: Connection, asked: Asked, limits: Limits) -> None:
    """The life of a worker: tasks in, results out, until the other end is gone."""
    from diagnose.cluster.run import warmup  # noqa: F401 - before time is taken

    workers.confine(limits.memory)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        pipe.send("ready")
        while True:
            _answer(pipe, pipe.recv(), asked)
            pipe.send(Done(_held()))


def _answer(pipe: Connection, tasks: Sequence[Task], asked: Asked) -> None:
    from diagnose.cluster.run.job_work import work

    ready: list[Result] = []
    sent = monotonic()

    def send() -> None:
        nonlocal sent
        pipe.send(ready)
        ready.clear()
        sent = monotonic()

    for task in tasks:

        def claim(same: str, job: str = task.job.id) -> bool:
            if ready:
                send()
            pipe.send(Question(same, job))
            return bool(pipe.recv())

        ready.append(work(task, asked, claim))
        if len(ready) >= TOGETHER or monotonic() - sent > WAIT:
            send()
    if ready:
        send()


def _held() -> int:
    """The bytes that this process has in memory; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - after every few jobs
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
