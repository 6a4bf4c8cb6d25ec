"""Layout for terminals: display width, wrapping of Chinese and English text, colour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from unicodedata import combining, east_asian_width

from diagnose.parse.text.lazy_re import lazy_compile

#: Punctuation that may not begin a line, and that may not end one.
NEVER_FIRST = "，。；：、！？）》」』】”’…%,.;:!?)]}"
NEVER_LAST = "（《「『【“‘([{"

#: Where a word that is too long is cut.
PARTING = "/|,;_=&"

#: A blank, a run of narrow characters without blanks, or one wide character. Ranges of wide characters take as long to compile as a tenth
#: of a start, so a text without them is split by a pattern of its own.
WIDE = r"\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
FIRST_WIDE = "\u1100"
NARROW_UNIT = re.compile(r"\s+|\S+")
UNIT = lazy_compile(rf"\s+|[{WIDE}]|[^\s{WIDE}]+")

#: Nobody knows the terminal's background: letters have its own colour, or one on a colour of ours (tests/render/test_colour.py).
STYLES = {
    "bold": "1", "dim": "2", "note": "3", "edit": "1", "name": "4", "heading": "1;4",
    "bad": "1;97;41", "good": "1;30;42", "error": "1;31", "block": "36",
}  # fmt: skip


@lru_cache(maxsize=4096)
def _cell(character: str) -> int:
    if combining(character) or character in "\u200b\u200c\u200d\ufeff":
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def cells(text: str) -> int:
    """The display width of a text in columns."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def pad(text: str, width: int, right: bool = False) -> str:
    """Pad a text to a width in columns; a longer one is cut with an ellipsis."""
    short = clip(text, width)
    blanks = " " * (width - cells(short))
    return blanks + short if right else short + blanks


def clip(text: str, width: int) -> str:
    """Cut a text to at most `width` columns, with an ellipsis."""
    if cells(text) <= width:
        return text
    beginning, used = "", 1
    for character in text:
        used += _cell(character)
        if used > width:
            break
        beginning += character
    return beginning + "…"


def wrap(text: str, width: int, first: str = "", others: str | None = None) -> list[str]:
    """Wrap a text at blanks and between Chinese characters, never before closing punctuation.

    `first` and `rest` are prefixes of the first and the other lines (`rest` None: blanks as wide as `first`). The last line never consists
    of a single Chinese character.
    """
    others = " " * cells(first) if others is None else others
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lead = others if lines else first
        line, used, gap, start = lead, cells(lead), "", len(lines)
        for unit in _units(paragraph, max(width - max(cells(first), cells(others)), 8)):
            if unit.isspace():
                gap = " "
                continue
            if line != lead and used + len(gap) + cells(unit) > width:
                lines.append(line)
                line, used, gap, lead = others, cells(others), "", others
            gap = gap if line != lead else ""
            line, used, gap = line + gap + unit, used + len(gap) + cells(unit), ""
        if len(lines) > start and _is_lone(line[len(others) :]) and _can_spare(lines[-1]):
            line = others + lines[-1][-1] + line[len(others) :]
            lines[-1] = lines[-1][:-1]
        lines.append(line)
    return lines


def _is_han(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff"


def _is_lone(rest: str) -> bool:
    """Whether a line holds nothing but one Chinese character and the punctuation that may not begin a line."""
    return _is_han(rest[:1]) and not rest[1:].strip(NEVER_FIRST)


def _can_spare(line: str) -> bool:
    """Whether the last Chinese character of a line can go to the next one, and the line does not then end in a bracket."""
    before = line[-2:-1]
    return _is_han(line[-1:]) and bool(before) and not before.isspace() and before not in NEVER_LAST


def _units(text: str, limit: int) -> Iterator[str]:
    """The parts that must not be broken: words, single wide characters with their punctuation, blanks."""
    word = ""
    for unit in (UNIT if max(text, default="") >= FIRST_WIDE else NARROW_UNIT).findall(text):
        if unit.isspace():
            yield from _cut(word, limit)
            word = ""
            yield " "
        elif word and (unit[0] in NEVER_FIRST or word[-1] in NEVER_LAST or (word[-1] in "-/" and unit.isascii())):
            word += unit
        else:
            yield from _cut(word, limit)
            word = unit
    yield from _cut(word, limit)


def _cut(word: str, limit: int) -> Iterator[str]:
    """Split a word into pieces of at most `limit` columns, after a separator if it has one."""
    while cells(word) > limit:
        fitting, used = 0, 0
        while used + _cell(word[fitting]) <= limit:
            used += _cell(word[fitting])
            fitting += 1
        mark = max(word.rfind(sign, 0, fitting) for sign in PARTING) + 1
        at = mark if mark > fitting // 2 else max(fitting, 1)
        yield word[:at]
        word = word[at:]
    if word:
        yield word


class Page:
    """Lines of output at one width, with or without colour. Text is wrapped before it is coloured."""

    def __init__(self, width: int, colour: bool = False) -> None:
        self.width = max(width, 40)
        self.colour = colour
        self.lines: list[str] = []

    def paint(self, style: str, text: str) -> str:
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self.colour and style and text.strip() else text

    def say(self, text: str, first: str = "", others: str | None = None, style: str = "") -> None:
        """Add a wrapped paragraph; an empty text adds nothing."""
        if text:
            self.lines += [self.paint(style, line) for line in wrap(text, self.width, first, others)]

    def heading(self, text: str) -> None:
        """Add a title after an empty line."""
        self.gap()
        self.say(text, style="heading")

    def gap(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def row(self, line: str) -> None:
        """Add a line as it is, without trailing blanks."""
        self.lines.append(line.rstrip())

    def text(self) -> str:
        return "\n".join(self.lines).strip("\n") + "\n"
