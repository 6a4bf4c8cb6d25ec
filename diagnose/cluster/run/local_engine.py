"""Jobs on worker processes of this machine: bounded queues, one diagnosis for equal jobs, and nothing lost when a process dies."""

from __future__ import annotations

import os
import queue
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from diagnose import workers
from diagnose.cluster.cluster_errors import trouble
from diagnose.cluster.run.task import Asked, Task
from diagnose.cluster.run.worker_supervisor import LIMITS, Limits, Minder
from diagnose.cluster.store.result import Brought, Result
from diagnose.record import NamedTuple, replace

#: Tasks that one worker is given at once at most; those that wait for a worker (so many that the time left is known early, at a
#: kilobyte each); results that wait for whoever asked.
CHUNK, AHEAD, BEHIND = 32, 20_000, 1024
#: Seconds after which a thread that waits looks up.
TICK = 0.1
#: Diagnoses that are remembered for the jobs that they answer too; older ones are asked of `known`.
REMEMBERED = 4096


#: What an earlier diagnosis of this key says; None where there is none.
Known = Callable[[str], "Brought | None"]


class Shared:
    """Which diagnoses are being made and which are there. A job is passed on after the diagnosis that answers it, never before.

    `elsewhere`: others say who makes a diagnosis, so every one that is missing may still come; at the end `left` tells what did not.
    """

    def __init__(self, known: Known = lambda _: None, elsewhere: bool = False) -> None:
        self._known, self._elsewhere = known, elsewhere
        self._lock = threading.Lock()
        self._makers: dict[str, str] = {}  # key: the job that makes the diagnosis
        self._brought: OrderedDict[str, Brought] = OrderedDict()
        self._waiting: dict[str, list[Result]] = {}

    def claim(self, same: str, job: str) -> bool:
        """Whether this job is to make the diagnosis: nobody else does, and there is none."""
        with self._lock:
            maker = self._makers.get(same)
            if maker is None and self._recall(same) is None:
                self._makers[same] = maker = job
            return maker == job

    def passed(self, result: Result) -> tuple[list[Result], list[Task]]:
        """What can be passed on now that this result is there, in order; and the tasks that must be done again, because the job that was
        to make their diagnosis has failed."""
        with self._lock:
            ready, again = self._sorted(result)
            for same in [same for same, maker in self._makers.items() if maker == result.job.id]:
                del self._makers[same]
                again += [Task(each.job) for each in self._waiting.pop(same, ())]
            return ready, again

    def left(self) -> list[Task]:
        """Jobs whose diagnosis did not come."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        return [Task(each.job) for results in waiting.values() for each in results]

    def _sorted(self, result: Result) -> tuple[list[Result], list[Task]]:
        if result.digest:
            brought = Brought(result.headline, result.fingerprint)
            self._remember(result.same, brought)
            self._makers.pop(result.same, None)
            return [result, *(_with(each, brought) for each in self._waiting.pop(result.same, ()))], []
        if not result.same:
            return [result], []
        held = self._recall(result.same)
        if held is not None:
            return [_with(result, held)], []
        if result.same not in self._makers and not self._elsewhere:
            return [], [Task(result.job)]
        self._waiting.setdefault(result.same, []).append(result)
        return [], []

    def _recall(self, same: str) -> Brought | None:
        held = self._brought.get(same)
        if held is None:
            held = self._known(same)
            if held is not None:
                self._remember(same, held)
        return held

    def _remember(self, same: str, brought: Brought) -> None:
        self._brought[same] = brought
        self._brought.move_to_end(same)
        while len(self._brought) > REMEMBERED:
            self._brought.popitem(last=False)


def _with(result: Result, brought: Brought) -> Result:
    return replace(result, headline=brought.headline, fingerprint=brought.fingerprint)


def local(
    tasks: Iterable[Task | Result], asked: Asked, count: int | None = None, limits: Limits = LIMITS, known: Known = lambda _: None
) -> Generator[Result]:
    """The results of tasks as they come, from `count` worker processes of this machine (None: one per core), which end with it."""
    hall = _Hall(tasks, asked, count or os.cpu_count() or 1, limits, Shared(known))
    try:
        yield from hall.results()
    finally:
        hall.close()


class _Hall:
    """Threads that each mind one process, between a queue of tasks and a queue of results."""

    def __init__(self, tasks: Iterable[Task | Result], asked: Asked, count: int, limits: Limits, shared: Shared) -> None:
        self._shared = shared
        self._todo: queue.Queue[Task] = queue.Queue(AHEAD)
        self._again: deque[Task] = deque()  # before all others
        self._out: queue.Queue[Result | Exception | _Fed] = queue.Queue(BEHIND)
        self._stop = threading.Event()
        self._minders = [Minder(asked, limits, shared.claim) for _ in range(count)]
        self._threads = [threading.Thread(target=self._guarded, args=(self._feed, tasks), daemon=True)]
        self._threads += [threading.Thread(target=self._guarded, args=(self._tend, each), daemon=True) for each in self._minders]

    def results(self) -> Iterator[Result]:
        for thread in self._threads:
            thread.start()
        done, fed = 0, None
        while fed is None or done < fed:
            said = self._out.get()
            if isinstance(said, workers.Lost):
                raise trouble("no_worker", hint="fewer_workers", why=str(said)) from said
            if isinstance(said, Exception):
                raise said
            if isinstance(said, _Fed):
                fed = said.tasks
                continue
            ready, again = self._shared.passed(said)
            self._again.extend(again)
            done += len(ready)
            yield from ready

    def close(self) -> None:
        """End threads and processes, whatever they are doing."""
        self._stop.set()
        for minder in self._minders:
            minder.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(10)  # one that waits for a slow listing is left to itself

    # -- in the threads

    def _guarded(self, work: Callable[..., None], of: object) -> None:
        try:
            work(of)
        except Exception as error:  # whoever asked for results is told
            if not self._stop.is_set():
                self._put(self._out, error)

    def _feed(self, tasks: Iterable[Task | Result]) -> None:
        count = 0
        for count, task in enumerate(tasks, 1):  # noqa: B007 - counted
            if not self._put(self._todo if isinstance(task, Task) else self._out, task):
                return
        self._put(self._out, _Fed(count))

    def _tend(self, minder: Minder) -> None:
        try:
            while not self._stop.is_set():
                for result in minder.results(self._chunk()):
                    if not self._put(self._out, result):
                        return
        finally:
            minder.close()

    def _chunk(self) -> list[Task]:
        """The tasks that a worker is given next: fewer where few are left, so that all workers end together."""
        taken: list[Task] = []
        room = min(CHUNK, max(1, self._todo.qsize() // (2 * len(self._minders))))
        while len(taken) < room:
            try:
                taken.append(self._again.popleft() if self._again else self._todo.get(timeout=0 if taken else TICK))
            except (IndexError, queue.Empty):
                break
        return taken

    def _put(self, where: queue.Queue[Any], what: object) -> bool:
        """Whether there was room for it before all was stopped."""
        while not self._stop.is_set():
            try:
                where.put(what, timeout=TICK)
            except queue.Full:
                continue
            return True
        return False


class _Fed(NamedTuple):
    """All tasks are in the queue; how many there were."""

    tasks: int
