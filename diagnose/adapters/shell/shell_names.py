"""What the names in a shell script stand for: variables with their defaults, items of arrays, arithmetic, arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnose.adapters.formats.config_value import Unreadable
from diagnose.adapters.shell.shell_arithmetic import cut, total
from diagnose.adapters.shell.shell_text import MAX_EXPANDED, Chars, Home, Word
from diagnose.phrases import phrase

_NAME = re.compile(r"[A-Za-z_]\w*")
_PERCENT = re.compile(r"%([A-Za-z_]\w*)%")
_CAT = re.compile(r"\s*cat\s*<<(-?)\s*(['\"]?)(\w+)\2[^\n]*\n(.*?)\n[\t ]*\3\s*$", re.DOTALL)
_ITEM = re.compile(r"([A-Za-z_]\w*)\[([@*]|\d{1,6})\](.*)", re.DOTALL)
_LONGEST = 1000

Held = Chars | list[Word]


class Names:
    """A cursor over a script that knows what its variables hold."""

    def __init__(self, text: str, dialect: str = "bash") -> None:
        self.text = text
        self.dialect = dialect
        self.escape = {"cmd": "^", "powershell": "`"}.get(dialect, "\\")
        self.held: dict[str, Held] = {}
        self.given: Sequence[Word] | None = None  # what $1, $2 ... are, inside a function that is called
        self.left = MAX_EXPANDED
        self.at = 0
        self._depth = 0

    def spend(self, count: int) -> None:
        """Raises Unreadable where variables have become more than any launch script's."""
        self.left -= count
        if self.left < 0:
            raise Unreadable("too_large", phrase("adapters.too_large"))

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def past_line(self) -> None:
        stop = self.text.find("\n", self.at)
        self.at = len(self.text) if stop < 0 else stop

    def continues(self) -> bool:
        """Does the line go on in the next one?"""
        return self.text.startswith(f"{self.escape}\n", self.at)

    def reference(self) -> Chars | list[Word] | None:
        """What a variable, a sum or a substitution at the cursor becomes, the cursor moved past it; None where none stands here."""
        text, start = self.text, self.at
        here = text[start]
        if here == "%" and self.dialect == "cmd":
            match = _PERCENT.match(text, start)
            self.at = match.end() if match else start
            return self._named(match[1], "", start) if match else None
        if here == "`" and self.dialect == "bash":
            stop = text.find("`", start + 1)
            self.at = len(text) if stop < 0 else stop + 1
            return Chars.unknown(text[start + 1 : self.at][:200], start, self.at)
        if here != "$":
            return None
        if text.startswith("$((", start) and (stop := text.find("))", start, start + _LONGEST)) > 0:
            return self._sum(stop)
        if text.startswith("$(", start):
            return self._substitution()
        if text.startswith("${", start):
            stop = self._closing(start + 1)
            if stop < 0:
                return None
            self.at = stop + 1
            return self._braced(text[start + 2 : stop], start)
        return self._plain(start)

    def _sum(self, stop: int) -> Chars:
        start = self.at
        self.at = stop + 2
        value = total(self.text[start + 3 : stop], self._known)
        if value is None:
            return Chars.unknown(self.text[start + 1 : self.at], start, self.at)
        made = Chars()
        made.add(str(value), start, self.at)
        return made

    def _plain(self, start: int) -> Chars | list[Word] | None:
        """`$NAME`, `$1`, `$@`."""
        text, at = self.text, start
        if self.dialect == "powershell" and text[start + 1 : start + 5].lower() == "env:":
            at += 4
        name = _NAME.match(text, at + 1)
        if name:
            self.at = name.end()
            return self._named(name[0], "", start)
        if (sign := text[start + 1 : start + 2]) and sign in "@*#?$!-0123456789":
            self.at = start + 2
            return self._parameter(sign, start)
        return None

    def _closing(self, at: int) -> int:
        """The brace that closes the one there."""
        end = min(len(self.text), at + _LONGEST)
        if self.text.find("}", at, end) < 0:
            return -1
        self.spend(64)
        level = 0
        for index in range(at, end):
            level += (self.text[index] == "{") - (self.text[index] == "}")
            if not level:
                return index
        self.spend(end - at)  # looked through in vain: a script of nothing else must come to an end
        return -1

    def _parameter(self, sign: str, start: int) -> Chars | list[Word]:
        """$1, $@ and the like: known inside a function that is called."""
        if self.given is None or sign in "?$!-":
            return Chars.unknown(sign, start, self.at)
        if sign in "@*":
            return list(self.given)
        if sign == "#":
            made = Chars()
            made.add(str(len(self.given)), start, self.at)
            return made
        if sign == "0" or int(sign) > len(self.given):
            return Chars() if sign != "0" else Chars.unknown(sign, start, self.at)
        return self._of_word(self.given[int(sign) - 1], start)

    def _of_word(self, word: Word, start: int) -> Chars:
        """A word that is held elsewhere, used here."""
        made = Chars(sure=word.sure)
        made.add(word.text, start, self.at)
        made.homes = [(0, len(word.text), Home(word.start, word.end, 1))] if word.sure and word.text else []
        return made

    def _braced(self, inside: str, start: int) -> Chars | list[Word]:
        """`${...}`: a variable, an item or all of an array, a count, with what is to be done to it."""
        unknown = Chars.unknown(f"{{{inside}}}", start, self.at)
        if item := _ITEM.fullmatch(inside):
            held = self.held.get(item[1])
            if isinstance(held, list) and not item[3]:
                if item[2] in "@*":
                    self.spend(len(held))
                    return held
                if int(item[2]) < len(held):
                    return self._of_word(held[int(item[2])], start)
            return unknown
        if inside[:1] == "#" and len(inside) > 1:
            held = self.held.get(inside[1:].partition("[")[0])
            if isinstance(held, list) or (isinstance(held, Chars) and held.sure):
                made = Chars()
                made.add(str(len(held if isinstance(held, list) else held.text)), start, self.at)
                return made
            return unknown
        name = _NAME.match(inside)
        if name is not None:
            return self._named(name[0], inside[name.end() :], start)
        digits = re.match(r"[@*]|\d", inside)
        if digits is None:
            return unknown
        if self.given is None and inside[1:2] in (":", "-") and digits[0] not in "@*":
            return self._default(inside[1:], start, start + 3)
        return self._parameter(digits[0], start)

    def _named(self, name: str, rest: str, start: int) -> Chars | list[Word]:
        """A variable's value, or the default that stands beside its name."""
        held = self.held.get(name)
        at = start + 2 + len(name)
        if rest[:2] == ":+" or rest[:1] == "+":
            return self._default(rest, start, at) if held else Chars()
        if held is None or (isinstance(held, Chars) and not held.text and rest[:1] == ":"):
            return self._unset(name, rest, start, held)
        if isinstance(held, list):
            return held if self.dialect == "powershell" else self._of_word(held[0], start) if held else Chars()
        self.spend(len(held.text))
        if not rest or rest[:2] in (":-", ":=") or rest[:1] in ("-", "="):
            return self._used(held, start)
        if rest[:1] in ("#", "%") and held.sure:
            sign = rest[: 1 + (rest[1:2] == rest[:1])]
            found = cut(held.text, sign, rest[len(sign) :])
            if found is not None:
                made = Chars()
                made.add(found, start, self.at)
                return made
        return Chars.unknown(f"{{{name}{rest}}}", start, self.at)

    def _unset(self, name: str, rest: str, start: int, held: Held | None) -> Chars:
        """A variable that nothing sets: its default, if it has one."""
        if rest[:2] in (":-", ":=") or rest[:1] in ("-", "="):
            made = self._default(rest, start, start + 2 + len(name))
            if "=" in rest[:2]:
                self.held[name] = made
            return made
        return Chars.unknown(name if not rest else f"{{{name}{rest}}}", start, self.at) if held is None else Chars()

    def _used(self, held: Chars, start: int) -> Chars:
        """A variable's text here: one word stands where it is used, options and several words where they are written."""
        made = Chars(sure=held.sure)
        if held.home is not None:
            held.home.uses += 1
        if len(held.text.split()) > 1 or held.text.startswith("-") or "=" in held.text:
            made.put(held.text, held.at, held.to)
            made.homes = list(held.homes)
        else:
            made.add(held.text, start, self.at)
        if held.home is not None and held.sure and held.text:
            made.homes.append((0, len(held.text), held.home))
        return made

    def _default(self, rest: str, start: int, at: int) -> Chars:
        """What `${X:-...}` is where X is not set. `at` is where the sign stands in the text."""
        size = 2 if rest[:1] == ":" else 1
        begin, end = at + size, at + len(rest)
        made = self.expanded(begin, end, quotes=True)
        home = Home(begin, end, 0)
        made.home = home if made.sure and not made.homes else None
        if made.home is not None and made.text:
            home.uses = 1
            made.homes = [(0, len(made.text), home)]
        if made.text and not made.homes and made.sure:
            made.at, made.to = [start] * len(made.text), [self.at] * len(made.text)
        return made

    def _known(self, name: str) -> str | None:
        held = self.held.get(name)
        if isinstance(held, Chars) and held.sure:
            if held.home is not None:
                held.home.uses += 1
            return held.text
        return None

    def expanded(self, start: int, end: int, *, quotes: bool = False, joined: bool = True) -> Chars:
        """Text between two offsets with its variables expanded and its continued lines joined. `quotes`: they are taken off."""
        value, kept, begun = Chars(), self.at, self._depth
        self._depth += 1
        self.at = start
        while self.at < end:
            here = self.text[self.at]
            if joined and self.continues():
                self.at += 2
            elif quotes and here in "'\"":
                self.at += 1
            elif self._depth < 10 and here in "$`" and (held := self.reference()) is not None:
                for part in [held] if isinstance(held, Chars) else [Chars(word.text + " ") for word in held]:
                    if len(part.at) != len(part.text):
                        part.at, part.to = [start] * len(part.text), [end] * len(part.text)
                    value.join(part)
            else:
                value.literal(here, self.at)
                self.at += 1
        self.at, self._depth = kept, begun
        return value

    def _substitution(self) -> Chars:
        """`$(...)`: unknown, unless it only prints a here-document."""
        start, text = self.at, self.text
        level, self.at = 0, start + 1
        while self.at < len(text):
            level += (text[self.at] == "(") - (text[self.at] == ")")
            self.at += 1
            if not level:
                break
        printed = _CAT.match(text[start + 2 : self.at - 1])
        if printed:
            return self.expanded(start + 2 + printed.start(4), start + 2 + printed.end(4))
        return Chars.unknown(text[start + 1 : self.at][:200], start, self.at)
