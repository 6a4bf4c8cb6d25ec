"""The files of a tar, one after the other as it is read, without a way back."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from diagnose.packed.unpack_limits import HEADER, MEMBERS, trouble
from diagnose.scan.source import BUFFER, Source, notes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from tarfile import TarInfo

    from diagnose.errors import UserError

BLOCK = 512
_EXTENDED = (b"x", b"X", b"L", b"K", b"g")


def is_tar(head: bytes) -> bool:
    """Whether these bytes are a header of a tar: its checksum holds."""
    if len(head) < BLOCK or not head[0]:
        return False
    written = head[148:156].strip(b" \0")
    return written.isdigit() and len(written) < 8 and _octal(written) == sum(head[:148]) + sum(head[156:512]) + 8 * 32


def _octal(digits: bytes) -> int:
    try:
        return int(digits, 8)
    except ValueError:
        return -1


class _Member(io.RawIOBase):
    """One file inside a tar, as long as its header says; its end is the archive's where that is cut off."""

    def __init__(self, archive: BinaryIO, size: int) -> None:
        self._archive, self.left = archive, size
        self._padding = -size % BLOCK
        self._cut = False

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self._archive) or (("damaged",) if self._cut else ())

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        part = self._archive.read(min(len(target), self.left, BUFFER)) if self.left else b""
        self._cut = self._cut or (not part and self.left > 0)
        self.left -= len(part)
        target[: len(part)] = part
        return len(part)

    def skip(self) -> bool:
        """Pass over what was not read, and the padding; False where the archive ends before."""
        while self.left:
            if not self.read(BUFFER):
                return False
        _exactly(self._archive, self._padding)
        return True


def members(source: Source, opened: BinaryIO) -> Iterator[Source | UserError]:
    """The regular files of a tar, in their order; nothing is ever written where a name says."""
    said: dict[str, str] = {}  # by an extended header, of the member after it
    for number in range(4 * MEMBERS):
        header = _exactly(opened, BLOCK)
        if not header.strip(b"\0"):
            if len(header) < BLOCK and number:
                yield _ended(source, opened)
            return
        about = _about(header)
        if about is None or (about.type in _EXTENDED and about.size > HEADER):
            yield _ended(source, opened) if about is None else trouble("odd_archive", source.name)
            return
        if about.type in _EXTENDED:
            said |= _extended(about, _exactly(opened, about.size + -about.size % BLOCK)[: about.size])
            continue
        name, size = said.get("path") or about.name, _count(said.get("size", ""), about.size)
        said = {}
        member = _Member(opened, size if about.isreg() or about.type == b"S" else 0)
        if about.type == b"S":
            yield trouble("sparse", f"{source.name}/{name}")
        elif about.isreg():
            yield inside(source, name, member)
        told = bool(member.notes)
        if not member.skip():
            if not told:
                yield _ended(source, opened)
            return
    yield trouble("too_many", source.name, hint="name_the_log", most=MEMBERS)


def _ended(source: Source, opened: BinaryIO) -> UserError:
    """What is to be said of a tar that ends before its end."""
    return trouble("expands" if "expands" in notes_of(opened) else "cut_off", source.name, hint="copy_again")


def _about(header: bytes) -> TarInfo | None:
    import tarfile

    try:
        about = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
    except (tarfile.TarError, ValueError):
        return None
    return about if about.size >= 0 else None


def _exactly(opened: BinaryIO, size: int) -> bytes:
    """So many bytes, fewer only at the end."""
    parts = bytearray()
    while len(parts) < size and (part := opened.read(size - len(parts))):
        parts += part
    return bytes(parts)


def _extended(about: TarInfo, said: bytes) -> dict[str, str]:
    """What an extended header says of the next member: a long name, or records of a length, a blank, a key, a sign and a value."""
    if about.type == b"L":
        return {"path": said.rstrip(b"\0").decode("utf-8", "replace")}
    found: dict[str, str] = {}
    while said and about.type in (b"x", b"X"):
        length, _, _ = said.partition(b" ")
        end = int(length) if length.isdigit() and len(length) < 8 else 0
        if end <= len(length):
            break
        key, _, value = said[len(length) + 1 : end].rstrip(b"\n").partition(b"=")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        said = said[end:]
    return found


def _count(digits: str, otherwise: int) -> int:
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else otherwise


def inside(source: Source, place: str, opened: io.RawIOBase) -> Source:
    """A file of an archive. Its name is a name, wherever it would lead."""
    return Source(f"{source.name}/{place.lstrip('./') or place}", handle=cast("BinaryIO", opened), place=place)
