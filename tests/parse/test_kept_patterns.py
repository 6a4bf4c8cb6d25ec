"""Patterns that are kept compiled match as those that are compiled anew, on every Python and from every file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diagnose.parse.text import kept_patterns
from diagnose.parse.text.kept_patterns import KeptPatterns

TEXTS = ("{WORD} of (?P<what>memory|room)", "(a)(b)?|c{2,3}", "显存{WORD}", "(unfinished")


def _expand(text: str) -> str:
    return text.replace("{WORD}", "out")


@pytest.fixture
def patterns(tmp_path: Path) -> KeptPatterns:
    """Under a name of its own: the folder of the cache is the same for all tests of a process."""
    return _patterns(tmp_path)


def _patterns(place: Path) -> KeptPatterns:
    return KeptPatterns(f"test.{place.name}", lambda: TEXTS[:3], _expand, re.IGNORECASE, "costs")


@pytest.mark.parametrize("text", TEXTS[:3])
def test_a_kept_pattern_is_the_one_that_re_makes(patterns: KeptPatterns, text: str) -> None:
    made, compiled = patterns.get(text), re.compile(_expand(text), re.IGNORECASE)
    assert text in patterns._places
    for example in ("Out of MEMORY", "ab a ccc", "显存out", "nothing"):
        assert [(m.span(), m.groups(), m.groupdict()) for m in made.finditer(example)] == [
            (m.span(), m.groups(), m.groupdict()) for m in compiled.finditer(example)
        ]


def test_a_pattern_that_is_not_kept_is_compiled(patterns: KeptPatterns) -> None:
    assert patterns.get("{WORD}side").search("an OUTside") is not None


def _gone(*_: object) -> None:
    raise AttributeError


@pytest.mark.parametrize("is_kept", [False, True])
def test_without_the_private_calls_patterns_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool) -> None:
    """Neither made nor, where an earlier run kept them, loaded."""
    if is_kept:
        _patterns(tmp_path).get(TEXTS[0])
    monkeypatch.setattr(kept_patterns, "_made", _gone)
    again = _patterns(tmp_path)
    match = again.get(TEXTS[0]).search("out of room")
    assert match is not None and match["what"] == "room"
    assert bool(again._places) is is_kept
