"""Jsonnet to leaves: objects with what is written in them and the plain values of `local` names. Nothing is computed."""

from __future__ import annotations

import re

from diagnose.adapters.formats.config_value import MAX_DEPTH, MAX_LEAVES, Leaf, Places, Remark, Unreadable, drop_duplicates
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.phrases import phrase

_SIGNS = lazy_compile(r"^[ \t]*local\s+[A-Za-z_]\w*\s*(?:=|\()|\bstd\.\w+\(|[\w\"'\]]\s*(?:::|\+:)\s", re.MULTILINE)
_BLANK = lazy_compile(r"(?:[\s﻿]+|//[^\n]*|#[^\n]*|/\*[\s\S]*?\*/)*")
_STRING = lazy_compile(r"@?(?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')")
_NAME = lazy_compile(r"[A-Za-z_]\w*")
_NUMBER = lazy_compile(r"-?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
_COLON = lazy_compile(r"\+?:{1,3}")
_OPENING, _CLOSING = "{[(", "}])"


def is_jsonnet(text: str) -> bool:
    """Whether a text that is no JSON shows words that only Jsonnet has."""
    return _SIGNS.search(text) is not None


class Reader:
    """Reads what stands written; an expression is a key whose value cannot be known."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.remarks: list[Remark] = []
        self._place = Places(text)
        self._budget = MAX_LEAVES
        self._locals: dict[str, int] = {}  # name: where its value begins
        self._leaves: list[Leaf] = []

    def leaves(self) -> list[Leaf]:
        """Every key in the order written, of duplicates the last. Raises Unreadable for what has no object."""
        pos = self._locals_at(0)
        name = _NAME.match(self.text, pos)
        while (name is None or name[0] not in self._locals) and self.text[pos : pos + 1] not in (
            "{",
            "",
        ):  # parameters of a function, a name before `+ {`
            pos = self._skip(pos + 1)
        if pos >= len(self.text):
            raise Unreadable("not_a_mapping", phrase("adapters.not_a_mapping"), 1, 1)
        self._objects(pos, "", 0)
        return drop_duplicates(self._leaves, self.remarks)

    def _skip(self, pos: int) -> int:
        match = _BLANK.match(self.text, pos)
        return match.end() if match else pos

    def _locals_at(self, pos: int) -> int:
        """Read `local name = value, other = value;` as often as it stands here; the offset behind."""
        pos = self._skip(pos)
        while self.text.startswith("local", pos) and self.text[pos + 5 : pos + 6].isspace():
            pos = self._skip(pos + 5)
            while (name := _NAME.match(self.text, pos)) is not None:
                pos = self._skip(name.end())
                is_value = self.text[pos : pos + 1] == "="
                pos = self._skip(pos + 1) if is_value else pos
                if is_value:
                    self._locals.setdefault(name[0], pos)
                pos = self._end_of_expression(pos)
                if self.text[pos : pos + 1] != "," or not _is_binding(self.text, self._skip(pos + 1)):
                    break
                pos = self._skip(pos + 1)
            pos = self._skip(pos + 1)
        return pos

    def _end_of_expression(self, pos: int) -> int:
        """The offset of the `,`, `;` or closing bracket behind an expression."""
        depth = 0
        while pos < len(self.text):
            char = self.text[pos]
            string = _STRING.match(self.text, pos) if char in "\"'@" else None
            if string is not None:
                pos = string.end()
                continue
            blank = self._skip(pos)
            if blank > pos:
                pos = blank
                continue
            if depth == 0 and char in ",;}])":
                return pos
            depth += (char in _OPENING) - (char in _CLOSING)
            pos += 1
        return pos

    def _objects(self, pos: int, path: str, depth: int) -> int:
        """Read an object and those added to it (`base + {...} + {...}`); the offset behind."""
        if depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(pos))
        while True:
            if self.text[pos : pos + 1] == "{":
                pos = self._members(self._skip(pos + 1), path, depth)
            elif (name := _NAME.match(self.text, pos)) is not None:
                start = self._locals.get(name[0])
                if start is not None and self.text[start : start + 1] == "{" and start != pos:
                    self._objects(start, path, depth + 1)
                pos = name.end()
            pos = self._skip(pos)
            if self.text[pos : pos + 1] == "+":
                pos = self._skip(pos + 1)
            elif self.text[pos : pos + 1] != "{":
                return pos

    def _members(self, pos: int, path: str, depth: int) -> int:
        while self.text[pos : pos + 1] not in ("}", ""):
            pos = self._local_member(pos)
            start, key, pos = pos, *self._key_at(pos)
            colon = _COLON.match(self.text, pos)
            if key is None or colon is None:
                pos = self._end_of_expression(pos)
            else:
                pos = self._value(self._skip(colon.end()), f"{path}{key}", start, depth)
            pos = self._skip(pos + 1) if self.text[pos : pos + 1] == "," else pos
            if self.text[pos : pos + 1] in (";", "]", ")"):
                line, column = self._place(pos)
                raise Unreadable("not_json", phrase("adapters.not_json", seen=repr(self.text[pos])), line, column)
        return pos + 1

    def _local_member(self, pos: int) -> int:
        """`local name = value,` within an object."""
        while self.text.startswith("local", pos) and self.text[pos + 5 : pos + 6].isspace():
            name = _NAME.match(self.text, self._skip(pos + 5))
            at = self._skip(name.end()) if name else pos
            if name and self.text[at : at + 1] == "=":
                self._locals.setdefault(name[0], self._skip(at + 1))
            pos = self._skip(self._end_of_expression(at) + 1)
        return pos

    def _key_at(self, pos: int) -> tuple[str | None, int]:
        word = _STRING.match(self.text, pos) or _NAME.match(self.text, pos)
        return (word[0].strip("@\"'"), self._skip(word.end())) if word else (None, pos)

    def _value(self, pos: int, key: str, name_pos: int, depth: int) -> int:
        self._budget -= 1
        if self._budget < 0 or depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(pos))
        line, column = self._place(name_pos)
        end = self._end_of_expression(pos)
        written = self.text[pos:end].rstrip()
        at = self._followed(pos, written)
        if self.text[at : at + 1] == "{":
            self._leaves.append(Leaf(key, None, written, pos, pos + len(written), line, column, "map"))
            self._objects(pos, f"{key}.", depth + 1)
            return end
        word = _NUMBER.match(self.text, at) or _STRING.match(self.text, at) or _NAME.match(self.text, at)
        text = self.text[at : self._end_of_expression(at)].rstrip()
        if word is None or len(word[0]) != len(text):
            items = self._items(at) if self.text[at : at + 1] == "[" else ()
            self._leaves.append(Leaf(key, None, written, pos, pos + len(written), line, column, "list" if items else "unsure", items))
        elif word[0] in ("null", "true", "false") or not _NAME.fullmatch(word[0]):
            shape = "null" if word[0] == "null" else "scalar"
            value = None if shape == "null" else word[0].strip("@\"'")
            self._leaves.append(Leaf(key, value, word[0], at, word.end(), line, column, shape))  # type: ignore[arg-type]
        else:
            self._leaves.append(Leaf(key, None, written, pos, pos + len(written), line, column, "unsure"))
        return end

    def _followed(self, pos: int, written: str) -> int:
        """Where the value of a name stands; the value's own place for anything else."""
        for _ in range(8):
            if not _NAME.fullmatch(written) or written not in self._locals:
                break
            pos = self._locals[written]
            written = self.text[pos : self._end_of_expression(pos)].rstrip()
        return pos

    def _items(self, pos: int) -> tuple[str, ...]:
        items: list[str] = []
        pos = self._skip(pos + 1)
        while self.text[pos : pos + 1] not in ("]", "") and len(items) < MAX_DEPTH:
            end = self._end_of_expression(pos)
            items.append(self.text[pos:end].strip().strip("\"'"))
            pos = self._skip(end + 1) if self.text[end : end + 1] == "," else end
        return tuple(items)


def _is_binding(text: str, pos: int) -> bool:
    """Whether `name =` stands here, the next one of a `local`."""
    name = _NAME.match(text, pos)
    return name is not None and text[name.end() :].lstrip().startswith("=")
