"""Marks: texts that mean something only near a failure (rules/messages.yaml, `near`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.records import NamedTuple
from diagnose.scan import memory_words
from diagnose.scan.excerpts import Hit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.parse.text.lines import Page


FEW = 128  # marks of one wording that are read as messages, from the front and from the end


class Mark(NamedTuple):
    """One mark: its kind, its words, its place."""

    kind: str
    words: str
    page: Page
    offset: int

    @property
    def source(self) -> str:
        return self.page.source


def find_marks(pages: Sequence[Page]) -> list[Mark]:
    """All marks in these pages, by input and in order; of several of one kind in a line the first."""
    marks = []
    for page in pages:
        ends: dict[str, int] = {}
        raw = page.excerpt.raw
        for start, word in _page_marks(page):
            kind, end = memory_words.words_near_messages()[word], start + len(word)
            if start < ends.get(kind, 0):
                continue
            line_end = raw.find(b"\n", end)
            ends[kind] = line_end if line_end >= 0 else len(raw)
            marks.append(Mark(kind, word.decode(), page, page.excerpt.offset + start))
    return marks


def _page_marks(page: Page) -> Iterator[tuple[int, bytes]]:
    """The marks of a page: of overlapping ones the leftmost, and of those the longest."""
    spots, end = page.excerpt.spots, 0
    near_words = spots.among(memory_words.words_near_messages().keys())
    for start, size, word in sorted((at, -len(words), words) for words in near_words for at in spots.places(words)):
        if start >= end:
            end = start - size
            yield start, word


def merge_hits(hits: Sequence[Hit], pages: Sequence[Page], grammars: frozenset[str]) -> list[Hit]:
    """The hits of one input together with messages on how jobs end, which are searched for only in the kept pages; in order."""
    if not any(_may_end(page, grammars, bool(hits)) for page in pages):
        return sorted(hits, key=lambda hit: hit.offset)
    places = {(hit.grammar, hit.line) for hit in hits}
    marked_hits = [_hit(mark) for mark in _first_and_last([mark for mark in find_marks(pages) if mark.kind in grammars])]
    return sorted([*hits, *(hit for hit in marked_hits if (hit.grammar, hit.line) not in places)], key=lambda hit: hit.offset)


def _may_end(page: Page, grammars: frozenset[str], failed: bool) -> bool:
    """Whether a page says how a job ended. In a job that failed all words are searched for anyway."""
    if failed:
        return page.excerpt.spots.any(word for word, kind in memory_words.words_near_messages().items() if kind in grammars)
    raw = memoryview(page.excerpt.raw)
    return any(True for finder in memory_words.ending_literals(grammars) for _ in finder.find(raw))


def _first_and_last(marks: Sequence[Mark]) -> Iterator[Mark]:
    """The first and the last hit of each wording: a kernel complains once per thread."""
    alike: dict[tuple[str, str], list[Mark]] = {}
    for mark in marks:
        alike.setdefault((mark.kind, mark.words), []).append(mark)
    for same in alike.values():
        yield from same[:FEW] + same[FEW:][-FEW:]


def _hit(mark: Mark) -> Hit:
    index = mark.page.index(mark.offset)
    return Hit(mark.kind, mark.offset, mark.page.number(index), mark.page.excerpt.offset + mark.page.starts[index])
