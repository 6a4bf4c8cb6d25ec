"""What was read of a job, counted and digested while it is read."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.record import replace
from diagnose.scan.source import Source, notes_of

try:
    from isal.isal_zlib import adler32, crc32
except ImportError:
    from zlib import adler32, crc32

if TYPE_CHECKING:
    from diagnose.cluster.find.job import Job


class Content:
    """The bytes of a job's inputs as they are read. A digest of them tells a changed job from one that was only touched: of logs their
    length and two checksums (a cryptographic hash takes as long as the whole search for failures), of configs and names every byte.
    """

    def __init__(self, job: Job) -> None:
        self._named = repr((job.logs, job.configs, job.about)).encode(errors="surrogatepass")
        self._sums = 0, 1
        self.bytes = 0
        self.short: list[str] = []  # inputs that ended before the size that they had when they were opened

    def counted(self, source: Source) -> Source:
        """The same input; what is read of it goes into the digest."""
        if source.data is not None:
            self.add(source.data)
            return source
        if source.path is not None and source.path.is_dir():
            return source
        return replace(source, path=None, handle=None, opener=lambda: self._watched(source))

    def add(self, data: Any) -> None:
        self._sums = crc32(data, self._sums[0]), adler32(data, self._sums[1])
        self.bytes += len(data)

    def digest(self, configs: Iterable[ConfigSource]) -> str:
        """The digest of all that was read, and of configs."""
        told = hashlib.sha256(self._named + repr((self._sums, self.bytes)).encode())
        for config in configs:
            told.update(config.name.encode(errors="surrogatepass"))
            told.update(config.data)
        return told.hexdigest()[:32]

    def _watched(self, source: Source) -> BinaryIO:
        opened = source.open()
        if isinstance(opened, io.FileIO):  # a file of its own kind, so that whoever asks for its size is told
            with opened:
                return cast("BinaryIO", _File(os.dup(opened.fileno()), self, source.name))
        return cast("BinaryIO", _Stream(opened, self))


class _File(io.FileIO):
    """A file whose bytes are counted as they are read."""

    def __init__(self, descriptor: int, total: Content, called: str) -> None:
        super().__init__(descriptor, "rb")
        self._total, self._called = total, called
        self._size = os.fstat(descriptor).st_size

    def readinto(self, target: Any, /) -> int:
        count = super().readinto(target) or 0
        if count:
            self._total.add(memoryview(target)[:count])
        elif len(target) and self.tell() < self._size:
            self._total.short.append(self._called)
            self._size = 0
        return count

    def read(self, size: int | None = -1, /) -> bytes:
        data = (super().readall() if size is None or size < 0 else super().read(size)) or b""
        self._total.add(data)
        return data


class _Stream(io.RawIOBase):
    """Any other input whose bytes are counted as they are read."""

    def __init__(self, opened: BinaryIO, total: Content) -> None:
        self._opened, self._total = opened, total

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self._opened)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._opened.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._opened.seek(offset, whence)

    def tell(self) -> int:
        return self._opened.tell()

    def readinto(self, target: Any, /) -> int:
        data = self._opened.read(len(target)) or b""
        target[: len(data)] = data
        self._total.add(data)
        return len(data)

    def close(self) -> None:
        self._opened.close()
        super().close()
