"""Parse a text by one of grammars/: its statements, and printed sizes and exception classes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple
from diagnose.units import SCALE, Size

if TYPE_CHECKING:
    from diagnose.lalr import Node, Token

MUCH = 8 << 10  # characters of a text from where on it is not remembered
_UNITS = {unit.lower(): unit for unit in (*SCALE, "KB", "MB", "GB", "TB")}
#: The end of an exception class, behind its first letter; what stands between it and the message; a whole name. Apart, since a pattern of
#: all three tries every beginning with every end.
_CLASS_END = lazy_compile(r"(?:Error|Exception|OutOfResources|Warning|outofmemoryerror)(?:\([\w.]{1,80}\))?")
_BEFORE_MESSAGE = lazy_compile(r"\s*[:：]\s*(?:\S{0,40}\s)?$")
_DOTTED = lazy_compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*")
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."
_PLAIN = str.maketrans("：；（），。", ":;(),.")


class Statement(NamedTuple):
    """One statement of a text: the grammar rule that matched (`kind`), its tokens and their places; `line` is that of the last token, from
    1."""

    kind: str
    words: tuple[str, ...]
    types: tuple[str, ...]
    start: int
    end: int
    line: int

    def word(self, *types: str) -> str:
        """The first token of one of these types; empty where there is none."""
        return next((word for word, kind in zip(self.words, self.types, strict=True) if kind in types), "")


def parse_statements(grammar: str, text: str) -> list[Statement]:
    """The statements of a text, in order; none where it does not fit the grammar. Where only its end does not fit, those before that."""
    return list(_remembered(grammar, text) if len(text) < MUCH else _parse_statements(grammar, text))


def _parse_statements(grammar: str, text: str) -> list[Statement]:
    from diagnose.lalr import Token, Tree, Unread  # without a log (check, plan) nothing is parsed

    def stated(node: Node) -> Statement:
        if isinstance(node, Token):
            return _statement([node], node.type)
        return _statement([child for child in node.children if isinstance(child, Token)], node.data)

    for _ in range(4):
        try:
            tree = rule_files.parser(grammar).parse(text)
        except Unread as trouble:
            cut = text.rfind(" ", 0, trouble.at if trouble.at > 0 else len(text) - 1)
            if cut <= 0:
                return []
            text = text[:cut]
        else:
            return [stated(node) for node in tree.children] if isinstance(tree, Tree) else [stated(tree)]
    return []


_remembered = lru_cache(maxsize=1024)(_parse_statements)  # the same code fails in many jobs


def _statement(tokens: list[Token], kind: str) -> Statement:
    words, types = tuple(token.text for token in tokens), tuple(token.type for token in tokens)
    if not tokens:
        return Statement(kind, words, types, 0, 0, 0)
    return Statement(kind, words, types, tokens[0].start, tokens[-1].end, tokens[-1].line)


def collapse_blanks(text: str) -> str:
    """The text with every run of blanks and line ends as one blank, and full-width punctuation as ASCII, as the grammars expect."""
    return " ".join(text.translate(_PLAIN).split())


@lru_cache(maxsize=4096)
def parse_size(text: str, binary: bool = False) -> Size | None:
    """A printed size; None for a figure that no memory can have."""
    match = re.match(r"([\d.]+)\s*([A-Za-z]+)", text)
    if match is None:
        return None
    unit = _UNITS.get(match[2].lower(), match[2])
    try:
        return Size.printed(match[1].rstrip("."), unit, binary=binary or unit not in SCALE)
    except ValueError:
        return None


def exception_before(text: str) -> str:
    """The last exception class named in a line before the message; "" without one."""
    text = text[-200:]
    for end in reversed([*_CLASS_END.finditer(text)]):
        start = len(text[: end.start()].rstrip(_NAME_CHARACTERS))
        if _DOTTED.fullmatch(text, start, end.start()) and _BEFORE_MESSAGE.match(text, end.end()):
            return text[start : end.end()]
    return ""


def exception_leading(line_start: str) -> str:
    """The exception class that a line begins with, where words of its message stand before those that were searched for; "" without one."""
    match = re.match(r"\s*((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,60}(?:Error|Exception))\s?[:：] ", line_start)
    return match[1] if match else ""
