"""Worker processes: forked from a preloaded server, limited in memory, and killed when they take too long.

A diagnosis computes on texts that strangers wrote. In a process of its own it can be stopped at any time without harm to its caller.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

#: Seconds in which a process must say that it is ready.
START_TIMEOUT = 60.0

#: A log that a new worker diagnoses before its first task, so that tables and grammars are read.
WARMUP_LOG = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB."


class Stopped(Exception):
    """The time limit has passed."""


class Lost(Exception):
    """The process died or failed; the text is for our log."""


def context(preload: Sequence[str]) -> BaseContext:
    """The start method of workers: a fork server that has imported `preload`, or spawn where the system has none."""
    methods = multiprocessing.get_all_start_methods()
    start_context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        start_context.set_forkserver_preload(list(preload))
    return start_context


def warm(preload: Sequence[str]) -> None:
    """Start the fork server, which imports `preload` while the caller goes on."""
    if context(preload).get_start_method() == "forkserver":
        with sigint_blocked():
            forkserver.ensure_running()


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach from their first moment on: a terminal sends it to all, and their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # when it starts it would unblock the signal
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Worker:
    """One process and the pipe to it. It runs `target(pipe, *arguments)`, which begins by sending "ready"."""

    def __init__(self, target: Callable[..., None], arguments: Sequence[object] = (), preload: Sequence[str] = ()) -> None:
        self.pipe, child_pipe = multiprocessing.Pipe()
        process_class: Any = getattr(context(preload), "Process")  # noqa: B009 - typeshed's common base of contexts has none
        self.process = process_class(target=target, args=(child_pipe, *arguments), daemon=True, name="oomdoctor worker")
        with sigint_blocked():
            self.process.start()
        child_pipe.close()
        try:
            ready = self.pipe.poll(START_TIMEOUT) and self.pipe.recv() == "ready"
        except (EOFError, OSError):
            ready = False
        if not ready:
            self.end()
            raise Lost("a worker process did not start")

    def receive(self, seconds: float) -> Any:
        """The next message. Raises Stopped after so many seconds, EOFError or OSError where the process died; `end` the worker then."""
        if not self.pipe.poll(seconds):
            raise Stopped
        return self.pipe.recv()

    def ask(self, request: object, seconds: float) -> Any:
        """Send a request and receive its answer; raises what `receive` raises."""
        self.pipe.send(request)
        return self.receive(seconds)

    def kill(self) -> None:
        """Kill the process unless it has ended: its number may be another one's by then."""
        if self.process.is_alive():
            self.process.kill()

    def end(self) -> None:
        """Kill the process and release what belongs to it."""
        self.kill()
        self.process.join()
        self.pipe.close()


def confine(memory: int) -> None:
    """Limit the process that calls this: `memory` bytes of address space, no core dumps, no word on standard output (which may carry a
    protocol), no reaction to SIGINT and SIGTERM, which are meant for its parent, and an end when that ends, whatever it is doing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    os.dup2(2, 1)
    for name in ("SIGINT", "SIGTERM"):  # the parent lets us finish
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # POSIX only

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()


def end_with(parent: BaseProcess) -> None:
    """Wait until another process has ended, then end this one."""
    parent.join()
    os._exit(1)
