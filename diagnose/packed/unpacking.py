"""What is inside an input: compressed text, archives of logs, within limits. What a thing is, its first bytes say, never its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, cast

from diagnose.packed.unpack_limits import Allowance, trouble
from diagnose.record import replace
from diagnose.scan.source import PrefixedFile, Source, notes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.errors import UserError

__all__ = ["Allowance", "contents", "trouble"]

_HEAD = 512
_GZIP, _BZIP2, _XZ, _ZSTD, _ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK"
#: Packings that nothing here opens.
_OTHERS = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "rar", b"\x04\x22\x4d\x18": "lz4", b"\x1f\x9d": "compress"}


def contents(source: Source, allowance: Allowance, nested: bool = False) -> Iterator[Source | UserError]:
    """What an input holds, each to be read before the next is asked for: itself if it is plain or compressed text, else the
    files of the archive with their `place` in it, and a complaint for each thing that cannot be had.

    `nested`: it lies in an archive already, and a second one is not opened. Raises UserError where there is nothing to read.
    """
    opened = source.open()
    try:
        head, start = (b"", opened) if source.is_text else _peeked(opened, source)
        if _may_be_packed(head):
            yield from _unpacked(source, head, start, allowance, nested)
        else:
            yield _as_it_is(source, start)
    finally:
        source.close(opened)


def _may_be_packed(head: bytes) -> bool:
    """Whether it is worth a closer look: only then what unpacks is loaded."""
    return (
        head.startswith((_GZIP, _BZIP2, _XZ, _ZSTD, _ZIP, *_OTHERS))
        or head[1:4] == b"\x2a\x4d\x18"
        or (len(head) == _HEAD and b"\0" in head)
    )


def _unpacked(source: Source, head: bytes, start: BinaryIO, allowance: Allowance, nested: bool) -> Iterator[Source | UserError]:
    from diagnose.packed import streams, tar_archive

    form = streams.form_of(head)
    if form:
        head, start = _peeked(cast("BinaryIO", streams.expanded(form, start, source, allowance)), source)
    is_tar, is_zip = tar_archive.is_tar(head), head.startswith((b"PK\x03\x04", b"PK\x05\x06"))
    other = next((name for magic, name in _OTHERS.items() if head.startswith(magic)), "")
    if nested and (is_tar or is_zip):
        yield trouble("nested", source.name)
    elif is_tar:
        yield from tar_archive.members(source, start)
    elif is_zip and not form:
        from diagnose.packed import zip_archive

        yield from zip_archive.members(source, start, allowance)
    elif other or is_zip:
        yield trouble("unknown_packing", source.name, form=other or "zip")
    elif form and not head and notes_of(start):
        yield trouble("nothing_left", source.name, hint="copy_again")
    else:
        yield _as_it_is(source, start)


def _as_it_is(source: Source, start: BinaryIO) -> Source:
    return replace(source, data=None, path=None, opener=None, handle=start)


def _peeked(opened: BinaryIO, source: Source) -> tuple[bytes, BinaryIO]:
    """The first bytes, and the same input from its start."""
    try:
        at = opened.tell() if hasattr(opened, "seekable") and opened.seekable() else None
        head = opened.read(_HEAD) or b""
        while len(head) < _HEAD and (more := opened.read(_HEAD - len(head))):
            head += more
        if at is not None:
            opened.seek(at)
            return head, opened
    except (OSError, ValueError, AttributeError) as error:
        raise source.unreadable(error) from error
    return head, cast("BinaryIO", PrefixedFile(head, opened))
