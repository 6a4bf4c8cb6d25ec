"""Scan a log of any size in one pass and bounded memory for the excerpts worth parsing."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from diagnose.facts import Input
from diagnose.scan import memory_words
from diagnose.scan.excerpts import Excerpt, Hit, Window, WindowStore
from diagnose.scan.source import BUFFER, SAMPLE, Label, Reader, Source, as_utf8, notes_of, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD = 256 << 10  # launch command, versions, banners
TAIL = 16 << 10  # the end of the log
BEFORE = 64 << 10  # kept before a message: the traceback and the last lines of progress
AFTER = 8 << 10  # kept after it: the rest of a wrapped message
LONGEST = 512 << 10  # a longer window is split
FIRST, LATEST = 768, 256  # hits kept of each grammar: a caught failure may be printed on every step
PER_LINE = 16  # hits kept of one line
ROOM = BEFORE + TAIL + (4 << 10) + BUFFER  # size of the buffer: what was read last, behind a window and the longest literal
SAMPLES, SAMPLED = 64, 8 << 10  # samples of the log between the windows (memory lines, progress), and bytes of each
CLOSE = 16 << 20  # bytes at both ends that are searched for all anchors, where the middle is searched for core anchors only
MESSAGES, BYTES_PER_MESSAGE = 1 << 15, 8 << 10  # messages placed wherever they are; beyond them one for so many bytes on average
COUNTS = 64 << 20  # bytes from which a library counts lines: it takes a millisecond to load and is four times faster


@dataclass(slots=True)
class Scanned:
    """What a scan of one input keeps: its description, the excerpts in order, the hits in them.

    A short input is a single excerpt. `samples`: pieces from between the excerpts, evenly spaced. `dropped`: number of messages outside the
    excerpts. `reduced`: grammars that were searched for near both ends only. `skipped`: bytes not searched because
    the log is full of messages.
    """

    input: Input
    excerpts: tuple[Excerpt, ...]
    hits: tuple[Hit, ...]
    samples: tuple[Excerpt, ...] = ()
    dropped: int = 0
    reduced: tuple[str, ...] = ()
    skipped: int = 0
    label: Label = field(default_factory=Label)


def scan(source: Source) -> Scanned:
    """Read an input once and keep what is worth parsing.

    Raises UserError if the input cannot be read; never for what it contains.
    """
    file = source.open()
    buffer = _take_buffer()
    try:
        size = size_of(file)
        reader, encoding = as_utf8(file)
        log_pass = _LogPass(size if encoding[:6] != "utf-16" else None, buffer)
        log_pass.run(reader)
        is_growing = size is not None and (size_of(file) or 0) > 0
    except (OSError, EOFError) as error:
        raise source.unreadable(error) from error
    finally:
        _BUFFERS.append(buffer)
        source.close(file)
    excerpts = tuple(log_pass.windows.excerpts(log_pass.size))
    hits, dropped_hits = _limit_hits([hit for window in log_pass.windows.windows() for hit in window.hits])
    notes = (*_notes(log_pass.size, excerpts), *(("growing",) if is_growing else ()), *notes_of(file))
    facts = Input(source.name, "log", log_pass.size, log_pass.lines, encoding, notes)
    dropped = log_pass.dropped + log_pass.windows.dropped + dropped_hits
    return Scanned(facts, excerpts, hits, tuple(log_pass.samples), dropped, log_pass.reduced, log_pass.skipped, source.label)


#: Pool of free buffers, at most one per scanning thread: allocating one costs as much as searching it.
_BUFFERS: list[bytearray] = []


def _take_buffer() -> bytearray:
    try:
        return _BUFFERS.pop()
    except IndexError:
        return bytearray(ROOM)


def _limit_hits(hits: list[Hit]) -> tuple[tuple[Hit, ...], int]:
    """The first and the latest hits of each grammar, and the number of messages dropped in between."""
    total, counts = Counter(hit.grammar for hit in hits), Counter[str]()
    selection = []
    for hit in hits:
        counts[hit.grammar] += 1
        if counts[hit.grammar] <= FIRST or counts[hit.grammar] > total[hit.grammar] - LATEST:
            selection.append(hit)
    return tuple(selection), sum(max(0, count - FIRST - LATEST) for grammar, count in total.items() if grammar.endswith("_oom"))


class _LogPass:
    """One pass over a log: finds hits, fills windows round them, counts lines."""

    def __init__(self, size: int | None, buffer: bytearray) -> None:
        self.size = self.lines = self.dropped = self.skipped = 0
        self.samples: list[Excerpt] = []
        self._expected_size = size
        self.windows = WindowStore()
        self._open = Window(0, HEAD, 1, 0)
        self._stride = 1
        # an anchor is a part of its literals: they begin and end within this distance of it
        self._reach = memory_words.literals().longest
        self._overlap = BEFORE + TAIL + self._reach
        self._buffer = buffer
        self._base = self._filled = 0  # offset of the buffer's first byte; bytes in it
        self._placed = 0  # messages found, and what other anchors cost
        self._reported_end = 0
        self._counted = self._newlines = 0  # line ends before an index of the buffer
        self._line_start = 0  # offset of the line that the buffer begins in
        self._count = _line_counter(size)
        searches_all = size is None or size <= 2 * CLOSE or memory_words.is_fast()
        self.reduced = () if searches_all else memory_words.missed_by_core()

    # -- the pass

    def run(self, reader: Reader) -> None:
        view = memoryview(self._buffer)
        number = unsearched = 0
        last_byte = 0x0A
        while count := self._fill(reader, view):
            new_start = self._filled - count
            is_last = count < BUFFER or self._base + self._filled == self._expected_size
            if self._placed > MESSAGES + (self._base + self._filled) // BYTES_PER_MESSAGE and not is_last:
                unsearched = self._filled
                self.skipped += count
            else:
                self._search(
                    view, 0 if unsearched else max(0, new_start - self._reach), is_last
                )  # a literal that the buffer cut is found now
                unsearched = 0
            self._fill_window(view)
            if number % self._stride == 0:
                self._sample(new_start, view)
            number += 1
            last_byte = self._buffer[self._filled - 1]
            if self._base + self._filled != self._expected_size:  # there is more to come
                self._slide()
        if unsearched:
            self._search(view, 0, True)
        self._count_to(self._filled)
        self.size, self.lines = self._base + self._filled, self._newlines + (last_byte != 0x0A)
        self._add_tail(view)

    def _search(self, view: memoryview, start: int, is_last: bool) -> None:
        """Add the messages in the buffer from an index on."""
        finder = memory_words.anchors(core=bool(self.reduced) and not self._is_near_end())
        searched = view[start : self._filled]
        anchors = list(finder.find(searched))
        self._placed += len(anchors) >> 6
        for at, end, grammar in memory_words.literals_near(searched, anchors, self._reach):
            if self._base + start + at >= self._reported_end and (end < self._filled - start or is_last):
                self._reported_end = self._base + start + end
                self._placed += 1
                self._add_hit(grammar, start + at)

    def _fill(self, reader: Reader, view: memoryview) -> int:
        """Read until the buffer is full or the input ends; returns the number of bytes."""
        count = 0
        room = BUFFER if self._expected_size is None else min(BUFFER, self._expected_size - self._base - self._filled)
        while count < room and (length := reader.readinto(view[self._filled : self._filled + room - count])):
            self._filled += length
            count += length
        return count

    def _is_near_end(self) -> bool:
        return self._base < CLOSE or self._expected_size is None or self._base + self._filled > self._expected_size - CLOSE

    def _slide(self) -> None:
        """Move the end of the buffer to its front, counting the lines that are dropped."""
        drop = self._filled - min(self._overlap, self._filled)
        self._count_to(max(self._counted, drop))
        if drop:
            newline = self._buffer.rfind(b"\n", 0, drop)
            self._line_start = self._base + newline + 1 if newline >= 0 else self._line_start
            self._buffer[: self._filled - drop] = self._buffer[drop : self._filled]
        self._counted -= drop
        self._base, self._filled = self._base + drop, self._filled - drop

    def _count_to(self, index: int) -> None:
        self._newlines += self._count(self._buffer, self._counted, index)
        self._counted = index

    def _line_at(self, index: int) -> tuple[int, int]:
        """Number and offset of the line at an index of the buffer."""
        if index >= self._counted:
            self._count_to(index)
            newlines = self._newlines
        else:
            newlines = self._newlines - self._count(self._buffer, index, self._counted)
        newline = self._buffer.rfind(b"\n", 0, index)
        return newlines + 1, self._base + newline + 1 if newline >= 0 else self._line_start

    # -- windows

    def _add_hit(self, grammar: str, index: int) -> None:
        offset = self._base + index
        hit = Hit(grammar, offset, *self._line_at(index))
        if len(self._open.hits) >= PER_LINE and self._open.hits[-PER_LINE].line == hit.line:
            self.dropped += grammar.endswith("_oom")
            return
        reach = BEFORE if grammar.endswith("_oom") else AFTER
        start = max(self._base, offset - reach, self._open.offset)
        touches = start <= self._open.end + TAIL and self._base <= self._open.filled
        if touches and offset - self._open.offset < LONGEST:
            self._open.end = max(self._open.end, offset + AFTER)
        else:
            if start < self._open.end:  # split at the start of a line, shortly before the hit
                newline = self._buffer.find(b"\n", max(0, offset - TAIL - self._base), index)
                start = self._base + newline + 1 if newline >= 0 else offset
                self._fill_window(memoryview(self._buffer)[:index])
                self._open.end = min(self._open.end, start)
                del self._open.raw[start - self._open.offset :]
                moved_hits = [earlier for earlier in self._open.hits if earlier.offset >= start]
                del self._open.hits[len(self._open.hits) - len(moved_hits) :]
            else:
                moved_hits = []
                self._fill_window(memoryview(self._buffer)[:index])
            self.windows.add(self._open)
            self._open = Window(start, offset + AFTER, *self._line_at(start - self._base), hits=moved_hits)
        self._open.hits.append(hit)

    def _fill_window(self, view: memoryview) -> None:
        """Append to the open window the part of it that is in the buffer."""
        window = self._open
        start, end = window.filled - self._base, min(window.end - self._base, len(view), self._filled)
        if start < end:
            window.raw += view[start:end]

    def _sample(self, new_start: int, view: memoryview) -> None:
        start = self._base + new_start
        line, _ = self._line_at(new_start)
        self.samples.append(Excerpt(bytes(view[new_start : min(self._filled, new_start + SAMPLED)]), start, line, 1 if start else 0))
        if len(self.samples) > 2 * SAMPLES:
            del self.samples[1::2]
            self._stride *= 2

    def _add_tail(self, view: memoryview) -> None:
        """Keep the end of the log, as a window of its own or in the last one, and drop the samples that lie in windows."""
        start = max(self._base, self.size - TAIL)
        if start > self._open.end:
            self.windows.add(self._open)
            self._open = Window(start, self.size, *self._line_at(start - self._base))
        self._open.end = self.size
        self._fill_window(view)
        self.windows.add(self._open)
        spans = [(window.offset, window.filled) for window in self.windows.windows()]
        starts = [start for start, _ in spans]
        self.samples = [
            sample for sample in self.samples if (index := bisect_right(starts, sample.offset) - 1) < 0 or sample.offset >= spans[index][1]
        ]


_bytes_read = 0


def _line_counter(size: int | None) -> Callable[[bytearray, int, int], int]:
    """A function that counts newlines between two indexes of a buffer; stringzilla's, once this process has read enough to repay its
    import."""
    global _bytes_read
    _bytes_read += COUNTS if size is None else size
    if _bytes_read > COUNTS:
        try:
            import stringzilla  # an optional extra
        except ImportError:
            pass
        else:
            return lambda raw, start, end: int(stringzilla.count(memoryview(raw)[start:end], b"\n"))
    return lambda raw, start, end: raw.count(b"\n", start, end)


# -- what kind of bytes


def _notes(size: int, excerpts: tuple[Excerpt, ...]) -> Iterator[str]:
    """Codes of what is unusual about the input's bytes."""
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
