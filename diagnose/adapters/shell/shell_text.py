"""Pieces of a shell script: text that keeps the offsets of its characters, words, commands, files it writes; its dialect."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple

#: What people write in place of a secret: <token>, <secret redacted>.
PLACEHOLDER = r"<[A-Za-z](?:[^<>\n|&;]*[^<>\s|&;])?>(?=\s|$)"
#: Words of a script, and characters of a variable's value: more are no launch script's.
MAX_WORDS = 20_000
MAX_VALUE = 50_000
#: Characters and words that all expansions may come to: each use of a variable copies its value.
MAX_EXPANDED = 3_000_000

#: A word with the commands in it, such as `$(nvidia-smi -L | wc -l)`, of which 200 characters are kept; with brackets in brackets.
_PLAIN = r"[^()]{0,200}"
_PARTS = lazy_compile(rf"(?:\$\({_PLAIN}(?:\({_PLAIN}(?:\({_PLAIN}\){_PLAIN}){{0,8}}\){_PLAIN}){{0,8}}\)|\S)+")


@dataclass(slots=True, eq=False)
class Definition:
    """Where a variable is given a literal value, and how often it is used. `source` is the definition of the variable that it copies."""

    start: int
    end: int
    uses: int = 0
    source: Definition | None = None

    def edit_site(self) -> Definition | None:
        """Where an edit changes the value: at the first definition in a chain of variables each used once; None: where it is used."""
        if self.uses != 1:
            return None
        return (self.source.edit_site() or self) if self.source is not None else self


@dataclass(slots=True, eq=False)
class Chars:
    """Text with the offsets of each of its characters, `starts` to `ends`: the value of a variable, or a word."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    sure: bool = True
    definition: Definition | None = None  # of the whole text, if it is one literal
    definitions: list[tuple[int, int, Definition]] = field(default_factory=list)  # by span of the text: the variable that gives it

    @classmethod
    def unknown(cls, name: str, start: int = 0, end: int = 0) -> Chars:
        """The value of something that only a running shell knows."""
        chars = cls(sure=False)
        chars.add(f"${name}"[:MAX_VALUE], start, end)
        chars.sure = False
        return chars

    def add(self, text: str, start: int, end: int) -> None:
        """Append text of which each character stands for the whole span."""
        self.append(text, [start] * len(text), [end] * len(text))

    def literal(self, text: str, start: int) -> None:
        """Append text as it is written from an offset on."""
        self.append(text, list(range(start, start + len(text))), list(range(start + 1, start + len(text) + 1)))

    def append(self, text: str, starts: list[int], ends: list[int]) -> bool:
        """Append text with the offsets of its characters; text beyond the limit is dropped and the value unsure: False."""
        if len(self.text) + len(text) > MAX_VALUE:
            self.sure = False
            return False
        self.text += text
        self.starts += starts
        self.ends += ends
        return True

    def extend(self, other: Chars) -> None:
        """Append another text with its definitions, of which there are no more than characters."""
        size = len(self.text)
        if self.append(other.text, other.starts, other.ends) and len(self.definitions) + len(other.definitions) <= MAX_VALUE:
            self.definitions += [(start + size, end + size, source) for start, end, source in other.definitions]
        self.sure = self.sure and other.sure

    def words(self) -> list[Word]:
        """The text split at whitespace, as a shell splits an unquoted expansion; quote characters in it mean nothing. A command whose
        output would stand there is one word, whatever it prints."""
        return [self.word(part.start(), part.end()) for part in _PARTS.finditer(self.text)]

    def word(self, start: int, end: int) -> Word:
        part = Chars(self.text[start:end], self.starts[start:end], self.ends[start:end], self.sure)
        sources = tuple((first - start, last - start, source) for first, last, source in self.definitions if first >= start and last <= end)
        return Word(part.text, part.starts[0], part.ends[-1], self.sure, part, sources)


@dataclass(slots=True)
class Word:
    """A word after expansion, with the offsets where it is written; `sure` is False where only a running shell knows a part of it.

    `chars` are its characters with their offsets, `definitions` the spans of it that a variable gives.
    """

    text: str
    start: int
    end: int
    sure: bool = True
    chars: Chars | None = None
    definitions: tuple[tuple[int, int, Definition], ...] = ()

    def edit_site(self, start: int = 0) -> Definition | None:
        """Where the text from `start` on is changed, if a variable that nothing else uses gives all of it."""
        whole = next((source for first, last, source in self.definitions if first == start and last == len(self.text)), None)
        return whole.edit_site() if whole is not None else None


class Command(NamedTuple):
    """A simple command: `words` without its assignments, `env` the exported variables and those before it.

    `branches` are the arms that it stands in, each as the number of its branch and of the arm.
    """

    words: tuple[Word, ...]
    env: dict[str, Word]
    start: int
    branches: tuple[tuple[int, int], ...] = ()


class WrittenFile(NamedTuple):
    """A file that a script writes: its name, its text, and the offsets of the text in the script."""

    name: str
    chars: Chars
    start: int
    end: int


class PendingHeredoc(NamedTuple):
    """A here-document announced on the current line, whose text begins on the next one."""

    delimiter: str
    strips_tabs: bool
    literal: bool
    words: list[Word]
    targets: list[str]


# -- dialects

#: Lines of cmd and of PowerShell that bash does not have.
_CMD = lazy_compile(r"^[ \t]*(?:@echo off|@?set \w+=|set \"\w+=|rem )", re.MULTILINE | re.IGNORECASE)
_POWERSHELL = lazy_compile(r"^[ \t]*\$(?:env:)?\w+[ \t]*=[^=]", re.MULTILINE | re.IGNORECASE)


def dialect_of(text: str) -> str:
    """The shell that a script is for: bash, cmd (continues a line with ^) or powershell (with a backquote)."""
    if "\\\n" in text or "\\\r\n" in text or text.startswith("#!"):
        return "bash"
    if _POWERSHELL.search(text) or re.search(r"[ \t]`\r?\n", text):
        return "powershell"
    return "cmd" if _CMD.search(text) or re.search(r"[ \t]\^\r?\n", text) else "bash"


def unify_line_ends(text: str, dialect: str) -> str:
    """The text with line feeds alone at the ends and before continued lines, of the same length, so that offsets stay."""
    mark = {"cmd": "^", "powershell": "`"}.get(dialect, "\\")
    return text.replace(f"{mark}\r\n", f" {mark}\n").replace("\r\n", " \n")
