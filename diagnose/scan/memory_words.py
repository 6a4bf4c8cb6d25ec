"""Where a log may speak of memory: the anchors of rules/messages.yaml, and what stands round them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

from diagnose import rule_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ahocorasick_rs import BytesAhoCorasick

#: (start, end, name) of a literal in a buffer.
Found = tuple[int, int, str]


class Finder(Protocol):
    longest: int

    def find(self, buffer: memoryview) -> Iterable[Found]:
        """Each literal in the buffer with its name, in order; of overlapping ones the leftmost, and of those the longest."""


@cache
def anchors(core: bool = False) -> Finder:
    """The places worth a second look; `core`: those few that a plain search can afford over all of a log."""
    table = rule_files.table("messages")
    return _finder([(text.encode(), "") for text in table["core" if core else "anchors"]])


@cache
def literals() -> Finder:
    """What a place says: literals of messages and landmarks with the name of their grammar."""
    return _finder([(text.encode(), grammar) for grammar, texts in rule_files.table("messages")["messages"].items() for text in texts])


@cache
def nearby() -> dict[bytes, str]:
    """What is looked for only near a message: the words, and their kind."""
    return {text.encode(): kind for kind, texts in rule_files.table("messages")["near"].items() for text in texts}


@cache
def endings(grammars: frozenset[str]) -> Finder:
    """What of that is a message of these grammars: how jobs end. Few words, so that a log without one is done with quickly."""
    near = rule_files.table("messages")["near"]
    return _finder([(text.encode(), grammar) for grammar in grammars for text in near.get(grammar, ())])


@cache
def passed_over() -> tuple[str, ...]:
    """The grammars with messages that a search for the core anchors alone does not find."""
    table = rule_files.table("messages")
    return tuple(
        grammar for grammar, texts in table["messages"].items() if not all(any(core in text for core in table["core"]) for text in texts)
    )


@cache
def is_fast() -> bool:
    """Whether the compiled search is installed (an optional extra, 20 times faster)."""
    try:
        import ahocorasick_rs  # noqa: F401
    except ImportError:
        return False
    return True


def found(buffer: memoryview, first: Iterable[Found], reach: int) -> Iterator[Found]:
    """What stands round places: the literals within `reach` bytes of each, in order."""
    finder = literals()
    end = 0
    for start, stop in _merged(first, reach, len(buffer)):
        for at, to, name in finder.find(buffer[start:stop]):
            if start + at >= end:
                end = start + to
                yield start + at, end, name


def _merged(places: Iterable[Found], reach: int, size: int) -> Iterator[tuple[int, int]]:
    """The neighbourhoods of places; those that touch are one."""
    start = stop = 0
    for at, to, _ in places:
        if at - reach > stop and stop:
            yield start, stop
        if at - reach > stop or not stop:
            start = max(0, at - reach)
        stop = min(size, to + reach)
    if stop:
        yield start, stop


def _finder(texts: list[tuple[bytes, str]]) -> Finder:
    if not is_fast():
        return Plain(texts)
    from ahocorasick_rs import BytesAhoCorasick

    return Automaton(texts, BytesAhoCorasick)


class Automaton:
    """All literals in one pass."""

    def __init__(self, texts: list[tuple[bytes, str]], automaton: type[BytesAhoCorasick]) -> None:
        from ahocorasick_rs import MatchKind

        self.longest = max(len(text) for text, _ in texts)
        self._names = [name for _, name in texts]
        # any other match kind, and any set of more than 64 literals, loses the vector instructions and a factor of eight
        self._automaton = automaton([text for text, _ in texts], matchkind=MatchKind.LeftmostLongest)

    def find(self, buffer: memoryview) -> Iterator[Found]:
        for index, start, end in self._automaton.find_matches_as_indexes(buffer):
            yield start, end, self._names[index]


class Plain:
    """One pass per literal, where the extra is not installed."""

    def __init__(self, texts: list[tuple[bytes, str]]) -> None:
        self.longest = max(len(text) for text, _ in texts)
        self._texts = texts

    def find(self, buffer: memoryview) -> Iterator[Found]:
        raw = bytes(buffer)
        places: list[tuple[int, int, str]] = []
        for text, name in self._texts:
            at = raw.find(text)
            while at >= 0:
                places.append((at, -len(text), name))
                at = raw.find(text, at + len(text))
        end = 0
        for start, length, name in sorted(places):  # the leftmost, and of those the longest, as the automaton does
            if start >= end:
                end = start - length
                yield start, end, name
