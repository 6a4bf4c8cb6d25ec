"""Offsets of literals in an excerpt, so that regular expressions run only where theirs occur.

In a short log each literal is searched for on demand. Over much text an automaton of all literals that this process ever asked for is
faster (thirty times for three hundred of them), but takes some milliseconds to build.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from diagnose.scan import memory_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from ahocorasick_rs import BytesAhoCorasick

BULK = 32 << 20  # bytes searched word by word before the automaton is built


class _Vocabulary:
    """All words this process has asked for, and the automaton built of them."""

    def __init__(self) -> None:
        self.words: dict[bytes, None] = {}
        self.indexed: tuple[bytes, ...] = ()
        self.indexed_set: frozenset[bytes] = frozenset()
        self.automaton: BytesAhoCorasick | None = None
        self.bytes_searched = 0  # bytes searched word by word since then

    def count_search(self, word: bytes, size: int) -> None:
        """Record the search for a word in a text of `size` bytes; builds the automaton once enough text was searched."""
        self.words[word] = None
        self.bytes_searched += size
        if self.bytes_searched >= BULK and memory_words.is_fast():
            self.build()

    def build(self) -> None:
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # an optional extra, see memory_words.is_fast

        self.indexed, self.indexed_set, self.bytes_searched = tuple(self.words), frozenset(self.words), 0
        self.automaton = BytesAhoCorasick(self.indexed, implementation=Implementation.DFA)


_VOCABULARY = _Vocabulary()


class SubstringIndex:
    """Offsets of words in one text, ascending, overlapping ones included; computed on demand."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._offsets: dict[bytes, list[int]] = {}
        self._searched: set[bytes] = set()
        self._search_indexed()

    def places(self, word: bytes) -> Sequence[int]:
        """All offsets of a word, ascending."""
        offsets = self._offsets.get(word)
        return offsets if offsets is not None else () if word in self._searched else self._search_word(word)

    def has(self, word: bytes) -> bool:
        """Whether the text contains a word."""
        return word in self._offsets or (word not in self._searched and bool(self._search_word(word)))

    def any(self, words: Iterable[bytes]) -> bool:
        """Whether the text contains one of these words."""
        return any(map(self.has, words))

    def among(self, words: AbstractSet[bytes]) -> set[bytes]:
        """The subset of these words that the text contains."""
        if not words <= self._searched:
            if len(words) * len(self._raw) >= BULK and memory_words.is_fast():
                _VOCABULARY.words.update(dict.fromkeys(words))
                _VOCABULARY.build()
                self._search_indexed()
            else:
                return {word for word in words if self.has(word)}
        return {*(words & self._offsets.keys())}

    def first(self, word: bytes, start: int, end: int) -> int:
        """The first offset of a word within start..end, as `bytes.find`: -1 if there is none."""
        offsets = self.places(word)
        index = bisect_left(offsets, max(0, start))
        return offsets[index] if index < len(offsets) and offsets[index] + len(word) <= end else -1

    def last(self, word: bytes, start: int, end: int) -> int:
        """The last such offset, as `bytes.rfind`."""
        offsets = self.places(word)
        index = bisect_right(offsets, end - len(word)) - 1
        return offsets[index] if index >= 0 and offsets[index] >= start else -1

    def _search_indexed(self) -> None:
        """Search for all indexed words in one pass, if an automaton of them was built."""
        automaton = _VOCABULARY.automaton
        if automaton is None:
            return
        by_number: dict[int, list[int]] = {}
        for index, start, _ in automaton.find_matches_as_indexes(self._raw, overlapping=True):
            if index in by_number:
                by_number[index].append(start)
            else:
                by_number[index] = [start]
        words = _VOCABULARY.indexed
        self._offsets.update((words[index], offsets) for index, offsets in by_number.items())
        self._searched |= _VOCABULARY.indexed_set

    def _search_word(self, word: bytes) -> list[int]:
        raw, offsets = self._raw, list[int]()
        offset = raw.find(word)
        while offset >= 0:
            offsets.append(offset)
            offset = raw.find(word, offset + 1)
        self._searched.add(word)
        if offsets:
            self._offsets[word] = offsets
        _VOCABULARY.count_search(word, len(raw))
        return offsets
