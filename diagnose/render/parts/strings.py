"""Applies a function to every text of a diagnosis, and the functions that make texts safe to print."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

from diagnose.adapters.formats.settings import Document
from diagnose.catalogue import Model
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import Size

Item = TypeVar("Item")

#: Values whose texts are ours, or whose characters are counted by offset.
UNTOUCHED = (Document, Model, Size)

_WITHOUT_TEXT = frozenset({int, float, bool, type(None), Size})

#: Terminal sequences: CSI, OSC and other strings with their terminator, two-character escapes.
ESCAPE = lazy_compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]")

#: Characters that move the cursor, hide, or turn the direction of text.
HARMFUL = lazy_compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def map_texts(value: Item, change: Callable[[str], str]) -> Item:
    """A value with every text in it changed. Offsets, numbers and model dimensions stay; a part that holds no text is not copied."""
    return cast(Item, _changed(value, change))


def _changed(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, tuple):
        if not value or isinstance(value, UNTOUCHED):
            return value
        # half the time of an answer on the screen went into this: most parts are texts or hold none
        parts = [
            change(part) if (kind := part.__class__) is str else part if kind in _WITHOUT_TEXT else _changed(part, change) for part in value
        ]
        if all(map(operator.is_, parts, value)):
            return value
        return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    if isinstance(value, str):
        return change(value)
    if isinstance(value, UNTOUCHED) or value is None or isinstance(value, (int, float)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        parts_by_name = {name: part for name in _names(type(value)) if (part := _changed(was := getattr(value, name), change)) is not was}
        return replace(value, **parts_by_name) if parts_by_name else value
    return value


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in fields(kind))


def harmless(text: str) -> str:
    """A text without escape sequences, control characters and changes of direction, which could manipulate a terminal."""
    if text.isprintable():  # which no character of these is
        return text
    plain = ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", " ").replace("\t", " ")
    return HARMFUL.sub("\N{REPLACEMENT CHARACTER}", plain)


def visible(text: str) -> str:
    """A patch safe to display and copy: blanks and tabs stay, control characters are shown as signs."""
    return HARMFUL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def escaped(written: str) -> str:
    """JSON text with control characters as \\u escapes: the same value, safe to display."""
    return written if written.isascii() and "\x7f" not in written else HARMFUL.sub(_escape, written)


def _escape(sign: re.Match[str]) -> str:
    return json.dumps(sign[0])[1:-1] if sign[0] != "\x7f" else r"\u007f"  # which JSON leaves as it is


def one_line(text: str) -> str:
    """The harmless text on one line, blanks collapsed."""
    return " ".join(harmless(text).split())
