"""Compressed text: gzip, bzip2, xz and zstd, several streams one after the other, expanded as it is read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO

from diagnose.packed.unpack_limits import FREE, STEEP, WINDOW, Allowance, trouble
from diagnose.scan.source import BUFFER, Source

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 256 << 10
SPOON = 1 << 10  # packed bytes of zstd, four of which may hold 128 KiB

FORMS: dict[bytes, str] = {
    b"\x1f\x8b\x08": "gzip",
    **{b"BZh%d%b" % (level, end): "bzip2" for level in range(1, 10) for end in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")},
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{bytes((low,)) + b"\x2a\x4d\x18": "zstd" for low in range(0x50, 0x60)},  # frames to be skipped: pzstd begins with one
}


def form_of(head: bytes) -> str:
    """The compression that these first bytes begin, empty for none."""
    return next((name for magic, name in FORMS.items() if head.startswith(magic)), "")


def expanded(form: str, opened: BinaryIO, source: Source, allowance: Allowance) -> Unpacked:
    """The text of a compressed input. Raises UserError where what is needed for it is not installed."""
    read, packed = _reader(form, opened, source)
    return Unpacked(read, lambda: packed.count, allowance)


class Unpacked(io.RawIOBase):
    """Expanded text. It ends early where the packed bytes are damaged or expand beyond all measure, and `notes` say so."""

    def __init__(self, read: Callable[[int], bytes], packed: Callable[[], int], allowance: Allowance) -> None:
        self._read, self._packed, self._allowance = read, packed, allowance
        self._text = 0
        self.notes: tuple[str, ...] = ()

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        if self.notes or not len(target):
            return 0
        steep = self._text > FREE and self._text > STEEP * max(self._packed(), 1)
        most = min(len(target), BUFFER, self._allowance.left)
        if steep or not most:
            self.notes = ("expands",)
            return 0
        try:
            part = self._read(most)
        except Exception:  # each decompressor has errors of its own, and what stands before them is good
            self.notes = ("damaged",)
            return 0
        target[: len(part)] = part
        self._text += len(part)
        self._allowance.left -= len(part)
        return len(part)


class _Counted:
    """Packed bytes, counted as they are read."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened
        self.count = 0

    def read(self, most: int = -1) -> bytes:
        part = self._opened.read(_CHUNK if most < 0 else most) or b""
        self.count += len(part)
        return part


def _reader(form: str, opened: BinaryIO, source: Source) -> tuple[Callable[[int], bytes], _Counted]:
    """A function that reads expanded bytes, and the packed ones behind it. Raises UserError where the extra is missing."""
    packed = _Counted(opened)
    magics = tuple(magic for magic, name in FORMS.items() if name == form)
    if form == "zstd":
        return _zstd(packed, source, magics), packed
    make: Callable[[], Any]
    if form == "gzip":
        make = _inflate()
    elif form == "bzip2":
        import bz2

        make = bz2.BZ2Decompressor
    else:
        import lzma

        make = lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, WINDOW)  # noqa: E731
    return _Chain(packed, make, magics).read, packed


def _zstd(packed: _Counted, source: Source, magics: tuple[bytes, ...]) -> Callable[[int], bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14

        options = {zstd.DecompressionParameter.window_log_max: WINDOW.bit_length() - 1}
        return _Chain(packed, lambda: zstd.ZstdDecompressor(options=options), magics).read
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError as error:
        raise trouble("zstd_missing", source.name, hint="install_packed") from error
    expand = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    return _Chain(packed, lambda: _Zstd(expand.decompressobj()), magics).read


class _Zstd:
    """One frame with the manners of bz2 and lzma. Its decompressor gives all that its input holds, so it is fed by the spoonful."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._input = self._ready = b""

    @property
    def eof(self) -> bool:
        return self._frame.eof and not self._ready

    @property
    def unused_data(self) -> bytes:
        unused: bytes = self._frame.unused_data
        return unused + self._input

    @property
    def needs_input(self) -> bool:
        return not self._ready and not self._input

    def decompress(self, data: bytes, most: int) -> bytes:
        self._input += data
        if not self._ready:
            spoon, self._input = self._input[:SPOON], self._input[SPOON:]
            self._ready = self._frame.decompress(spoon)
        part, self._ready = self._ready[:most], self._ready[most:]
        return part


def _inflate() -> Callable[[], Any]:
    """What makes a decompressor of one gzip member: Intel's, where it is installed."""
    try:
        from isal import igzip_lib
    except ImportError:
        return _Inflate
    return lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


class _Inflate:
    """zlib with the manners of bz2 and lzma."""

    def __init__(self) -> None:
        import zlib

        self._zlib = zlib.decompressobj(wbits=31)
        self._full = False

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._full and not self._zlib.unconsumed_tail

    def decompress(self, data: bytes, most: int) -> bytes:
        part = self._zlib.decompress(self._zlib.unconsumed_tail + data, most)
        self._full = len(part) == most
        return part


class _Chain:
    """Streams one after the other, as `cat a.gz b.gz` makes them; padding between and garbage behind are passed over."""

    def __init__(self, packed: _Counted, make: Callable[[], Any], magics: tuple[bytes, ...]) -> None:
        self._packed, self._make, self._magics = packed, make, magics
        self._one = make()

    def read(self, most: int) -> bytes:
        while True:
            data = b""
            if self._one.eof:
                data = self._next()
                if not data.startswith(self._magics):
                    return b""
                self._one = self._make()
            elif self._one.needs_input:
                data = self._packed.read()
                if not data:
                    raise EOFError
            part: bytes = self._one.decompress(data, most)
            if part:
                return part

    def _next(self) -> bytes:
        """What follows the end of a stream, enough of it to know what it is."""
        data: bytes = self._one.unused_data.lstrip(b"\0")
        longest = max(map(len, self._magics))
        while len(data) < longest and (more := self._packed.read()):
            data = (data + more).lstrip(b"\0")
        return data
