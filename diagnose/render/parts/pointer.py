"""A fault in a file as the best compilers show it: the line as it stands there, and a caret under the column."""

from __future__ import annotations

from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice
from diagnose.render.parts.layout import cells, clip
from diagnose.render.parts.strings import harmless


def caret_lines(notice: Notice, diagnosis: Diagnosis, width: int) -> list[str]:
    """The line that a notice is about with its number, and a caret below; nothing where the line is not at hand."""
    place = notice.witness
    if place is None or not place.line or not notice.code.startswith("config."):
        return []
    text = place.text if place.text and not place.key else line_of(diagnosis, place.source, place.line)
    if not text.strip():
        return []
    number = f"{place.line:>5} | "
    column = place.column or column_of(diagnosis, place.source, place.line, place.key)
    excerpt, at = window(printable(text), column, width - cells(number))
    caret = " " * (len(number) - 2) + "| " + " " * at + "^" if column else ""
    return [number + excerpt, *([caret] if caret else [])]


def printable(text: str) -> str:
    """The line as one can print it, character for character, so that columns stay."""
    return "".join(harmless(sign).replace("\n", " ") or " " for sign in text.rstrip("\r\n"))


def window(text: str, column: int, room: int) -> tuple[str, int]:
    """As much of a line as there is room for, its 1-based column in it; and before how many cells of that the column stands."""
    if cells(text) <= room or not column:
        return clip(text, room), cells(text[: max(column - 1, 0)])
    start = max(column - 1 - room // 3, 0)
    lead = "…" if start else ""
    return clip(lead + text[start:], room), cells(lead + text[start : column - 1])


def line_of(diagnosis: Diagnosis, name: str, line: int) -> str:
    """A line of a given config; empty where it is not held."""
    text = next((document.outer or document.text for document in diagnosis.documents if document.name == name), "")
    parts = text.split("\n", line)
    return parts[line - 1] if len(parts) >= line else ""


def column_of(diagnosis: Diagnosis, name: str, line: int, key: str) -> int:
    """Where a key's last word stands in its line; 0 where it does not."""
    text = line_of(diagnosis, name, line)
    return text.find(key.rpartition(".")[2]) + 1 if key else 0
