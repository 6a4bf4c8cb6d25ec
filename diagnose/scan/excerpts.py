"""Places in an input, and the windows round them that are kept: of each kind those from the front, and the latest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from diagnose.record import field, record
from diagnose.scan.substring_index import Spots

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = 3 << 20  # bytes of windows that are kept of each kind, from the front and once more from the end

#: Windows are kept by the weightiest thing in them: a flood of one kind does not crowd out another.
_WEIGHT = ("landmark", "lookalike", "serving_oom", "launcher_oom", "scheduler_oom", "ray_oom", "host_oom", "runtime_oom", "device_oom")


@record
class Hit:
    """A literal of rules/messages.yaml in the input: the offset of its first byte, its line (1-based) and where that line starts."""

    grammar: str
    offset: int
    line: int
    line_start: int


@record(slots=False)
class Excerpt:
    """Bytes of the input from `offset` on. They begin with line `line`, at its byte `into` (0: its start; more only in very long lines)."""

    raw: bytes
    offset: int
    line: int
    into: int = 0

    @cached_property
    def spots(self) -> Spots:
        """Where words stand in it."""
        return Spots(self.raw)

    def __contains__(self, offset: int) -> bool:
        return self.offset <= offset < self.offset + len(self.raw)


@record(frozen=False)
class Window:
    """Bytes from `offset` on that are kept, up to `end`; the number of the line they begin in and where that starts."""

    offset: int
    end: int
    line: int
    line_start: int
    raw: bytearray = field(default_factory=bytearray)
    hits: list[Hit] = field(default_factory=list)

    @property
    def filled(self) -> int:
        return self.offset + len(self.raw)

    @property
    def weight(self) -> int:
        return max((_WEIGHT.index(hit.grammar) for hit in self.hits if hit.grammar in _WEIGHT), default=0)


class Kept:
    """The windows that were put aside, each kind in its own room; `dropped` counts messages of those that found none."""

    def __init__(self) -> None:
        self.dropped = 0
        self._closed: dict[int, tuple[list[Window], list[Window]]] = {}  # by weight: from the front, from the end

    def put(self, window: Window) -> None:
        """Put a window aside."""
        front, latest = self._closed.setdefault(window.weight, ([], []))
        if sum(len(one.raw) for one in front) < KEPT and not latest:
            front.append(window)
            return
        latest.append(window)
        while sum(len(one.raw) for one in latest) > KEPT and len(latest) > 1:
            self.dropped += sum(hit.grammar.endswith("_oom") for hit in latest.pop(0).hits)

    def windows(self) -> list[Window]:
        """What was kept, in order."""
        kept = [window for front, latest in self._closed.values() for window in (*front, *latest)]
        return sorted(kept, key=lambda window: window.offset)

    def excerpts(self, size: int) -> Iterator[Excerpt]:
        """The windows of an input of that many bytes as they are parsed; an empty input has an empty one."""
        for window in self.windows():
            if window.raw or not size:
                yield _from_line_start(window)


def _from_line_start(window: Window) -> Excerpt:
    """The window without the end of a line that it begins with, unless a hit stands in that line: then it is a long one."""
    raw, into = bytes(window.raw), window.offset - window.line_start
    newline = raw.find(b"\n")
    if not into or newline < 0 or any(hit.line == window.line for hit in window.hits):
        return Excerpt(raw, window.offset, window.line, into)
    return Excerpt(raw[newline + 1 :], window.offset + newline + 1, window.line + 1)
