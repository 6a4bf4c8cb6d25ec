"""Where a log is looked at: the anchors are few and find every literal, with and without the fast search."""

from __future__ import annotations

import pytest
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st

from diagnose import rule_files
from diagnose.scan import memory_words

TABLE = rule_files.table("messages")
LITERALS = [(text.encode(), grammar) for grammar, texts in TABLE["messages"].items() for text in texts]


def test_the_fast_search_takes_all_anchors() -> None:
    """A 65th anchor, or one of a single byte, makes the search eight times slower without a word."""
    assert len(TABLE["anchors"]) == len(set(TABLE["anchors"])) <= 64
    assert min(len(text.encode()) for text in TABLE["anchors"]) >= 4


def test_every_literal_holds_an_anchor_and_every_anchor_is_needed() -> None:
    """A literal without an anchor is never found; an anchor without a literal costs time for nothing."""
    assert [text for text, _ in LITERALS if not any(anchor.encode() in text for anchor in TABLE["anchors"])] == []
    assert [anchor for anchor in TABLE["anchors"] if not any(anchor.encode() in text for text, _ in LITERALS)] == []
    assert set(TABLE["core"]) <= set(TABLE["anchors"])
    texts = [text for text, _ in LITERALS]
    assert len(texts) == len(set(texts))


@for_each("text, grammar", LITERALS)
def test_every_literal_is_found_through_its_anchors(text: bytes, grammar: str) -> None:
    """The neighbourhood of an anchor is wide enough for the literals that hold it."""
    view = memoryview(b"a line\n[rank0]: " + text + b" and more\n")
    found = list(memory_words.literals_near(view, memory_words.anchors().find(view), memory_words.literals().longest))
    assert (17, 17 + len(text), grammar) in found or any(start <= 17 < end for start, end, _ in found)


@given(
    st.lists(
        st.sampled_from([b"Killed", b"out of memory", b"CUDA out of memory", b". Tried to allocate", b" x ", b"\n", b"SIGKILL"]),
        max_size=30,
    )
)
def test_without_the_extra_the_same_is_found(parts: list[bytes]) -> None:
    """The plain search and the automaton agree, overlapping literals included."""
    pytest.importorskip("ahocorasick_rs")
    from ahocorasick_rs import BytesAhoCorasick

    view = memoryview(b"".join(parts))
    automaton = memory_words.AutomatonFinder(LITERALS, BytesAhoCorasick)
    assert list(memory_words.SequentialFinder(LITERALS).find(view)) == list(automaton.find(view))
