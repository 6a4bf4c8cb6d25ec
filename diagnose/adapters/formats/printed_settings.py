"""Settings as a program printed them into its log to leaves: JSON, dicts and calls as Python prints them, rows of dots.

A log may mix foreign words into them, so whatever fits nowhere is passed over to the end of its line; nothing raises for that.
"""

from __future__ import annotations

import re

from diagnose.adapters.formats.config_value import MAX_DEPTH, MAX_LEAVES, Leaf, Places, Unreadable
from diagnose.phrases import phrase

_KEY = re.compile(r"(?:'([^'\\\n]{1,200})'|\"([^\"\\\n]{1,200})\"|([A-Za-z_$][\w.$/-]{0,200})) ?([:=])\s*")
_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"")
_BARE = re.compile(r"[^\s,(){}\[\]<>'\"]+(?: (?![\w.]+=)[^\s,(){}\[\]<>'\"=]+)*")
#: <SaveStrategy.STEPS: 'steps'>, <ShardingStrategy.FULL_SHARD: 1>, <function f at 0x7f>
_ANGLE = re.compile(r"<(?:([A-Za-z_]\w*\.)*(\w+): )?(?:'([^'\n]{0,200})'|([^<>\n]{0,400}))>")
_MEMBER = re.compile(r"[A-Z]\w*\.([A-Z][A-Z0-9_]*)")
_ROW = re.compile(r"\s*([A-Za-z_][\w.-]{0,80}) ?\.{2,} ?(?=\S)")
_NULL = ("None", "null")


class Reader:
    """One pass over a printed text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._place = Places(text)
        self._left = MAX_LEAVES

    def values(self) -> list[Leaf]:
        """The leaves of the first bracket of the text."""
        opening = re.search(r"[({\[]", self.text)
        return [] if opening is None else self._inside(opening.start(), "", 0)[0]

    def rows(self) -> list[Leaf]:
        """The leaves of lines of a key, dots and a value."""
        found: list[Leaf] = []
        at = 0
        for line in self.text.split("\n"):
            row = _ROW.match(line)
            if row is not None:
                begin, name_at = at + row.end(), at + row.start(1)
                fields = self._fields(begin, row[1], name_at, at + len(line))
                found += fields or self._value(begin, row[1], name_at, 0)[0]
            at += len(line) + 1
        return found

    def _fields(self, at: int, key: str, name_at: int, end: int) -> list[Leaf]:
        """The fields of an object that prints as `stage=3 reduce_scatter=True`, as pydantic's do."""
        line, column = self._place(name_at)
        found = [Leaf(key, None, self.text[at:end], at, end, line, column, "map")]
        while (option := _KEY.match(self.text, at)) is not None and option[4] == "=":
            leaves, after = self._value(option.end(), f"{key}.{option[3]}", at, 0)
            found += leaves
            at = self._skip(after)
            if at >= end or after <= option.start():
                break
        return found if len(found) > 1 else []

    def _skip(self, at: int) -> int:
        while at < len(self.text) and self.text[at] in " \t\r\n,":
            at += 1
        return at

    def _leaf(self, key: str, text: str, start: int, end: int, name_at: int, null: bool = False) -> Leaf:
        line, column = self._place(name_at)
        return Leaf(key, None if null else text, self.text[start:end], start, end, line, column, "null" if null else "scalar")

    def _inside(self, at: int, path: str, depth: int) -> tuple[list[Leaf], int]:
        """The keys between a bracket and the one that closes it."""
        found: list[Leaf] = []
        at = self._skip(at + 1)
        while at < len(self.text) and self.text[at] not in ")}]":
            key = _KEY.match(self.text, at)
            if key is None or (key[3] and key[4] == ":" and path == "" and depth and not key[1]):
                at = self._passed(at, depth)
            else:
                leaves, at = self._value(key.end(), f"{path}{key[1] or key[2] or key[3]}", at, depth)
                found += leaves
            at = self._skip(at)
        return found, at + 1

    def _passed(self, at: int, depth: int) -> int:
        """After something without a name: a bracket with all that is in it, a text, else the rest of the line."""
        if self.text[at] in "({[":
            return self._inside(at, "", depth + 1)[1] if depth < MAX_DEPTH else len(self.text)
        match = _STRING.match(self.text, at) or _BARE.match(self.text, at)
        if match is not None and self.text[match.end() : match.end() + 1] in (",", ")", "]", "}"):
            return match.end()
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def _value(self, at: int, key: str, name_at: int, depth: int) -> tuple[list[Leaf], int]:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(name_at))
        text, first = self.text, self.text[at : at + 1]
        if first == "{":
            return self._map(at, at, key, name_at, depth)
        if first in ("[", "("):
            return self._list(at, key, name_at, depth)
        if (quoted := _STRING.match(text, at)) is not None:
            return [self._leaf(key, _unescaped(quoted[1] or quoted[2] or ""), at, quoted.end(), name_at)], quoted.end()
        if (angle := _ANGLE.match(text, at)) is not None:
            said = angle[3] if angle[3] is not None else angle[2]
            return [self._leaf(key, said, at, angle.end(), name_at)] if said else [], angle.end()
        bare = _BARE.match(text, at)
        if bare is None:
            return [], self._passed(at, depth) if at < len(text) and first not in ")}]," else at
        if text[bare.end() : bare.end() + 1] in ("(", "{") and text[bare.end() : bare.end() + 1]:
            return self._call(at, bare.end(), key, name_at, depth)
        member = _MEMBER.fullmatch(bare[0])
        said = member[1].lower() if member else bare[0].removeprefix("torch.")
        return [self._leaf(key, said, at, bare.end(), name_at, said in _NULL)], bare.end()

    def _map(self, at: int, start: int, key: str, name_at: int, depth: int) -> tuple[list[Leaf], int]:
        inside, end = self._inside(at, f"{key}.", depth + 1)
        line, column = self._place(name_at)
        return [Leaf(key, None, self.text[start:end], start, end, line, column, "map"), *inside], end

    def _call(self, at: int, bracket: int, key: str, name_at: int, depth: int) -> tuple[list[Leaf], int]:
        """An object that prints as a call: its fields, or the one value that it holds."""
        within = self._skip(bracket + 1)
        if _KEY.match(self.text, within) is not None:
            return self._map(bracket, at, key, name_at, depth)
        if self.text[within : within + 1] in ("", ")", "}"):
            return [], within + 1
        leaves, end = self._value(within, key, name_at, depth + 1)
        closing = self.text.find(")", end)
        return leaves, closing + 1 if 0 <= closing - end < 8 else end

    def _list(self, at: int, key: str, name_at: int, depth: int) -> tuple[list[Leaf], int]:
        items: list[str] = []
        inside: list[Leaf] = []
        start, at = at, self._skip(at + 1)
        while at < len(self.text) and self.text[at] not in ")}]":
            before = at
            leaves, at = self._value(at, f"{key}.{len(items)}", at, depth + 1)
            items.append((leaves[0].text or "") if leaves else "")
            inside += [leaf for leaf in leaves if len(leaves) > 1 or leaf.shape in ("map", "list")]
            at = self._skip(at) if at > before else before + 1
        line, column = self._place(name_at)
        return [Leaf(key, None, self.text[start : at + 1], start, at + 1, line, column, "list", tuple(items)), *inside], at + 1


def _unescaped(text: str) -> str:
    return text.replace("\\'", "'").replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\") if "\\" in text else text


def overrides(text: str) -> list[Leaf]:
    """The leaves of a list of key=value, as Hydra prints it."""
    place = Places(text)
    found = []
    for item in _STRING.finditer(text):
        key, equals, value = (item[1] if item[1] is not None else item[2] or "").partition("=")
        if equals and re.fullmatch(r"[+~]{0,2}[\w./@-]{1,200}", key):
            start = item.start() + 1 + len(key) + 1
            line, column = place(item.start() + 1)
            value = value.strip("\"'")
            null = value in _NULL
            found.append(
                Leaf(key.lstrip("+~"), None if null else value, text[start : item.end() - 1], start, item.end() - 1, line, column,
                     "null" if null else "scalar")
            )  # fmt: skip
    return found
