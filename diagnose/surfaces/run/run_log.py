"""The log of `run`: a file opened before the command starts, else a buffer in memory. Its errors never reach the command."""

# pathlib takes as long to import as starting a command may
# ruff: noqa: PTH103, PTH108, PTH118, PTH120, PTH122, PTH123

from __future__ import annotations

import contextlib
import os
import stat
import time

HEAD, TAIL = 1 << 20, 8 << 20  # bytes kept in memory of the beginning and the end, without a file


class RunLog:
    """The output of a command. `path` is its file (None: in memory only), `error` why a requested or default path was not used."""

    def __init__(self, requested: str | None, rank: int | None = None) -> None:
        self.path: str | None = None
        self.error: tuple[str, OSError] | None = None
        self.write_error: OSError | None = None  # the file took no more during the run
        self._file = -1
        self._head, self._tail, self._tail_size, self._dropped = bytearray(), [b""], 0, 0
        self._last = b"\n"
        self.started = time.time()
        self._is_requested = requested is not None
        for path in [path_with_rank(requested, rank)] if requested else default_paths(rank):
            try:
                self._file, self.path = open_log(path, bool(requested)), path
                self.error = None
                break
            except OSError as error:
                self.error = (path, error)

    def write(self, data: bytes | memoryview) -> None:
        """Append to the file, or to memory once the file takes no more."""
        self._last = bytes(data[-1:]) or self._last
        remaining = memoryview(data)
        while remaining and self._file >= 0:
            try:
                remaining = remaining[os.write(self._file, remaining) :]
            except OSError as error:
                self.write_error = error
                self.error = (str(self.path), error)
                self._file = -1
        if remaining:
            self._buffer(bytes(remaining))

    def note(self, line: str) -> None:
        """Append a line of oomdoctor's own."""
        self.write(("" if self._last == b"\n" else "\n").encode() + line.encode() + b"\n")

    def discard(self) -> None:
        """Remove the default file of a command that did not start or came to a good end; one that was asked for stays."""
        if self.path and not self._is_requested:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def _buffer(self, data: bytes) -> None:
        room = HEAD - len(self._head)
        self._head += data[:room]
        if data := data[max(room, 0) :]:
            self._tail.append(data)
            self._tail_size += len(data)
            if self._tail_size > 2 * TAIL:
                tail = b"".join(self._tail)
                self._dropped += len(tail) - TAIL
                self._tail, self._tail_size = [tail[-TAIL:]], TAIL

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return os.path.dirname(self.path or "") or "."

    @property
    def buffered(self) -> bytes:
        """The output kept in memory."""
        return bytes(self._head) + (b"\n" if self._dropped else b"") + b"".join(self._tail)


def open_log(path: str, requested: bool) -> int:
    """Open a log file for appending; a `requested` one may exist and is emptied. Raises OSError unless it is a regular file that the
    output does not go to already."""
    if requested and (folder := os.path.dirname(path)):
        os.makedirs(folder, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | (0 if requested else os.O_EXCL), 0o666)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(22, "not a regular file")
        for descriptor in (1, 2):
            try:
                if os.path.samestat(os.fstat(descriptor), status):
                    raise FileExistsError(17, "the output goes there already")
            except OSError as error:
                if isinstance(error, FileExistsError):
                    raise
        if status.st_size:
            truncate(file, path)
    except OSError:
        os.close(file)
        raise
    return file


def truncate(file: int, path: str) -> None:
    """Empty an open file. ext4 flushes a truncated file when it is next closed (auto_da_alloc in ext4(5)): close a second descriptor
    now, while it is empty, rather than after the command has ended.
    """
    os.ftruncate(file, 0)
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def path_with_rank(path: str, rank: int | None) -> str:
    """The path with the rank before its suffix: train.rank3.log."""
    if rank is None:
        return path
    stem, end = os.path.splitext(path)
    return f"{stem}.rank{rank}{end}"


def default_paths(rank: int | None) -> list[str]:
    """Default paths in order: in the current folder, else in that of temporary files."""
    name = path_with_rank(f"oomdoctor-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log", rank)
    return [name, os.path.join(os.environ.get("TMPDIR") or "/tmp", name)]  # noqa: S108 - created exclusively


def oom_kill_count() -> int | None:
    """The counter `oom_kill` of this process's control group (v2 or v1); None if it cannot be read."""
    try:
        with open("/proc/self/cgroup", encoding="ascii", errors="replace") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    for number, controllers, path in groups:
        if number == "0" and not controllers:
            paths = [f"/sys/fs/cgroup{path}/memory.events", "/sys/fs/cgroup/memory.events"]
        elif controllers == "memory":
            paths = [f"/sys/fs/cgroup/memory{path}/memory.oom_control", "/sys/fs/cgroup/memory/memory.oom_control"]
        else:
            continue
        for counter_path in paths:
            try:
                with open(counter_path, encoding="ascii") as file:
                    counters = dict(line.split(None, 1) for line in file if " " in line)
                return int(counters["oom_kill"])
            except (OSError, KeyError, ValueError):
                continue
    return None
