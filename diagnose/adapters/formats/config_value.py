"""Leaf: one key of a config as written; Places: offsets to lines; Unreadable: a text that its form forbids."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Literal

from diagnose.phrases import Text, phrase
from diagnose.record import record
from diagnose.word_conditions import UNSET

#: What one config may hold at most; a larger one is refused, not read in part.
MAX_BYTES = 2_000_000
MAX_SCRIPT = 300_000
MAX_LEAVES = 20_000
MAX_DEPTH = 64

#: A word of the framework's own that says yes or no, as YAML 1.1, JSON, Python and argparse spell it.
YES = frozenset({"true", "yes", "on", "1", "y", "t"})
NO = frozenset({"false", "no", "off", "0", "n", "f"})


def name_of(key: str) -> str:
    """The key as tables spell it: options lose their dashes."""
    return key.lstrip("-+").replace("-", "_") if key.startswith(("-", "+")) else key


@record
class Leaf:
    """One key with its value as the framework reads it, always as text: the kind of the knob decides the type.

    `text` is None for null and for a value that cannot be known (`shape` tells which). `items` are the scalars of a list.
    `start:end` is the value as written (start == end: a flag without a value); `line` and `column` say where it stands.
    """

    key: str
    text: str | None
    written: str
    start: int
    end: int
    line: int
    column: int
    shape: Literal["scalar", "list", "map", "flag", "null", "unsure"] = "scalar"
    items: tuple[str, ...] = ()
    option: str = ""  # the argument of a script's own that gives the value: what stands here is its default
    used: tuple[int, int] | None = None  # where a command uses the value that a variable holds


def texts_of(leaf: Leaf | None) -> tuple[str, ...]:
    """What conditions see of a key: its text or items, `unset`; nothing where its value cannot be known."""
    if leaf is None or leaf.shape == "null":
        return UNSET
    if leaf.shape == "unsure":
        return ()
    return leaf.items or ("true" if leaf.shape == "flag" else leaf.text or "",)


@record
class Remark:
    """Something odd about a place of a config that does not stop it from being read."""

    code: str
    message: Text
    line: int
    column: int


def last_of_each(leaves: Iterable[Leaf], remarks: list[Remark]) -> list[Leaf]:
    """Of duplicate keys the last, as readers of YAML and JSON take it, in the order written; each duplicate is remarked on."""
    last: dict[str, Leaf] = {}
    for leaf in leaves:
        if leaf.key in last:
            first = last.pop(leaf.key)
            remarks.append(
                Remark("duplicate_key", phrase("adapters.duplicate_key", name=leaf.key, first=first.line), leaf.line, leaf.column)
            )
        last[leaf.key] = leaf
    return sorted(last.values(), key=lambda leaf: leaf.start)


class Unreadable(Exception):
    """The text is not what its form demands; `line` and `column` are 1-based (0: the whole file)."""

    def __init__(self, code: str, message: Text, line: int = 0, column: int = 0) -> None:
        super().__init__(message.en)
        self.code, self.message, self.line, self.column = code, message, line, column


class Places:
    """Where an offset of a text stands, lines ending at a line feed."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)

    def __call__(self, offset: int) -> tuple[int, int]:
        """1-based line and column."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The way back."""
        return self._starts[line - 1] + column - 1
