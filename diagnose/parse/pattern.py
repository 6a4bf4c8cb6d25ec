"""The patterns of rules/phases.yaml against names and lines."""

from __future__ import annotations

import re
from functools import cache


def found(pattern: str, text: str) -> bool:
    """What `re.search` says. Most patterns are lists of whole names, `^(this|that)$`, and every diagnosis tries them all:
    names are looked up as they are, which takes a tenth of the time that compiling them does."""
    names, rest = _parted(pattern)
    return text in names or (rest is not None and rest.search(text) is not None)


@cache
def _parted(pattern: str) -> tuple[frozenset[str], re.Pattern[str] | None]:
    """The plain names of a list of names, and an expression for the rest of it."""
    if not (pattern.startswith("^(") and pattern.endswith(")$")) or set("([") & set(inner := pattern[2:-2]):
        return frozenset(), re.compile(pattern)
    listed = inner.split("|")
    rest = [name for name in listed if not name.isidentifier()]
    return frozenset(listed).difference(rest), re.compile(f"^({'|'.join(rest)})$") if rest else None
