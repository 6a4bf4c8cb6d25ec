"""Where the words that readers look for stand in a text that was kept.

In one short log each word is sought when it is asked for. Of much text, one search for all words that this process was ever asked for
is quicker than one for each (thirty times for three hundred words), and takes some milliseconds to set up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from diagnose.scan import memory_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from ahocorasick_rs import BytesAhoCorasick

MUCH = 32 << 20  # bytes that are searched for single words before all are sought at once


class _Vocabulary:
    """The words that this process was asked for, and the automaton that finds those that were known when it was made."""

    def __init__(self) -> None:
        self.asked: dict[bytes, None] = {}
        self.known: tuple[bytes, ...] = ()
        self.covered: frozenset[bytes] = frozenset()
        self.automaton: BytesAhoCorasick | None = None
        self.sought = 0  # bytes that were searched for single words since then

    def sought_alone(self, word: bytes, size: int) -> None:
        """A word was sought by itself in a text of that many bytes."""
        self.asked[word] = None
        self.sought += size
        if self.sought >= MUCH and memory_words.is_fast():
            self.make()

    def make(self) -> None:
        from ahocorasick_rs import BytesAhoCorasick, Implementation

        self.known, self.covered, self.sought = tuple(self.asked), frozenset(self.asked), 0
        self.automaton = BytesAhoCorasick(self.known, implementation=Implementation.DFA)


_VOCABULARY = _Vocabulary()


class Spots:
    """Where words stand in a text: offsets in order, overlapping ones as well."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._found: dict[bytes, list[int]] = {}
        self._covered: set[bytes] = set()
        if _VOCABULARY.automaton is not None:
            self._seek()

    def places(self, word: bytes) -> Sequence[int]:
        """All offsets of a word."""
        held = self._found.get(word)
        return held if held is not None else () if word in self._covered else self._alone(word)

    def has(self, word: bytes) -> bool:
        """Whether a word stands in the text."""
        return word in self._found or (word not in self._covered and bool(self._alone(word)))

    def any(self, words: Iterable[bytes]) -> bool:
        """Whether one of these words stands in the text."""
        return any(map(self.has, words))

    def among(self, words: AbstractSet[bytes]) -> set[bytes]:
        """Those of these words that stand in the text."""
        if not words <= self._covered:
            if memory_words.is_fast() and len(words) * len(self._raw) >= MUCH:
                _VOCABULARY.asked.update(dict.fromkeys(words))
                _VOCABULARY.make()
                self._seek()
            else:
                return {word for word in words if self.has(word)}
        return {*(words & self._found.keys())}

    def first(self, word: bytes, start: int, end: int) -> int:
        """The first offset of a word that stands between two others, as `bytes.find`: -1 where there is none."""
        held = self.places(word)
        at = bisect_left(held, max(0, start))
        return held[at] if at < len(held) and held[at] + len(word) <= end else -1

    def last(self, word: bytes, start: int, end: int) -> int:
        """The last one, as `bytes.rfind`."""
        held = self.places(word)
        at = bisect_right(held, end - len(word)) - 1
        return held[at] if at >= 0 and held[at] >= start else -1

    def _seek(self) -> None:
        """Find all that is known in one pass."""
        found: dict[int, list[int]] = {}
        assert _VOCABULARY.automaton is not None
        for index, start, _ in _VOCABULARY.automaton.find_matches_as_indexes(self._raw, overlapping=True):
            if index in found:
                found[index].append(start)
            else:
                found[index] = [start]
        known = _VOCABULARY.known
        self._found.update((known[index], starts) for index, starts in found.items())
        self._covered |= _VOCABULARY.covered

    def _alone(self, word: bytes) -> list[int]:
        raw, places = self._raw, list[int]()
        at = raw.find(word)
        while at >= 0:
            places.append(at)
            at = raw.find(word, at + 1)
        self._covered.add(word)
        if places:
            self._found[word] = places
        _VOCABULARY.sought_alone(word, len(raw))
        return places
