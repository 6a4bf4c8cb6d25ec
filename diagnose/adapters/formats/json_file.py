"""JSON to leaves, each value with its offsets. Comments, trailing commas, names without quotes and single quotes pass, as they do in
DeepSpeed's reader (hjson), in JSON5 and in YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from diagnose.adapters.formats.config_value import MAX_DEPTH, MAX_LEAVES, Leaf, Places, Remark, Unreadable, drop_duplicates
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.phrases import phrase

_BLANK = lazy_compile(r"(?:[\s﻿]+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = lazy_compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_NAME = lazy_compile(r"[A-Za-z_$][\w$.-]*(?=\s*:)")
_BARE = lazy_compile(r"[^\s,:\[\]{}\"]+")


class Reader:
    """A recursive-descent parser that keeps offsets, which `json` does not."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.remarks: list[Remark] = []
        self._place = Places(text)
        self._budget = MAX_LEAVES

    def leaves(self) -> list[Leaf]:
        """Every key in the order written, of duplicates the last. Raises Unreadable for what is not a JSON object."""
        pos = self._skip_blanks(0)
        if self.text[pos : pos + 1] != "{":
            raise Unreadable("not_a_mapping", phrase("adapters.not_a_mapping"), 1, 1)
        leaves, end = self._parse_object(pos, "", 0)
        if self._skip_blanks(end) != len(self.text):
            raise self._syntax_error(self._skip_blanks(end))
        return drop_duplicates(leaves, self.remarks)

    def _skip_blanks(self, pos: int) -> int:
        match = _BLANK.match(self.text, pos)
        return match.end() if match else pos

    def _syntax_error(self, pos: int) -> Unreadable:
        line, column = self._place(min(pos, len(self.text)))
        token = self.text[pos : pos + 1] or "end of file"
        return Unreadable("not_json", phrase("adapters.not_json", seen=repr(token) if len(token) == 1 else token), line, column)

    def _parse_object(self, pos: int, path: str, depth: int) -> tuple[list[Leaf], int]:
        members: list[Leaf] = []
        pos = self._skip_blanks(pos + 1)
        while self.text[pos : pos + 1] != "}":
            name = _STRING.match(self.text, pos) or _NAME.match(self.text, pos)
            if name is None:
                raise self._syntax_error(pos)
            colon = self._skip_blanks(name.end())
            if self.text[colon : colon + 1] != ":":
                raise self._syntax_error(colon)
            text = _unquote(name[0]) if name[0][0] in "\"'" else name[0]
            key = path + text.removeprefix("--")  # options of a command, kept with their dashes
            value_leaves, pos = self._parse_value(self._skip_blanks(colon + 1), key, pos, depth)
            members += value_leaves
            pos = self._skip_comma(pos, "}")
        return members, pos + 1

    def _skip_comma(self, pos: int, closing: str) -> int:
        pos = self._skip_blanks(pos)
        if self.text[pos : pos + 1] == ",":
            return self._skip_blanks(pos + 1)
        if self.text[pos : pos + 1] != closing:
            raise self._syntax_error(pos)
        return pos

    def _parse_value(self, pos: int, key: str, name_pos: int, depth: int) -> tuple[list[Leaf], int]:
        self._budget -= 1
        if self._budget < 0 or depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(pos))
        line, column = self._place(name_pos)
        char = self.text[pos : pos + 1]
        if char == "{":
            nested, end = self._parse_object(pos, f"{key}.", depth + 1)
            return [Leaf(key, None, self.text[pos:end], pos, end, line, column, "map"), *nested], end
        if char == "[":
            items, nested, end = self._parse_array(pos, key, depth + 1)
            return [Leaf(key, None, self.text[pos:end], pos, end, line, column, "list", items), *nested], end
        is_quoted = char in ("'", '"')
        match = (_STRING if is_quoted else _BARE).match(self.text, pos)
        if match is None:
            raise self._syntax_error(pos)
        text = _unquote(match[0]) if is_quoted else match[0]
        null = not is_quoted and text in ("null", "None")
        return [Leaf(key, None if null else text, match[0], pos, match.end(), line, column, "null" if null else "scalar")], match.end()

    def _parse_array(self, pos: int, key: str, depth: int) -> tuple[tuple[str, ...], list[Leaf], int]:
        items: list[str] = []
        nested: list[Leaf] = []
        pos = self._skip_blanks(pos + 1)
        while self.text[pos : pos + 1] != "]":
            item_leaves, end = self._parse_value(pos, f"{key}.{len(items)}", pos, depth)
            items.append(item_leaves[0].text or "")
            nested += item_leaves if item_leaves[0].shape in ("map", "list") else []
            pos = self._skip_comma(end, "]")
        return tuple(items), nested, pos + 1


def _unquote(written: str) -> str:
    try:
        return str(json.loads(written, strict=False))
    except ValueError:
        return written[1:-1]


def flatten(value: object, path: str, holder: Leaf) -> Iterator[Leaf]:
    """The leaves of a nested dict that a script holds as a literal. All stand where `holder`, the leaf of the whole literal, stands."""
    pairs = value.items() if isinstance(value, dict) else ()
    for name, inner in pairs:
        key = f"{path}{name}"
        if isinstance(inner, dict):
            yield Leaf(key, None, holder.written, holder.start, holder.end, holder.line, holder.column, "map")
            yield from flatten(inner, f"{key}.", holder)
        else:
            text = None if inner is None else str(inner)
            yield Leaf(
                key, text, holder.written, holder.start, holder.end, holder.line, holder.column, "null" if inner is None else "scalar"
            )
