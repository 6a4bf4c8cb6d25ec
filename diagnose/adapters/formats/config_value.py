"""What every config format is read into: `Leaf`, one key with its value and place; `Places`, offsets to lines; `Unreadable`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Literal

from diagnose.phrases import Text, phrase
from diagnose.records import NamedTuple
from diagnose.word_conditions import UNSET

#: Limits of one config, in bytes, characters of a script, keys and levels. A larger one is refused, not read in part.
MAX_BYTES = 2_000_000
MAX_SCRIPT = 300_000
MAX_LEAVES = 20_000
MAX_DEPTH = 64
#: How the names of config files end.
CONFIG_ENDINGS = (".yaml", ".yml", ".json", ".jsonc", ".toml")

#: Spellings of true and false in YAML 1.1, JSON, Python and argparse.
YES = frozenset({"true", "yes", "on", "1", "y", "t"})
NO = frozenset({"false", "no", "off", "0", "n", "f"})


def name_of(key: str) -> str:
    """The key as the framework tables spell it: `--lora-rank` is lora_rank; keys of files stay as they are."""
    return key.lstrip("-+").replace("-", "_") if key.startswith(("-", "+")) else key


Shape = Literal["scalar", "list", "map", "flag", "null", "unsure"]


class Leaf(NamedTuple):
    """One key with its value as the framework reads it, always as text: the kind of the knob decides the type.

    `text` is None for null (an option's `none` stays a word) and for a value that cannot be known (`shape` tells which). `items` are
    the scalars of a list.
    `start:end` are the offsets of the value as written (start == end: a flag without a value), `line` and `column` its place.
    """

    key: str
    text: str | None
    written: str
    start: int
    end: int
    line: int
    column: int
    shape: Shape = "scalar"
    items: tuple[str, ...] = ()
    option: str = ""  # the script's own command-line option that sets the value; the value here is its default
    used: tuple[int, int] | None = None  # where the command uses the value, if it is written in a variable


def texts_of(leaf: Leaf | None) -> tuple[str, ...]:
    """What conditions see of a key: its text or items, `unset`; nothing where its value cannot be known."""
    if leaf is None or leaf.shape == "null":
        return UNSET
    if leaf.shape == "unsure":
        return ()
    return leaf.items or ("true" if leaf.shape == "flag" else leaf.text or "",)


class Remark(NamedTuple):
    """A peculiarity of a config that does not stop it from being read, such as a duplicate key."""

    code: str
    message: Text
    line: int
    column: int


def drop_duplicates(leaves: Iterable[Leaf], remarks: list[Remark]) -> list[Leaf]:
    """The last leaf of each key, as readers of YAML and JSON take it, in the order written; adds a remark for each duplicate."""
    last: dict[str, Leaf] = {}
    for leaf in leaves:
        if leaf.key in last:
            first = last.pop(leaf.key)
            message = phrase("adapters.duplicate_key", name=leaf.key, first=first.line)
            remarks.append(Remark("duplicate_key", message, leaf.line, leaf.column))
        last[leaf.key] = leaf
    return sorted(last.values(), key=lambda leaf: leaf.start)


class Unreadable(Exception):
    """The text does not parse in its format, or exceeds a limit; `line` and `column` are 1-based (0: the whole file)."""

    def __init__(self, code: str, message: Text, line: int = 0, column: int = 0) -> None:
        super().__init__(message.en)
        self.code, self.message, self.line, self.column = code, message, line, column


#: Characters other than a line feed at which a line ends, for languages that have such.
LINE_BREAKS = {"python": "\r", "yaml": "\r\x85\u2028\u2029"}


def split_lines(text: str, form: str = "") -> list[str]:
    """The lines of a text without their breaks, as its language, the form, counts them."""
    breaks = LINE_BREAKS.get(form, "")
    return re.split(f"\r\n|[\n{breaks}]", text) if any(char in text for char in breaks) else text.split("\n")


class Places:
    """Maps offsets of a text to lines and columns. Lines end where the language of the text, its form, ends them: at a line feed; in
    Python also at a lone carriage return, in YAML at that and at three characters of Unicode."""

    __slots__ = ("_line_starts",)

    def __init__(self, text: str, form: str = "") -> None:
        breaks = LINE_BREAKS.get(form, "")
        self._line_starts = [0]
        if any(char in text for char in breaks):
            self._line_starts += [match.end() for match in re.finditer(f"\r\n|[\n{breaks}]", text)]
            return
        self._line_starts += accumulate([len(line) + 1 for line in text.split("\n")[:-1]])

    def __call__(self, offset: int) -> tuple[int, int]:
        """1-based line and column of an offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Offset of a 1-based line and column."""
        return self._line_starts[line - 1] + column - 1

    def line(self, text: str, line: int) -> str:
        """A 1-based line of the text with its line break; empty where there is none."""
        starts = [*self._line_starts[max(line - 1, 0) : line + 1], len(text)]
        return text[starts[0] : starts[1]] if 0 < line <= len(self._line_starts) else ""
