"""The right side of `key=value` as Hydra and OmegaConf read it: lists, mappings, quoted strings, null."""

from __future__ import annotations

from collections.abc import Iterator

from diagnose.adapters.formats.config_value import Leaf
from diagnose.record import replace

#: Levels and values of one override; what goes beyond is left as the plain text that it is.
_DEEPEST = 16
_MOST = 2000
_PAIRS = {"[": "]", "{": "}", "(": ")"}


class _Odd(Exception):
    """The text is not written as such a value."""


class _Cursor:
    """A place in the text of a value."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.left = text, 0, _MOST

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\n":
            self.at += 1

    def here(self) -> str:
        self.blanks()
        return self.text[self.at : self.at + 1]

    def take(self, char: str) -> None:
        if self.here() != char:
            raise _Odd
        self.at += 1


def overridden(leaf: Leaf) -> list[Leaf]:
    """The leaves of an override: itself, and the keys inside a mapping. Never raises: what is odd stays plain text."""
    text = leaf.text or ""
    if leaf.shape != "scalar" or text[:1] not in ("[", "{", "'", '"') or len(text) > 64 * _MOST:
        return [leaf]
    inside = leaf.written.find(text)
    base = None if inside < 0 else leaf.start + inside
    cursor = _Cursor(text)
    try:
        found = list(_value(cursor, leaf, leaf.key, base, 0))
        if cursor.here():
            return [leaf]
    except _Odd:
        return [leaf]
    return [replace(found[0], written=leaf.written, start=leaf.start, end=leaf.end), *found[1:]]


def _value(cursor: _Cursor, leaf: Leaf, key: str, base: int | None, depth: int) -> Iterator[Leaf]:
    """One value and, after a mapping, what is inside it."""
    cursor.left -= 1
    if depth > _DEEPEST or cursor.left < 0:
        raise _Odd
    first, start = cursor.here(), cursor.at
    if first == "[":
        items = _items(cursor, leaf, key, depth)
        yield _leaf(cursor, leaf, key, base, start, "list", None, items)
    elif first == "{":
        inner = _pairs(cursor, leaf, key, base, depth)
        yield _leaf(cursor, leaf, key, base, start, "map", None)
        yield from inner
    elif first in ("'", '"'):
        word = _quoted(cursor, first)
        yield _leaf(cursor, leaf, key, base, start, "scalar", word)
    else:
        word = _bare(cursor)
        null = word in ("null", "~")
        yield _leaf(cursor, leaf, key, base, start, "null" if null else "scalar", None if null else word)


def _leaf(
    cursor: _Cursor, leaf: Leaf, key: str, base: int | None, start: int, shape: str, text: str | None, items: tuple[str, ...] = ()
) -> Leaf:
    begin, end = (leaf.start, leaf.end) if base is None else (base + start, base + cursor.at)
    shown = leaf.written if base is None else cursor.text[start : cursor.at]
    return Leaf(key, text, shown, begin, end, leaf.line, leaf.column, shape, items)  # type: ignore[arg-type]


def _items(cursor: _Cursor, leaf: Leaf, key: str, depth: int) -> tuple[str, ...]:
    """The scalars of a list; what else it holds is passed over."""
    cursor.take("[")
    items: list[str] = []
    while cursor.here() != "]":
        found = next(iter(list(_value(cursor, leaf, key, None, depth + 1))))
        items += [found.text] if found.text is not None else []
        if cursor.here() != "]":
            cursor.take(",")
    cursor.take("]")
    return tuple(items)


def _pairs(cursor: _Cursor, leaf: Leaf, key: str, base: int | None, depth: int) -> list[Leaf]:
    cursor.take("{")
    found: list[Leaf] = []
    while cursor.here() != "}":
        name = _quoted(cursor, cursor.here()) if cursor.here() in ("'", '"') else _bare(cursor, stop=":")
        cursor.take(":")
        inner = list(_value(cursor, leaf, f"{key}.{name}", base, depth + 1))
        found += inner if base is not None else [replace(one, text=None, shape="unsure") for one in inner]
        if cursor.here() != "}":
            cursor.take(",")
    cursor.take("}")
    return found


def _quoted(cursor: _Cursor, quote: str) -> str:
    """A quoted string; a backslash before the quote belongs to it."""
    cursor.take(quote)
    text, start = cursor.text, cursor.at
    while cursor.at < len(text) and text[cursor.at] != quote:
        cursor.at += 2 if text[cursor.at] == "\\" else 1
    if cursor.at >= len(text):
        raise _Odd
    word = text[start : cursor.at]
    cursor.at += 1
    return word.replace(f"\\{quote}", quote)


def _bare(cursor: _Cursor, stop: str = "") -> str:
    """Text up to what ends it: a comma, a closing bracket, the colon of a key. `${...}` and calls are taken whole."""
    cursor.blanks()
    text, start, open_ = cursor.text, cursor.at, ""
    while cursor.at < len(text):
        char = text[cursor.at]
        if open_ and char == open_[-1]:
            open_ = open_[:-1]
        elif char in _PAIRS and (open_ or char == "(" or text[cursor.at - 1 : cursor.at] == "$"):
            open_ += _PAIRS[char]
        elif not open_ and char in f",]}}{stop}":
            break
        cursor.at += 1
    word = text[start : cursor.at].strip()
    if open_ or not word or len(open_) > _DEEPEST:
        raise _Odd
    return word
