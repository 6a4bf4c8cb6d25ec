"""Inputs of any form (text, file, pipe, archive member) as streams of UTF-8 bytes."""

from __future__ import annotations

import codecs
import errno
import io
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from diagnose.errors import UserError, user_error
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SAMPLE = 64 << 10
BUFFER = 1 << 20
PATIENCE = 10.0  # seconds to wait for a writer of a named pipe


class Reader(Protocol):
    """What a stream has to offer."""

    def readinto(self, target: memoryview, /) -> int | None:
        """Read into the target; returns the number of bytes, 0 at the end."""


class Label(NamedTuple):
    """The process that wrote a file, as the file's path names it; None or "" where unknown. Attempts count from 1."""

    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    host: str = ""
    attempt: int | None = None


@dataclass(slots=True)
class Source:
    """An input: a text (`data`), a file (`path`), an open binary file (`handle`), or one that `opener` opens on demand.

    `name`: its name in the report; `place`: its path inside its folder or archive.
    """

    name: str
    data: bytes | None = None
    path: Path | None = None
    handle: BinaryIO | None = None
    opener: Callable[[], BinaryIO] | None = None
    place: str = ""
    label: Label = field(default_factory=Label)
    is_text: bool = False  # it was passed as `str`: never unpacked

    @classmethod
    def text(cls, text: str | bytes, name: str = "text") -> Source:
        return (
            cls(name, data=text, is_text=False)
            if isinstance(text, bytes)
            else cls(name, data=text.encode("utf-8", "surrogateescape"), is_text=True)
        )

    @classmethod
    def file(cls, path: Path, name: str = "") -> Source:
        return cls(name or str(path), path=path)

    @classmethod
    def stream(cls, handle: BinaryIO, name: str = "-") -> Source:
        """An open binary file; the caller keeps it open."""
        return cls(name, handle=handle)

    def open(self) -> BinaryIO:
        """Open the input for reading from its start. Raises UserError if it cannot be opened."""
        if self.data is not None:
            return io.BytesIO(self.data)
        try:
            handle = open_path(self.path, self.name) if self.path is not None else self.opener() if self.opener is not None else self.handle
            if handle is None:
                raise TypeError("a source has a text, a path or an open file")
            handle.readable()
            if handle is self.handle and _is_endless(handle):
                raise user_error("is_a_device", where=self.name, hint="check_the_path")
        except FileNotFoundError as error:
            raise user_error("no_such_file", where=self.name, hint="check_the_path") from error
        except IsADirectoryError as error:
            raise user_error("is_a_folder", where=self.name, hint="name_a_file") from error
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path, a closed file
            raise self.unreadable(error) from error
        return handle

    def read(self, limit: int = 64 << 20) -> bytes:
        """Read up to `limit` bytes. Raises UserError if the input cannot be read."""
        handle = self.open()
        try:
            return read_up_to(handle, limit)
        except OSError as error:
            raise self.unreadable(error) from error
        finally:
            self.close(handle)

    def close(self, handle: BinaryIO) -> None:
        """Close a file that `open` returned, unless it is the caller's own."""
        if handle is not self.handle:
            handle.close()

    def unreadable(self, error: Exception) -> UserError:
        reason = getattr(error, "strerror", None) or str(error)
        return user_error("cannot_read", where=self.name, hint="check_permissions", reason=reason)


def _is_endless(handle: BinaryIO) -> bool:
    """Whether a program's input is a device other than a terminal and /dev/null: /dev/zero has no end."""
    try:
        status = os.fstat(handle.fileno())
        return stat.S_ISCHR(status.st_mode) and not handle.isatty() and status.st_rdev != Path(os.devnull).stat().st_rdev
    except (AttributeError, OSError, ValueError):  # no file of the system
        return False


def open_path(path: Path, name: str) -> BinaryIO:
    """Open a file that a person names: a regular one, or a named pipe once it has a writer. Nothing here waits for ever.

    Raises UserError, which calls it `name`, for devices and silent pipes, IsADirectoryError for folders, OSError for what cannot be opened.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISCHR(mode):  # /dev/zero has no end
        raise user_error("is_a_device", where=name, hint="check_the_path")
    # without O_NONBLOCK a pipe waits for its writer, and files such as /proc/kmsg for the next line
    handle = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)), "rb", buffering=0)
    if stat.S_ISFIFO(mode):
        import select  # few inputs are pipes

        if not select.select([handle], [], [], PATIENCE)[0]:
            handle.close()
            raise user_error("silent_pipe", where=name, hint="start_its_writer")
        os.set_blocking(handle.fileno(), True)
    return cast("BinaryIO", handle)


def read_up_to(handle: BinaryIO, limit: int) -> bytes:
    """The first `limit` bytes of a file that may return fewer at each read."""
    chunks = []
    while limit and (chunk := handle.read(min(limit, BUFFER))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def notes_of(file: object) -> tuple[str, ...]:
    """Codes of problems met while reading a file so far: "damaged", "expands"."""
    notes: tuple[str, ...] = getattr(file, "notes", ())
    return notes


def size_of(file: BinaryIO) -> int | None:
    """Bytes left to read in a regular file; None for pipes and archive members, whose size is unknown until the end."""
    try:
        if isinstance(file, io.BytesIO):
            return file.getbuffer().nbytes - file.tell()
        if not isinstance(file, (io.FileIO, io.BufferedReader)):
            return None
        status = os.fstat(file.fileno())
    except (OSError, ValueError):
        return None
    return status.st_size - file.tell() if stat.S_ISREG(status.st_mode) else None


def as_utf8(file: BinaryIO) -> tuple[Reader, str]:
    """(reader of UTF-8 bytes, name of the original encoding). Recodes UTF-16, which PowerShell's redirection writes, and passes on anything
    else."""
    head = file.read(SAMPLE) or b""
    while len(head) < SAMPLE and (chunk := file.read(SAMPLE - len(head))):
        head += chunk
    reader = PrefixedFile(head, file)
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
    if not encoding and len(head) > 16 and not any(head[1:64:2]) and not any(head[1::2]) and head.count(0) < len(head) * 0.6:
        encoding = "utf-16-le"
    if encoding:
        return _Recoded(reader, encoding), encoding
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        is_cut = len(head) == SAMPLE and error.start >= SAMPLE - 3  # a character that the sample cuts
        return reader, "utf-8" if is_cut else "unknown"
    return reader, "utf-8"


class PrefixedFile(io.RawIOBase):
    """A file preceded by the bytes that were already read from it."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head = head
        self._file = file

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self._file)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int | None:
        if not self._head:
            return cast("io.RawIOBase", self._file).readinto(target)
        count = min(len(target), len(self._head))
        target[:count] = self._head[:count]
        self._head = self._head[count:]
        return count


class _Recoded:
    """Recodes a reader of another encoding to UTF-8."""

    def __init__(self, reader: Reader, encoding: str) -> None:
        self._reader = reader
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._decoded = b""
        self._raw = bytearray(SAMPLE)

    def readinto(self, target: memoryview, /) -> int | None:
        while not self._decoded:
            count = self._reader.readinto(memoryview(self._raw))
            self._decoded = self._decoder.decode(self._raw[: count or 0], final=not count).encode("utf-8", "replace")
            if not count:
                break
        count = min(len(target), len(self._decoded))
        target[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count
