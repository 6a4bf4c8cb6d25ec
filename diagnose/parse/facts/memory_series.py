"""Memory that a log prints repeatedly, of the card and of the host: its course over the whole run, and what it grows or falls with.

memory_points reads the figures, from the excerpts and from samples of the log between them; memory_trend names their course;
rules/memory_moments.yaml has the lines that tell saves and evaluations.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.facts import Fact
from diagnose.parse.facts import memory_points
from diagnose.parse.facts.memory_points import FEW, FEWEST, HOST, MOST, Point
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from diagnose.parse.facts.memory_points import LineRow, Stream
    from diagnose.parse.facts.memory_trend import Tie, Trend
    from diagnose.parse.text.lines import Page
    from diagnose.units import Size

LOOKS = 100  # points where only looks lie between the excerpts
SPARSE = 64 << 10  # bytes between two excerpts that are a gap
#: Kinds of marks by what they tell of a single change: an epoch's end itself takes nothing.
_TELLING = ("save", "eval", "epoch")


class Series(NamedTuple):
    """The points of one process, in order; `measure`: what they measure."""

    measure: str
    points: list[Point]

    @property
    def is_host(self) -> bool:
        return self.measure.removeprefix("peak_") in HOST


#: Facts of the series of the card, and of the host, by what they say of it.
_FACTS = {
    False: {
        "measure": "log.memory_measure",
        "prints": "log.memory_prints",
        "first": "log.memory_first",
        "last": "log.memory_last",
        "highest": "log.memory_highest",
        "trend": "log.memory_trend",
        "grows": "log.memory_grows",
        "grows_with": "log.memory_grows_with",
        "per_step": "log.memory_per_step",
        "per_epoch": "log.memory_per_epoch",
        "per_eval": "log.memory_per_eval",
        "per_save": "log.memory_per_save",
        "jump": "log.memory_jump",
        "jump_step": "log.memory_jump_step",
        "jump_at": "log.memory_jump_at",
        "falls_with": "log.memory_falls_with",
        "fall": "log.memory_fall",
    },
    True: {
        "measure": "log.host_memory_measure",
        "prints": "log.host_memory_prints",
        "first": "log.host_memory_first",
        "last": "log.host_memory_last",
        "highest": "log.host_memory_highest",
        "trend": "log.host_memory_trend",
        "grows": "log.host_memory_grows",
        "grows_with": "log.host_memory_grows_with",
        "per_step": "log.host_memory_per_step",
        "per_epoch": "log.host_memory_per_epoch",
        "per_eval": "log.host_memory_per_eval",
        "per_save": "log.host_memory_per_save",
        "jump": "log.host_memory_jump",
        "jump_step": "log.host_memory_jump_step",
        "jump_at": "log.host_memory_jump_at",
        "falls_with": "log.host_memory_falls_with",
        "fall": "log.host_memory_fall",
    },
}
#: What tools print that watch a machine: of another input than the failed one nothing else is of the failed process.
_OF_MACHINE = ("device", "node")


def facts(pages: Sequence[Page], others: Sequence[Page], end: int | None, rank: int | None, gpu: int | None = None) -> Iterator[Fact]:
    """The course of memory in one input before an offset, of the card and of the host, each as one process printed it: that of `rank`
    (of a table of cards, that of `gpu`), else the one that printed most. `others`: pages of the job's other inputs, where nvidia-smi or
    free may have been logged."""
    ordered = sorted(pages, key=lambda page: page.excerpt.offset)
    for host in (False, True):
        series = read_series(ordered, end, rank, gpu, host)
        if series is not None:
            yield from _facts(series, ordered)
        elif others:
            yield from _of_machine(others, gpu, host)


def _of_machine(pages: Sequence[Page], gpu: int | None, host: bool) -> Iterator[Fact]:
    """The first course of a whole card or node that another input holds."""
    by_source: dict[str, list[Page]] = {}
    for page in pages:
        by_source.setdefault(page.source, []).append(page)
    for of_source in by_source.values():
        ordered = sorted(of_source, key=lambda page: page.excerpt.offset)
        series = read_series(ordered, None, None, gpu, host)
        if series is not None and series.measure in _OF_MACHINE and len(series.points) >= FEWEST:
            yield from _facts(series, ordered)
            return


def _facts(series: Series, pages: Sequence[Page]) -> Iterator[Fact]:
    names = _FACTS[series.is_host]
    points = _spread_evenly(series.points, _has_gaps(pages))
    last = points[-1].witness
    yield Fact(names["measure"], series.measure, "log", last)
    yield Fact(names["prints"], len(points), "log", last)
    if series.measure != "free":  # what is left falls as memory grows: only its changes compare with other measures
        yield Fact(names["first"], points[0].size, "log", points[0].witness)
        yield Fact(names["last"], points[-1].size, "log", last)
        highest = max(points, key=lambda point: point.size.bytes)
        yield Fact(names["highest"], highest.size, "log", highest.witness)
    if len(points) >= FEW:
        yield from _course(names, series, points)


def _course(names: Mapping[str, str], series: Series, points: Sequence[Point]) -> Iterator[Fact]:
    """The trend as facts, with growth per step or the jump, and with what it goes together."""
    from diagnose.parse.facts.memory_trend import classify_trend  # here and below: few logs print memory often enough

    sizes = _used(series.measure, points)
    shape, few = classify_trend(sizes), len(points) < FEWEST
    steps = _steps(points) if few or shape.word in ("linear_growth", "step_change") else None  # to read them costs more than all else
    if steps is not None and (few or shape.word == "linear_growth"):
        shape = classify_trend(sizes, steps)
    last = points[-1].witness
    yield Fact(names["trend"], None if shape.word == "unknown" else shape.word, "log", last)
    yield Fact(names["grows"], shape.word == "linear_growth", "log", last)
    if shape.per_step is not None and steps is not None:
        yield Fact(names["per_step"], shape.per_step, "derived", last)
    if shape.jump is not None:
        yield from _jump(names, points, sizes, shape.jump, steps)
    if shape.word != "flat":
        yield from _ties(names, series, shape)


def _jump(names: Mapping[str, str], points: Sequence[Point], sizes: Sequence[Size], at: int, steps: Sequence[int] | None) -> Iterator[Fact]:
    """By how much, at which step, and what the job did between the two prints."""
    place = points[at].witness
    yield Fact(names["jump"], sizes[at] - sizes[at - 1], "derived", place)
    if steps is not None:
        yield Fact(names["jump_step"], steps[at], "derived", place)
    marks = _marks(points[at - 1 : at + 1])[0] or frozenset()
    kind = next((kind for kind in _TELLING if kind in marks), None)
    if kind is not None and ("epoch" in marks) + 1 >= len(marks):  # a save and an evaluation in the same gap: nobody can tell
        yield Fact(names["jump_at"], kind, "derived", place)


def _ties(names: Mapping[str, str], series: Series, shape: Trend) -> Iterator[Fact]:
    """What the series grows or falls with: a save, an evaluation, an epoch, else the steps."""
    from diagnose.parse.facts.memory_trend import falls_at_marks, growth_at_marks

    points = series.points[-4 * MOST :]
    sizes, marks = _used(series.measure, points), _marks(points)
    growth, falls = growth_at_marks(sizes, marks), falls_at_marks(sizes, marks)
    for tie in growth:
        yield Fact(names[f"per_{tie.kind}"], tie.change, "derived", points[tie.pair + 1].witness)
    kind = _one_kind(growth) or ("step" if shape.per_step is not None and not growth else None)
    if kind is not None:
        yield Fact(names["grows_with"], kind, "derived", points[-1].witness)
    if falls and (fallen_with := _one_kind(falls)):
        yield Fact(names["falls_with"], fallen_with, "derived", points[falls[0].pair + 1].witness)
        yield Fact(names["fall"], falls[0].change, "derived", points[falls[0].pair + 1].witness)


def _one_kind(ties: Sequence[Tie]) -> str | None:
    """The kind of mark; where several always coincide, the epoch that they share, else None."""
    kinds = [tie.kind for tie in ties]
    return kinds[0] if len(kinds) == 1 else "epoch" if "epoch" in kinds else None


def _used(measure: str, points: Sequence[Point]) -> list[Size]:
    """The sizes; of what is free, how much less than twice the most there was, so that it rises as memory is used."""
    sizes = [point.size for point in points]
    if measure != "free" or not sizes:
        return sizes
    most = max(sizes, key=lambda size: size.bytes)
    return [most + most - size for size in sizes]


# -- which series


def read_series(
    pages: Sequence[Page], end: int | None = None, rank: int | None = None, gpu: int | None = None, host: bool = False
) -> Series | None:
    """The first row of the table, of the card or of the host, whose lines occur often enough to show a course; else the tables of
    cards; else the first row that occurs at all."""
    present = {word for page in pages for word in page.excerpt.spots.among(memory_points.words())}
    begin = _attempt_start(pages, end) if present else 0
    short_series: Series | None = None
    for row in rule_files.table("memory_lines") if present else ():
        if (row["of"] in HOST) != host or not memory_points.speaks(row, present):
            continue
        points = _points_of_process(memory_points.points_of_row(row, pages, begin, end), gpu if row.get("cards") else rank)
        measure = ("peak_" if row.get("peak") else "") + row["of"]
        if len(points) >= FEWEST and (_is_of_program(row) or _is_course(points)):
            return Series(measure, points)
        if points and short_series is None and _is_of_program(row):
            short_series = Series(measure, points)
    points = [] if host else _points_of_process(_points_of_tables(pages, begin, end), gpu)
    if len(points) >= FEWEST or (len(points) >= FEW and _steps(points) is not None):
        return Series("device", points)
    return short_series


def _is_of_program(row: LineRow) -> bool:
    """Whether the lines are of a known program, so that a few are a fact. What people print in their own words may be anything."""
    return not any(row.get(key) for key in ("names", "own", "cards"))


def _is_course(points: Sequence[Point]) -> bool:
    """Whether figures may be of different moments: a list of alike cards, or of what each may use, is of one."""
    return len({point.size.bytes for point in points}) > 1 or points[-1].step(0) is not None or points[-1].epoch() is not None


def _points_of_tables(pages: Sequence[Page], begin: int, end: int | None) -> list[Point]:
    """What repeated tables of cards say is in use on each."""
    if not any(page.excerpt.spots.any(card_table_words()) for page in pages):
        return []
    from diagnose.parse.facts import smi_tables  # few logs hold such a table

    return [
        Point(card.page, card.at, card.used, (card.number,), card.at)
        for page in pages
        for card in smi_tables.card_rows(page, len(page.excerpt.raw) if end is None else max(0, end - page.excerpt.offset))
        if card.used is not None and card.offset >= begin
    ]


@cache
def card_table_words() -> tuple[bytes, ...]:
    """Words of which every table of cards (smi_tables) holds at least one."""
    rows = tuple(row["says"].encode() for row in rule_files.table("card_tables"))
    return (*rows, b"memory.used", b"memory.total", b"FB Memory Usage", b"GPU Memory |", b"Process name", b"MIG", b"# gpu ")


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


def _points_of_process(points: list[Point], number: int | None) -> list[Point]:
    """The points of one process or card: of the one with this number, else of the one that printed most; of as many the fullest."""
    streams: dict[Stream, list[Point]] = {}
    for point in points:
        streams.setdefault(point.stream, []).append(point)
    mine = [
        stream_points
        for stream, stream_points in streams.items()
        if number is not None and stream[0] == number and len(stream_points) >= FEWEST
    ]
    return max(mine or list(streams.values()), key=lambda of_stream: (len(of_stream), of_stream[-1].size.bytes), default=[])


# -- when


def _steps(points: Sequence[Point]) -> list[int] | None:
    """The steps of all points, if each has one and they never decrease but where an epoch counts anew; else None. What is printed before
    the first step is counted is a step earlier."""
    steps: list[int] = []
    base, previous = 0, None
    for point in points:
        counted = point.step(previous.line[1] if previous is not None and previous.page is point.page else 0)
        previous = point
        if counted is None:
            if steps or point is not points[0]:
                return None
            continue
        step, total = counted
        if steps and base + step < steps[-1] and total:
            base += total
        steps.append(base + step)
    if len(steps) == len(points) - 1 >= 2:
        steps.insert(0, 2 * steps[0] - steps[1])
    rising = all(step <= next_step for step, next_step in pairwise(steps))
    return steps if rising and steps[-1] > steps[0] else None


def _marks(points: Sequence[Point]) -> list[frozenset[str] | None]:
    """For each pair of neighbours the kinds of marks between them; None where part of the log between them was not read."""
    epochs = [point.epoch() for point in points]
    marks: list[frozenset[str] | None] = []
    for (sooner, later), (epoch, next_epoch) in zip(pairwise(points), pairwise(epochs), strict=True):
        if sooner.page is not later.page:
            marks.append(None)
            continue
        start, end = sooner.line[1], later.line[1]
        kinds = [row["mark"] for row in rule_files.table("memory_moments") if _stands_between(row["says"], later.page, start, end)]
        if epoch is not None and next_epoch is not None and next_epoch > epoch:
            kinds.append("epoch")
        marks.append(frozenset(kinds))
    return marks


def _stands_between(literals: Sequence[str], page: Page, start: int, end: int) -> bool:
    for literal in literals:
        places = page.excerpt.spots.places(literal.encode())
        index = bisect_left(places, start)
        if index < len(places) and places[index] < end:
            return True
    return False
