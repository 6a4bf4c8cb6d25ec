"""Reader of zip archives; one from a pipe is spooled to disk first."""

from __future__ import annotations

import io
import struct
from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO, cast

from diagnose.packed.streams import DecompressedFile
from diagnose.packed.tar_archive import member_source
from diagnose.packed.unpack_limits import DIRECTORY, MEMBERS, SPOOLED, Allowance, unpack_error
from diagnose.scan.source import BUFFER, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.errors import UserError


class _LimitedFile(io.RawIOBase):
    """A file that refuses reads larger than the largest zip directory accepted, as a forged header would ask for."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        chunk = self._file.read(min(size, DIRECTORY + 1) if size >= 0 else DIRECTORY + 1) or b""
        if len(chunk) > DIRECTORY:
            raise ValueError("a directory of this size")
        return chunk

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


def members(source: Source, file: BinaryIO, allowance: Allowance) -> Iterator[Source | UserError]:
    import zipfile

    if not file.seekable():
        file = _spool(source, file)
    try:
        archive = zipfile.ZipFile(cast("BinaryIO", _LimitedFile(file)))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        yield unpack_error("odd_archive", source.name, hint="copy_again")
        return
    with closing(archive):
        infos = [info for info in archive.infolist() if not info.is_dir()]
        if len(infos) > MEMBERS:
            yield unpack_error("too_many", source.name, hint="name_the_log", most=MEMBERS)
        encrypted = [info.filename for info in infos if info.flag_bits & 1]
        if encrypted:
            yield unpack_error("encrypted", f"{source.name}/{encrypted[0]}", count=len(encrypted))
        for info in infos[:MEMBERS]:
            if info.flag_bits & 1:
                continue
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                yield unpack_error("unknown_packing", f"{source.name}/{info.filename}", form=f"zip method {info.compress_type}")
                continue
            try:
                member = archive.open(info)
            except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error, EOFError):
                yield unpack_error("nothing_left", f"{source.name}/{info.filename}", hint="copy_again")
                continue
            with closing(member):
                size = max(info.compress_size, 1)
                yield member_source(source, info.filename, DecompressedFile(member.read, lambda size=size: size, allowance))  # type: ignore[misc]


def _spool(source: Source, file: BinaryIO) -> BinaryIO:
    """Copy a zip from a pipe to an anonymous temporary file. Raises UserError if it is too large."""
    import tempfile

    spool = tempfile.TemporaryFile()  # noqa: SIM115 - its last reader closes it
    remaining = SPOOLED
    while chunk := file.read(BUFFER):
        remaining -= len(chunk)
        if remaining < 0:
            spool.close()
            raise unpack_error("too_large_a_pipe", source.name, hint="give_the_file")
        spool.write(chunk)
    spool.seek(0)
    return cast("BinaryIO", spool)
