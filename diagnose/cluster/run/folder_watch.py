"""Rounds over a folder that grows: logs are read once they have settled. No clock is asked what time it is, only how long it was."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from diagnose.cluster.find.file_stamp import stamp
from diagnose.errors import UserError
from diagnose.phrases import Text, phrase

if TYPE_CHECKING:
    from diagnose.cluster.find.job import About, Job

#: Seconds between rounds; seconds that a log may not have changed for before it is read. On NFS a folder is looked up anew after 30 s
#: at the earliest, a file after 60 s at the latest (acdirmin and acregmax of nfs(5)): until then a log that grows looks as if it did not.
EVERY, SETTLE = 30.0, 60.0

#: States in which a job still writes.
RUNNING = (
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
    """Which jobs have settled, by how they looked in earlier rounds; on disk, so that millions may wait."""

    def __init__(self, every: float = EVERY, settle: float = SETTLE, clock: Callable[[], float] = monotonic) -> None:
        self.every, self.settle, self._clock = every, settle, clock
        self._stop = threading.Event()
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute("CREATE TABLE seen (job TEXT PRIMARY KEY, stamp TEXT, since REAL) WITHOUT ROWID")

    def ready(self, job: Job, known: str = "") -> bool:
        """Whether a job is to be looked at in this round: its scheduler says that it ended, or nothing of it has changed for a while.
        `known` is its stamp when it was read last: one that is as it was need not be waited for."""
        now = stamp(job)
        if not now or now == known or ended(job.about):
            self._db.execute("DELETE FROM seen WHERE job = ?", (job.id,))
            return True
        row = self._db.execute("SELECT stamp, since FROM seen WHERE job = ?", (job.id,)).fetchone()
        if row is None or row[0] != now:
            self._db.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", (job.id, now, self._clock()))
            return self.settle <= 0
        return bool(self._clock() - row[1] >= self.settle)

    def run(self, round: Callable[[], object], say: Callable[[Text], None] = lambda _: None) -> None:
        """Do rounds until Ctrl-C, SIGTERM or `stop`. A round that cannot be finished is said, and the next one goes on where it ended."""
        say(phrase("notify.watching", settle=f"{self.settle:g}"))
        with interrupted(self), suppress(KeyboardInterrupt):
            while not self._stop.is_set():
                try:
                    round()
                except UserError as trouble:
                    why = Text(trouble.to("en"), trouble.to("zh"))
                    say(phrase("notify.round_failed", why=why, every=f"{self.every:g}"))
                self._stop.wait(self.every)
        say(phrase("notify.ended"))

    def stop(self) -> None:
        """End after this round."""
        self._stop.set()

    def close(self) -> None:
        self._db.close()


def ended(about: About) -> bool:
    """Whether the scheduler says that a job is over."""
    if about.state and about.state.upper().startswith(RUNNING):
        return False
    return about.ended is not None


@contextmanager
def interrupted(watch: Watch) -> Iterator[None]:
    """While a watch runs SIGTERM is what Ctrl-C is: the round ends where it is. In a thread signals are not ours."""

    def end(_number: int, _frame: FrameType | None) -> None:
        watch.stop()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
