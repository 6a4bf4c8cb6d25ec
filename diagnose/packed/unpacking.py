"""Open inputs that may be compressed or archives, within limits. Formats are told by magic number, never by file name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, cast

from diagnose.packed.unpack_limits import Allowance, unpack_error
from diagnose.scan.source import PrefixedFile, Source, notes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.errors import UserError

_HEAD = 512
_GZIP, _BZIP2, _XZ, _ZSTD, _ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK"
#: Formats that are recognised but not supported.
_UNSUPPORTED = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "rar", b"\x04\x22\x4d\x18": "lz4", b"\x1f\x9d": "compress"}


def contents(source: Source, allowance: Allowance, nested: bool = False) -> Iterator[Source | UserError]:
    """Yield the texts in an input: plain or compressed text as one Source, else each file of the archive with its `place` in it, and an
    error for each that cannot be read. A Source must be read before the next is requested.

    `nested`: the input is itself in an archive; an archive in it is refused. Raises UserError if the input cannot be read.
    """
    file = source.open()
    try:
        head, start = (b"", file) if source.is_text else _peek(file, source)
        if _may_be_packed(head):
            yield from _open_packed(source, head, start, allowance, nested)
        else:
            yield _as_source(source, start)
    finally:
        source.close(file)


def _may_be_packed(head: bytes) -> bool:
    """Whether the modules that unpack are needed at all."""
    return (
        head.startswith((_GZIP, _BZIP2, _XZ, _ZSTD, _ZIP, *_UNSUPPORTED))
        or head[1:4] == b"\x2a\x4d\x18"
        or (len(head) == _HEAD and b"\0" in head)
    )


def _open_packed(source: Source, head: bytes, start: BinaryIO, allowance: Allowance, nested: bool) -> Iterator[Source | UserError]:
    # imported here: most inputs are plain text
    from diagnose.packed import streams, tar_archive

    compression = streams.detect_compression(head)
    if compression:
        head, start = _peek(cast("BinaryIO", streams.decompress(compression, start, source, allowance)), source)
    is_tar, is_zip = tar_archive.is_tar(head), head.startswith((b"PK\x03\x04", b"PK\x05\x06"))
    unsupported = next((name for magic, name in _UNSUPPORTED.items() if head.startswith(magic)), "")
    if nested and (is_tar or is_zip):
        yield unpack_error("nested", source.name)
    elif is_tar:
        yield from tar_archive.members(source, start)
    elif is_zip and not compression:
        from diagnose.packed import zip_archive

        yield from zip_archive.members(source, start, allowance)
    elif unsupported or is_zip:
        yield unpack_error("unknown_packing", source.name, form=unsupported or "zip")
    elif compression and not head and notes_of(start):
        yield unpack_error("nothing_left", source.name, hint="copy_again")
    else:
        yield _as_source(source, start)


def _as_source(source: Source, start: BinaryIO) -> Source:
    return replace(source, data=None, path=None, opener=None, handle=start)


def _peek(file: BinaryIO, source: Source) -> tuple[bytes, BinaryIO]:
    """The first bytes of a file, and the file from its start again."""
    try:
        position = file.tell() if hasattr(file, "seekable") and file.seekable() else None
        head = file.read(_HEAD) or b""
        while len(head) < _HEAD and (chunk := file.read(_HEAD - len(head))):
            head += chunk
        if position is not None:
            file.seek(position)
            return head, file
    except (OSError, ValueError, AttributeError) as error:
        raise source.unreadable(error) from error
    return head, cast("BinaryIO", PrefixedFile(head, file))
