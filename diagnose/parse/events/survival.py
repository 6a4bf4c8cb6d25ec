"""Whether the job survived a failure: progress, words about a retry, the end of training."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from diagnose.parse.events import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.parse.events.nearby_marks import Mark
    from diagnose.parse.events.progress import Bar
    from diagnose.parse.text.lines import Page

BEFORE = 64 << 10  # how far back the last state of a bar is sought
AFTER = 32 << 10  # how far on one that went further is
PART = 16 << 10  # bytes that are searched for bars at once
SOON = 4 << 10  # how far below a message someone says that it is tried again


class Survival:
    """What the logs show after a failure. Each part of a page is searched for progress bars once, however many failures it holds.

    Offsets are those of the failure; `until` is where to stop looking: at the next start, or the next failure.
    """

    def __init__(self, marks: Sequence[Mark]) -> None:
        self._bars: dict[tuple[Page, int], list[Bar]] = {}
        self._marks: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for mark in marks:
            self._marks[mark.kind][mark.source].append(mark.offset)

    def goes_on(self, page: Page, offset: int, until: int) -> bool:
        """Whether training went on: a bar is two or more steps further than before."""
        first = page.excerpt.offset
        at, end = offset - first, min(offset + AFTER, until) - first
        counters = page.excerpt.spots.any(progress.COUNTS)
        later = self._states(page, at, end) if counters or page.excerpt.raw.find(b"%|", max(0, at), max(0, end + 4)) >= 0 else []
        ahead = {(bar.label, bar.total): bar.step for bar in self._states(page, at - BEFORE, at)} if later else {}
        return bool(ahead) and any(bar.step > ahead.get((bar.label, bar.total), bar.total) + 1 for bar in later)

    def is_retried(self, source: str, offset: int, until: int) -> bool:
        """Whether lines below say that it is retried with less, or skipped."""
        return self._next("retried", source, offset) < min(offset + SOON, until)

    def gave_up(self, source: str, offset: int, until: int) -> bool:
        """Whether a search for a batch size that fits ended without one."""
        return self._next("gave_up", source, offset) < until

    def finished(self, source: str, offset: int, until: int) -> bool:
        """Whether the job ended well after the failure, and no process was reported dead after that."""
        end = self._next("finished", source, offset)
        return end < until and self._next("exit", source, end) >= until

    def had_finished(self, source: str, offset: int, since: int) -> bool:
        """Whether the job, started at `since`, had ended well before the failure."""
        places = self._marks["finished"][source]
        at = bisect_left(places, offset)
        return at > 0 and places[at - 1] >= since

    def _next(self, kind: str, source: str, offset: int) -> int:
        places = self._marks[kind][source]
        at = bisect_right(places, offset)
        return places[at] if at < len(places) else 1 << 62

    def _states(self, page: Page, start: int, end: int) -> list[Bar]:
        """States of training bars between two places of a page, in order."""
        raw = page.excerpt.raw
        part = min(max(0, start), len(raw)) // PART
        while part and _line_end(raw, part * PART) > start:
            part -= 1
        progress_bars: list[Bar] = []
        while part * PART < min(end, len(raw)):
            if (page, part) not in self._bars:
                counters = page.excerpt.spots.any(progress.COUNTS)
                states = progress.read_states(raw, _line_end(raw, part * PART), _line_end(raw, (part + 1) * PART), counters)
                self._bars[page, part] = sorted((bar for bar in states if bar.trains), key=lambda bar: bar.at)
            progress_bars += [bar for bar in self._bars[page, part] if start <= bar.at < end]
            part += 1
        return progress_bars


def _line_end(raw: bytes, at: int) -> int:
    """The first line end or carriage return from here on, which no state of a bar spans."""
    if not at:
        return 0
    ends = [end + 1 for end in (raw.find(b"\n", at), raw.find(b"\r", at)) if end >= 0]
    return min(ends, default=len(raw))
