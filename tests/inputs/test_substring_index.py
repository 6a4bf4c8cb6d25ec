"""Where words stand in a text: the same whether each is sought by itself or all are found in one pass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose.scan import substring_index

WORDS = [b"Max_MA ", b"MA ", b"Running", b"***** Running training", b"GPU ", b"aa", b"aaa", b"says nothing"]
TEXTS = st.lists(st.sampled_from([*WORDS, b"a", b"\n", b" ", b"GPU"]), max_size=40).map(b"".join)


@pytest.fixture(scope="module", params=["one by one", "all at once"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    held, substring_index._VOCABULARY = substring_index._VOCABULARY, substring_index._Vocabulary()
    if request.param == "all at once":
        pytest.importorskip("ahocorasick_rs")
        substring_index._VOCABULARY.words.update(dict.fromkeys(WORDS[:-1]))  # a word that it does not know is sought all the same
        substring_index._VOCABULARY.build()
    yield
    substring_index._VOCABULARY = held


def naive(text: bytes, word: bytes) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(word, at)]


@settings(max_examples=examples(200))
@given(TEXTS, st.sampled_from(WORDS), st.integers(-2, 60), st.integers(-2, 80))
def test_words_stand_where_they_stand(text: bytes, word: bytes, start: int, end: int) -> None:
    found = substring_index.SubstringIndex(text)
    assert list(found.places(word)) == naive(text, word)
    assert found.has(word) is (word in text)
    assert found.among(set(WORDS)) == {each for each in WORDS if each in text}
    if 0 <= start <= end:
        assert found.first(word, start, end) == text.find(word, start, end)
        assert found.last(word, start, end) == text.rfind(word, start, end)


def test_a_process_that_reads_much_learns_to_look_for_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ahocorasick_rs")
    monkeypatch.setattr(substring_index, "_VOCABULARY", substring_index._Vocabulary())
    monkeypatch.setattr(substring_index, "BULK", 1000)
    text = b"x" * 300 + b"GPU "
    for _ in range(4):
        assert substring_index.SubstringIndex(text).has(b"GPU ")
    assert substring_index._VOCABULARY.indexed == (b"GPU ",)
