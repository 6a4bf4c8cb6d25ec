"""Regular expressions that cost no start-up time: compiled on first use; alternatives that are plain names are looked up instead."""

from __future__ import annotations

import re
from functools import cache
from typing import AnyStr, Generic, cast


def matches_pattern(pattern: str, text: str) -> bool:
    """Whether `re.search` finds the pattern. Most patterns are lists of whole names, `^(this|that)$`, and every diagnosis tries all of
    them: looking a name up costs a tenth of compiling the list."""
    names, rest = _split_names(pattern)
    return text in names or (rest != "" and finds(rest, text))


@cache
def _split_names(pattern: str) -> tuple[frozenset[str], str]:
    """(plain names of a pattern `^(this|that)$`, pattern of its other alternatives or nothing)."""
    if not (pattern.startswith("^(") and pattern.endswith(")$")) or set("([") & set(inner := pattern[2:-2]):
        return frozenset(), pattern
    listed = inner.split("|")
    patterns = [name for name in listed if not name.isidentifier()]
    return frozenset(listed).difference(patterns), f"^({'|'.join(patterns)})$" if patterns else ""


def finds(pattern: str, text: str) -> bool:
    """Whether `re.search` finds the pattern. Where its words do not stand in the text it is not even compiled."""
    return any(all(word in text for word in words) for words in _words(pattern)) and re.search(pattern, text) is not None


@cache
def _words(pattern: str) -> tuple[tuple[str, ...], ...]:
    """For each alternative of a pattern the words outside of groups and classes, which stand in whatever it matches."""
    if pattern.startswith("(?"):  # a flag: case may not matter
        return ((),)
    outside, depth = [], 0
    for sign in _CLASS.sub(" ", _ESCAPED.sub(" ", pattern)):
        depth += sign == "("
        outside.append(" " if depth else sign)
        depth -= sign == ")"
    return tuple(tuple(_WORD.findall(part)) for part in _OPTIONAL.sub(" ", "".join(outside)).split("|"))


#: An escaped sign; a class of signs; what a quantifier makes optional; a word that is worth looking for.
_ESCAPED, _CLASS = re.compile(r"\\."), re.compile(r"\[\^?\]?[^\]]*\]")
_OPTIONAL, _WORD = re.compile(r".(?:[*?]|\{[^}]*\})"), re.compile(r"[A-Za-z_]{3,}")


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
