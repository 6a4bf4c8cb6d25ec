"""Processes that do what strangers' texts ask for: started clean, confined, and stopped whatever they are doing.

A diagnosis is pure computation on what strangers wrote. In a process it can be stopped at any time, and takes nobody along.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import BaseContext
from typing import Any

#: Seconds in which a process must be ready to take a question.
START = 60.0

#: A failure to practise on, so that the first question finds tables and grammars read.
PRACTICE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB."


class Stopped(Exception):
    """It took longer than it may."""


class Lost(Exception):
    """The process died of it, or failed at it; the text is for our log."""


def context(preload: Sequence[str]) -> BaseContext:
    """How processes are started: forked from a small one that has loaded what they need, where the system can."""
    methods = multiprocessing.get_all_start_methods()
    held = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        held.set_forkserver_preload(list(preload))
    return held


def warm(preload: Sequence[str]) -> None:
    """Start the process that workers are forked from; it loads what they need while its starter goes on with other things."""
    if context(preload).get_start_method() == "forkserver":
        with uninterrupted():
            forkserver.ensure_running()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C in a terminal reaches all processes. What is started here is spared it, from its first moment: it means the starter, who
    ends the others."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would let the signal through again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Worker:
    """One process, and the pipe to it. `life(pipe, *arguments)` is what it does; it begins by sending "ready"."""

    def __init__(self, life: Callable[..., None], arguments: Sequence[Any] = (), preload: Sequence[str] = ()) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        make: Any = getattr(context(preload), "Process")  # noqa: B009 - typeshed's common base of contexts has none
        self.process = make(target=life, args=(theirs, *arguments), daemon=True, name="oomdoctor worker")
        with uninterrupted():
            self.process.start()
        theirs.close()
        try:
            ready = self.pipe.poll(START) and self.pipe.recv() == "ready"
        except (EOFError, OSError):
            ready = False
        if not ready:
            self.end()
            raise Lost("a worker process did not start")

    def hear(self, seconds: float) -> Any:
        """What it says next. Raises Stopped when time is up and EOFError or OSError where the process died; then it is to be ended."""
        if not self.pipe.poll(seconds):
            raise Stopped
        return self.pipe.recv()

    def ask(self, asked: object, seconds: float) -> Any:
        """Its answer to a question; raises what `hear` raises."""
        self.pipe.send(asked)
        return self.hear(seconds)

    def end(self) -> None:
        """Stop the process, whatever it is doing."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def confine(memory: int) -> None:
    """In a worker: no memory without end (bytes of address space), no word on standard output (which may carry a protocol), no signal
    that is meant for whoever started it."""
    os.dup2(2, 1)
    for name in ("SIGINT", "SIGTERM"):  # whoever interrupts means the one who started us, and lets us finish
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
