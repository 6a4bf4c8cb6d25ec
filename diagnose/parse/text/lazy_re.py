"""Regular expressions that cost no start-up time: compiled on first use; alternatives that are plain names are looked up instead."""

from __future__ import annotations

import re
from functools import cache
from typing import AnyStr, Generic, cast


def matches_pattern(pattern: str, text: str) -> bool:
    """Whether `re.search` finds the pattern. Most patterns are lists of whole names, `^(this|that)$`, and every diagnosis tries all of
    them: looking a name up costs a tenth of compiling the list."""
    names, expression = _split_names(pattern)
    return text in names or (expression is not None and expression.search(text) is not None)


@cache
def _split_names(pattern: str) -> tuple[frozenset[str], re.Pattern[str] | None]:
    """(plain names of a pattern `^(this|that)$`, expression for its other alternatives or None)."""
    if not (pattern.startswith("^(") and pattern.endswith(")$")) or set("([") & set(inner := pattern[2:-2]):
        return frozenset(), re.compile(pattern)
    listed = inner.split("|")
    patterns = [name for name in listed if not name.isidentifier()]
    return frozenset(listed).difference(patterns), re.compile(f"^({'|'.join(patterns)})$") if patterns else None


def lazy_compile(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile` at first use: most logs need few of all patterns."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


class _LazyPattern(Generic[AnyStr]):
    """Stands for a compiled pattern and compiles it when one of its attributes is first read."""

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._arguments: tuple[AnyStr, int] = pattern, flags

    def __getattr__(self, name: str) -> object:
        compiled = re.compile(*self._arguments)
        attribute = getattr(compiled, name)
        self.__dict__.update({name: attribute, "pattern": compiled.pattern})
        return attribute
