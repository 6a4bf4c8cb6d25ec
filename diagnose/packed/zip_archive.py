"""The files of a zip."""

from __future__ import annotations

import io
import struct
from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO, cast

from diagnose.packed.streams import Unpacked
from diagnose.packed.tar_archive import inside
from diagnose.packed.unpack_limits import DIRECTORY, MEMBERS, SPOOLED, Allowance, trouble
from diagnose.scan.source import BUFFER, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.errors import UserError


class _Seekable(io.RawIOBase):
    """A file from which nobody takes more than a zip's directory at once."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened

    def read(self, size: int = -1, /) -> bytes:
        part = self._opened.read(min(size, DIRECTORY + 1) if size >= 0 else DIRECTORY + 1) or b""
        if len(part) > DIRECTORY:
            raise ValueError("a directory of this size")
        return part

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._opened.seek(offset, whence)

    def tell(self) -> int:
        return self._opened.tell()

    def seekable(self) -> bool:
        return True


def members(source: Source, opened: BinaryIO, allowance: Allowance) -> Iterator[Source | UserError]:
    import zipfile

    if not opened.seekable():
        opened = _put_aside(source, opened)
    try:
        archive = zipfile.ZipFile(cast("BinaryIO", _Seekable(opened)))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        yield trouble("odd_archive", source.name, hint="copy_again")
        return
    with closing(archive):
        infos = [info for info in archive.infolist() if not info.is_dir()]
        if len(infos) > MEMBERS:
            yield trouble("too_many", source.name, hint="name_the_log", most=MEMBERS)
        locked = [info.filename for info in infos if info.flag_bits & 1]
        if locked:
            yield trouble("encrypted", f"{source.name}/{locked[0]}", count=len(locked))
        for info in infos[:MEMBERS]:
            if info.flag_bits & 1:
                continue
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                yield trouble("unknown_packing", f"{source.name}/{info.filename}", form=f"zip method {info.compress_type}")
                continue
            try:
                member = archive.open(info)
            except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error, EOFError):
                yield trouble("nothing_left", f"{source.name}/{info.filename}", hint="copy_again")
                continue
            with closing(member):
                size = max(info.compress_size, 1)
                yield inside(source, info.filename, Unpacked(member.read, lambda size=size: size, allowance))  # type: ignore[misc]


def _put_aside(source: Source, opened: BinaryIO) -> BinaryIO:
    """A pipe's zip in a file without a name."""
    import tempfile

    aside = tempfile.TemporaryFile()  # noqa: SIM115 - its last reader closes it
    left = SPOOLED
    while part := opened.read(BUFFER):
        left -= len(part)
        if left < 0:
            aside.close()
            raise trouble("too_large_a_pipe", source.name, hint="give_the_file")
        aside.write(part)
    aside.seek(0)
    return cast("BinaryIO", aside)
