"""Excerpts: the windows of bytes kept round the hits of a scan, for each kind of message the first and the latest ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from diagnose.records import NamedTuple
from diagnose.scan.substring_index import SubstringIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = 3 << 20  # bytes of windows kept per kind of message: so many from the front, and as many from the end

#: Kinds of messages, least important first. A window counts as its most important kind, so that a flood of one does not crowd out another.
_WEIGHT = ("landmark", "lookalike", "serving_oom", "launcher_oom", "scheduler_oom", "ray_oom", "host_oom", "runtime_oom", "device_oom")


class Hit(NamedTuple):
    """A literal of rules/messages.yaml in the input: offset of its first byte, line number (from 1), offset of that line."""

    grammar: str
    offset: int
    line: int
    line_start: int


@dataclass
class Excerpt:
    """Bytes of the input from `offset` on; the first is byte `into` of line `line` (above 0 only in lines longer than a window).

    `numbers`: the number of each line in the input, where the lines are not in its order.
    """

    raw: bytes
    offset: int
    line: int
    into: int = 0
    numbers: tuple[int, ...] = ()

    @cached_property
    def spots(self) -> SubstringIndex:
        """An index of the words in it."""
        return SubstringIndex(self.raw)

    def __contains__(self, offset: int) -> bool:
        return self.offset <= offset < self.offset + len(self.raw)


@dataclass(slots=True, eq=False)
class Window:
    """A window being filled: its bytes are `offset` to `end` of the input; with number and offset of its first line, and its hits."""

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


class WindowStore:
    """Finished windows by weight, at most `KEPT` bytes for each weight. `dropped`: messages in discarded windows."""

    def __init__(self) -> None:
        self.dropped = 0
        self._by_weight: dict[int, tuple[list[Window], list[Window]]] = {}  # by weight: from the front, from the end

    def add(self, window: Window) -> None:
        """Store a finished window; discard older ones of its weight where there are too many."""
        front, latest = self._by_weight.setdefault(window.weight, ([], []))
        if sum(len(kept.raw) for kept in front) < KEPT and not latest:
            front.append(window)
            return
        latest.append(window)
        while sum(len(kept.raw) for kept in latest) > KEPT and len(latest) > 1:
            self.dropped += sum(hit.grammar.endswith("_oom") for hit in latest.pop(0).hits)

    def windows(self) -> list[Window]:
        """All stored windows by offset."""
        windows = [window for front, latest in self._by_weight.values() for window in (*front, *latest)]
        return sorted(windows, key=lambda window: window.offset)

    def excerpts(self, size: int) -> Iterator[Excerpt]:
        """The windows of an input of `size` bytes as excerpts; an empty input yields one empty excerpt."""
        for window in self.windows():
            if window.raw or not size:
                yield _from_line_start(window)


def _from_line_start(window: Window) -> Excerpt:
    """The window from its first whole line on; unchanged if a hit lies in the partial first line, which is then very long."""
    raw, into = bytes(window.raw), window.offset - window.line_start
    newline = raw.find(b"\n")
    if not into or newline < 0 or any(hit.line == window.line for hit in window.hits):
        return Excerpt(raw, window.offset, window.line, into)
    return Excerpt(raw[newline + 1 :], window.offset + newline + 1, window.line + 1)
