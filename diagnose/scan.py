"""Bytes of any input to excerpts worth parsing, with their place."""

from __future__ import annotations

import codecs
import io
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from diagnose import shipped
from diagnose.complaints import complaint
from diagnose.facts import Input
from diagnose.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ahocorasick_rs import BytesAhoCorasick

BUFFER = 1 << 20
HEAD = 128 << 10  # launch command, versions, banners
TAIL = 16 << 10  # how it ended
BEFORE = 64 << 10  # the traceback and the last words before a message
AFTER = 8 << 10  # the message itself, wrapped, and what follows at once
FIRST, LAST = 40, 24  # hits kept per group: a caught failure may be printed on every step
SAMPLE = 64 << 10
SPOOL = 32 << 20  # a pipe is kept in memory up to here, then in a temporary file


@record
class Source:
    """Something to read: a text, a file, or an open binary file. `name` is how the report calls it."""

    name: str
    data: bytes | None = None
    path: Path | None = None
    opened: BinaryIO | None = None

    @classmethod
    def text(cls, text: str | bytes, name: str = "text") -> Source:
        return cls(name, data=text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)

    @classmethod
    def file(cls, path: Path, name: str = "") -> Source:
        return cls(name or str(path), path=path)

    @classmethod
    def stream(cls, opened: BinaryIO, name: str = "-") -> Source:
        """An open binary file; it is read and left open."""
        return cls(name, opened=opened)

    def open(self) -> BinaryIO:
        """The content as a seekable binary file; raises Complaint where there is none to read."""
        if self.data is not None:
            return io.BytesIO(self.data)
        try:
            if self.path is not None and self.path.is_dir():
                raise complaint("is_a_folder", where=self.name, hint="name_a_file")
            if self.path is not None and self.path.is_char_device():  # /dev/zero has no end
                raise complaint("is_a_device", where=self.name, hint="check_the_path")
            opened = self.path.open("rb") if self.path is not None else self.opened
            assert opened is not None, "a source has a text, a path or an open file"
            return opened if opened.seekable() else _spooled(iter(lambda: opened.read(BUFFER), b""))
        except FileNotFoundError as error:
            raise complaint("no_such_file", where=self.name, hint="check_the_path") from error
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path, a closed file
            reason = getattr(error, "strerror", None) or str(error)
            raise complaint("cannot_read", where=self.name, hint="check_permissions", reason=reason) from error

    def read(self, limit: int = 64 << 20) -> bytes:
        """The first `limit` bytes; raises Complaint where there is nothing to read."""
        opened = self.open()
        try:
            return opened.read(limit)
        except OSError as error:
            raise complaint("cannot_read", where=self.name, hint="check_permissions", reason=error.strerror or str(error)) from error
        finally:
            self.close(opened)

    def close(self, opened: BinaryIO) -> None:
        """Close what `open` gave, unless it is the stream that was given."""
        if opened is not self.opened:
            opened.close()


@record
class Hit:
    """A literal of rules/messages.yaml in the input: the offset of its first byte, its line (1-based) and where that line starts."""

    grammar: str
    offset: int
    line: int
    line_start: int


@record
class Excerpt:
    """Bytes of the input from `offset` on. They begin with line `line`, at its byte `into` (0: its start; more only in very long lines)."""

    raw: bytes
    offset: int
    line: int
    into: int = 0

    def __contains__(self, offset: int) -> bool:
        return self.offset <= offset < self.offset + len(self.raw)


@record
class Scanned:
    """One input: what it is, the parts worth parsing in order, and where literals of rules/messages.yaml stand in it.

    A short input is one excerpt. `dropped` counts hits beyond the first and last of each grammar.
    """

    input: Input
    excerpts: tuple[Excerpt, ...]
    hits: tuple[Hit, ...]
    dropped: int = 0


def scan(source: Source) -> Scanned:
    """Read an input once, in bounded memory, and keep what is worth parsing.

    Raises Complaint where the input cannot be read; never for what it contains.
    """
    opened = file = source.open()
    try:
        file, encoding = _as_utf8(opened)
        walk = _walk(file)
        hits = sorted(walk.kept(), key=lambda hit: hit.offset)
        excerpts = tuple(_excerpts(file, walk, hits))
    except OSError as error:
        raise complaint("cannot_read", where=source.name, hint="check_permissions", reason=error.strerror or str(error)) from error
    finally:
        source.close(file)
        source.close(opened)
    facts = Input(source.name, "log", walk.size, walk.lines, encoding, tuple(_notes(walk.size, excerpts)))
    return Scanned(facts, excerpts, tuple(hits), walk.dropped)


# -- one pass over everything


class _Walk:
    """What one pass learned: size, lines, hits by grammar (the first and the last of each), line numbers on the way."""

    def __init__(self) -> None:
        self.size = self.lines = self.dropped = 0
        self.first: dict[str, list[Hit]] = {}
        self.last: dict[str, list[Hit]] = {}
        self.marks: list[tuple[int, int]] = [(0, 0)]  # (offset, line ends before it), one a buffer

    def add(self, hit: Hit) -> None:
        first = self.first.setdefault(hit.grammar, [])
        if len(first) < FIRST:
            first.append(hit)
            return
        last = self.last.setdefault(hit.grammar, [])
        last.append(hit)
        if len(last) > 2 * LAST:  # trimmed now and then, not on every hit
            self.dropped += len(last) - LAST if hit.grammar.endswith("_oom") else 0
            del last[:-LAST]

    def kept(self) -> Iterator[Hit]:
        for group in (self.first, self.last):
            for hits in group.values():
                yield from hits

    def line_ends_before(self, offset: int, file: BinaryIO) -> int:
        mark, count = self.marks[bisect_right(self.marks, (offset, self.size)) - 1]
        file.seek(mark)
        return count + file.read(offset - mark).count(b"\n")


def _walk(file: BinaryIO) -> _Walk:
    walk, finder = _Walk(), _finder()
    overlap = finder.longest - 1  # a literal that the buffer cuts is found in the next one
    buffer = bytearray(BUFFER + overlap)
    view = memoryview(buffer)
    base = carried = counted = reported = line_start = 0  # offsets in the input, but for `carried`
    ends, last = 0, 0x0A

    def count_to(position: int) -> None:
        nonlocal ends, counted, line_start
        ends += buffer.count(b"\n", counted - base, position)
        newline = buffer.rfind(b"\n", counted - base, position)
        line_start = base + newline + 1 if newline >= 0 else line_start
        counted = base + position

    while count := _readinto(file, view[carried : carried + BUFFER]):
        held = carried + count
        for start, end, grammar in finder.find(view[:held]):
            if base + start >= reported:  # else it is, or lies in, one that was found before it was carried over
                count_to(start)
                reported = base + end
                walk.add(Hit(grammar, base + start, ends + 1, line_start))
        rest = held - min(overlap, held)
        if base + rest > counted:
            count_to(rest)
        walk.marks.append((counted, ends))
        last = buffer[held - 1]
        buffer[: held - rest] = buffer[rest:held]
        base, carried = base + rest, held - rest
    count_to(carried)
    walk.size, walk.lines = base + carried, ends + (last != 0x0A)
    return walk


def _readinto(file: BinaryIO, target: memoryview) -> int:
    """Fill as much of the target as there is; 0 at the end."""
    return cast("io.BufferedIOBase", file).readinto(target)


class _Finder(Protocol):
    longest: int

    def find(self, buffer: memoryview) -> Iterable[tuple[int, int, str]]:
        """(start, end, grammar) of each literal in the buffer, in order."""


@cache
def _finder() -> _Finder:
    literals = [(text.encode(), grammar) for grammar, texts in shipped.table("messages").items() for text in texts]
    try:
        from ahocorasick_rs import BytesAhoCorasick  # an optional extra: 20 times faster
    except ImportError:
        return _Plain(literals)
    return _Automaton(literals, BytesAhoCorasick)


class _Automaton:
    """All literals in one pass."""

    def __init__(self, literals: list[tuple[bytes, str]], automaton: type[BytesAhoCorasick]) -> None:
        from ahocorasick_rs import MatchKind

        self.longest = max(len(text) for text, _ in literals)
        self._grammars = [grammar for _, grammar in literals]
        # any other match kind, and any set of more than 64 literals, loses the vector instructions and a factor of eight
        self._automaton = automaton([text for text, _ in literals], matchkind=MatchKind.LeftmostLongest)

    def find(self, buffer: memoryview) -> Iterator[tuple[int, int, str]]:
        for index, start, end in self._automaton.find_matches_as_indexes(buffer):
            yield start, end, self._grammars[index]


class _Plain:
    """One pass per literal, where the extra is not installed."""

    def __init__(self, literals: list[tuple[bytes, str]]) -> None:
        self.longest = max(len(text) for text, _ in literals)
        self._literals = literals

    def find(self, buffer: memoryview) -> Iterator[tuple[int, int, str]]:
        raw = bytes(buffer)
        found: list[tuple[int, int, str]] = []
        for text, grammar in self._literals:
            at = raw.find(text)
            while at >= 0:
                found.append((at, -len(text), grammar))
                at = raw.find(text, at + len(text))
        end = 0
        for start, length, grammar in sorted(found):  # the leftmost, and of those the longest, as the automaton does
            if start >= end:
                end = start - length
                yield start, end, grammar


# -- excerpts


def _excerpts(file: BinaryIO, walk: _Walk, hits: list[Hit]) -> Iterator[Excerpt]:
    """The head, the tail and a window round each hit; windows that touch are one."""
    spans = [(0, HEAD), (max(0, walk.size - TAIL), walk.size)]
    for hit in hits:
        reach = BEFORE if hit.grammar.endswith("_oom") else AFTER
        spans.append((max(0, hit.offset - reach), hit.offset + AFTER))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + TAIL:
            start, end = merged[-1][0], max(merged.pop()[1], end)
        merged.append((start, min(end, walk.size)))
    for start, end in merged:
        line = walk.line_ends_before(start, file) + 1
        file.seek(start)
        yield _from_line_start(file.read(end - start), start, line, hits)


def _from_line_start(raw: bytes, offset: int, line: int, hits: list[Hit]) -> Excerpt:
    """The excerpt without the end of a line that it begins with, unless a hit stands in that line: then it is a long one."""
    newline = raw.find(b"\n")
    cut = next((hit for hit in hits if hit.line_start < offset <= hit.offset and hit.line == line), None)
    if offset == 0 or cut is not None or newline < 0:
        return Excerpt(raw, offset, line, offset - cut.line_start if cut else offset and 1)
    return Excerpt(raw[newline + 1 :], offset + newline + 1, line + 1)


# -- what kind of bytes


def _spooled(chunks: Iterable[bytes]) -> BinaryIO:
    """A stream as a seekable file."""
    import tempfile

    spool = tempfile.SpooledTemporaryFile(max_size=SPOOL)  # noqa: SIM115 (it goes when it is collected)
    for chunk in chunks:
        spool.write(chunk)
    spool.seek(0)
    return cast("BinaryIO", spool)


def _as_utf8(file: BinaryIO) -> tuple[BinaryIO, str]:
    """The input as UTF-8 bytes, and what it was. UTF-16 (PowerShell redirection) is rewritten; all else stays as it is."""
    head = file.read(SAMPLE)
    file.seek(0)
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
    if not encoding and len(head) > 16 and not any(head[1::2]) and head.count(0) < len(head) * 0.6:
        encoding = "utf-16-le"
    if encoding:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        chunks = iter(lambda: file.read(BUFFER), b"")
        return _spooled(decoder.decode(chunk).encode("utf-8", "replace") for chunk in chunks), encoding
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        cut = len(head) == SAMPLE and error.start >= SAMPLE - 3  # a character that the sample cuts
        return file, "utf-8" if cut else "unknown"
    return file, "utf-8"


def _notes(size: int, excerpts: tuple[Excerpt, ...]) -> Iterator[str]:
    """What a reader should know of the input, as short words."""
    if not size:
        yield "empty"
        return
    sample = b"".join(excerpt.raw[:SAMPLE] for excerpt in excerpts[:4])
    if sample.count(0) * 2 > len(sample):
        yield "nul-filled"
    elif len(sample.translate(None, _CONTROLS)) < len(sample) * 0.9:
        yield "binary"
    if any(excerpt.into for excerpt in excerpts):
        yield "long lines"


_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\r\x1b") + b"\x7f"
