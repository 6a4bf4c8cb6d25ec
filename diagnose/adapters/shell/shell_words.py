"""Words of a shell script: quotes, arrays, what variables become; each character keeps its place."""

from __future__ import annotations

import re

from diagnose.adapters.shell.shell_names import Held, Names
from diagnose.adapters.shell.shell_text import BLANKED, MAX_WORDS, Chars, Home, Word

__all__ = ["Held", "Words"]

_BLANKED = re.compile(BLANKED)
_PLAIN = re.compile(rf"{BLANKED}|[^\s;&|()<>'\"`$\\^%]+")
# An option at the start of a line. Bash joins it to a word that a backslash breaks off right before it, which nobody means; a page that
# the script was copied from often ate the blank.
_NEXT_OPTION = re.compile(r"--[A-Za-z]|\+{0,2}[A-Za-z_]\w*(?:\.\w+)+=")


class Words(Names):
    """The words at the cursor."""

    def word(self) -> list[Word]:
        """The next word, or the several words that its unquoted variables become."""
        start = self.at
        whole, several, any_piece = Chars(), list[Word](), False
        for part, split in self._pieces():
            any_piece = True
            if isinstance(split, list):
                several += split
            elif split and len(parts := part.words()) > 1:
                several += parts
            else:
                whole.join(part if not split else _stripped(part))
        if several:
            return several
        if not any_piece:
            self.at = max(self.at, start + 1)
            return []
        if not whole.text and self.text[start] == "$":
            return []  # an unset variable leaves no word
        return [Word(whole.text, start, self.at, whole.sure, whole, tuple(whole.homes))]

    def value(self) -> Chars:
        """The right side of an assignment, never split. It is at home where it is written, unless something unknown is in it."""
        start, value = self.at, Chars()
        for part, _ in self._pieces():
            value.join(part)
        source = next((home for a, b, home in value.homes if a == 0 and b == len(value.text)), None)
        value.home = Home(start, self.at, 0, source)
        return value

    def array(self) -> list[Word]:
        """The words up to a closing bracket."""
        items: list[Word] = []
        while self.at < len(self.text) and self.text[self.at] != ")" and len(items) < MAX_WORDS:
            if self.text[self.at] in " \t\n" or (self.dialect == "powershell" and self.text[self.at] == ","):
                self.at += 1
            elif self.continues():
                self.at += 2
            elif self.text[self.at] == "#":
                self.past_line()
            else:
                before = self.at
                items += self.word()
                self.at += self.at == before
        self.at += 1
        return items

    def _pieces(self) -> list[tuple[Chars, bool | list[Word]]]:
        """What the word at hand is made of: text, and whether it may be split (or the words of an array)."""
        text, found = self.text, list[tuple[Chars, "bool | list[Word]"]]()
        while self.at < len(text) and (text[self.at] not in " \t\n;&|()<>" or _BLANKED.match(text, self.at)):
            here, piece = text[self.at], Chars()
            if self.continues():
                self.at += 2
                if found and _NEXT_OPTION.match(text, self.at):
                    break
                continue
            if (here == "'" and self.dialect != "cmd") or text.startswith("$'", self.at):
                start = self.at + 1 + (here == "$")
                stop = text.find("'", start)
                stop = len(text) if stop < 0 else stop
                piece.literal(text[start:stop], start)
                self.at = stop + 1
            elif here == '"':
                found.append(self._double_quoted())
                continue
            elif here == self.escape:
                piece.literal(text[self.at + 1 : self.at + 2], self.at + 1)
                self.at += 2
            elif (held := self.reference()) is not None:
                found.append((Chars(), held) if isinstance(held, list) else (held, True))
                continue
            else:
                plain = _PLAIN.match(text, self.at)
                stop = plain.end() if plain else self.at + 1
                piece.literal(text[self.at : stop], self.at)
                self.at = stop
            found.append((piece, False))
        self.at = min(self.at, len(text))
        return found

    def _double_quoted(self) -> tuple[Chars, bool | list[Word]]:
        text, piece = self.text, Chars()
        self.at += 1
        array: list[Word] | None = None
        while self.at < len(text) and text[self.at] != '"':
            here = text[self.at]
            if here == self.escape and text[self.at + 1 : self.at + 2] in ('"', self.escape, "$", "`", "\n"):
                if text[self.at + 1] != "\n":
                    piece.literal(text[self.at + 1], self.at + 1)
                self.at += 2
            elif (held := self.reference()) is not None:
                if isinstance(held, list):
                    array = [*(array or []), *held]
                else:
                    piece.join(held)
            else:
                piece.literal(here, self.at)
                self.at += 1
        self.at += 1
        return (piece, array) if array is not None else (piece, False)


def _stripped(part: Chars) -> Chars:
    """Without the blanks around it."""
    size = len(part.text) - len(part.text.lstrip())
    end = len(part.text.rstrip())
    if (size, end) == (0, len(part.text)) or end <= size:
        return part if end > size or not part.text else Chars(sure=part.sure)
    made = Chars(part.text[size:end], part.at[size:end], part.to[size:end], part.sure, part.home)
    made.homes = [(a - size, b - size, home) for a, b, home in part.homes if a >= size and b <= end]
    return made
