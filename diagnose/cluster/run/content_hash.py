"""Hashes the bytes of a job's inputs as they are read."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.scan.source import Source, notes_of

try:
    from isal.isal_zlib import adler32, crc32
except ImportError:
    from zlib import adler32, crc32

if TYPE_CHECKING:
    from diagnose.cluster.find.job import Job


class ContentHash:
    """Number and hash of the bytes read of a job, which distinguish a changed job from one whose files were only touched.

    Of logs the length and two checksums are hashed (a cryptographic hash of every byte takes as long as the whole search for failures); of
    configs and names every byte.
    """

    def __init__(self, job: Job) -> None:
        self._identity = repr((job.logs, job.configs, job.about)).encode(errors="surrogatepass")
        self._checksums = 0, 1
        self.bytes = 0
        self.truncated: list[str] = []  # inputs that ended before the size that they had when they were opened

    def track(self, source: Source) -> Source:
        """The same input, hashed as it is read."""
        if source.data is not None:
            self.update(source.data)
            return source
        if source.path is not None and source.path.is_dir():
            return source
        return replace(source, path=None, handle=None, opener=lambda: self._open_tracked(source))

    def update(self, data: bytes | memoryview) -> None:
        self._checksums = crc32(data, self._checksums[0]), adler32(data, self._checksums[1])
        self.bytes += len(data)

    def hexdigest(self, configs: Iterable[ConfigSource]) -> str:
        """The hash of everything read, including configs."""
        digest = hashlib.sha256(self._identity + repr((self._checksums, self.bytes)).encode())
        for config in configs:
            digest.update(config.name.encode(errors="surrogatepass"))
            digest.update(config.data)
        return digest.hexdigest()[:32]

    def _open_tracked(self, source: Source) -> BinaryIO:
        file = source.open()
        if isinstance(file, io.FileIO):  # stays a FileIO: some readers ask for its size
            with file:
                return cast("BinaryIO", _TrackedFile(os.dup(file.fileno()), self, source.name))
        return cast("BinaryIO", _TrackedStream(file, self))


class _TrackedFile(io.FileIO):
    """A local file that hashes its bytes as they are read."""

    def __init__(self, descriptor: int, content: ContentHash, source_name: str) -> None:
        super().__init__(descriptor, "rb")
        self._content, self._source_name = content, source_name
        self._size = os.fstat(descriptor).st_size

    def readinto(self, target: Any, /) -> int:
        count = super().readinto(target) or 0
        if count:
            self._content.update(memoryview(target)[:count])
        elif len(target) and self.tell() < self._size:
            self._content.truncated.append(self._source_name)
            self._size = 0
        return count

    def read(self, size: int | None = -1, /) -> bytes:
        data = (super().readall() if size is None or size < 0 else super().read(size)) or b""
        self._content.update(data)
        return data


class _TrackedStream(io.RawIOBase):
    """Any other input, hashed as it is read."""

    def __init__(self, file: BinaryIO, content: ContentHash) -> None:
        self._file, self._content = file, content

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self._file)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, target: Any, /) -> int:
        data = self._file.read(len(target)) or b""
        target[: len(data)] = data
        self._content.update(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
