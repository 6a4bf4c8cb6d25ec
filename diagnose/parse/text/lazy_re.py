"""Regular expressions that cost no start-up time: compiled on first use; alternatives that are plain names are looked up instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, AnyStr, Generic, TypeAlias, cast

from diagnose import rule_files

#: A text that matches a pattern holds all the words of one of these.
Words: TypeAlias = "Sequence[Sequence[str]]"

#: Tables whose patterns every failure is tried with, and the keys under which these stand.
_TRIED = ("tensors", "phases", "regimes")
_KEYS = frozenset({"at", "within", "says", "file", "function", "statement", "caller", "unless", "inside"})


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
def _words(pattern: str) -> Words:
    kept = _kept_words().get(pattern)
    return words_of(pattern) if kept is None else kept


@cache
def _kept_words() -> dict[str, Words]:
    """The words of the patterns that every failure is tried with; to tell them takes ten times as long as to read them."""
    return rule_files.kept("parse.words", _tell_words, *_TRIED)  # type: ignore[no-any-return]


def _tell_words() -> dict[str, Words]:
    patterns = {pattern for name in _TRIED for pattern in _patterns(rule_files.table(name))}
    return {pattern: words_of(pattern) for pattern in sorted(patterns | {_split_names(pattern)[1] for pattern in patterns})}


def _patterns(table: Any, key: str = "") -> Iterator[str]:
    """The patterns of a table, at any depth."""
    if isinstance(table, str):
        yield from [table] if key in _KEYS else []
    elif isinstance(table, dict):
        for name, part in table.items():
            yield from _patterns(part, name)
    elif isinstance(table, list):
        for part in table:
            yield from _patterns(part, key)


def words_of(pattern: str) -> tuple[tuple[str, ...], ...]:
    """The words that have to stand in a text that matches, for each alternative of the pattern; none where no word is certain."""
    if _FLAGS.match(pattern):  # case may not matter
        return ((),)
    enclosing: list[tuple[list[tuple[str, ...]], list[tuple[str, ...]], str]] = []
    ways: list[tuple[str, ...]] = []  # those before the last bar
    way: list[tuple[str, ...]] = [()]  # those since
    parts = [(str(match.lastgroup), match[0]) for match in _PART.finditer(pattern)]
    for (kind, part), (following, _) in zip(parts, [*parts[1:], ("end", "")], strict=False):
        if kind == "letters":
            word = part[:-1] if following == "optional" else part
            way = [(*words, word) for words in way] if len(word) > 2 else way
        elif kind == "bar":
            ways, way = ways + way, [()]
        elif kind == "opening":
            enclosing.append((ways, way, part))
            ways, way = [], [()]
        elif kind == "closing":
            inner = ways + way
            ways, way, opening = enclosing.pop()
            sure = following != "optional" and (opening in ("(", "(?:") or opening.endswith(">")) and all(inner)
            way = [words + more for words in way for more in inner] if sure and len(way) * len(inner) <= _MANY else way
    return tuple(ways + way)


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


#: The parts of a pattern that tell its words: a class or an escaped sign, a group, a bar, what makes the part before it optional, letters.
_PART = lazy_compile(
    r"(?P<sign>\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<opening>\((?:\?(?:P[<=]\w+>?|<?[=!]|[a-zA-Z-]*:))?)|(?P<closing>\))|(?P<bar>\|)"
    r"|(?P<optional>[*?]|\{[^}]*\})|(?P<letters>[A-Za-z_]+)"
)
_FLAGS = re.compile(r"\(\?\w+\)")
#: Alternatives of one pattern that are worth telling apart.
_MANY = 48
