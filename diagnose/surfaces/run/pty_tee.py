"""Copies the output of a command to a log on its way to its target: through a pseudo-terminal for a terminal, else a pipe."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Callable
from typing import Protocol

PIPE_SIZE = 1 << 20  # bytes that a pipe holds, so that the command seldom waits
CHUNK = 1 << 18  # bytes copied at once; they stay in the processor's cache
MORE_EXPECTED = 1 << 10  # a read of a pseudo-terminal of so many bytes suggests that there is more

#: F_SETPIPE_SZ (Linux).
_SET_PIPE_SIZE = 1031

#: Errors of a full disk, which are kept from the command.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Log(Protocol):
    """Where the output is kept."""

    def write(self, data: memoryview) -> None:
        """Append output. Never raises."""


class OutputTee:
    """One target of the command's output. Its `descriptors` (1, 2 or both) are replaced by `child_end`; what arrives at `source` is
    written to `target` and the log."""

    def __init__(self, descriptor: int) -> None:
        self.descriptors, self.target = [descriptor], descriptor
        self.tty = os.isatty(descriptor)
        self.target_lost = False  # the target takes no more; output only goes to the log
        self.source, self.child_end = self._terminal() if self.tty else self._pipe()
        self._buffer = memoryview(bytearray(CHUNK))

    def _pipe(self) -> tuple[int, int]:
        source, child_end = os.pipe()
        if sys.platform == "linux":
            import fcntl

            try:
                fcntl.fcntl(source, _SET_PIPE_SIZE, PIPE_SIZE)
            except OSError:  # above the limit of this user
                pass
        return source, child_end

    def _terminal(self) -> tuple[int, int]:
        import termios

        source, child_end = os.openpty()
        settings = termios.tcgetattr(self.target)
        settings[1] &= ~termios.OPOST  # the real terminal processes output; the log holds what was written
        termios.tcsetattr(child_end, termios.TCSANOW, settings)
        self.child_end = child_end
        self.resize()
        return source, child_end

    def resize(self) -> None:
        """Set the size of the pseudo-terminal to that of the terminal."""
        import termios

        try:
            termios.tcsetwinsize(self.source if hasattr(self, "source") else self.child_end, termios.tcgetwinsize(self.target))
        except (OSError, termios.error):
            pass

    def forward(self, log: Log, warn: Callable[[str, Exception], None]) -> bool:
        """Copy what can be read. False at the end of the output, or if the target is closed: then the command gets SIGPIPE as usual."""
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
        """Bytes read into the buffer; 0 at the end. A pseudo-terminal returns 4 KiB at most, so it is read until it is empty."""
        try:
            size = os.readv(self.source, [self._buffer])
        except OSError:  # the end of a pseudo-terminal
            return 0
        if self.tty and size >= MORE_EXPECTED:
            os.set_blocking(self.source, False)
            try:
                while size < CHUNK - MORE_EXPECTED and (count := os.readv(self.source, [self._buffer[size:]])):
                    size += count
            except OSError:  # empty, or the end: the next read shows which
                pass
            os.set_blocking(self.source, True)
        return size


def write_all(target: int, data: bytes | memoryview) -> None:
    """Write all data, also to a descriptor that another process has set to non-blocking."""
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(target, remaining) :]
        except BlockingIOError:
            poller = select.poll()
            poller.register(target, select.POLLOUT)
            poller.poll()
