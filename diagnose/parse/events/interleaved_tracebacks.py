"""Separate the tracebacks of processes without prefixes that wrote into one log line by line.

Such processes run one program and fail in one place, so their tracebacks are equal. Where tracebacks overlap, the lines between the first
head and the last message are several copies of one traceback, shuffled together; it is recovered by dealing the lines out to the copies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from diagnose.parse.frames import tracebacks
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.lines import Prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.text.lines import Page

LONGEST = 20_000  # lines of overlapping tracebacks that are looked at
_HEAD = lazy_compile(r"Traceback \(most recent call last\)")
_INDENTED = lazy_compile(r"\s+\S")
_FRAME = lazy_compile(r'\s+File "')


def untangle_tracebacks(messages: Sequence[PlacedMessage]) -> None:
    """Give each message whose traceback overlaps another's the one traceback that all of them share."""
    by_page: dict[Page, list[PlacedMessage]] = defaultdict(list)
    for placed in messages:
        if placed.prefix == Prefix() and placed.trace.frames and not placed.same_line:
            by_page[placed.page].append(placed)
    for page, ends in by_page.items():
        if len(ends) > 1:
            _untangle_page(page, ends)


def _untangle_page(page: Page, ends: Sequence[PlacedMessage]) -> None:
    by_line = {placed.index: placed for placed in ends}
    heads = {index for index in _heads(page) if index < max(by_line)}
    first, open_heads, lanes = -1, 0, 0
    inside: list[PlacedMessage] = []
    for index in sorted(heads | set(by_line)):
        if open_heads and index - first > LONGEST:
            open_heads = 0
        if index in heads:
            if not open_heads:
                first, lanes, inside = index, 0, []
            open_heads += 1
            lanes = max(lanes, open_heads)
        elif open_heads:
            open_heads -= 1
            inside.append(by_line[index])
            if not open_heads and lanes > 1:
                _assign_copies(page, first, index, lanes, inside, heads)


def _heads(page: Page) -> set[int]:
    indexes = set()
    raw, at = page.excerpt.raw, page.excerpt.raw.find(b"Traceback (most recent call last)")
    while at >= 0:
        index = page.index(page.excerpt.offset + at)
        if page.line(index).prefix == Prefix():
            indexes.add(index)
        at = raw.find(b"Traceback (most recent call last)", page.bounds(index)[1])
    return indexes


def _assign_copies(page: Page, first: int, last: int, lanes: int, ends: Sequence[PlacedMessage], heads: set[int]) -> None:
    """Give the failures between two lines the traceback that the lines there are copies of, if they are."""
    skipped = heads | {placed.index for placed in ends}
    lines = [(index, page.line(index)) for index in range(first + 1, last) if index not in skipped]
    own = [(index, line.text) for index, line in lines if line.prefix == Prefix() and _INDENTED.match(line.text)]
    frames = [(index, text) for index, text in own if _FRAME.match(text)]
    copies = max(lanes, len(ends))
    dealt = _split_copies(frames, copies, min) or _split_copies(frames, copies, max)
    if dealt is None:
        return
    below = _statements(own)
    for placed in ends:
        mine: list[tuple[int, str]] = []
        for text, places in dealt:
            at = max((place for place in places if place < placed.index), default=places[0])
            mine += [(at, text), (at, below[text])] if below[text] else [(at, text)]
        trace = tracebacks.frames_in_lines(mine)
        if trace.frames:
            _replace(placed, trace)


def _split_copies(lines: Sequence[tuple[int, str]], copies: int, prefer: Callable[..., int]) -> list[tuple[str, list[int]]] | None:
    """The lines of one copy, each with its positions in every copy; None if the lines are not that many copies of one traceback.

    Where a line could continue several copies, `prefer` chooses the shortest or the longest of them.
    """
    whole: list[tuple[str, list[int]]] = []
    done = [0] * copies
    for index, text in lines:
        waiting = [lane for lane, at in enumerate(done) if at < len(whole) and whole[at][0] == text]
        if not waiting:
            waiting = [lane for lane, at in enumerate(done) if at == len(whole)]
            if not waiting:
                return None
            whole.append((text, []))
        lane = prefer(waiting, key=lambda lane: done[lane])
        whole[done[lane]][1].append(index)
        done[lane] += 1
    return whole if whole and set(done) == {len(whole)} else None


def _statements(own: Sequence[tuple[int, str]]) -> dict[str, str]:
    """The source line of each frame: of the lines that stand below every print of the frame, the nearest."""
    frames: dict[str, list[int]] = defaultdict(list)
    below: dict[str, list[int]] = defaultdict(list)
    for at, (_, text) in enumerate(own):
        (frames if _FRAME.match(text) else below)[text].append(at)
    statements: dict[str, str] = {}
    for frame, places in frames.items():
        distances = [(_distance(places, of_text), text) for text, of_text in below.items() if len(of_text) >= len(places)]
        statements[frame] = min(((distance, text) for distance, text in distances if distance is not None), default=(0, ""))[1]
    return statements


def _distance(frames: Sequence[int], lines: Sequence[int]) -> int | None:
    """How far below the prints of a frame a line stands, print by print; None where it stands above one.

    A line printed more often belongs to several frames: then the next one below each print is the frame's.
    """
    if len(frames) == len(lines):
        return None if any(line < frame for frame, line in zip(frames, lines, strict=True)) else sum(lines) - sum(frames)
    nexts = [bisect_right(lines, frame) for frame in frames]
    return None if nexts[-1] == len(lines) else sum(lines[at] - frame for at, frame in zip(nexts, frames, strict=True))


def _replace(placed: PlacedMessage, trace: tracebacks.Traceback) -> None:
    old = placed.page.witness(placed.page.excerpt.offset + placed.page.starts[placed.trace.places[-1]])
    new = placed.page.witness(placed.page.excerpt.offset + placed.page.starts[trace.places[-1]])
    placed.evidence[:] = [new if place == old else place for place in placed.evidence]
    placed.trace = trace
