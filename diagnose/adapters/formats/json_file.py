"""JSON text to leaves, with the exact place of every value; comments and trailing commas pass, as they do in DeepSpeed's own reader."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from diagnose.adapters.formats.config_value import MAX_DEPTH, MAX_LEAVES, Leaf, Places, Remark, Unreadable, last_of_each
from diagnose.parse.text.lazy_re import later
from diagnose.phrases import phrase

_BLANK = later(r"(?:[\s﻿]+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = later(r'"(?:[^"\\\n]|\\.)*"')
_BARE = later(r"[^\s,:\[\]{}\"]+")


class Reader:
    """A recursive-descent reader that keeps offsets; the standard library's forgets them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.remarks: list[Remark] = []
        self._place = Places(text)
        self._left = MAX_LEAVES

    def leaves(self) -> list[Leaf]:
        """Every key, in the order written; of duplicate keys the last. Raises Unreadable for what is not a JSON object."""
        at = self._skip(0)
        if self.text[at : at + 1] != "{":
            raise Unreadable("not_a_mapping", phrase("adapters.not_a_mapping"), 1, 1)
        found, end = self._object(at, "", 0)
        if self._skip(end) != len(self.text):
            raise self._wrong(self._skip(end))
        return last_of_each(found, self.remarks)

    def _skip(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        return match.end() if match else at

    def _wrong(self, at: int) -> Unreadable:
        line, column = self._place(min(at, len(self.text)))
        seen = self.text[at : at + 1] or "end of file"
        return Unreadable("not_json", phrase("adapters.not_json", seen=repr(seen) if len(seen) == 1 else seen), line, column)

    def _object(self, at: int, path: str, depth: int) -> tuple[list[Leaf], int]:
        found: list[Leaf] = []
        at = self._skip(at + 1)
        while self.text[at : at + 1] != "}":
            name = _STRING.match(self.text, at)
            if name is None:
                raise self._wrong(at)
            colon = self._skip(name.end())
            if self.text[colon : colon + 1] != ":":
                raise self._wrong(colon)
            leaves, at = self._value(self._skip(colon + 1), f"{path}{_unquoted(name[0])}", at, depth)
            found += leaves
            at = self._after_item(at, "}")
        return found, at + 1

    def _after_item(self, at: int, closing: str) -> int:
        at = self._skip(at)
        if self.text[at : at + 1] == ",":
            return self._skip(at + 1)
        if self.text[at : at + 1] != closing:
            raise self._wrong(at)
        return at

    def _value(self, at: int, key: str, name_at: int, depth: int) -> tuple[list[Leaf], int]:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(at))
        line, column = self._place(name_at)
        first = self.text[at : at + 1]
        if first == "{":
            inside, end = self._object(at, f"{key}.", depth + 1)
            return [Leaf(key, None, self.text[at:end], at, end, line, column, "map"), *inside], end
        if first == "[":
            items, inside, end = self._array(at, key, depth + 1)
            return [Leaf(key, None, self.text[at:end], at, end, line, column, "list", items), *inside], end
        match = (_STRING if first == '"' else _BARE).match(self.text, at)
        if match is None:
            raise self._wrong(at)
        text = _unquoted(match[0]) if first == '"' else match[0]
        null = first != '"' and text in ("null", "None")
        return [Leaf(key, None if null else text, match[0], at, match.end(), line, column, "null" if null else "scalar")], match.end()

    def _array(self, at: int, key: str, depth: int) -> tuple[tuple[str, ...], list[Leaf], int]:
        items: list[str] = []
        inside: list[Leaf] = []
        at = self._skip(at + 1)
        while self.text[at : at + 1] != "]":
            leaves, end = self._value(at, f"{key}.{len(items)}", at, depth)
            items.append(leaves[0].text or "")
            inside += leaves if leaves[0].shape in ("map", "list") else []
            at = self._after_item(end, "]")
        return tuple(items), inside, at + 1


def _unquoted(written: str) -> str:
    try:
        return str(json.loads(written, strict=False))
    except ValueError:
        return written[1:-1]


def flatten(value: object, path: str, like: Leaf) -> Iterator[Leaf]:
    """The leaves of a literal that was read elsewhere (a dict in a script), all standing where it stands."""
    pairs = value.items() if isinstance(value, dict) else ()
    for name, inner in pairs:
        key = f"{path}{name}"
        if isinstance(inner, dict):
            yield Leaf(key, None, like.written, like.start, like.end, like.line, like.column, "map")
            yield from flatten(inner, f"{key}.", like)
        else:
            text = None if inner is None else str(inner)
            yield Leaf(key, text, like.written, like.start, like.end, like.line, like.column, "null" if inner is None else "scalar")
