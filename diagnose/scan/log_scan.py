"""Bytes of any input to excerpts worth parsing, with their place: one pass, without a way back, in bounded memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from diagnose.facts import Input
from diagnose.record import record
from diagnose.scan import memory_words
from diagnose.scan.excerpts import Excerpt, Hit, Kept, Window
from diagnose.scan.source import BUFFER, SAMPLE, Label, Reader, Source, as_utf8, notes_of, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD = 256 << 10  # launch command, versions, banners
TAIL = 16 << 10  # how it ended
BEFORE = 64 << 10  # the traceback and the last words before a message
AFTER = 8 << 10  # the message itself, wrapped, and what follows at once
LONGEST = 512 << 10  # a window over more is cut into several
FIRST, LATEST = 768, 256  # hits that are kept of each grammar: a caught failure may be printed on every step
PER_LINE = 16  # hits that are kept of one line
ROOM = BEFORE + TAIL + (4 << 10) + BUFFER  # what is read at once, behind what stays: a window and the longest literal
SAMPLES, SAMPLED = 64, 8 << 10  # looks at the run between the windows: memory lines, progress
CLOSE = 16 << 20  # where only core anchors are looked for, the ends that are searched for all
COUNTS = 64 << 20  # bytes read from where on a library counts lines: it takes a millisecond to load and does it four times faster


@record
class Scanned:
    """One input: what it is, the parts worth parsing in order, and where literals of rules/messages.yaml stand in them.

    A short input is one excerpt. `samples` are looks at the run in between, thinned out evenly. `dropped` counts messages
    that stand in no excerpt, `reduced` names the grammars whose messages were looked for at both ends only.
    """

    input: Input
    excerpts: tuple[Excerpt, ...]
    hits: tuple[Hit, ...]
    samples: tuple[Excerpt, ...] = ()
    dropped: int = 0
    reduced: tuple[str, ...] = ()
    label: Label = Label()


def scan(source: Source) -> Scanned:
    """Read an input once and keep what is worth parsing.

    Raises UserError where the input cannot be read; never for what it contains.
    """
    opened = source.open()
    buffer = _spare()
    try:
        size = size_of(opened)
        reader, encoding = as_utf8(opened)
        walk = _Walk(size if encoding[:6] != "utf-16" else None, buffer)
        walk.all(reader)
        grown = size is not None and (size_of(opened) or 0) > 0
    except (OSError, EOFError) as error:
        raise source.unreadable(error) from error
    finally:
        _SPARE.append(buffer)
        source.close(opened)
    excerpts = tuple(walk.kept.excerpts(walk.size))
    hits, left_out = _few([hit for window in walk.kept.windows() for hit in window.hits])
    notes = (*_notes(walk.size, excerpts), *(("growing",) if grown else ()), *notes_of(opened))
    facts = Input(source.name, "log", walk.size, walk.lines, encoding, notes)
    return Scanned(facts, excerpts, hits, tuple(walk.samples), walk.dropped + walk.kept.dropped + left_out, walk.reduced, source.label)


#: Buffers that no scan uses at the moment: to make one costs as much as to search it. There are as many as threads that scan.
_SPARE: list[bytearray] = []


def _spare() -> bytearray:
    try:
        return _SPARE.pop()
    except IndexError:
        return bytearray(ROOM)


def _few(hits: list[Hit]) -> tuple[tuple[Hit, ...], int]:
    """The first and the latest hits of each grammar, and how many messages there are between them."""
    total, seen = Counter(hit.grammar for hit in hits), Counter[str]()
    kept = []
    for hit in hits:
        seen[hit.grammar] += 1
        if seen[hit.grammar] <= FIRST or seen[hit.grammar] > total[hit.grammar] - LATEST:
            kept.append(hit)
    return tuple(kept), sum(max(0, count - FIRST - LATEST) for grammar, count in total.items() if grammar.endswith("_oom"))


class _Walk:
    """One pass: finds places, keeps windows round them, counts lines on the way."""

    def __init__(self, size: int | None, buffer: bytearray) -> None:
        self.size = self.lines = self.dropped = 0
        self.samples: list[Excerpt] = []
        self._expected = size
        self.kept = Kept()
        self._open = Window(0, HEAD, 1, 0)
        self._stride = 1
        #: Literals on both sides of an anchor that belong to it: it stands in them somewhere.
        self._reach = memory_words.literals().longest
        self._history = BEFORE + TAIL + self._reach
        self._buffer = buffer
        self._base = self._held = 0  # offset of the buffer's first byte; bytes in it
        self._at = self._ends = 0  # line ends before an index of the buffer
        self._line_start = 0  # where the line starts that the buffer begins in
        self._count = _counter(size)  # counts line ends between two indexes of the buffer
        near = memory_words.is_fast() or size is None or size <= 2 * CLOSE
        self.reduced = () if near else memory_words.passed_over()

    # -- the pass

    def all(self, reader: Reader) -> None:
        view = memoryview(self._buffer)
        reported = number = 0
        last = 0x0A
        while count := self._fill(reader, view):
            fresh = self._held - count
            finder = memory_words.anchors(core=bool(self.reduced) and not self._near_an_end())
            start = max(0, fresh - self._reach)  # a literal that the buffer cut is found now
            for at, end, grammar in memory_words.found(view[start : self._held], finder.find(view[start : self._held]), self._reach):
                if self._base + start + at >= reported and (end < self._held - start or count < BUFFER):
                    reported = self._base + start + end
                    self._add(grammar, start + at)
            self._keep(view)
            if number % self._stride == 0:
                self._sample(fresh, view)
            number += 1
            last = self._buffer[self._held - 1]
            if self._base + self._held != self._expected:  # there is more to come
                self._let_go()
        self._count_to(self._held)
        self.size, self.lines = self._base + self._held, self._ends + (last != 0x0A)
        self._end(view)

    def _fill(self, reader: Reader, view: memoryview) -> int:
        """Read until there is a buffer full, or no more."""
        count = 0
        room = BUFFER if self._expected is None else min(BUFFER, self._expected - self._base - self._held)
        while count < room and (more := reader.readinto(view[self._held : self._held + room - count])):
            self._held += more
            count += more
        return count

    def _near_an_end(self) -> bool:
        return self._base < CLOSE or self._expected is None or self._base + self._held > self._expected - CLOSE

    def _let_go(self) -> None:
        """Keep the end of the buffer as history, and the lines before it counted."""
        rest = self._held - min(self._history, self._held)
        self._count_to(max(self._at, rest))
        if rest:
            newline = self._buffer.rfind(b"\n", 0, rest)
            self._line_start = self._base + newline + 1 if newline >= 0 else self._line_start
            self._buffer[: self._held - rest] = self._buffer[rest : self._held]
        self._at -= rest
        self._base, self._held = self._base + rest, self._held - rest

    def _count_to(self, index: int) -> None:
        self._ends += self._count(self._buffer, self._at, index)
        self._at = index

    def _line(self, index: int) -> tuple[int, int]:
        """The number of the line that an index of the buffer stands in, and where it starts."""
        if index >= self._at:
            self._count_to(index)
            ends = self._ends
        else:
            ends = self._ends - self._count(self._buffer, index, self._at)
        newline = self._buffer.rfind(b"\n", 0, index)
        return ends + 1, self._base + newline + 1 if newline >= 0 else self._line_start

    # -- windows

    def _add(self, grammar: str, index: int) -> None:
        offset = self._base + index
        hit = Hit(grammar, offset, *self._line(index))
        if len(self._open.hits) >= PER_LINE and self._open.hits[-PER_LINE].line == hit.line:
            self.dropped += grammar.endswith("_oom")
            return
        reach = BEFORE if grammar.endswith("_oom") else AFTER
        start = max(self._base, offset - reach, self._open.offset)
        touches = start <= self._open.end + TAIL and self._base <= self._open.filled
        if touches and offset - self._open.offset < LONGEST:
            self._open.end = max(self._open.end, offset + AFTER)
        else:
            if start < self._open.end:  # cut at the start of a line, near the place where the new one begins
                newline = self._buffer.find(b"\n", max(0, offset - TAIL - self._base), index)
                start = self._base + newline + 1 if newline >= 0 else offset
                self._keep(memoryview(self._buffer)[:index])
                self._open.end = min(self._open.end, start)
                del self._open.raw[start - self._open.offset :]
                moved = [one for one in self._open.hits if one.offset >= start]
                del self._open.hits[len(self._open.hits) - len(moved) :]
            else:
                moved = []
                self._keep(memoryview(self._buffer)[:index])
            self.kept.put(self._open)
            self._open = Window(start, offset + AFTER, *self._line(start - self._base), hits=moved)
        self._open.hits.append(hit)

    def _keep(self, view: memoryview) -> None:
        """Add to the open window what the buffer holds of it."""
        window = self._open
        start, end = window.filled - self._base, min(window.end - self._base, len(view), self._held)
        if start < end:
            window.raw += view[start:end]

    def _sample(self, fresh: int, view: memoryview) -> None:
        start = self._base + fresh
        line, _ = self._line(fresh)
        self.samples.append(Excerpt(bytes(view[fresh : min(self._held, fresh + SAMPLED)]), start, line, 1 if start else 0))
        if len(self.samples) > 2 * SAMPLES:
            del self.samples[1::2]
            self._stride *= 2

    def _end(self, view: memoryview) -> None:
        """The end of the log is a window of its own, or the end of the last."""
        start = max(self._base, self.size - TAIL)
        if start > self._open.end:
            self.kept.put(self._open)
            self._open = Window(start, self.size, *self._line(start - self._base))
        self._open.end = self.size
        self._keep(view)
        self.kept.put(self._open)
        inside = [(one.offset, one.filled) for one in self.kept.windows()]
        starts = [start for start, _ in inside]
        self.samples = [one for one in self.samples if (at := bisect_right(starts, one.offset) - 1) < 0 or one.offset >= inside[at][1]]


_read = 0


def _counter(size: int | None) -> Callable[[bytearray, int, int], int]:
    """What counts line ends between two indexes of a buffer."""
    global _read
    _read += COUNTS if size is None else size
    if _read > COUNTS:
        try:
            import stringzilla
        except ImportError:
            pass
        else:
            return lambda raw, start, end: int(stringzilla.count(memoryview(raw)[start:end], b"\n"))
    return lambda raw, start, end: raw.count(b"\n", start, end)


# -- what kind of bytes


def _notes(size: int, excerpts: tuple[Excerpt, ...]) -> Iterator[str]:
    """What a reader should know of the input, as short words."""
    if not size:
        yield "empty"
        return
    sample = b"".join(excerpt.raw[:SAMPLE] for excerpt in excerpts[:4])
    if 0 in sample and sample.count(0) * 2 > len(sample):
        yield "nul-filled"
    elif len(sample.translate(None, _CONTROLS)) < len(sample) * 0.9:
        yield "binary"
    if any(excerpt.into for excerpt in excerpts):
        yield "long lines"


_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\r\x1b") + b"\x7f"
