"""The places that a command prints to, each led past us: a pseudo-terminal for a terminal, else a pipe."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Callable
from typing import Protocol

PIPE_SIZE = 1 << 20  # bytes that a pipe may hold, so that the command seldom waits for us
CHUNK = 1 << 18  # bytes handed on at once; they stay in the processor's cache
MORE_EXPECTED = 1 << 10  # bytes of a pseudo-terminal's read that say there may be more

#: Linux; what fcntl calls F_SETPIPE_SZ.
_SET_PIPE_SIZE = 1031

#: Where there is no room, the command need not know: plain output would have failed it.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Log(Protocol):
    def write(self, data: memoryview) -> None:
        """Keep what was printed. Never raises."""


class OutputTee:
    """One place that the command prints to: `numbers` of its descriptors (1, 2 or both) lead there; we read `source` and write `target`."""

    def __init__(self, descriptor: int) -> None:
        self.descriptors, self.target = [descriptor], descriptor
        self.tty = os.isatty(descriptor)
        self.target_lost = False  # the target takes no more; what comes is only kept
        self.source, self.child_end = self._terminal() if self.tty else self._pipe()
        self._buffer = memoryview(bytearray(CHUNK))

    def _pipe(self) -> tuple[int, int]:
        source, child_end = os.pipe()
        if sys.platform == "linux":
            import fcntl

            try:
                fcntl.fcntl(source, _SET_PIPE_SIZE, PIPE_SIZE)
            except OSError:  # above what this user may have
                pass
        return source, child_end

    def _terminal(self) -> tuple[int, int]:
        import termios

        source, child_end = os.openpty()
        settings = termios.tcgetattr(self.target)
        settings[1] &= ~termios.OPOST  # the real terminal does that; the log shall hold what was written
        termios.tcsetattr(child_end, termios.TCSANOW, settings)
        self.child_end = child_end
        self.resize()
        return source, child_end

    def resize(self) -> None:
        """Give the pseudo-terminal the size of the terminal."""
        import termios

        try:
            termios.tcsetwinsize(self.source if hasattr(self, "source") else self.child_end, termios.tcgetwinsize(self.target))
        except (OSError, termios.error):
            pass

    def forward(self, log: Log, warn: Callable[[str, Exception], None]) -> bool:
        """Hand on what there is to read. False where nothing will come any more, or where nobody wants it: the command shall notice."""
        size = self._read()
        if not size:
            return False
        data = self._buffer[:size]
        log.write(data)
        if not self.target_lost:
            try:
                write_all(self.target, data)
            except OSError as error:
                if error.errno not in _DISK_FULL:
                    return False
                self.target_lost = True
                warn("run_output_lost", error)
        return True

    def _read(self) -> int:
        """How much was read; 0 at the end. A pseudo-terminal gives 4 KiB at once, so more is asked for as long as there is some."""
        try:
            size = os.readv(self.source, [self._buffer])
        except OSError:  # so ends a pseudo-terminal
            return 0
        if self.tty and size >= MORE_EXPECTED:
            os.set_blocking(self.source, False)
            try:
                while size < CHUNK - MORE_EXPECTED and (count := os.readv(self.source, [self._buffer[size:]])):
                    size += count
            except OSError:  # nothing now, or the end: the next read tells
                pass
            os.set_blocking(self.source, True)
        return size


def write_all(target: int, data: bytes | memoryview) -> None:
    """All of it, also where the descriptor was made not to block by somebody who shares it."""
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(target, remaining) :]
        except BlockingIOError:
            poller = select.poll()
            poller.register(target, select.POLLOUT)
            poller.poll()
