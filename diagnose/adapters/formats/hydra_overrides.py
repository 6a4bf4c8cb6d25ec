"""Values of Hydra overrides (`key=value`) as OmegaConf reads them: lists, mappings, quoted strings, null."""

from __future__ import annotations

from collections.abc import Iterator

from diagnose.adapters.formats.config_value import Leaf, Shape

#: Limits of one override; a value beyond them stays plain text.
_MAX_DEPTH = 16
_MAX_VALUES = 2000
_CLOSING = {"[": "]", "{": "}", "(": ")"}


class _Malformed(Exception):
    """The text is no list, mapping or string of Hydra's grammar."""


class _Cursor:
    """A position in the text of a value; `budget` is how many more values it may hold."""

    def __init__(self, text: str) -> None:
        self.text, self.pos, self.budget = text, 0, _MAX_VALUES

    def skip_blanks(self) -> None:
        while self.pos < len(self.text) and self.text[self.pos] in " \t\n":
            self.pos += 1

    def peek(self) -> str:
        self.skip_blanks()
        return self.text[self.pos : self.pos + 1]

    def expect(self, char: str) -> None:
        if self.peek() != char:
            raise _Malformed
        self.pos += 1


def parse_override(leaf: Leaf) -> list[Leaf]:
    """The leaves of an override: itself, and the keys inside a mapping. Never raises: malformed values stay plain text."""
    text = leaf.text or ""
    if leaf.shape != "scalar" or text[:1] not in ("[", "{", "'", '"') or len(text) > 64 * _MAX_VALUES:
        return [leaf]
    offset = leaf.written.find(text)
    base = None if offset < 0 else leaf.start + offset
    cursor = _Cursor(text)
    try:
        leaves = list(_parse_value(cursor, leaf, leaf.key, base, 0))
        if cursor.peek():
            return [leaf]
    except _Malformed:
        return [leaf]
    return [leaves[0]._replace(written=leaf.written, start=leaf.start, end=leaf.end), *leaves[1:]]


def _parse_value(cursor: _Cursor, leaf: Leaf, key: str, base: int | None, depth: int) -> Iterator[Leaf]:
    """One value, after a mapping also its members. `base` is the offset of the text in the file, None where it is not known."""
    cursor.budget -= 1
    if depth > _MAX_DEPTH or cursor.budget < 0:
        raise _Malformed
    first, start = cursor.peek(), cursor.pos
    if first == "[":
        items = _parse_list(cursor, leaf, key, depth)
        yield _make_leaf(cursor, leaf, key, base, start, "list", None, items)
    elif first == "{":
        members = _parse_mapping(cursor, leaf, key, base, depth)
        yield _make_leaf(cursor, leaf, key, base, start, "map", None)
        yield from members
    elif first in ("'", '"'):
        word = _parse_quoted(cursor, first)
        yield _make_leaf(cursor, leaf, key, base, start, "scalar", word)
    else:
        word = _parse_bare(cursor)
        null = word in ("null", "~")
        yield _make_leaf(cursor, leaf, key, base, start, "null" if null else "scalar", None if null else word)


def _make_leaf(
    cursor: _Cursor, leaf: Leaf, key: str, base: int | None, start: int, shape: Shape, text: str | None, items: tuple[str, ...] = ()
) -> Leaf:
    first, end = (leaf.start, leaf.end) if base is None else (base + start, base + cursor.pos)
    written = leaf.written if base is None else cursor.text[start : cursor.pos]
    return Leaf(key, text, written, first, end, leaf.line, leaf.column, shape, items)


def _parse_list(cursor: _Cursor, leaf: Leaf, key: str, depth: int) -> tuple[str, ...]:
    """The scalars of a list; lists and mappings inside it are skipped."""
    cursor.expect("[")
    items: list[str] = []
    while cursor.peek() != "]":
        item = next(iter(list(_parse_value(cursor, leaf, key, None, depth + 1))))
        items += [item.text] if item.text is not None else []
        if cursor.peek() != "]":
            cursor.expect(",")
    cursor.expect("]")
    return tuple(items)


def _parse_mapping(cursor: _Cursor, leaf: Leaf, key: str, base: int | None, depth: int) -> list[Leaf]:
    cursor.expect("{")
    members: list[Leaf] = []
    while cursor.peek() != "}":
        name = _parse_quoted(cursor, cursor.peek()) if cursor.peek() in ("'", '"') else _parse_bare(cursor, stop=":")
        cursor.expect(":")
        leaves = list(_parse_value(cursor, leaf, f"{key}.{name}", base, depth + 1))
        members += leaves if base is not None else [member._replace(text=None, shape="unsure") for member in leaves]
        if cursor.peek() != "}":
            cursor.expect(",")
    cursor.expect("}")
    return members


def _parse_quoted(cursor: _Cursor, quote: str) -> str:
    """A quoted string, in which a backslash escapes the quote."""
    cursor.expect(quote)
    text, start = cursor.text, cursor.pos
    while cursor.pos < len(text) and text[cursor.pos] != quote:
        cursor.pos += 2 if text[cursor.pos] == "\\" else 1
    if cursor.pos >= len(text):
        raise _Malformed
    word = text[start : cursor.pos]
    cursor.pos += 1
    return word.replace(f"\\{quote}", quote)


def _parse_bare(cursor: _Cursor, stop: str = "") -> str:
    """Unquoted text up to a comma, a closing bracket or, in a key, a colon. `${...}` and calls are taken whole."""
    cursor.skip_blanks()
    text, start, closers = cursor.text, cursor.pos, ""
    while cursor.pos < len(text):
        char = text[cursor.pos]
        if closers and char == closers[-1]:
            closers = closers[:-1]
        elif char in _CLOSING and (closers or char == "(" or text[cursor.pos - 1 : cursor.pos] == "$"):
            closers += _CLOSING[char]
        elif not closers and char in f",]}}{stop}":
            break
        cursor.pos += 1
    word = text[start : cursor.pos].strip()
    if closers or not word or len(closers) > _MAX_DEPTH:
        raise _Malformed
    return word
