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
def patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptPatterns:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return KeptPatterns("test.patterns", lambda: TEXTS[:3], _expand, re.IGNORECASE, "costs")


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


@pytest.mark.parametrize("name", ["_compiled", "_made"])
def test_without_the_private_calls_patterns_are_compiled(patterns: KeptPatterns, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def gone(*_: object) -> None:
        raise AttributeError

    patterns.get(TEXTS[0])  # kept before
    monkeypatch.setattr(kept_patterns, name, (lambda *_: None) if name == "_compiled" else gone)
    again = KeptPatterns("test.patterns", lambda: TEXTS[:3], _expand, re.IGNORECASE, "costs")
    match = again.get(TEXTS[0]).search("out of room")
    assert match is not None
    assert match["what"] == "room"
