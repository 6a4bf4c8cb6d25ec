"""Search for the literals of rules/messages.yaml: short anchors in the whole input, then messages near them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

from diagnose import rule_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ahocorasick_rs import BytesAhoCorasick

#: (start, end, name) of a literal in a buffer.
Match = tuple[int, int, str]


class Finder(Protocol):
    """A search for many literals at once. `longest`: bytes of the longest literal."""

    longest: int

    def find(self, buffer: memoryview) -> Iterable[Match]:
        """Yield the literals in the buffer in order; of overlapping ones the leftmost, and of those the longest."""


@cache
def anchors(core: bool = False) -> Finder:
    """Finder of the anchors, short strings near which messages are searched. `core`: only the few that the pure-Python search can
    afford."""
    table = rule_files.table("messages")
    return _GrowingFinder([(text.encode(), "") for text in table["core" if core else "anchors"]])


@cache
def literals() -> Finder:
    """Finder of the literals of messages and landmarks; matches carry the name of their grammar."""
    return _GrowingFinder(
        [(text.encode(), grammar) for grammar, texts in rule_files.table("messages")["messages"].items() for text in texts]
    )


@cache
def words_near_messages() -> dict[bytes, str]:
    """Words that are searched for only near a message, each with its kind."""
    return {text.encode(): kind for kind, texts in rule_files.table("messages")["near"].items() for text in texts}


#: Literals of one automaton, beyond which it becomes eight times slower.
FEW = 64


@cache
def ending_literals(grammars: frozenset[str]) -> tuple[Finder, ...]:
    """Finders of words that tell how jobs end, from these grammars, as many as are fast."""
    near = rule_files.table("messages")["near"]
    words = [(text.encode(), grammar) for grammar in sorted(grammars) for text in near.get(grammar, ())]
    return tuple(_GrowingFinder(words[start : start + FEW]) for start in range(0, len(words), FEW))


@cache
def missed_by_core() -> tuple[str, ...]:
    """Grammars some of whose messages the search for core anchors misses."""
    table = rule_files.table("messages")
    return tuple(
        grammar for grammar, texts in table["messages"].items() if not all(any(core in text for core in table["core"]) for text in texts)
    )


@cache
def is_fast() -> bool:
    """Whether the compiled search is installed (an optional extra, 20 times as fast)."""
    try:  # the package is optional: every import of it stands in a function that is called only if this is true
        import ahocorasick_rs  # noqa: F401
    except ImportError:
        return False
    return True


def literals_near(buffer: memoryview, anchors_found: Iterable[Match], reach: int) -> Iterator[Match]:
    """The literals within `reach` bytes of each anchor, in order."""
    finder = literals()
    end = 0
    for start, stop in _neighbourhoods(anchors_found, reach, len(buffer)):
        for match_start, match_end, name in finder.find(buffer[start:stop]):
            if start + match_start >= end:
                end = start + match_end
                yield start + match_start, end, name


def _neighbourhoods(matches: Iterable[Match], reach: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges (start, end) within `reach` bytes of the matches, overlapping ones merged."""
    start = stop = 0
    for match_start, match_end, _ in matches:
        if match_start - reach > stop and stop:
            yield start, stop
        if match_start - reach > stop or not stop:
            start = max(0, match_start - reach)
        stop = min(size, match_end + reach)
    if stop:
        yield start, stop


#: Bytes that are searched for literals one by one before their automaton is built: a short log takes less than to load and to build it.
SHORT = 16 << 10


class _GrowingFinder:
    """Searches for the literals one by one, and for all at once when enough was searched, where the extra for that is installed."""

    def __init__(self, literals: list[tuple[bytes, str]]) -> None:
        self._literals, self._searched = literals, 0
        self._finder: Finder = SequentialFinder(literals)
        self.longest = self._finder.longest

    def find(self, buffer: memoryview) -> Iterable[Match]:
        before, self._searched = self._searched, self._searched + len(buffer)
        if before <= SHORT < self._searched and is_fast():
            from ahocorasick_rs import BytesAhoCorasick

            self._finder = AutomatonFinder(self._literals, BytesAhoCorasick)
        return self._finder.find(buffer)


class AutomatonFinder:
    """Finds all literals in one pass (Aho-Corasick)."""

    def __init__(self, literals: list[tuple[bytes, str]], automaton: type[BytesAhoCorasick]) -> None:
        from ahocorasick_rs import MatchKind

        self.longest = max(len(text) for text, _ in literals)
        self._names = [name for _, name in literals]
        # any other match kind, and any set of more than 64 literals, loses the vector instructions and a factor of eight
        self._automaton = automaton([text for text, _ in literals], matchkind=MatchKind.LeftmostLongest)

    def find(self, buffer: memoryview) -> Iterator[Match]:
        for index, start, end in self._automaton.find_matches_as_indexes(buffer):
            yield start, end, self._names[index]


class SequentialFinder:
    """Searches for the literals one by one, where the extra is not installed."""

    def __init__(self, literals: list[tuple[bytes, str]]) -> None:
        self.longest = max(len(text) for text, _ in literals)
        self._literals = literals

    def find(self, buffer: memoryview) -> Iterator[Match]:
        raw = bytes(buffer)
        matches: list[tuple[int, int, str]] = []
        for text, name in self._literals:
            offset = raw.find(text)
            while offset >= 0:
                matches.append((offset, -len(text), name))
                offset = raw.find(text, offset + len(text))
        end = 0
        for start, length, name in sorted(matches):  # the leftmost, and of those the longest, as the automaton does
            if start >= end:
                end = start - length
                yield start, end, name
