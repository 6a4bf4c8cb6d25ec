"""Something to read, and its bytes as UTF-8, from the first to the last, without a way back."""

from __future__ import annotations

import codecs
import io
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from diagnose.errors import UserError, user_error
from diagnose.record import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

SAMPLE = 64 << 10
BUFFER = 1 << 20
PATIENCE = 10.0  # seconds that a pipe without a writer is waited for


class Reader(Protocol):
    def readinto(self, target: memoryview, /) -> int | None:
        """Fill as much of the target as there is; 0 at the end."""


@record
class Label:
    """What a file's place says of the process that wrote it: None and empty where it says nothing. Attempts count from 1."""

    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    host: str = ""
    attempt: int | None = None


@record
class Source:
    """Something to read: a text, a file, an open binary file, or one that `opener` gives when its turn comes.

    `name` is how the report calls it, `place` the path that its folder or archive has it under.
    """

    name: str
    data: bytes | None = None
    path: Path | None = None
    opened: BinaryIO | None = None
    opener: Callable[[], BinaryIO] | None = None
    place: str = ""
    label: Label = Label()
    is_text: bool = False  # it came as characters: nothing in it is unpacked

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
    def stream(cls, opened: BinaryIO, name: str = "-") -> Source:
        """An open binary file; it is read and left open."""
        return cls(name, opened=opened)

    def open(self) -> BinaryIO:
        """The content as a binary file, at its start; raises UserError where there is none to read."""
        if self.data is not None:
            return io.BytesIO(self.data)
        try:
            opened = self._path(self.path) if self.path is not None else self.opener() if self.opener is not None else self.opened
            assert opened is not None, "a source has a text, a path or an open file"
            opened.readable()
        except FileNotFoundError as error:
            raise user_error("no_such_file", where=self.name, hint="check_the_path") from error
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path, a closed file
            raise self.unreadable(error) from error
        return opened

    def _path(self, path: Path) -> BinaryIO:
        """A file as it is; a named pipe once somebody writes into it."""
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise user_error("is_a_folder", where=self.name, hint="name_a_file")
        if stat.S_ISCHR(mode):  # /dev/zero has no end
            raise user_error("is_a_device", where=self.name, hint="check_the_path")
        if not stat.S_ISFIFO(mode):
            return cast("BinaryIO", path.open("rb", buffering=0))
        import select

        opened = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
        if not select.select([opened], [], [], PATIENCE)[0]:
            opened.close()
            raise user_error("silent_pipe", where=self.name, hint="start_its_writer")
        os.set_blocking(opened.fileno(), True)
        return cast("BinaryIO", opened)

    def read(self, limit: int = 64 << 20) -> bytes:
        """The first `limit` bytes; raises UserError where there is nothing to read."""
        opened = self.open()
        parts, left = [], limit
        try:
            while left and (part := opened.read(min(left, BUFFER))):
                parts.append(part)
                left -= len(part)
        except OSError as error:
            raise self.unreadable(error) from error
        finally:
            self.close(opened)
        return b"".join(parts)

    def close(self, opened: BinaryIO) -> None:
        """Close what `open` gave, unless it is the stream that was given."""
        if opened is not self.opened:
            opened.close()

    def unreadable(self, error: Exception) -> UserError:
        reason = getattr(error, "strerror", None) or str(error)
        return user_error("cannot_read", where=self.name, hint="check_permissions", reason=reason)


def notes_of(opened: object) -> tuple[str, ...]:
    """What reading an input has shown so far, as short words: an archive that is damaged, or expands without end."""
    notes: tuple[str, ...] = getattr(opened, "notes", ())
    return notes


def size_of(opened: BinaryIO) -> int | None:
    """The bytes that a regular file has now, None for what only its end tells (a pipe, an archive's member)."""
    try:
        if isinstance(opened, io.BytesIO):
            return opened.getbuffer().nbytes - opened.tell()
        if not isinstance(opened, (io.FileIO, io.BufferedReader)):
            return None
        state = os.fstat(opened.fileno())
    except (OSError, ValueError):
        return None
    return state.st_size - opened.tell() if stat.S_ISREG(state.st_mode) else None


def as_utf8(opened: BinaryIO) -> tuple[Reader, str]:
    """The input as UTF-8 bytes, and what it was. UTF-16 (PowerShell redirection) is rewritten; all else stays as it is."""
    head = opened.read(SAMPLE) or b""
    while len(head) < SAMPLE and (more := opened.read(SAMPLE - len(head))):
        head += more
    reader = Resumed(head, opened)
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
    if not encoding and len(head) > 16 and not any(head[1:64:2]) and not any(head[1::2]) and head.count(0) < len(head) * 0.6:
        encoding = "utf-16-le"
    if encoding:
        return _Recoded(reader, encoding), encoding
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        cut = len(head) == SAMPLE and error.start >= SAMPLE - 3  # a character that the sample cuts
        return reader, "utf-8" if cut else "unknown"
    return reader, "utf-8"


class Resumed(io.RawIOBase):
    """A file whose first bytes were read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self._rest)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int | None:
        if not self._head:
            return cast("io.RawIOBase", self._rest).readinto(target)
        count = min(len(target), len(self._head))
        target[:count] = self._head[:count]
        self._head = self._head[count:]
        return count


class _Recoded:
    """A file of another encoding, as UTF-8."""

    def __init__(self, reader: Reader, encoding: str) -> None:
        self._reader = reader
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""
        self._raw = bytearray(SAMPLE)

    def readinto(self, target: memoryview, /) -> int | None:
        while not self._ready:
            count = self._reader.readinto(memoryview(self._raw))
            self._ready = self._decoder.decode(self._raw[: count or 0], final=not count).encode("utf-8", "replace")
            if not count:
                break
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
