"""A few worker processes that answer questions: a bounded queue, a time limit for each question, and a new process after a bad one."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import TypeAlias

from diagnose import workers
from diagnose.surfaces.server.question import Answer, Question
from diagnose.workers import START_TIMEOUT
from diagnose.workers import Lost as Lost
from diagnose.workers import Stopped as Stopped

#: Questions after which a process is replaced, so that nothing that a stranger wrote is held for long.
MAX_QUESTIONS = 1000
#: Bytes of address space of one process (POSIX): more is no diagnosis.
MEMORY_LIMIT = 4 << 30
#: Seconds that a question waits for its turn at most.
QUEUE_SECONDS = 60.0

#: What every process needs, loaded once where processes are forked from one that has it.
PRELOAD = [
    __name__,
    "diagnose.pipeline",
    "diagnose.plan.outlook.frontier",
    "diagnose.render.data",
    "diagnose.render.markup.html",
    "diagnose.render.markup.markdown",
    "diagnose.render.parts.redaction",
]

Reply: TypeAlias = "Answer | str"


class Overloaded(Exception):
    """As many questions wait as may."""


class Worker(workers.Worker):
    """A process that answers a number of questions."""

    def __init__(self) -> None:
        super().__init__(serve_questions, preload=PRELOAD)
        self.questions_left = MAX_QUESTIONS

    def ask(self, question: object, seconds: float) -> Reply:
        """The answer. Raises Stopped when time is up and EOFError or OSError where the process died; then it is to be ended."""
        self.questions_left -= 1
        reply: Reply = super().ask(question, seconds)
        return reply


def serve_questions(pipe: Connection) -> None:
    """The life of a process: questions in, answers out, until the other end is gone."""
    workers.confine(MEMORY_LIMIT)
    from diagnose.surfaces.server.remote_answer import answer_question

    answer_question(Question(logs=(("", workers.WARMUP_LOG),), form="body"))
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        pipe.send("ready")
        while True:
            question = pipe.recv()
            try:
                reply: Reply = answer_question(question)
            except Exception as error:  # a mistake of ours, or no memory left
                reply = f"{type(error).__name__}: {error}"[:300]
            pipe.send(reply)


class WorkerPool:
    """`workers` processes behind a queue of at most `most` questions, each answered within `seconds` or not at all."""

    def __init__(self, workers: int = 2, seconds: float = 20.0, capacity: int = 128) -> None:
        self.seconds, self.capacity, self.pending, self.queue_seconds = seconds, capacity, 0, QUEUE_SECONDS
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="oomdoctor")
        self._count = workers
        self._local = threading.local()  # a thread has a process
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._closed = False

    async def start(self) -> None:
        """Have every process ready before the first question."""
        loop = asyncio.get_running_loop()
        gate = threading.Barrier(self._count)
        await asyncio.gather(*(loop.run_in_executor(self._threads, self._start_worker, gate) for _ in range(self._count)))

    async def answer(self, question: Question) -> Answer:
        """Raises Overloaded, Stopped or Lost."""
        if self.pending >= self.capacity:
            raise Overloaded
        self.pending += 1
        future = self._threads.submit(self._answer, question)
        try:
            waiting = asyncio.wrap_future(future)
            await asyncio.wait({waiting}, timeout=self.queue_seconds)
            if not waiting.done() and future.cancel():  # only what was not begun can be
                raise Overloaded
            reply = await waiting
        finally:
            future.cancel()
            self.pending -= 1
        if isinstance(reply, str):
            raise Lost(reply)
        return reply

    def close(self) -> None:
        """End every process; questions that wait are not answered."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for worker in self._workers:
                worker.process.kill()
        self._threads.shutdown(wait=True)
        with self._lock:
            for worker in self._workers:
                worker.end()
            self._workers.clear()

    # -- in the threads

    def _start_worker(self, gate: threading.Barrier) -> None:
        gate.wait(START_TIMEOUT)  # a thread waits here, so that every other one gets its turn
        self._own_worker()

    def _own_worker(self) -> Worker:
        worker: Worker | None = getattr(self._local, "worker", None)
        if worker is None or worker.questions_left <= 0:
            if worker is not None:
                self._drop(worker)
            worker = Worker()
            with self._lock:
                self._workers.append(worker)
            self._local.worker = worker
        return worker

    def _drop(self, worker: Worker) -> None:
        self._local.worker = None
        with self._lock:
            if worker in self._workers:
                self._workers.remove(worker)
        worker.end()

    def _answer(self, question: Question) -> Reply:
        if self._closed:
            raise Lost("closing")
        worker = self._own_worker()
        try:
            return worker.ask(question, self.seconds)
        except Stopped:
            self._drop(worker)
            raise
        except (EOFError, OSError) as error:
            self._drop(worker)
            raise Lost("a worker process died") from error
