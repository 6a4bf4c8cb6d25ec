"""Streaming decompression of gzip, bzip2, xz and zstd, concatenated streams included."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO

from diagnose.packed.unpack_limits import FREE, STEEP, WINDOW, Allowance, unpack_error
from diagnose.scan.source import BUFFER, Source

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 256 << 10
ZSTD_CHUNK = 1 << 10  # bytes fed to zstd at once: four of them may expand to 128 KiB

MAGIC: dict[bytes, str] = {
    b"\x1f\x8b\x08": "gzip",
    **{b"BZh%d%b" % (level, end): "bzip2" for level in range(1, 10) for end in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")},
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{bytes((low,)) + b"\x2a\x4d\x18": "zstd" for low in range(0x50, 0x60)},  # skippable frames: pzstd begins with one
}


def detect_compression(head: bytes) -> str:
    """The compression whose magic number these first bytes are; empty for none."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")


def decompress(compression: str, file: BinaryIO, source: Source, allowance: Allowance) -> DecompressedFile:
    """The decompressed text of an input as a file. Raises UserError if the library for its format is not installed."""
    read, counter = _open_decompressor(compression, file, source)
    return DecompressedFile(read, lambda: counter.count, allowance)


class DecompressedFile(io.RawIOBase):
    """Decompressed text as a file. It ends early at damaged bytes or at a limit of unpack_limits, which `notes` then name."""

    def __init__(self, read: Callable[[int], bytes], packed_bytes: Callable[[], int], allowance: Allowance) -> None:
        self._read, self._packed_bytes, self._allowance = read, packed_bytes, allowance
        self._text_bytes = 0
        self.notes: tuple[str, ...] = ()

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        if self.notes or not len(target):
            return 0
        is_bomb = self._text_bytes > FREE and self._text_bytes > STEEP * max(self._packed_bytes(), 1)
        limit = min(len(target), BUFFER, self._allowance.remaining)
        if is_bomb or not limit:
            self.notes = ("expands",)
            return 0
        try:
            chunk = self._read(limit)
        except Exception:  # each decompressor has errors of its own; the text before the damage is good
            self.notes = ("damaged",)
            return 0
        target[: len(chunk)] = chunk
        self._text_bytes += len(chunk)
        self._allowance.remaining -= len(chunk)
        return len(chunk)


class _CountingReader:
    """Reads compressed bytes and counts them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def read(self, limit: int = -1) -> bytes:
        chunk = self._file.read(_CHUNK if limit < 0 else limit) or b""
        self.count += len(chunk)
        return chunk


def _open_decompressor(compression: str, file: BinaryIO, source: Source) -> tuple[Callable[[int], bytes], _CountingReader]:
    """A function that reads decompressed bytes, and the counter of the compressed ones. Raises UserError if a library is missing."""
    counter = _CountingReader(file)
    magics = tuple(magic for magic, name in MAGIC.items() if name == compression)
    if compression == "zstd":
        return _open_zstd(counter, source, magics), counter
    new_decompressor: Callable[[], object]
    if compression == "gzip":
        new_decompressor = _gzip_decompressor()
    elif compression == "bzip2":
        import bz2

        new_decompressor = bz2.BZ2Decompressor
    else:
        import lzma

        new_decompressor = lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, WINDOW)  # noqa: E731
    return _StreamChain(counter, new_decompressor, magics).read, counter


def _open_zstd(counter: _CountingReader, source: Source, magics: tuple[bytes, ...]) -> Callable[[int], bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14

        options = {zstd.DecompressionParameter.window_log_max: WINDOW.bit_length() - 1}
        return _StreamChain(counter, lambda: zstd.ZstdDecompressor(options=options), magics).read
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError as error:
        raise unpack_error("zstd_missing", source.name, hint="install_packed") from error
    expand = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    return _StreamChain(counter, lambda: _ZstdDecompressor(expand.decompressobj()), magics).read


class _ZstdDecompressor:
    """A zstandard frame with the interface of bz2 and lzma. zstandard has no limit on its output, so its input is fed in small chunks."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._input = self._output = b""

    @property
    def eof(self) -> bool:
        return self._frame.eof and not self._output

    @property
    def unused_data(self) -> bytes:
        unused: bytes = self._frame.unused_data
        return unused + self._input

    @property
    def needs_input(self) -> bool:
        return not self._output and not self._input

    def decompress(self, data: bytes, limit: int) -> bytes:
        self._input += data
        if not self._output:
            chunk, self._input = self._input[:ZSTD_CHUNK], self._input[ZSTD_CHUNK:]
            self._output = self._frame.decompress(chunk)
        chunk, self._output = self._output[:limit], self._output[limit:]
        return chunk


def _gzip_decompressor() -> Callable[[], object]:
    """The constructor of a decompressor for one gzip member: Intel's ISA-L if it is installed, else zlib's."""
    try:
        from isal import igzip_lib
    except ImportError:
        return _ZlibDecompressor
    return lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


class _ZlibDecompressor:
    """zlib with the interface of bz2 and lzma."""

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

    def decompress(self, data: bytes, limit: int) -> bytes:
        chunk = self._zlib.decompress(self._zlib.unconsumed_tail + data, limit)
        self._full = len(chunk) == limit
        return chunk


class _StreamChain:
    """Concatenated streams (`cat a.gz b.gz`) as one; zero padding between them and garbage after them are skipped."""

    def __init__(self, counter: _CountingReader, new_decompressor: Callable[[], Any], magics: tuple[bytes, ...]) -> None:
        self._counter, self._new_decompressor, self._magics = counter, new_decompressor, magics
        self._decompressor = new_decompressor()

    def read(self, limit: int) -> bytes:
        while True:
            data = b""
            if self._decompressor.eof:
                data = self._next_stream()
                if not data.startswith(self._magics):
                    return b""
                self._decompressor = self._new_decompressor()
            elif self._decompressor.needs_input:
                data = self._counter.read()
                if not data:
                    raise EOFError
            chunk: bytes = self._decompressor.decompress(data, limit)
            if chunk:
                return chunk

    def _next_stream(self) -> bytes:
        """The bytes after the end of a stream, at least as many as the longest magic number."""
        data: bytes = self._decompressor.unused_data.lstrip(b"\0")
        longest = max(map(len, self._magics))
        while len(data) < longest and (chunk := self._counter.read()):
            data = (data + chunk).lstrip(b"\0")
        return data
