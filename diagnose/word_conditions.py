"""Conditions of tables, `{name: words}`: yes where every name has one of its words, unknown where that hangs on what nobody knows.

A word is met whatever its case; one with `*` or `[` is a pattern; `!word` bars what it names, and words that only bar let everything else
pass; `unset` is met by what is not there and by nothing else, `set` by whatever is. Words for a release are spans (`>=2.2 <2.8`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeAlias

from diagnose.records import NamedTuple
from diagnose.release_spans import releases
from diagnose.ternary import Truth, all_of, any_of
from diagnose.units import Version

#: The words that each name may have.
Conditions: TypeAlias = Mapping[str, tuple[str, ...]]
#: What a name has: None is unknown; of several texts one is enough, of none nobody knows which.
Said: TypeAlias = object

#: What is not there.
UNSET = ("unset",)


def conditions(raw: Mapping[str, object] | None) -> Conditions:
    """The conditions as a table writes them: a word or a list of words for each name."""
    return {name: tuple(map(word_of, words if isinstance(words, list) else [words])) for name, words in (raw or {}).items()}


def word_of(value: object) -> str:
    """A scalar of a table as text: YAML's true is "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def word(value: object) -> str | None:
    """The value of a fact as tables write it; None: unknown."""
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    return None if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def hold(wanted: Conditions | None, lookup: Callable[[str], Said]) -> Truth:
    """Whether all conditions hold; no conditions do."""
    return all_of(is_one_of(lookup(name), words) for name, words in wanted.items()) if wanted else True


def is_one_of(said: Said, words: Sequence[str]) -> Truth:
    """Whether one of the words is met."""
    if said is None:
        return None
    if isinstance(said, Version):
        return any_of(releases(span).holds(said) for span in words)
    if isinstance(said, bool):
        texts: Collection[str] = ("enabled", "true") if said else ("disabled", "false")
    else:
        texts = said if isinstance(said, (tuple, list, frozenset)) else (word(said) or "",)
    if not texts:
        return True if "set" in words else None
    return _words(tuple(words)).meet(texts)


class _Words(NamedTuple):
    """The words of one condition, sorted out."""

    plain: frozenset[str]
    patterns: tuple[str, ...]
    barred: _Words | None

    def meet(self, texts: Collection[str]) -> bool:
        if self.barred is not None and self.barred.meet(texts):
            return False
        open_to_all = self.barred is not None and not self.plain and not self.patterns
        return open_to_all or any(map(self._meets, texts))

    def _meets(self, text: str) -> bool:
        if text.lower() in self.plain:
            return True
        return text != UNSET[0] and ("set" in self.plain or any(fnmatchcase(text, pattern) for pattern in self.patterns))


@lru_cache(maxsize=4096)
def _words(words: tuple[str, ...]) -> _Words:
    barred = tuple(text[1:] for text in words if text.startswith("!"))
    wanted = [text for text in words if not text.startswith("!")]
    patterns = tuple(text for text in wanted if {"*", "["} & set(text))
    return _Words(frozenset(text.lower() for text in wanted), patterns, _words(barred) if barred else None)
