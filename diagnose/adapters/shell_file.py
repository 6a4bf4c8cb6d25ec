"""A shell script as bash reads it: commands with their words, environments and places. Nothing is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from diagnose.adapters.leaf import Unreadable
from diagnose.phrases import phrase
from diagnose.record import record

_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGN = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)([\w.-]+)\2")
_REDIRECT = re.compile(r"\d*(?:&>>?|>>|>\||>&|<>|<<<|<&|>|<)")
_CAT = re.compile(r"\s*cat\s*<<(-?)\s*(['\"]?)(\w+)\2[^\n]*\n(.*?)\n[\t ]*\3\s*$", re.DOTALL)
_KEYWORDS = frozenset({"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac", "!", "{", "}", "time", "in"})
_SKIPPED = frozenset({"for", "case", "select", "function"})
_DECLARE = frozenset({"export", "declare", "local", "readonly", "typeset"})

_PLAIN = re.compile(r"[^\s;&|()<>'\"`$\\]+")

#: A script of more words than this is a program, not a launch; a variable that holds more text is a bomb.
MAX_WORDS = 20_000
MAX_HELD = 50_000

#: Characters and words that variables may become in all: each use of a variable copies what it holds.
MAX_EXPANDED = 3_000_000


@record
class Word:
    """A word after expansion and where it was written; `sure` is False where it holds something only a running shell knows."""

    text: str
    start: int
    end: int
    sure: bool = True


@record
class Command:
    """One simple command: `words` without its assignments, `env` what it inherits and what stands before it."""

    words: tuple[Word, ...]
    env: dict[str, Word]
    start: int


@dataclass(slots=True)
class _Chars:
    """Text with the offset of each of its characters: what a variable holds."""

    text: str = ""
    at: list[int] = field(default_factory=list)
    sure: bool = True

    def add(self, text: str, at: int | list[int]) -> None:
        if len(self.text) + len(text) > MAX_HELD:
            self.sure = False
            return
        self.text += text
        self.at += [at] * len(text) if isinstance(at, int) else at

    def words(self) -> list[Word]:
        return [Word(part[0], self.at[part.start()], self.at[part.end() - 1] + 1, self.sure) for part in re.finditer(r"\S+", self.text)]


class Reader:
    """Reads a script from top to bottom, keeping what variables hold; branches and loops are read as if taken once."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", " \n")  # same length: offsets stay
        self.commands: list[Command] = []
        self._at = 0
        self._held: dict[str, _Chars | list[Word]] = {}
        self._exported: set[str] = set()
        self._words: list[Word] = []
        self._before: dict[str, Word] = {}
        self._start = 0
        self._waiting: list[tuple[str, bool, str | None]] = []  # heredocs: delimiter, tabs stripped, variable that `read` fills
        self._count = 0
        self._left = MAX_EXPANDED

    def read(self) -> list[Command]:
        """Every simple command, in the order written."""
        text, size = self.text, len(self.text)
        while self._at < size and self._count < MAX_WORDS:
            here = text[self._at]
            if here == "\n":
                self._at += 1
                self._end()
                self._heredocs()
            elif here in " \t":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif here == "#":
                stop = text.find("\n", self._at)
                self._at = size if stop < 0 else stop
            elif heredoc := _HEREDOC.match(text, self._at):
                if not text.startswith("<<<", self._at):
                    target = self._words[-1].text if self._words and self._words[0].text == "read" else None
                    self._waiting.append((heredoc[3], bool(heredoc[1]), target))
                self._at = heredoc.end() if not text.startswith("<<<", self._at) else self._at + 3
            elif redirect := _REDIRECT.match(text, self._at):
                self._at = redirect.end()
                self._blanks()
                self._word()
            elif here in ";&|()":
                self._at += 1
                self._end()
            else:
                self._argument()
        self._end()
        return self.commands

    def _spend(self, count: int) -> None:
        """Raises Unreadable where variables have become more than any launch script's."""
        self._left -= count
        if self._left < 0:
            raise Unreadable("too_large", phrase("adapters.too_large"))

    def _blanks(self) -> None:
        while self._at < len(self.text) and self.text[self._at] in " \t":
            self._at += 1

    def _argument(self) -> None:
        if not self._words:
            self._start = self._at if not self._before else self._start
        assign = _ASSIGN.match(self.text, self._at)
        if assign and (not self._words or self._words[0].text in _DECLARE):
            self._assign(assign[1], bool(assign[2]), assign.end())
            return
        for word in self._word():
            self._count += 1
            if not self._words and (word.text in _KEYWORDS):
                continue
            self._words.append(word)

    def _assign(self, name: str, append: bool, at: int) -> None:
        start = self._at
        self._at = at
        if self.text.startswith("(", at):
            self._at += 1
            items = self._array()
            held = self._held.get(name)
            all_items = [*held, *items] if append and isinstance(held, list) else items
            self._held[name] = all_items
            self._spend(len(all_items))
            return
        value = self._value()
        held = self._held.get(name)
        if append and isinstance(held, _Chars):
            joined = _Chars(held.text, list(held.at), held.sure and value.sure)
            joined.add(value.text, value.at)
            value = joined
        self._held[name] = value
        word = Word(value.text, at, self._at, value.sure)
        self._before[name] = word
        if self._words and self._words[0].text in ("export", "declare"):
            self._exported.add(name)
        if not self._words and len(self._before) == 1:
            self._start = start

    def _array(self) -> list[Word]:
        items: list[Word] = []
        while self._at < len(self.text) and self.text[self._at] != ")" and len(items) < MAX_WORDS:
            if self.text[self._at] in " \t\n":
                self._at += 1
            elif self.text.startswith("\\\n", self._at):
                self._at += 2
            elif self.text[self._at] == "#":
                stop = self.text.find("\n", self._at)
                self._at = len(self.text) if stop < 0 else stop
            else:
                before = self._at
                items += self._word()
                self._at += self._at == before
        self._at += 1
        return items

    def _end(self) -> None:
        """A command ends: keep it, or, where it only assigned, keep the assignments."""
        words, before = self._words, self._before
        self._words, self._before = [], {}
        if not words or words[0].text in _SKIPPED or words[0].text in _DECLARE:
            if words and words[0].text == "export":
                self._exported |= {word.text for word in words[1:] if word.text in self._held}
                if before:
                    self.commands.append(Command(tuple(words[:1]), before, self._start))
            return
        if words[0].text == "unset":
            for word in words[1:]:
                self._held.pop(word.text, None)
                self._exported.discard(word.text)
            return
        self._spend(8 * len(self._exported))
        env: dict[str, Word] = {}
        for name in self._exported:
            held = self._held.get(name)
            if isinstance(held, _Chars) and held.at:
                env[name] = Word(held.text, held.at[0], held.at[-1] + 1, held.sure)
        self.commands.append(Command(tuple(words), {**env, **before}, self._start))

    def _heredocs(self) -> None:
        """The bodies that were announced on the line just ended; `read -d '' NAME <<EOF` fills a variable."""
        for delimiter, stripped, target in self._waiting:
            body_at = self._at
            while self._at < len(self.text):
                stop = self.text.find("\n", self._at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self._at : stop]
                if (line.lstrip("\t") if stripped else line).rstrip() == delimiter:
                    break
                self._at = stop + 1
            if target:
                self._held[target] = self._here(body_at, min(self._at, len(self.text)))
            stop = self.text.find("\n", self._at)
            self._at = len(self.text) if stop < 0 else stop + 1
        self._waiting = []

    def _here(self, start: int, end: int) -> _Chars:
        """Text between two offsets with its variables expanded and its continued lines joined, each character with its place."""
        value, at = _Chars(), start
        while at < end:
            if self.text.startswith("\\\n", at):
                at += 2
            elif self.text[at] == "$" and (variable := self._variable(at)):
                name, after = variable
                self._expand_into(value, name, at)
                at = after
            else:
                value.add(self.text[at], at)
                at += 1
        return value

    def _value(self) -> _Chars:
        """The right side of an assignment: never split."""
        value = _Chars()
        for part, split in self._pieces():
            del split
            value.add(part.text, part.at)
            value.sure &= part.sure
        return value

    def _word(self) -> list[Word]:
        """The next word, or the several words that its unquoted variables become."""
        start = self._at
        fields: list[_Chars] = [_Chars()]
        several: list[Word] = []
        any_piece = False
        for part, split in self._pieces():
            any_piece = True
            if isinstance(split, list):
                several += split
                continue
            parts = part.words() if split else []
            if len(parts) > 1:
                several += parts
                continue
            fields[-1].add(part.text.strip() if split else part.text, part.at)
            fields[-1].sure &= part.sure
        whole = fields[-1]
        if several:
            return several
        if not any_piece:
            self._at = max(self._at, start + 1)
            return []
        if not whole.text and self.text[start] == "$":
            return []  # an unset variable leaves no word
        return [Word(whole.text, start, self._at, whole.sure)]

    def _pieces(self) -> list[tuple[_Chars, bool | list[Word]]]:
        """What the word at hand is made of: text, and whether it may be split (or the words of an array)."""
        text, found = self.text, list[tuple[_Chars, "bool | list[Word]"]]()
        while self._at < len(text) and text[self._at] not in " \t\n;&|()<>":
            here, piece = text[self._at], _Chars()
            if text.startswith("\\\n", self._at):
                self._at += 2
                continue
            if here == "'" or text.startswith("$'", self._at):
                start = self._at + 1 + (here == "$")
                stop = text.find("'", start)
                stop = len(text) if stop < 0 else stop
                piece.add(text[start:stop], list(range(start, stop)))
                self._at = stop + 1
            elif here == '"':
                found.append(self._double_quoted())
                continue
            elif here == "`" or text.startswith("$(", self._at):
                piece = self._substitution()
            elif here == "$" and (variable := self._variable(self._at)):
                name, after = variable
                held = self._held.get(name.partition("[")[0])
                if isinstance(held, list):
                    self._spend(len(held))
                    found.append((piece, held))
                else:
                    self._expand_into(piece, name, self._at, own=True)
                    found.append((piece, True))
                self._at = after
                continue
            elif here == "\\":
                piece.add(text[self._at + 1 : self._at + 2], self._at + 1)
                self._at += 2
            else:
                plain = _PLAIN.match(text, self._at)
                stop = plain.end() if plain else self._at + 1
                piece.add(text[self._at : stop], list(range(self._at, stop)))
                self._at = stop
            found.append((piece, False))
        return found

    def _double_quoted(self) -> tuple[_Chars, bool | list[Word]]:
        text, piece = self.text, _Chars()
        self._at += 1
        array: list[Word] | None = None
        while self._at < len(text) and text[self._at] != '"':
            here = text[self._at]
            if here == "\\" and text[self._at + 1 : self._at + 2] in ('"', "\\", "$", "`", "\n"):
                if text[self._at + 1] != "\n":
                    piece.add(text[self._at + 1], self._at + 1)
                self._at += 2
            elif here == "`" or text.startswith("$(", self._at):
                inner = self._substitution()
                piece.add(inner.text, inner.at)
                piece.sure &= inner.sure
            elif here == "$" and (variable := self._variable(self._at)):
                name, after = variable
                held = self._held.get(name.partition("[")[0])
                if isinstance(held, list):
                    self._spend(len(held))
                    array = held
                else:
                    self._expand_into(piece, name, self._at, own=True)
                self._at = after
            else:
                piece.add(here, self._at)
                self._at += 1
        self._at += 1
        return (piece, array) if array is not None else (piece, False)

    def _variable(self, at: int) -> tuple[str, int] | None:
        """The name (with its default after `:-`) of the variable at a `$`, and where it ends."""
        if self.text.startswith("${", at):
            stop = self.text.find("}", at, at + 1000)
            return (self.text[at + 2 : stop], stop + 1) if stop > 0 else None
        match = _NAME.match(self.text, at + 1)
        if match:
            return match[0], match.end()
        if self.text[at + 1 : at + 2] in tuple("@*#?$!-0123456789"):
            return self.text[at + 1], at + 2
        return None

    def _expand_into(self, piece: _Chars, name: str, at: int, *, own: bool = False) -> None:
        plain = _NAME.match(name)
        held = self._held.get(plain[0]) if plain else None
        rest = name[plain.end() :] if plain else name
        if isinstance(held, _Chars) and (not rest or rest[:2] in (":-", ":=") or rest[0] == "-"):
            self._spend(len(held.text))
            several = own and len(held.text.split()) > 1
            piece.add(held.text, list(held.at) if several or not own else at)
            piece.sure &= held.sure
        elif rest[:2] in (":-", ":=") or rest[:1] == "-":
            piece.add(rest.lstrip(":-="), at)
        else:
            piece.sure = False
            piece.add(f"${name}", at)

    def _substitution(self) -> _Chars:
        """`$(...)` or backquotes: unknown, unless it only prints a here-document."""
        start, text = self._at, self.text
        if text[start] == "`":
            stop = text.find("`", start + 1)
            self._at = len(text) if stop < 0 else stop + 1
        else:
            level, self._at = 0, start + 1
            while self._at < len(text):
                level += (text[self._at] == "(") - (text[self._at] == ")")
                self._at += 1
                if not level:
                    break
            printed = _CAT.match(text[start + 2 : self._at - 1])
            if printed:
                return self._here(start + 2 + printed.start(4), start + 2 + printed.end(4))
        return _Chars(text[start : self._at], [start] * (self._at - start), sure=False)
