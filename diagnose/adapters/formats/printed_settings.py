"""Settings that a program printed into its log: JSON, dicts and calls as Python prints them, rows of dots, lists of overrides.

Foreign log lines may stand between them, so text that fits nowhere is skipped to the end of its line instead of raising.
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
_ROW = re.compile(r"\s*(?:([A-Za-z_][\w.-]{0,80}) ?\.{2,} ?|([A-Za-z_]\w{28,80})  )(?=\S)")
_NULL = ("None", "null")


class Reader:
    """Parser of one printed text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._place = Places(text)
        self._budget = MAX_LEAVES

    def bracket_leaves(self) -> list[Leaf]:
        """The leaves of the first bracket of the text. Raises Unreadable where it is too large."""
        opening = re.search(r"[({\[]", self.text)
        return [] if opening is None else self._parse_bracket(opening.start(), "", 0)[0]

    def row_leaves(self) -> list[Leaf]:
        """The leaves of rows such as `zero_enabled ...... True`. Raises Unreadable where they are too large."""
        leaves: list[Leaf] = []
        pos = 0
        for line in self.text.split("\n"):
            row = _ROW.match(line)
            if row is not None:
                key, value_pos, name_pos = row[1] or row[2], pos + row.end(), pos + row.start(1 if row[1] else 2)
                fields = self._parse_fields(value_pos, key, name_pos, pos + len(line))
                leaves += fields or self._parse_value(value_pos, key, name_pos, 0)[0]
            pos += len(line) + 1
        return leaves

    def _parse_fields(self, pos: int, key: str, name_pos: int, end: int) -> list[Leaf]:
        """The fields of an object that prints as `stage=3 reduce_scatter=True`, as pydantic models do; empty where it is no such object."""
        line, column = self._place(name_pos)
        fields = [Leaf(key, None, self.text[pos:end], pos, end, line, column, "map")]
        while (option := _KEY.match(self.text, pos)) is not None and option[4] == "=":
            field_leaves, after = self._parse_value(option.end(), f"{key}.{option[3]}", pos, 0)
            fields += field_leaves
            pos = self._skip_blanks(after)
            if pos >= end or after <= option.start():
                break
        return fields if len(fields) > 1 else []

    def _skip_blanks(self, pos: int) -> int:
        while pos < len(self.text) and self.text[pos] in " \t\r\n,":
            pos += 1
        return pos

    def _make_leaf(self, key: str, text: str, start: int, end: int, name_pos: int, null: bool = False) -> Leaf:
        line, column = self._place(name_pos)
        return Leaf(key, None if null else text, self.text[start:end], start, end, line, column, "null" if null else "scalar")

    def _parse_bracket(self, pos: int, path: str, depth: int) -> tuple[list[Leaf], int]:
        """The keys between a bracket and the one that closes it, and the position behind that."""
        members: list[Leaf] = []
        pos = self._skip_blanks(pos + 1)
        while pos < len(self.text) and self.text[pos] not in ")}]":
            key = _KEY.match(self.text, pos)
            if key is None or (key[3] and key[4] == ":" and path == "" and depth and not key[1]):
                pos = self._skip_unnamed(pos, depth)
            else:
                value_leaves, pos = self._parse_value(key.end(), f"{path}{key[1] or key[2] or key[3]}", pos, depth)
                members += value_leaves
            pos = self._skip_blanks(pos)
        return members, pos + 1

    def _skip_unnamed(self, pos: int, depth: int) -> int:
        """The position behind a value without a key: a bracket with its content, a string, else the rest of the line."""
        if self.text[pos] in "({[":
            return self._parse_bracket(pos, "", depth + 1)[1] if depth < MAX_DEPTH else len(self.text)
        match = _STRING.match(self.text, pos) or _BARE.match(self.text, pos)
        if match is not None and self.text[match.end() : match.end() + 1] in (",", ")", "]", "}"):
            return match.end()
        end = self.text.find("\n", pos)
        return len(self.text) if end < 0 else end

    def _parse_value(self, pos: int, key: str, name_pos: int, depth: int) -> tuple[list[Leaf], int]:
        self._budget -= 1
        if self._budget < 0 or depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(name_pos))
        text, char = self.text, self.text[pos : pos + 1]
        if char == "{":
            return self._parse_map(pos, pos, key, name_pos, depth)
        if char in ("[", "("):
            return self._parse_list(pos, key, name_pos, depth)
        if (quoted := _STRING.match(text, pos)) is not None:
            return [self._make_leaf(key, _unescape(quoted[1] or quoted[2] or ""), pos, quoted.end(), name_pos)], quoted.end()
        if (angle := _ANGLE.match(text, pos)) is not None:
            value = angle[3] if angle[3] is not None else angle[2]
            return [self._make_leaf(key, value, pos, angle.end(), name_pos)] if value else [], angle.end()
        bare = _BARE.match(text, pos)
        if bare is None:
            return [], self._skip_unnamed(pos, depth) if pos < len(text) and char not in ")}]," else pos
        if text[bare.end() : bare.end() + 1] in ("(", "{"):
            return self._parse_call(pos, bare.end(), key, name_pos, depth)
        member = _MEMBER.fullmatch(bare[0])
        value = member[1].lower() if member else bare[0].removeprefix("torch.")
        return [self._make_leaf(key, value, pos, bare.end(), name_pos, value in _NULL)], bare.end()

    def _parse_map(self, pos: int, start: int, key: str, name_pos: int, depth: int) -> tuple[list[Leaf], int]:
        members, end = self._parse_bracket(pos, f"{key}.", depth + 1)
        line, column = self._place(name_pos)
        return [Leaf(key, None, self.text[start:end], start, end, line, column, "map"), *members], end

    def _parse_call(self, pos: int, bracket: int, key: str, name_pos: int, depth: int) -> tuple[list[Leaf], int]:
        """An object that prints as a call: its fields, or the single value inside."""
        inner = self._skip_blanks(bracket + 1)
        if _KEY.match(self.text, inner) is not None:
            return self._parse_map(bracket, pos, key, name_pos, depth)
        if self.text[inner : inner + 1] in ("", ")", "}"):
            return [], inner + 1
        leaves, end = self._parse_value(inner, key, name_pos, depth + 1)
        closing = self.text.find(")", end)
        return leaves, closing + 1 if 0 <= closing - end < 8 else end

    def _parse_list(self, pos: int, key: str, name_pos: int, depth: int) -> tuple[list[Leaf], int]:
        items: list[str] = []
        nested: list[Leaf] = []
        start, pos = pos, self._skip_blanks(pos + 1)
        while pos < len(self.text) and self.text[pos] not in ")}]":
            item_pos = pos
            item_leaves, pos = self._parse_value(pos, f"{key}.{len(items)}", pos, depth + 1)
            items.append((item_leaves[0].text or "") if item_leaves else "")
            nested += [leaf for leaf in item_leaves if len(item_leaves) > 1 or leaf.shape in ("map", "list")]
            pos = self._skip_blanks(pos) if pos > item_pos else item_pos + 1
        line, column = self._place(name_pos)
        return [Leaf(key, None, self.text[start : pos + 1], start, pos + 1, line, column, "list", tuple(items)), *nested], pos + 1


def _unescape(text: str) -> str:
    return text.replace("\\'", "'").replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\") if "\\" in text else text


def parse_overrides(text: str) -> list[Leaf]:
    """The leaves of a list of `key=value` strings, as Hydra prints its overrides."""
    place = Places(text)
    leaves = []
    for item in _STRING.finditer(text):
        key, equals, value = (item[1] if item[1] is not None else item[2] or "").partition("=")
        if equals and re.fullmatch(r"[+~]{0,2}[\w./@-]{1,200}", key):
            start = item.start() + 1 + len(key) + 1
            line, column = place(item.start() + 1)
            value = value.strip("\"'")
            null = value in _NULL
            leaves.append(
                Leaf(key.lstrip("+~"), None if null else value, text[start : item.end() - 1], start, item.end() - 1, line, column,
                     "null" if null else "scalar")
            )  # fmt: skip
    return leaves
