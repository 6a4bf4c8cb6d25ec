"""Repeats triage over a growing folder: logs are read once they have stopped changing. Uses elapsed time only, so that clock changes do
not matter."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from diagnose.cluster.cluster_errors import error_text
from diagnose.cluster.find.job_files import stamp
from diagnose.errors import UserError
from diagnose.phrases import Text, phrase

if TYPE_CHECKING:
    from diagnose.cluster.find.job import About, Job

#: Seconds between rounds; seconds for which a log must not have changed before it is read. On NFS a folder is looked up anew after 30 s
#: at the earliest, a file after 60 s at the latest (acdirmin and acregmax of nfs(5)): until then a log that grows looks as if it did not.
ROUND_SECONDS, SETTLE_SECONDS = 30.0, 60.0

#: States in which a job still writes.
RUNNING_STATES = (
    "RUNNING",
    "PENDING",
    "COMPLETING",
    "CONFIGURING",
    "SUSPENDED",
    "REQUEUED",
    "RESIZING",
    "STAGE_OUT",
    "STOPPED",
    "CREATED",
    "STARTED",
)


class Watch:
    """Repeats rounds and remembers on disk (there may be millions) which jobs are still changing."""

    def __init__(self, every: float = ROUND_SECONDS, settle: float = SETTLE_SECONDS, clock: Callable[[], float] = monotonic) -> None:
        self.every, self.settle, self._clock = every, settle, clock
        self._stop = threading.Event()
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute("CREATE TABLE waiting (job TEXT PRIMARY KEY, stamp TEXT, since REAL) WITHOUT ROWID")

    def is_ready(self, job: Job, last_stamp: str = "") -> bool:
        """Whether to read a job in this round: its scheduler reports an end, or its files have not changed for a while. `last_stamp`:
        that of the last read; an unchanged job is ready at once."""
        current = stamp(job)
        if not current or current == last_stamp or is_over(job.about):
            self._db.execute("DELETE FROM waiting WHERE job = ?", (job.id,))
            return True
        row = self._db.execute("SELECT stamp, since FROM waiting WHERE job = ?", (job.id,)).fetchone()
        if row is None or row[0] != current:
            self._db.execute("INSERT OR REPLACE INTO waiting VALUES (?, ?, ?)", (job.id, current, self._clock()))
            return self.settle <= 0
        return bool(self._clock() - row[1] >= self.settle)

    def run(self, round: Callable[[], object], say: Callable[[Text], None] = lambda _: None) -> None:
        """Repeat rounds until Ctrl-C, SIGTERM or `stop`. A failed round is reported, and the next one continues where it ended."""
        say(phrase("notify.watching", settle=f"{self.settle:g}"))
        with sigterm_as_interrupt(self), suppress(KeyboardInterrupt):
            while not self._stop.is_set():
                try:
                    round()
                except UserError as error:
                    say(phrase("notify.round_failed", why=error_text(error), every=f"{self.every:g}"))
                self._stop.wait(self.every)
        say(phrase("notify.ended"))

    def stop(self) -> None:
        """End after this round."""
        self._stop.set()

    def close(self) -> None:
        self._db.close()


def is_over(about: About) -> bool:
    """Whether the scheduler reports that a job has ended."""
    if about.state and about.state.upper().startswith(RUNNING_STATES):
        return False
    return about.ended is not None


@contextmanager
def sigterm_as_interrupt(watch: Watch) -> Iterator[None]:
    """Within the block SIGTERM interrupts a round like Ctrl-C. No effect outside the main thread, which cannot handle signals."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        watch.stop()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
