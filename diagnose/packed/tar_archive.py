"""Streaming reader of tar archives: members in order, from pipes too."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from diagnose.packed.unpack_limits import HEADER, MEMBERS, unpack_error
from diagnose.scan.source import BUFFER, Source, notes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from tarfile import TarInfo

    from diagnose.errors import UserError

BLOCK = 512
_EXTENDED = (b"x", b"X", b"L", b"K", b"g")


def is_tar(head: bytes) -> bool:
    """Whether these bytes are a tar header, by its checksum."""
    if len(head) < BLOCK or not head[0]:
        return False
    checksum = head[148:156].strip(b" \0")
    return checksum.isdigit() and len(checksum) < 8 and _octal(checksum) == sum(head[:148]) + sum(head[156:512]) + 8 * 32


def _octal(digits: bytes) -> int:
    try:
        return int(digits, 8)
    except ValueError:
        return -1


class _TarMember(io.RawIOBase):
    """A file inside a tar, of the size in its header, or shorter where the archive is cut off."""

    def __init__(self, archive: BinaryIO, size: int) -> None:
        self._archive, self.remaining = archive, size
        self._padding = -size % BLOCK
        self._cut = False

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self._archive) or (("damaged",) if self._cut else ())

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        chunk = self._archive.read(min(len(target), self.remaining, BUFFER)) if self.remaining else b""
        self._cut = self._cut or (not chunk and self.remaining > 0)
        self.remaining -= len(chunk)
        target[: len(chunk)] = chunk
        return len(chunk)

    def skip(self) -> bool:
        """Skip what was not read and the padding; False if the archive ends before."""
        while self.remaining:
            if not self.read(BUFFER):
                return False
        _read_exactly(self._archive, self._padding)
        return True


def members(source: Source, file: BinaryIO) -> Iterator[Source | UserError]:
    """Yield the regular files of a tar in order, and an error for each that cannot be read. Nothing is extracted to disk."""
    overrides: dict[str, str] = {}  # by an extended header, of the member after it
    for number in range(4 * MEMBERS):
        header = _read_exactly(file, BLOCK)
        if not header.strip(b"\0"):
            if len(header) < BLOCK and number:
                yield _cut_off_error(source, file)
            return
        header_info = _parse_header(header)
        if header_info is None or (header_info.type in _EXTENDED and header_info.size > HEADER):
            yield _cut_off_error(source, file) if header_info is None else unpack_error("odd_archive", source.name)
            return
        if header_info.type in _EXTENDED:
            overrides |= _parse_extended(header_info, _read_exactly(file, header_info.size + -header_info.size % BLOCK)[: header_info.size])
            continue
        name, size = overrides.get("path") or header_info.name, _parse_size(overrides.get("size", ""), header_info.size)
        overrides = {}
        member = _TarMember(file, size if header_info.isreg() or header_info.type == b"S" else 0)
        if header_info.type == b"S":
            yield unpack_error("sparse", f"{source.name}/{name}")
        elif header_info.isreg():
            yield member_source(source, name, member)
        was_reported = bool(member.notes)
        if not member.skip():
            if not was_reported:
                yield _cut_off_error(source, file)
            return
    yield unpack_error("too_many", source.name, hint="name_the_log", most=MEMBERS)


def _cut_off_error(source: Source, file: BinaryIO) -> UserError:
    """The error about a tar that ends early."""
    return unpack_error("expands" if "expands" in notes_of(file) else "cut_off", source.name, hint="copy_again")


def _parse_header(header: bytes) -> TarInfo | None:
    import tarfile

    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
    except (tarfile.TarError, ValueError):
        return None
    return info if info.size >= 0 else None


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, fewer only at the end of the file."""
    data = bytearray()
    while len(data) < size and (chunk := file.read(size - len(data))):
        data += chunk
    return bytes(data)


def _parse_extended(info: TarInfo, data: bytes) -> dict[str, str]:
    """Fields that an extended header sets for the next member: a GNU long name, or pax records ("LENGTH KEY=VALUE")."""
    if info.type == b"L":
        return {"path": data.rstrip(b"\0").decode("utf-8", "replace")}
    fields: dict[str, str] = {}
    while data and info.type in (b"x", b"X"):
        length, _, _ = data.partition(b" ")
        end = int(length) if length.isdigit() and len(length) < 8 else 0
        if end <= len(length):
            break
        key, _, value = data[len(length) + 1 : end].rstrip(b"\n").partition(b"=")
        fields[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        data = data[end:]
    return fields


def _parse_size(digits: str, default: int) -> int:
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else default


def member_source(source: Source, path: str, file: io.RawIOBase) -> Source:
    """A file of an archive as a Source. Its path is used as a name only, never opened."""
    return Source(f"{source.name}/{path.lstrip('./') or path}", handle=cast("BinaryIO", file), place=path)
