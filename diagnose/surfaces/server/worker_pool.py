"""A pool of worker processes: a bounded queue, a time limit for each question, and a new process after a crash or timeout."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import TypeAlias

from diagnose import workers
from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.surfaces.server.question import Answer, Question
from diagnose.workers import START_TIMEOUT
from diagnose.workers import Lost as Lost
from diagnose.workers import Stopped as Stopped

#: Questions after which a process is replaced, so that no input stays in memory for long.
QUESTIONS_PER_PROCESS = 1000
#: Processes that are tried with one question.
ATTEMPTS = 2
#: Limit of the address space of one process (POSIX), in bytes.
MEMORY_LIMIT = 4 << 30
#: Seconds in which questions may finish after a signal to stop.
FINISH_SECONDS = 3.0
#: Seconds that a question may wait for a free process.
QUEUE_SECONDS = 60.0

#: Modules that the fork server imports once for all processes.
PRELOAD = [
    __name__,
    "diagnose.surfaces.server.worker_answer",
    "diagnose.plan.outlook.frontier",
    "diagnose.render.data",
    "diagnose.render.markup.markdown",
]

Reply: TypeAlias = "Answer | str"


class Overloaded(Exception):
    """The queue is full."""


class Worker(workers.Worker):
    """A process that answers up to QUESTIONS_PER_PROCESS questions."""

    def __init__(self) -> None:
        super().__init__(serve_questions, preload=PRELOAD)
        self.questions_left = QUESTIONS_PER_PROCESS

    def ask(self, question: object, seconds: float) -> Reply:
        """The answer. Raises Stopped on a timeout and EOFError or OSError if the process died; the caller then ends it."""
        self.questions_left -= 1
        reply: Reply = super().ask(question, seconds)
        return reply


def serve_questions(pipe: Connection) -> None:
    """Main loop of a process: receive questions and send answers until the pipe is closed."""
    workers.confine(MEMORY_LIMIT)
    # the parent process only passes questions on and never loads the engine
    from diagnose.surfaces.server.worker_answer import answer_question

    answer_question(Question(logs=(("", workers.WARMUP_LOG),), form="body"))
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        pipe.send("ready")
        while True:
            question = pipe.recv()
            try:
                reply: Reply = answer_question(question)
            except Exception as error:  # a bug, or out of memory
                reply = f"{type(error).__name__}: {error}"[:300]
            pipe.send(reply)


class WorkerPool:
    """`workers` processes behind a queue of `capacity` questions; a question that takes longer than `seconds` is stopped."""

    def __init__(self, workers: int = 2, seconds: float = 20.0, capacity: int = 128) -> None:
        self.seconds, self.capacity, self.pending, self.queue_seconds = seconds, capacity, 0, QUEUE_SECONDS
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="oomdoctor")
        self._count = workers
        self._local = threading.local()  # each thread owns one process
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._closed = False

    async def start(self) -> None:
        """Start all processes and wait until they are ready. Raises UserError where they do not start."""
        loop = asyncio.get_running_loop()
        gate = threading.Barrier(self._count)
        starts = [loop.run_in_executor(self._threads, self._start_worker, gate) for _ in range(self._count)]
        # for all of them: asyncio prints a traceback of an exception that nobody asks for
        for error in await asyncio.gather(*starts, return_exceptions=True):
            if isinstance(error, (Lost, OSError)):
                raise UserError(phrase("remote.no_workers", why=str(error)), "", phrase("remote.fewer_workers")) from error
            if error is not None:
                raise error

    async def answer(self, question: Question) -> Answer:
        """The answer of the next free process. Raises Overloaded (also while the pool closes), Stopped or Lost."""
        if self.pending >= self.capacity or self._closed:
            raise Overloaded
        self.pending += 1
        future = self._threads.submit(self._answer, question)
        waiting = asyncio.wrap_future(future)
        try:
            await asyncio.wait({waiting}, timeout=self.queue_seconds)
            if future.cancelled() or (not waiting.done() and future.cancel()):  # only a question that has not started can be
                raise Overloaded
            reply = await waiting
        finally:
            waiting.cancel()  # and with it `future`; what becomes of a question whose asker has gone is nobody's
            self.pending -= 1
        if isinstance(reply, str):
            raise Lost(reply)
        return reply

    def close(self) -> None:
        """End every process; questions that are being answered or wait are Overloaded. Idempotent."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for worker in self._workers:
                worker.kill()
        self._threads.shutdown(wait=True)
        with self._lock:
            for worker in self._workers:
                worker.end()
            self._workers.clear()

    # -- in the threads

    def _start_worker(self, gate: threading.Barrier) -> None:
        gate.wait(START_TIMEOUT)  # threads wait for each other, so that each of them starts one process
        self._own_worker()

    def _own_worker(self) -> Worker:
        worker: Worker | None = getattr(self._local, "worker", None)
        if worker is None or worker.questions_left <= 0:
            self._drop()
            worker = Worker()
            with self._lock:
                self._workers.append(worker)
            self._local.worker = worker
        return worker

    def _drop(self) -> None:
        """End the process of this thread, if it has one."""
        worker: Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            return
        self._local.worker = None
        with self._lock:
            if worker in self._workers:
                self._workers.remove(worker)
        worker.end()

    def _answer(self, question: Question) -> Reply:
        """The answer of this thread's process; where that dies, of a new one, once: it may have died before, while it was idle."""
        for _ in range(ATTEMPTS):
            if self._closed:
                break
            try:
                return self._own_worker().ask(question, self.seconds)
            except Stopped:
                self._drop()
                raise
            except (EOFError, OSError, Lost):  # not kept: its traceback would keep the question
                self._drop()
        if self._closed:
            raise Overloaded
        raise Lost(f"a worker process died {ATTEMPTS} times at one question")
