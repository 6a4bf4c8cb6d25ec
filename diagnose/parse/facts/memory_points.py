"""Figures of memory that a log prints while a job runs: which lines carry one, of what, in which unit, printed by whom.

rules/memory_lines.yaml describes the lines of one row each; tables of cards (nvidia-smi and its like) are read by smi_tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.records import NamedTuple
from diagnose.units import MOST_DIGITS, Size, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypedDict

    from diagnose.facts import Witness
    from diagnose.parse.text.lines import Page

    class LineRow(TypedDict, total=False):
        says: str
        names: list[str]
        near: list[str]
        own: bool
        pattern: str
        unit: str
        decimal: bool
        of: str
        peak: bool
        between_steps: bool
        cards: bool

    #: Who printed a figure: the rank alone, or rank, actor, host, process id and the words before the figure; or a card.
    Stream = tuple[int | str | bytes | None, ...]

#: Fewer prints than this show no course, but for so few that grow in proportion to the steps that they stand at.
FEWEST, FEW = 5, 3
MOST = 600  # points of one series
HOST = ("process", "node")  # measures of memory of the host: of one process, of all that the node uses
_AROUND = 480  # bytes of a line that are looked at on either side of its literal
_CAPTION = 160  # bytes before a named figure whose words tell one place of printing from another
_ROWS_OF_CARDS = 16  # adjacent rows without an index that may be as many cards; more are one card over time

#: What tells that training went on between two of DeepSpeed's lines; during set-up they stand between steps of the set-up.
_TRAINS = (b"s/it", b"it/s", b"'loss'")
_STEPS = rb"(?i)\b(?:step|iter(?:ation)?)[ =:]{1,2}\d"
_STEP_WORDS = (b"step", b"Step", b"iter", b"Iter")
#: A step counter beside a figure that has none of its own: explicit ones, then a progress bar, then any word for a step.
_COUNTED = rb"global_step/max_steps': '(\d{1,12})/|\bstep:(\d{1,12}) - |'(?:global_)?step': (\d{1,12})\b"
_COUNTERS = (b"global_step/max_steps'", b"step:", b"step': ")  # one of these stands in each
_BAR = rb"%\|[^|\r\n]{0,300}\| {0,8}([\d,]{1,15})/([\d,]{1,15}) \["
_STEP = (
    rb"(?i)(?<![a-z])(?:global[_ ]?step|steps?|it(?:er(?:ation)?s?)?|num_updates|batch|update)['\"]?[ :=#\[]{1,4}['\"]?(\d{1,12})(?!\.?\d)"
    rb"|\[ {0,8}(\d{1,9})/ {0,4}(\d{1,9})\]|(?<!\d)(\d{1,9}) ?\xe6\xad\xa5"
)
_EPOCH = (
    rb"(?i)(?<![a-z_])epoch(?:\((?:train|val)\))?['\"]?[ :=#\[]{1,4}['\"]?(\d{1,6})"
    rb"|(?<!\d)(\d{1,6})epoch:|\xe7\xac\xac ?(\d{1,6}) ?\xe8\xbd\xae"
)
_EPOCHS = (b"poch", b"POCH", "轮".encode())

_BETWEEN_RECORDS = (b"}, {", b"},{")  # of a list of records in one line
#: What may stand between the name of a figure and the figure: a device, a unit in brackets, an equals sign; then the unit behind it.
_FIGURE = (
    rb"(?:\((?:device=)?(?:cuda:)?(?P<gpu>\d{0,2})\))?['\"\]]{0,2}"
    rb"[ _]?[(\[]?(?P<ahead>(?:[KMGT]i?B|[kmg]b|bytes)(?=[)\] :='\"]|$))?[)\]]?['\"]{0,2}"
    rb"(?: (?:is|was|now|at))? {0,8}(?:[:=|]{1,2}|\xef\xbc\x9a)?>? {0,8}['\"]?(?P<value>\d{1,3}(?:,\d{3}){1,5}|\d{1,16}(?:\.\d{1,20})?)"
    rb"(?: ?/ ?\d{1,9}(?:\.\d{1,9})?(?= ?[KMGTkmgt]i?[Bb]))?(?: ?(?P<unit>[KMGTkmgt]i?[Bb]?|bytes|B))?(?![\w%])"
)
_UNITS = {"k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB"}
#: Words right before a name that make it the name of another figure: of the most so far, of a capacity, of the host's memory.
_PEAK_BEFORE = rb"(?i)(?<![a-z])(?:max|peak|maximum|total|free|budget|limit)[a-z_. ]{0,20}$"
_HOST_BEFORE = rb"(?i)(?<![a-z])(?:cpu|host|system|ram|shared|process)[a-z_. ]{0,12}$"
_BEFORE = 28  # bytes before a name in which they, and the words of `near`, stand
#: A figure of so many digits without a unit is a count of bytes: as KiB it would be more than any card, or node, has.
_BYTES_OF_CARD, _BYTES_OF_NODE = 9, 11
#: One of so many in a progress bar is a count of MiB: as GiB it would be more than any card has, as KiB next to nothing.
_MEGABYTES_OF_CARD = range(4, 7)


@dataclass(slots=True)
class Point:
    """One figure: its offset in the page, who printed it, the offset of the row's literal, the step where the row's pattern reads it."""

    page: Page
    at: int
    size: Size
    stream: Stream
    literal: int
    own_step: int | None = None

    @property
    def offset(self) -> int:
        return self.page.excerpt.offset + self.at

    @property
    def witness(self) -> Witness:
        return self.page.witness(self.offset)

    @property
    def line(self) -> tuple[int, int]:
        """Where the line begins and ends, a state of a redrawn bar and a record of a list in one line being lines; at most 2,000 bytes
        to either side."""
        raw = self.page.excerpt.raw
        reach = max(0, self.at - 2000)
        start = max(raw.rfind(b"\n", reach, self.at), raw.rfind(b"\r", reach, self.at), reach - 1) + 1
        ends = [end for end in (raw.find(b"\n", self.at, self.at + 2000), raw.find(b"\r", self.at, self.at + 2000)) if end >= 0]
        end = min(ends, default=min(len(raw), self.at + 2000))
        if any(raw.find(sign, start, end) >= 0 for sign in _BETWEEN_RECORDS):
            first, last = raw.rfind(b"{", start, self.at), raw.find(b"}", self.at, end)
            return (first if first >= 0 else start), (last if last >= 0 else end)
        return start, end

    def step(self, after: int) -> tuple[int, int] | None:
        """(training step, number of steps of its epoch or run, 0 if unknown): the line's own, one printed beside it, else the last
        one before it; None without one. `after`: offset in the page behind which it must stand."""
        if self.own_step is not None:
            return self.own_step, 0
        raw = self.page.excerpt.raw
        start, end = self.line
        if self.page.excerpt.spots.any(_COUNTERS):
            counted = _compiled(_COUNTED).search(raw, start, end)
            if counted is not None:
                return int(next(filter(None, counted.groups()))), 0
        bars = list(_compiled(_BAR).finditer(raw, max(0, self.literal - 1200), self.literal))
        if bars:
            step, total = whole_number(bars[-1][1]), whole_number(bars[-1][2])
            return None if step is None else (step, total or 0)
        own = _compiled(_STEP).search(raw, start, end)
        if own is None:
            own = next(iter(reversed(list(_compiled(_STEP).finditer(raw, max(after, start - 1200, 0), start)))), None)
        return None if own is None else (int(own[1] or own[2] or own[4]), int(own[3] or 0))

    def epoch(self) -> int | None:
        """The epoch that its line, or the last line before it, names."""
        spots, (_, end) = self.page.excerpt.spots, self.line
        last = max(spots.last(word, 0, end) for word in _EPOCHS)
        if last < 0:
            return None
        numbers = list(_compiled(_EPOCH).finditer(self.page.excerpt.raw, max(0, last - 12), min(end, last + 40)))
        return int(next(filter(None, numbers[-1].groups()))) if numbers else None


def points_of_row(row: LineRow, pages: Sequence[Page], begin: int, end: int | None) -> list[Point]:
    """What the lines of one row print between two offsets of their input."""
    places = _thin_out(sorted((place for page in pages for place in _places(page, row, begin, end)), key=lambda place: place.offset))
    points = list(_read(places, row)) if places else []
    return _number_cards(points) if row.get("cards") else points


@cache
def words() -> frozenset[bytes]:
    """Literals of which every line of the table holds one."""
    return frozenset(word for row in rule_files.table("memory_lines") for word in _literals(row))


def _literals(row: LineRow) -> list[bytes]:
    return [name.encode() for name in row.get("names", ())] or [row["says"].encode()]


def speaks(row: LineRow, present: set[bytes]) -> bool:
    """Whether a row has one of the literals that the log holds."""
    return any(word in present for word in _literals(row))


class _Place(NamedTuple):
    """An occurrence of a literal in a page, and where to stop reading behind it."""

    page: Page
    at: int
    length: int
    stop: int

    @property
    def offset(self) -> int:
        return self.page.excerpt.offset + self.at


def _places(page: Page, row: LineRow, begin: int, end: int | None) -> Iterator[_Place]:
    size = len(page.excerpt.raw)
    stop = size if end is None else max(0, min(size, end - page.excerpt.offset))
    start = max(0, begin - page.excerpt.offset)
    for literal in _literals(row):
        for at in page.excerpt.spots.places(literal):
            if start <= at <= stop - len(literal):
                yield _Place(page, at, len(literal), stop)


def _thin_out(places: list[_Place]) -> list[_Place]:
    """A few places from each part of the run: processes may print one after another."""
    if len(places) <= 4 * MOST:
        return places
    first, last = places[0].offset, places[-1].offset
    by_stream: dict[int, list[_Place]] = {}
    for place in places:
        part = by_stream.setdefault((place.offset - first) * MOST // 2 // (last - first + 1), [])
        if len(part) < 4:
            part.append(place)
    return [place for part in by_stream.values() for place in part] + places[-8:]


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Compiled on use: many logs print no memory."""
    return re.compile(pattern)


def _read(places: Sequence[_Place], row: LineRow) -> Iterator[Point]:
    between_steps = row.get("between_steps", False)
    page, last_end = None, 0
    for place in places:
        raw = place.page.excerpt.raw
        if place.page is not page:
            page, last_end = place.page, 0
        match = _named(place, row) if "names" in row else _matched(place, row)
        size = _size(match, row) if match is not None and not _is_cut(match) else None
        if match is None or size is None or match.start("value") < last_end:
            continue
        if not between_steps or _trains(raw, last_end, match.start()):
            own = match["step"] if "step" in match.re.groupindex else None
            yield Point(page, match.start("value"), size, _stream(place, match, row), place.at, int(own) if own else None)
        last_end = match.end()


def _matched(place: _Place, row: LineRow) -> re.Match[bytes] | None:
    """The row's own pattern round a place."""
    raw, at = place.page.excerpt.raw, place.at
    start = max(raw.rfind(b"\n", max(0, at - _AROUND), at) + 1, at - _AROUND, 0)
    return _compiled(row["pattern"].encode()).search(raw, start, min(place.stop, at + _AROUND))


def _named(place: _Place, row: LineRow) -> re.Match[bytes] | None:
    """The figure right behind a name."""
    raw, at = place.page.excerpt.raw, place.at
    before = raw[max(0, at - _BEFORE) : at]
    if before[-1:].isalnum() and raw[at : at + 1].isalpha():
        return None
    is_peak = not row.get("peak") and row["of"] != "free" and _compiled(_PEAK_BEFORE).search(before)
    is_host = row["of"] not in HOST and _compiled(_HOST_BEFORE).search(before)
    if is_peak or is_host or ("near" in row and not any(word.encode() in before for word in row["near"])):
        return None
    return _compiled(_FIGURE).match(raw, at + place.length, min(place.stop, at + place.length + 96))


def _is_cut(match: re.Match[bytes]) -> bool:
    """Whether the text that was looked at ends with the figure, within a line: it may be a part of one."""
    return match.end("value") >= match.endpos - 1 and match.string[match.endpos : match.endpos + 1] not in (b"\n", b"\r")


def _trains(raw: bytes, start: int, end: int) -> bool:
    """Whether training went on between two places. Literals are searched ten times faster than a pattern of all of them."""
    for word in _TRAINS:
        if raw.find(word, start, end) >= 0:
            return True
    has_word = any(raw.find(word, start, end) >= 0 for word in _STEP_WORDS)
    return has_word and _compiled(_STEPS).search(raw, start, end) is not None


def _size(match: re.Match[bytes], row: LineRow) -> Size | None:
    groups = match.groupdict()
    digits = match["value"].decode()
    unit = row.get("unit") or _unit(groups.get("unit") or groups.get("ahead"), digits, row)
    if not unit and row["of"] not in HOST and digits.isdecimal() and len(digits) in _MEGABYTES_OF_CARD and _stands_in_bar(match):
        unit = "MiB"
    try:
        if row.get("decimal"):
            printed = Size.printed(digits, "B")
            places = len(digits.partition(".")[2])
            slop = 5 * 10 ** (8 - places) if places < 9 else 0
            exact = round(float(digits) * 10**9)
            return printed and Size(max(0, exact - slop), exact + slop, exact, f"{digits} GB (10^9)")
        return _parse_printed(digits.replace(",", "")[: MOST_DIGITS // 2], unit)
    except ValueError:
        return None


def _stands_in_bar(match: re.Match[bytes]) -> bool:
    """Whether a figure stands behind the speed of a progress bar."""
    before = re.split(rb"[\r\n]", match.string[max(0, match.start() - _CAPTION) : match.start()])[-1]
    return any(word in before for word in _TRAINS[:2])


def _unit(printed: bytes | None, digits: str, row: LineRow) -> str:
    """The unit of SCALE; "" where neither the line nor the length of the figure tells it."""
    if printed is None:
        fewest = _BYTES_OF_NODE if row["of"] in HOST else _BYTES_OF_CARD
        return "B" if digits.isdecimal() and len(digits) >= fewest else ""
    text = printed.decode()
    return "B" if text in ("B", "bytes") else _UNITS[text[0].lower()]


@lru_cache(maxsize=1024)
def _parse_printed(digits: str, unit: str) -> Size | None:
    """Cached, because most prints repeat the one before."""
    return Size.printed(digits, unit)


def _stream(place: _Place, match: re.Match[bytes], row: LineRow) -> Stream:
    """Who printed the match: the rank in the line, else what the prefix says; of a named figure also which device and in what words."""
    page, groups = place.page, match.groupdict()
    if groups.get("rank"):
        return (int(groups["rank"]),)
    gpu = int(groups["gpu"]) if groups.get("gpu") else None
    if row.get("cards"):
        return (gpu,)
    prefix = page.line(page.index(page.excerpt.offset + match.start())).prefix
    rank = prefix.rank if prefix.rank is not None else prefix.local_rank
    if "names" not in row and not row.get("own"):
        return (rank, prefix.actor, prefix.host, prefix.pid)
    caption = _caption(page.excerpt.raw, place.at, place.length)
    return (rank if rank is not None else gpu, prefix.actor, prefix.host, prefix.pid, caption, gpu)


def _caption(raw: bytes, at: int, length: int) -> bytes:
    """The words of the line up to a figure's name, without numbers: a script that prints before and after a pass prints two series."""
    start = max(raw.rfind(b"\n", max(0, at - _CAPTION), at), raw.rfind(b"\r", max(0, at - _CAPTION), at), at - _CAPTION - 1) + 1
    line = re.sub(rb"\d[\d.,:e+-]*", b" ", raw[start : at + length])
    return b" ".join(re.findall(rb"[A-Za-z]{2,40}", line))


def _number_cards(points: list[Point]) -> list[Point]:
    """Rows of bare figures, one for each card: those that stand in adjacent lines are as many cards, if always as many do."""
    runs: list[list[Point]] = []
    last_end: tuple[Page, int] | None = None
    for point in points:
        start, end = point.line
        if last_end is None or last_end[0] is not point.page or start > last_end[1] + 2:
            runs.append([])
        runs[-1].append(point)
        last_end = point.page, end
    if len(runs) < 2 or len(runs[0]) > _ROWS_OF_CARDS or any(len(run) != len(runs[0]) for run in runs[:-1]):
        return points
    for run in runs:
        for number, point in enumerate(run):
            if point.stream == (None,):
                point.stream = (number,)
    return points
