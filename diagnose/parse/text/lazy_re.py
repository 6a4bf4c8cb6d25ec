"""Patterns that cost nothing until used: compiled on first use, and lists of plain names looked up without compiling."""

from __future__ import annotations

import re
from functools import cache
from typing import AnyStr, Generic, cast


def matches_pattern(pattern: str, text: str) -> bool:
    """What `re.search` says. Most patterns are lists of whole names, `^(this|that)$`, and every diagnosis tries them all:
    names are looked up as they are, which takes a tenth of the time that compiling them does."""
    names, expression = _split_names(pattern)
    return text in names or (expression is not None and expression.search(text) is not None)


@cache
def _split_names(pattern: str) -> tuple[frozenset[str], re.Pattern[str] | None]:
    """The plain names of a list of names, and an expression for the rest of it."""
    if not (pattern.startswith("^(") and pattern.endswith(")$")) or set("([") & set(inner := pattern[2:-2]):
        return frozenset(), re.compile(pattern)
    listed = inner.split("|")
    patterns = [name for name in listed if not name.isidentifier()]
    return frozenset(listed).difference(patterns), re.compile(f"^({'|'.join(patterns)})$") if patterns else None


def lazy_compile(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression that is compiled when it is first used: most logs need few of those that there are."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern(Generic[AnyStr]):
    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._arguments: tuple[AnyStr, int] = pattern, flags

    def __getattr__(self, name: str) -> object:
        compiled = re.compile(*self._arguments)
        attribute = getattr(compiled, name)
        self.__dict__.update({name: attribute, "pattern": compiled.pattern})
        return attribute
