"""TOML text to leaves, with the exact place of every value: the standard library reads it, a walk over its text finds the places."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from diagnose.adapters.formats.config_value import MAX_DEPTH, MAX_LEAVES, Leaf, Places, Remark, Unreadable
from diagnose.phrases import phrase

_NAME = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*')"
_PATH = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*+")
_HEADER = re.compile(rf"(\[\[?)[ \t]*({_PATH})[ \t]*\]\]?")
_KEY = re.compile(rf"({_PATH})[ \t]*=[ \t]*")
_STRING = re.compile(
    r'"""(?:[^"\\]++|\\.|"{1,2}(?!"))*+"{3,5}|\'\'\'(?:[^\']++|\'{1,2}(?!\'))*+\'{3,5}|"(?:[^"\\\n]++|\\.)*+"|\'[^\'\n]*+\'', re.DOTALL
)
_BARE = re.compile(r"[^\s,\]}#]+(?: \d\d:[^\s,\]}#]+)?")
_AT = re.compile(r"\(at line (\d+), column (\d+)\)")
#: A name of more parts than any config has; the standard library takes the square of their number to read them.
_ENDLESS = re.compile(r"(?<![\w\"'.-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){128}")

#: What stands in TOML and in INI: a header or an assignment.
LOOKS = re.compile(rf"\[\[?{_PATH}\]\]?[ \t]*(?:#.*)?$|{_PATH}[ \t]*=")


class _Lost(Exception):
    """The walk no longer stands where the standard library says that a value is."""


class Reader:
    """One document; a key is the path of its tables and its name, and tables of an array are numbered."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.remarks: list[Remark] = []
        self._place = Places(text)
        self._tables: dict[str, int] = {}  # how often an array of tables was begun
        self._leaves: list[Leaf] = []

    def leaves(self) -> list[Leaf]:
        """Every key in the order written. Raises Unreadable for what is not TOML, or too large."""
        data = _parsed(self.text)
        try:
            self._document(data)
        except _Lost:  # the file is TOML all the same: what was found until here stands
            pass
        return self._leaves

    def _document(self, data: Mapping[str, Any]) -> None:
        at, table, holder = 0, "", data
        while (at := self._skip(at)) < len(self.text):
            header = _HEADER.match(self.text, at)
            if header is not None:
                table, holder = self._opened(_names(header[2]), data, array=header[1] == "[[")
                self._add(at, table[:-1], None, header.end(), header.end(), "map")
                at = header.end()
            else:
                at = self._assigned(table, holder, at, 0)

    def _opened(self, names: Sequence[str], data: Mapping[str, Any], *, array: bool) -> tuple[str, Mapping[str, Any]]:
        """The prefix of the keys below a header, and the table itself."""
        path, value = "", data
        for index, name in enumerate(names):
            path, inner = f"{path}{name}", _inside(value, name)
            if isinstance(inner, list):
                if array and index == len(names) - 1:
                    self._tables[path] = self._tables.get(path, 0) + 1
                number = self._tables.get(path, 0) - 1
                if not 0 <= number < len(inner):
                    raise _Lost
                path, inner = f"{path}.{number}", inner[number]
            path, value = f"{path}.", inner
        return path, value

    def _assigned(self, prefix: str, holder: Mapping[str, Any], at: int, depth: int) -> int:
        """One `name = value`, of a table or between braces; the end of it."""
        key = _KEY.match(self.text, at)
        if key is None:
            raise _Lost
        value: Any = holder
        names = _names(key[1])
        for name in names:
            value = _inside(value, name)
        return self._value(f"{prefix}{'.'.join(names)}", value, at, key.end(), depth)

    def _value(self, key: str, value: Any, at: int, start: int, depth: int) -> int:
        """A value and what is inside it; `at` is where its name stands."""
        if depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(at))
        if not isinstance(value, (dict, list)):
            end = self._scalar_end(start)
            self._add(at, key, _text(value), start, end, "scalar")
            return end
        slot = len(self._leaves)
        self._add(at, key, None, start, start, "map")
        if isinstance(value, dict):
            end = self._inline(key, value, start, depth)
            items: tuple[str, ...] = ()
        else:
            end = self._array(key, value, start, depth)
            items = tuple(_text(item) for item in value if not isinstance(item, (dict, list)))
        shell = self._leaves[slot]
        shape = "map" if isinstance(value, dict) else "list"
        self._leaves[slot] = Leaf(key, None, self.text[start:end], start, end, shell.line, shell.column, shape, items)  # type: ignore[arg-type]
        return end

    def _inline(self, key: str, value: Mapping[str, Any], start: int, depth: int) -> int:
        at = self._skip(self._past(start, "{"))
        while self.text[at : at + 1] != "}":
            at = self._skip(self._assigned(f"{key}.", value, at, depth + 1))
            at = self._skip(at + 1) if self.text[at : at + 1] == "," else at
        return at + 1

    def _array(self, key: str, value: Sequence[Any], start: int, depth: int) -> int:
        at = self._skip(self._past(start, "["))
        for index, item in enumerate(value):
            nested = isinstance(item, (dict, list))
            at = self._skip(self._value(f"{key}.{index}", item, at, at, depth + 1) if nested else self._scalar_end(at))
            at = self._skip(at + 1) if self.text[at : at + 1] == "," else at
        return self._past(at, "]")

    def _scalar_end(self, at: int) -> int:
        match = _STRING.match(self.text, at) or _BARE.match(self.text, at)
        if match is None:
            raise _Lost
        return match.end()

    def _past(self, at: int, sign: str) -> int:
        if self.text[at : at + 1] != sign:
            raise _Lost
        return at + 1

    def _skip(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        return match.end() if match else at

    def _add(self, at: int, key: str, text: str | None, start: int, end: int, shape: str) -> None:
        line, column = self._place(at)
        if len(self._leaves) >= MAX_LEAVES or key.count(".") > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), line, column)
        self._leaves.append(Leaf(key, text, self.text[start:end], start, end, line, column, shape))  # type: ignore[arg-type]


def _parsed(text: str) -> dict[str, Any]:
    try:
        if _ENDLESS.search(text):
            raise RecursionError
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError as error:
        raise Unreadable("too_large", phrase("adapters.too_large")) from error
    except (ValueError, OverflowError) as error:  # a number of thousands of digits is no decoding error to the standard library
        at = _AT.search(str(error))
        reason = _AT.sub("", str(error)).strip().replace("{", "(").replace("}", ")")
        line, column = (int(at[1]), int(at[2])) if at else (0, 0)
        raise Unreadable("not_toml", phrase("adapters.not_toml", reason=reason), line, column) from error


def _inside(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise _Lost
    return value[name]


def _text(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        return hex(value)  # Python prints no number of thousands of digits
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names(path: str) -> list[str]:
    """The names of a dotted path, without quotes."""
    return [_plain(name) for name in re.findall(_NAME, path)]


def _plain(name: str) -> str:
    if "\\" in name and name[0] == '"':
        return next(iter(tomllib.loads(f"{name} = 0")))
    return name[1:-1] if name[0] in "\"'" else name
