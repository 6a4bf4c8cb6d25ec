"""Memory that a log prints repeatedly: collected over the whole run, and whether it grows, jumps, falls back or stays.

rules/memory_lines.yaml describes the lines. Points come from the excerpts and from samples of the log between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.facts import Fact, Value, Witness
from diagnose.parse.facts.memory_trend import FEWEST, Trend, classify_trend
from diagnose.units import Size, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypedDict

    from diagnose.parse.text.lines import Page

    class LineRow(TypedDict, total=False):
        says: str
        pattern: str
        unit: str
        decimal: bool
        of: str
        peak: bool
        between_steps: bool

    #: Who printed a figure: the rank alone, or rank, actor, host and process id.
    Stream = tuple[int | str | None, ...]

MOST = 600  # points of one series
LOOKS = 100  # points where only looks lie between the excerpts
SPARSE = 64 << 10  # bytes between two excerpts that are a gap
_AROUND = 480  # bytes of a line that are looked at on either side of its literal

#: What tells that training went on between two of DeepSpeed's lines; during set-up they stand between steps of the set-up.
_TRAINS = (b"s/it", b"it/s", b"'loss'")
_STEPS = rb"\bstep=\d"
#: A step counter beside a figure that has none of its own: explicit ones, then a progress bar.
_COUNTED = rb"global_step/max_steps': '(\d{1,12})/|\bstep:(\d{1,12}) - |'(?:global_)?step': (\d{1,12})\b"
_COUNTERS = (b"global_step/max_steps'", b"step:", b"step': ")  # one of these stands in each
_BAR = rb"%\|[^|\r\n]{0,300}\| {0,8}([\d,]{1,15})/[\d,]{1,15} \["


@dataclass(slots=True)
class Point:
    """One figure: offset in its page, size, offset of the row's literal, the match of its pattern, who printed it."""

    page: Page
    at: int
    size: Size
    literal: int
    read: re.Match[bytes]
    stream: Stream

    @property
    def offset(self) -> int:
        return self.page.excerpt.offset + self.at

    @property
    def witness(self) -> Witness:
        return self.page.witness(self.offset)

    @property
    def step(self) -> int | None:
        """The training step: the line's own, one printed beside it, else that of the bar before it; None without one."""
        if "step" in self.read.re.groupindex and self.read["step"]:
            return int(self.read["step"])
        raw, at = self.page.excerpt.raw, self.literal
        if self.page.excerpt.spots.any(_COUNTERS):
            line = max(raw.rfind(b"\n", max(0, at - 2000), at), at - 2000, 0)
            end = raw.find(b"\n", at, at + 2000)
            counted = _compiled(_COUNTED).search(raw, line, end if end >= 0 else at + 2000)
            if counted is not None:
                return int(next(filter(None, counted.groups())))
        bars = list(_compiled(_BAR).finditer(raw, max(0, at - 1200), at))
        return whole_number(bars[-1][1]) if bars else None


@dataclass(slots=True)
class Series:
    """The points of one process, in order; `measure`: what they measure."""

    measure: str
    points: list[Point]


def facts(pages: Sequence[Page], end: int | None, rank: int | None) -> Iterator[Fact]:
    """The course of memory in one input before an offset, as one process printed it: that of `rank`, else the one that printed most."""
    series_found = read_series(pages, end, rank)
    if series_found is None:
        return
    points = series_found.points

    def fact(name: str, value: Value, point: Point) -> Fact:
        return Fact(name, value, "log", point.witness)

    last = points[-1]
    yield fact("log.memory_measure", series_found.measure, last)
    yield fact("log.memory_prints", len(points), last)
    yield fact("log.memory_first", points[0].size, points[0])
    yield fact("log.memory_last", last.size, last)
    highest = max(points, key=lambda point: point.size.bytes)
    yield fact("log.memory_highest", highest.size, highest)
    if len(points) >= FEWEST:
        yield from _course(points)


def _course(points: Sequence[Point]) -> Iterator[Fact]:
    """The trend as facts, with growth per step or the jump."""
    sizes = [point.size for point in points]
    shape = classify_trend(sizes)
    steps = _steps(points) if shape.word in ("linear_growth", "step_change") else None  # to read them costs more than all else
    if steps is not None and shape.word == "linear_growth":
        shape = classify_trend(sizes, steps)
    last = points[-1].witness
    yield Fact("log.memory_trend", None if shape.word == "unknown" else shape.word, "log", last)
    yield Fact("log.memory_grows", shape.word == "linear_growth", "log", last)
    yield from _figures(shape, points, steps)


def _figures(shape: Trend, points: Sequence[Point], steps: Sequence[int] | None) -> Iterator[Fact]:
    if shape.per_step is not None and steps is not None:
        yield Fact("log.memory_per_step", shape.per_step, "derived", points[-1].witness)
    if shape.jump is not None:
        yield Fact("log.memory_jump", points[shape.jump].size - points[shape.jump - 1].size, "derived", points[shape.jump].witness)
        if steps is not None:
            yield Fact("log.memory_jump_step", steps[shape.jump], "derived", points[shape.jump].witness)


def read_series(pages: Sequence[Page], end: int | None = None, rank: int | None = None) -> Series | None:
    """The first row of the table whose lines occur often enough to show a course, else the first that occurs at all."""
    short_series: Series | None = None
    words_present = {word for page in pages for word in page.excerpt.spots.among(_words())}
    if not words_present:
        return None
    ordered = sorted(pages, key=lambda page: page.excerpt.offset)
    begin = _attempt_start(ordered, end)
    for row in rule_files.table("memory_lines"):
        words = row["says"].encode()
        places = _thin_out([place for page in ordered for place in _places(page, words, begin, end)]) if words in words_present else []
        points = _points_of_process(list(_points(places, row)), rank) if places else []
        measure = ("peak_" if row.get("peak") else "") + row["of"]
        if len(points) >= FEWEST:
            return Series(measure, _spread_evenly(points, _has_gaps(ordered)))
        if points and short_series is None:
            short_series = Series(measure, points)
    return short_series


@cache
def _words() -> frozenset[bytes]:
    return frozenset(row["says"].encode() for row in rule_files.table("memory_lines"))


@dataclass(slots=True)
class _Place:
    """An occurrence of a literal in a page, and where to stop reading behind it."""

    page: Page
    at: int
    stop: int


def _places(page: Page, literal: bytes, begin: int, end: int | None) -> Iterator[_Place]:
    size = len(page.excerpt.raw)
    stop = size if end is None else max(0, min(size, end - page.excerpt.offset))
    start = max(0, begin - page.excerpt.offset)
    for at in page.excerpt.spots.places(literal):
        if start <= at <= stop - len(literal):
            yield _Place(page, at, stop)


def _thin_out(places: list[_Place]) -> list[_Place]:
    """A few places from each part of the run: processes may print one after another."""
    if len(places) <= 4 * MOST:
        return places
    first, last = (place.page.excerpt.offset + place.at for place in (places[0], places[-1]))
    by_stream: dict[int, list[_Place]] = {}
    for place in places:
        part = by_stream.setdefault((place.page.excerpt.offset + place.at - first) * MOST // 2 // (last - first + 1), [])
        if len(part) < 4:
            part.append(place)
    return [place for part in by_stream.values() for place in part] + places[-8:]


def _has_gaps(pages: Sequence[Page]) -> bool:
    """Whether parts of the log lie in no page: then points are dense where pages are long."""
    ends = [page.excerpt.offset + len(page.excerpt.raw) for page in pages]
    return any(page.excerpt.offset > end + SPARSE for page, end in zip(pages[1:], ends, strict=False))


def _spread_evenly(points: list[Point], sparse: bool) -> list[Point]:
    """Points at even distances over the run, the last one included."""
    buckets = LOOKS if sparse else MOST
    if len(points) <= buckets:
        return points
    first, width = points[0].offset, (points[-1].offset - points[0].offset) / buckets or 1
    by_bucket = {int((point.offset - first) / width): point for point in reversed(points)}
    return [*(by_bucket[number] for number in sorted(by_bucket) if by_bucket[number] is not points[-1]), points[-1]]


def _attempt_start(pages: Sequence[Page], end: int | None) -> int:
    """Where the attempt that ended at this place began: memory starts anew with each."""
    begin = 0
    for page in pages:
        stop = len(page.excerpt.raw) if end is None else max(0, min(len(page.excerpt.raw), end - page.excerpt.offset))
        at = page.excerpt.spots.last(b"***** Running training", 0, stop)
        begin = page.excerpt.offset + at if at >= 0 else begin
    return begin


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Compiled on use: many logs print no memory."""
    return re.compile(pattern)


def _points(places: Sequence[_Place], row: LineRow) -> Iterator[Point]:
    pattern, between_steps = _compiled(row["pattern"].encode()), row.get("between_steps", False)
    page, last_end = None, 0
    for place in places:
        raw, at = place.page.excerpt.raw, place.at
        if place.page is not page:
            page, last_end = place.page, 0
        window_start = max(raw.rfind(b"\n", max(0, at - _AROUND), at) + 1, at - _AROUND, 0)
        match = pattern.search(raw, window_start, min(place.stop, at + _AROUND))
        size = _size(match, row) if match is not None else None
        if match is None or size is None or match.start("value") < last_end:
            continue
        if not between_steps or _trains(raw, last_end, match.start()):
            yield Point(page, match.start("value"), size, at, match, _stream(page, match))
        last_end = match.end()


def _trains(raw: bytes, start: int, end: int) -> bool:
    """Whether training went on between two places. Literals are searched ten times faster than a pattern of all of them."""
    for words in _TRAINS:
        if raw.find(words, start, end) >= 0:
            return True
    return raw.find(b"step=", start, end) >= 0 and _compiled(_STEPS).search(raw, start, end) is not None


def _size(match: re.Match[bytes], row: LineRow) -> Size | None:
    digits = match["value"].decode()
    unit = row.get("unit") or match["unit"].decode()
    try:
        if row.get("decimal"):
            printed = Size.printed(digits, "B")
            places = len(digits.partition(".")[2])
            slop = 5 * 10 ** (8 - places) if places < 9 else 0
            exact = round(float(digits) * 10**9)
            return printed and Size(max(0, exact - slop), exact + slop, exact, f"{digits} GB (10^9)")
        return _parse_printed(digits[:20], unit)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def _parse_printed(digits: str, unit: str) -> Size | None:
    """Cached, because most prints repeat the one before."""
    return Size.printed(digits, unit)


def _stream(page: Page, match: re.Match[bytes]) -> Stream:
    """Who printed the match: the rank in the line, else what the prefix says."""
    if "rank" in match.re.groupindex and match["rank"]:
        return (int(match["rank"]),)
    prefix = page.line(page.index(page.excerpt.offset + match.start())).prefix
    return (prefix.rank if prefix.rank is not None else prefix.local_rank, prefix.actor, prefix.host, prefix.pid)


def _points_of_process(points: list[Point], rank: int | None) -> list[Point]:
    """The points of one process: of `rank`, else of the one that printed most."""
    streams: dict[Stream, list[Point]] = {}
    for point in points:
        streams.setdefault(point.stream, []).append(point)
    mine = [
        stream_points
        for stream, stream_points in streams.items()
        if rank is not None and stream[0] == rank and len(stream_points) >= FEWEST
    ]
    return max(mine or list(streams.values()), key=len, default=[])


def _steps(points: Sequence[Point]) -> list[int] | None:
    """The steps of all points, if each has one and they never decrease; else None."""
    steps = [point.step for point in points if point.step is not None]
    rising = all(step <= next_step for step, next_step in pairwise(steps))
    return steps if len(steps) == len(points) and rising and steps[-1] > steps[0] else None
