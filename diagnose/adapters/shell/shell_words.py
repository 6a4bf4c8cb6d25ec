"""Words of a shell script: quotes, arrays, expansion; each character keeps its offsets."""

from __future__ import annotations

import re

from diagnose.adapters.shell.shell_names import Expander
from diagnose.adapters.shell.shell_text import MAX_WORDS, PLACEHOLDER, Chars, Definition, Word

_PLACEHOLDER = re.compile(PLACEHOLDER)
_PLAIN = re.compile(rf"{PLACEHOLDER}|[^\s;&|()<>'\"`$\\^%]+")
# An option at the start of a continued line. Bash would join it to a word that ends in the backslash, which nobody means: pages often
# drop the blank before it.
_NEXT_OPTION = re.compile(r"--[A-Za-z]|\+{0,2}[A-Za-z_]\w*(?:\.\w+)+=")
#: The same after `NAME=value\\`: another assignment, or a program with its arguments.
_NEXT_COMMAND = re.compile(r"[A-Za-z_]\w*=|[A-Za-z_./][\w./-]*[ \t]+\S")


class WordReader(Expander):
    """Reads the words at the position. `joined` are the backslashes that join a word to an option of the next line."""

    def __init__(self, text: str, dialect: str = "bash") -> None:
        super().__init__(text, dialect)
        self.joined: list[int] = []

    def read_words(self) -> list[Word]:
        """The next word, or the several words that its unquoted variables expand to."""
        start, pieces = self.pos, self._read_pieces()
        whole, several = Chars(), list[Word]()
        for part, split in pieces:
            if isinstance(split, list):
                several += split
            elif split and len(parts := part.words()) > 1:
                several += parts
            else:
                whole.extend(part if not split else _strip_blanks(part))
        if several:
            return several
        if not pieces:
            self.pos = max(self.pos, start + 1)
            return []
        if not whole.text and self.text[start] == "$":
            return []  # an unset variable leaves no word
        if pieces[0][1] is True and len(pieces) == 1 and not whole.sure and " " in whole.text:
            return [whole.word(0, len(whole.text))]  # a command's output: changed where the command stands
        return [Word(whole.text, start, self.pos, whole.sure, whole, tuple(whole.definitions))]

    def read_value(self) -> Chars:
        """The right side of an assignment, never split, with its place as definition."""
        start, value = self.pos, Chars()
        for part, _ in self._read_pieces(in_assignment=True):
            value.extend(part)
        source = next((inner for first, last, inner in value.definitions if first == 0 and last == len(value.text)), None)
        value.definition = Definition(start, self.pos, 0, source)
        return value

    def read_array(self) -> list[Word]:
        """The words up to a closing bracket, the position behind it."""
        items: list[Word] = []
        while self.pos < len(self.text) and self.text[self.pos] != ")" and len(items) < MAX_WORDS:
            if self.text[self.pos] in " \t\n" or (self.dialect == "powershell" and self.text[self.pos] == ","):
                self.pos += 1
            elif self.is_continued():
                self.pos += 2
            elif self.text[self.pos] == "#":
                self.skip_line()
            else:
                start = self.pos
                items += self.read_words()
                self.pos += self.pos == start
        self.pos += 1
        return items

    def _read_pieces(self, in_assignment: bool = False) -> list[tuple[Chars, bool | list[Word]]]:
        """The pieces of the word at the position, each with whether it may be split, or with the words of an array. A continued line
        that ends the word is left to the caller."""
        text, pieces = self.text, list[tuple[Chars, "bool | list[Word]"]]()
        while self.pos < len(text) and (text[self.pos] not in " \t\n;&|()<>" or _PLACEHOLDER.match(text, self.pos)):
            char, piece = text[self.pos], Chars()
            if self.is_continued():
                following = self.pos + 2
                ends = text[following : following + 1] in ("", " ", "\t", "\n") or _NEXT_OPTION.match(text, following)
                next_command = in_assignment and _NEXT_COMMAND.match(text, following)
                if pieces and (ends or next_command):
                    if next_command or _NEXT_OPTION.match(text, following):
                        self.joined.append(self.pos)
                    break
                self.pos = following
                continue
            if (char == "'" and self.dialect != "cmd") or text.startswith("$'", self.pos):
                start = self.pos + 1 + (char == "$")
                stop = self._closed(text.find("'", start))
                piece.literal(text[start:stop], start)
                self.pos = stop + 1
            elif char == '"':
                pieces.append(self._read_double_quoted())
                continue
            elif char == self.escape:
                piece.literal(text[self.pos + 1 : self.pos + 2], self.pos + 1)
                self.pos += 2
            elif (value := self.read_reference()) is not None:
                pieces.append((Chars(), value) if isinstance(value, list) else (value, True))
                continue
            else:
                plain = _PLAIN.match(text, self.pos)
                stop = plain.end() if plain else self.pos + 1
                piece.literal(text[self.pos : stop], self.pos)
                self.pos = stop
            pieces.append((piece, False))
        self.pos = min(self.pos, len(text))
        return pieces

    def _read_double_quoted(self) -> tuple[Chars, bool | list[Word]]:
        text, piece = self.text, Chars()
        self.pos += 1
        array: list[Word] | None = None
        while self.pos < len(text) and text[self.pos] != '"':
            char = text[self.pos]
            if char == self.escape and text[self.pos + 1 : self.pos + 2] in ('"', self.escape, "$", "`", "\n"):
                if text[self.pos + 1] != "\n":
                    piece.literal(text[self.pos + 1], self.pos + 1)
                self.pos += 2
            elif (value := self.read_reference()) is not None:
                if isinstance(value, list):
                    array = [*(array or []), *value]
                else:
                    piece.extend(value)
            else:
                piece.literal(char, self.pos)
                self.pos += 1
        self.is_closed = self.is_closed and self.pos < len(text)
        self.pos += 1
        return (piece, array) if array is not None else (piece, False)


def _strip_blanks(part: Chars) -> Chars:
    """The text without leading and trailing blanks."""
    start = len(part.text) - len(part.text.lstrip())
    end = len(part.text.rstrip())
    if (start, end) == (0, len(part.text)) or end <= start:
        return part if end > start or not part.text else Chars(sure=part.sure)
    chars = Chars(part.text[start:end], part.starts[start:end], part.ends[start:end], part.sure, part.definition)
    chars.definitions = [
        (first - start, last - start, source) for first, last, source in part.definitions if first >= start and last <= end
    ]
    return chars
