"""An excerpt as lines, cleaned of colours, progress bars and prefixes when they are asked for; places refer to the input."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING

from diagnose.facts import Witness
from diagnose.parse.text import decoding
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.line_cleaning import SHORT, clean_short, without_prefixes
from diagnose.parse.text.prefixes import NOBODY, PeeledLine, Prefix, peel, same_stream
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.scan.excerpts import Excerpt

__all__ = ["Line", "Page", "Prefix", "same_stream"]

REACH = 4096  # bytes of one line that are looked at, on either side of what is sought
FRAMED = 40 << 10  # the same of a line that is one value: docker cuts records at 16 KiB, a notebook may be a single line
SHOWN = 500  # characters of a line that a witness shows
PARTS = 64  # lines that a container runtime may have cut one into
COUNTED = 40  # lines round one, that tell a viewer's line numbers from ranks

#: torch 2.3 streams the device index as one raw byte: GPU 0 is a NUL, GPU 10 ends the line, GPU 13 is a carriage return.
_RAW_DEVICE = lazy_compile(rb"(GPU |device )([\x00-\x1f])(?:\([^)\n]{0,80}\) |\[[^\]\n]{0,80}\]: )?( has a total capac| would exceed)")
#: Ray prints what many workers said once; the note behind it is none of their words.
_REPEATED = lazy_compile(r"\s*\[repeated \d{1,9}x across cluster\]\s*$")
_CUT = lazy_compile(rb"[\d:.TZ+-]{20,40} std(?:err|out) [FP]|\s{0,4}\{|\[\d{1,9}\.\d|\s{1,40}\"")
_LABEL = lazy_compile(rb"\s{0,7}(\d{1,7})(?:: | {0,2}\|)")
_RANK = lazy_compile(rb"\[rank(\d{1,6})\]:")  # what torch's hooks put before every line


class Line(NamedTuple):
    """A line without colours and prefixes; `text` keeps its indentation. `number`: in the input, from 1."""

    number: int
    prefix: Prefix
    text: str


class _LineStart(NamedTuple):
    """What precedes an offset in its line. `prefix`: who wrote the line; `text`: cleaned; `quoted`: the offset is inside a JSON string;
    `open`: a container runtime continues the line in a next part."""

    prefix: Prefix
    text: str
    quoted: bool
    open: bool


class Page:
    """An excerpt of an input, as lines. An `index` counts the page's lines from 0; an `offset` counts the input's bytes."""

    def __init__(self, source: str, excerpt: Excerpt, writer: Prefix = NOBODY) -> None:
        self.source = source
        self.excerpt = excerpt
        self.writer = writer  # of the whole file, as its path says
        self._is_signed = writer != NOBODY
        self._cleaned: dict[int, Line] = {}
        self._alone: dict[int, PeeledLine] = {}
        self._counted: dict[int, bool] = {}
        self._asked: tuple[int, tuple[Prefix, str, str]] | None = None

    @cached_property
    def starts(self) -> list[int]:
        """Offsets of the line starts in the excerpt."""
        starts = list(accumulate(map(len, BytesIO(self.excerpt.raw)), initial=0))
        return starts if not self.excerpt.raw or self.excerpt.raw.endswith(b"\n") else starts[:-1]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def cut_off(self) -> str:
        """The last characters of an excerpt that ends inside a line; "" where the last line is whole."""
        end = self.excerpt.raw[-64:]
        return "" if end.endswith((b"\n", b"\r")) else end.decode("utf-8", "replace")

    def index(self, offset: int) -> int:
        """The index of the line that holds an offset of the input."""
        return bisect_right(self.starts, offset - self.excerpt.offset) - 1

    def number(self, index: int) -> int:
        """A line's number in the input, from 1."""
        numbers = self.excerpt.numbers
        return numbers[index] if index < len(numbers) else self.excerpt.line + index

    def bounds(self, index: int) -> tuple[int, int]:
        """Start and end of a line in the excerpt's bytes, without its line end."""
        end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else len(self.excerpt.raw)
        return self.starts[index], end

    def line_end(self, offset: int) -> int:
        """The offset in the input at which the line of an offset ends."""
        end = self.excerpt.raw.find(b"\n", offset - self.excerpt.offset)
        return self.excerpt.offset + (end if end >= 0 else len(self.excerpt.raw))

    def line(self, index: int) -> Line:
        """The line, cleaned; of a progress bar its last state.

        A line that a container runtime cut into parts is whole at the index of its first part and empty at those of the others.
        """
        line = self._cleaned.get(index)
        if line is None:
            own = self._own(index)
            prefix, text, label, stream, is_open = own
            if stream and self._first_part(index) != index:
                text = ""
            elif is_open:
                text = decoding.strip_colours("".join(part.text for part in (own, *self._parts_after(index))))
            if text.endswith("cluster]"):
                text = _REPEATED.sub("", text)
            if label:
                prefix = self._prefix(index, own)
            line = self._cleaned[index] = Line(self.number(index), self._by(prefix) if self._is_signed else prefix, text)
        return line

    def around(self, offset: int) -> tuple[Prefix, str, str]:
        """(the process that wrote the line of an offset, the line's cleaned text before it, its text from there on).

        Either text ends where a progress bar was redrawn; a device index printed as a raw byte is written in digits. A traceback that was
        pasted as one line has its line ends back.
        """
        if self._asked is None or self._asked[0] != offset:  # one line is asked for several things
            self._asked = offset, self._around(offset)
        return self._asked[1]

    def writer_at(self, offset: int) -> Prefix:
        """The process that wrote an offset's line, as in `around`."""
        return self._by(self._before(offset).prefix)

    def _around(self, offset: int) -> tuple[Prefix, str, str]:
        context_before = self._before(offset)
        at = offset - self.excerpt.offset
        raw_after = self.excerpt.raw[at : at + REACH]
        if b"GPU " in raw_after or b"device " in raw_after:
            raw_after = _RAW_DEVICE.sub(lambda match: b"%s%d%s" % (match[1], match[2][0], match[3]), raw_after)
        context_after = _decoded(_state_end(raw_after))
        if context_before.quoted:
            context_after = decoding.split_at_quote(context_after)[0]
        context_after = decoding.to_plain_text(decoding.strip_colours(decoding.unescape(context_after)))
        if context_before.open:
            context_after = decoding.to_plain_text(
                decoding.strip_colours("".join((context_after, *(part.text for part in self._parts_after(self.index(offset))))))
            )
        return self._by(context_before.prefix), decoding.restore_lines(context_before.text), context_after

    def _before(self, offset: int) -> _LineStart:
        """What precedes an offset in its line."""
        index = self.index(offset)
        at = offset - self.excerpt.offset
        start, end = self.bounds(index)
        raw = self.excerpt.raw
        window_start = start
        if at - start > 4 * REACH:
            window_start = max(start, at - (FRAMED if _CUT.match(raw, start) is not None else 4 * REACH))
        redrawn = raw.rfind(b"\r", window_start, at)
        if redrawn >= 0 and b'File "' in raw[window_start:redrawn]:
            redrawn = -1  # an old Mac's line ends
        decoded = _decoded(raw[max(window_start, redrawn + 1) : at])
        json_text = decoding.json_string_end(decoded)
        if json_text is not None:
            own = without_prefixes(json_text)
            prefix = own.prefix
            if prefix == NOBODY:  # another key of the record names it, or what stands before the record
                prefix = self._prefix(index, self._own(index) if end - start < FRAMED else peel(decoding.strip_colours(decoded)))
        else:
            own = without_prefixes(decoding.unescape(decoded).replace("\r", "\n"))
            prefix = self._prefix(index, own)
        if (redrawn >= 0 or window_start > start) and prefix == NOBODY:
            prefix = self._prefix(index, without_prefixes(_decoded(raw[start : start + 200])))
        text, opened = own.text, False
        if self._has_streams and end - start < FRAMED and (stream := self._own(index).stream):
            first = self._first_part(index)
            if first != index:
                prefix = self._prefix(first, self._own(first))
                text = "".join(self._own(part).text for part in range(first, index) if self._own(part).stream == stream) + text
            opened = self._own(index).open
        return _LineStart(prefix, text, json_text is not None, opened)

    def following(self, index: int, prefix: Prefix, reach: int = 40) -> Iterator[str]:
        """The next lines of the same process, up to `reach` lines below; lines of other processes are skipped."""
        last = index
        for number in range(index + 1, min(index + 1 + reach, len(self))):
            rank = None if prefix.rank is None else _RANK.match(self.excerpt.raw, self.starts[number])
            if rank is not None and int(rank[1]) != prefix.rank:
                continue
            line = self.line(number)
            if self._own(number).stream and self._first_part(number) != number:
                last = number if last == number - 1 else last
            elif same_stream(line.prefix, prefix) or (line.prefix == NOBODY and last == number - 1):  # a console cut it
                last = number
                yield line.text

    def witness(self, offset: int) -> Witness:
        """The place of an offset, with line, column and the line's raw text (of a long line the part round the offset)."""
        index = self.index(offset)
        start, end = self.bounds(index)
        at = offset - self.excerpt.offset
        into = self.excerpt.into if index == 0 else 0
        column = into + len(_decoded(self.excerpt.raw[start:at])) + 1
        redrawn = self.excerpt.raw.rfind(b"\r", start, at) + 1
        visible_start = start if at - start < SHOWN // 2 else max(start, redrawn, at - SHOWN // 2)
        text = _decoded(self.excerpt.raw[visible_start : min(end, visible_start + 4 * SHOWN)])[:SHOWN].rstrip("\r")
        return Witness(self.source, self.number(index), column, text.strip("\ufffd") if visible_start != start else text)

    # -- one line as it stands

    def _own(self, index: int) -> PeeledLine:
        """The line of an index without its prefixes, regardless of parts and neighbours."""
        peeled = self._alone.get(index)
        if peeled is None:
            start, end = self.bounds(index)
            raw = self.excerpt.raw
            if end - start < SHORT:
                peeled = clean_short(raw[start:end])
            elif end - start <= REACH:
                peeled = without_prefixes(_decoded(raw[start:end]))
            else:
                peeled = without_prefixes(_decoded(raw[max(start, end - (FRAMED if _CUT.match(raw, start) else REACH)) : end]))
                if peeled.prefix == NOBODY:
                    peeled = peeled._replace(prefix=without_prefixes(_decoded(raw[start : start + 200])).prefix)
            self._alone[index] = peeled
        return peeled

    def _by(self, prefix: Prefix) -> Prefix:
        """The prefix, completed by what the path of the file says of its process."""
        if not self._is_signed:
            return prefix
        unsaid = {name: value for name, value in self.writer._asdict().items() if getattr(prefix, name) in (None, "")}
        return prefix._replace(**unsaid)

    def _prefix(self, index: int, own: PeeledLine) -> Prefix:
        """The process that a line's prefixes name. A bare number is no rank where the numbers count lines."""
        if own.label and self._counts_lines(index):
            return own.prefix._replace(rank=None)
        return own.prefix

    def _counts_lines(self, index: int) -> bool:
        """Whether bare numbers before the lines near this one are line numbers of a viewer: each one higher than the last."""
        block = index // COUNTED
        counted = self._counted.get(block)
        if counted is None:
            first, raw = max(0, block * COUNTED - 2), self.excerpt.raw
            labels = [_LABEL.match(raw, self.starts[at]) for at in range(first, min(first + COUNTED + 4, len(self)))]
            places = [(at, int(label[1])) for at, label in enumerate(labels) if label is not None]
            numbers = [number for _, number in places]
            # every line is numbered, each one higher; srun begins at 0. Where lines were left out, small numbers may as well be ranks
            is_whole = len({number - at for at, number in places}) == 1
            is_rising = sorted(set(numbers)) == numbers and numbers[:1] > [COUNTED]
            counted = len(places) > 3 and numbers[0] > 0 and (is_whole or is_rising)
            self._counted[block] = counted
        return counted

    # -- lines that a container runtime cut

    @cached_property
    def _has_streams(self) -> bool:
        """Whether lines may be those of a container runtime or terminal recorder, which name their stream."""
        return self.excerpt.spots.any((b" stderr ", b" stdout ", b'"stream"', b'"o"'))

    def _first_part(self, index: int) -> int:
        """Index of the first part of a line that a container runtime cut; the line's own index where it is whole."""
        stream, first = self._own(index).stream, index
        for number in range(index - 1, max(-1, index - 1 - PARTS), -1):
            own = self._own(number)
            if own.stream != stream:
                continue
            if not own.open:
                break
            first = number
        return first

    def _parts_after(self, index: int) -> Iterator[PeeledLine]:
        """The further parts of a line that a container runtime cut, behind this part."""
        own = self._own(index)
        stream = own.stream
        for number in range(index + 1, min(index + 1 + PARTS, len(self))):
            if not own.open:
                return
            if self._own(number).stream == stream:
                own = self._own(number)
                yield own


def _state_end(raw: bytes) -> bytes:
    """The bytes up to the first line end or carriage return."""
    ends = [end for end in (raw.find(b"\n"), raw.find(b"\r")) if end >= 0]
    return raw[: min(ends, default=len(raw))]


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def lines_above(page: Page, index: int, reach: int) -> Iterator[tuple[int, str]]:
    """(index, text) of up to `reach` lines above one, nearest first."""
    for at in range(index - 1, max(-1, index - 1 - reach), -1):
        yield at, page.line(at).text


def lines_below(page: Page, index: int, reach: int) -> Iterator[tuple[int, str]]:
    """(index, text) of up to `reach` lines below one, in order."""
    for at in range(index + 1, min(len(page), index + 1 + reach)):
        yield at, page.line(at).text
