"""Patterns that are not compiled where their words are missing find what they would find."""

from __future__ import annotations

import re
from typing import Any

from cases import CORPUS
from sweep import sample

from diagnose import rule_files
from diagnose.parse.text import lazy_re


def patterns(part: Any) -> set[str]:
    """Every text of a table that is a pattern and no word."""
    if isinstance(part, dict):
        return set().union(*map(patterns, part.values()))
    if isinstance(part, list):
        return set().union(*map(patterns, part))
    return {part} if isinstance(part, str) and set("\\|(^$") & set(part) and is_pattern(part) else set()


def is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def test_a_pattern_finds_what_it_finds_compiled() -> None:
    """Those of phases, regimes and tensors, in lines of real logs."""
    logs = sample(sorted(CORPUS.glob("*/error.log")), 60)
    texts = {line.strip() for log in logs for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if len(line) < 300}
    lines = sample(sorted(texts), 150)
    for pattern in sorted(patterns([rule_files.table(name) for name in ("phases", "regimes", "tensors")])):
        compiled = re.compile(pattern)
        for line in lines:
            assert lazy_re.finds(pattern, line) == (compiled.search(line) is not None), (pattern, line)
            assert lazy_re.matches_pattern(pattern, line) == (compiled.search(line) is not None), (pattern, line)
