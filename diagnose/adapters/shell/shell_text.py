"""Pieces of a shell script: text that keeps the place of each of its characters, words, commands, files that it writes."""

from __future__ import annotations

import re

from diagnose.record import field, record

#: What people write in the place of what is nobody's business: <token>, <secret redacted>.
BLANKED = r"<[A-Za-z](?:[^<>\n|&;]*[^<>\s|&;])?>(?=\s|$)"
#: A script of more words than this is a program, not a launch; a variable that holds more text is a bomb.
MAX_WORDS = 20_000
MAX_HELD = 50_000

#: Characters and words that variables may become in all: each use of a variable copies what it holds.
MAX_EXPANDED = 3_000_000


@record(frozen=False, eq=False)
class Home:
    """Where a variable is given a literal value, and how often it is used. `source` is the home of the variable that it copies."""

    start: int
    end: int
    uses: int = 0
    source: Home | None = None

    def settled(self) -> Home | None:
        """Where the value is to be changed: at the variable that is used once, and so on back; None: at the use."""
        if self.uses != 1:
            return None
        return (self.source.settled() or self) if self.source is not None else self


@record(frozen=False, eq=False)
class Chars:
    """Text with the place of each of its characters, `at` to `to`: what a variable holds, or a word."""

    text: str = ""
    at: list[int] = field(default_factory=list)
    to: list[int] = field(default_factory=list)
    sure: bool = True
    home: Home | None = None  # where all of it is written, if it is one literal
    homes: list[tuple[int, int, Home]] = field(default_factory=list)  # parts of it that one variable gives

    @classmethod
    def unknown(cls, name: str, start: int = 0, end: int = 0) -> Chars:
        """What only a running shell knows."""
        made = cls(sure=False)
        made.add(f"${name}"[:MAX_HELD], start, end)
        made.sure = False
        return made

    def add(self, text: str, start: int, end: int) -> None:
        """Text that stands for all of a place."""
        self.put(text, [start] * len(text), [end] * len(text))

    def literal(self, text: str, start: int) -> None:
        """Text as it is written from there on."""
        self.put(text, list(range(start, start + len(text))), list(range(start + 1, start + len(text) + 1)))

    def put(self, text: str, at: list[int], to: list[int]) -> None:
        if len(self.text) + len(text) > MAX_HELD:
            self.sure = False
            return
        self.text += text
        self.at += at
        self.to += to

    def join(self, other: Chars) -> None:
        size = len(self.text)
        self.put(other.text, other.at, other.to)
        self.homes += [(start + size, end + size, home) for start, end, home in other.homes]
        self.sure = self.sure and other.sure

    def words(self) -> list[Word]:
        """The words that it is split into where no quotes protect it."""
        return [self.word(part.start(), part.end()) for part in re.finditer(r"\S+", self.text)]

    def word(self, start: int, end: int) -> Word:
        homes = tuple((a - start, b - start, home) for a, b, home in self.homes if a >= start and b <= end)
        part = Chars(self.text[start:end], self.at[start:end], self.to[start:end], self.sure)
        return Word(part.text, part.at[0], part.to[-1], self.sure, part, homes)


@record
class Word:
    """A word after expansion and where it was written; `sure` is False where it holds something only a running shell knows.
    `chars` are its characters with their places, `homes` the parts of it that a variable gives."""

    text: str
    start: int
    end: int
    sure: bool = True
    chars: Chars | None = None
    homes: tuple[tuple[int, int, Home], ...] = ()

    def home(self, start: int = 0) -> Home | None:
        """The place where the text from `start` on is to be changed, if a variable that serves nothing else gives all of it."""
        whole = next((home for a, b, home in self.homes if a == start and b == len(self.text)), None)
        return whole.settled() if whole is not None else None


@record
class Command:
    """One simple command: `words` without its assignments, `env` what it inherits and what stands before it. `maybe` says in which
    arms of which branches it stands."""

    words: tuple[Word, ...]
    env: dict[str, Word]
    start: int
    maybe: tuple[tuple[int, int], ...] = ()


@record
class Written:
    """A file that a script writes from a here-document: its name, its text, and the place of the text as it stands in the script."""

    name: str
    chars: Chars
    start: int
    end: int


@record(frozen=False)
class Announced:
    """A here-document whose text follows the line."""

    delimiter: str
    tabs: bool
    literal: bool
    words: list[Word]
    target: list[str]
