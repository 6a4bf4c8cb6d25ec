"""Edits to Python scripts: insert a keyword argument into its call, an entry into a dict that is an argument."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.plan.patch.patch_places import Splice, after_item, line_start, neighbour, newline
from diagnose.plan.rules.remedy import Edit

_KEYWORD = re.compile(r"[A-Za-z_]\w*\s*=|[\"']\w+[\"']\s*:")


def insert_arguments(document: Document, edits: Sequence[Edit], anchors: Sequence[str]) -> list[Splice]:
    """Insert new arguments; those of one place are inserted together, so that their commas fit."""
    arguments: dict[tuple[int, bool], list[str]] = {}
    siblings: dict[tuple[int, bool], Entry | None] = {}
    for edit, anchor in zip(edits, anchors, strict=True):
        at, after, argument = _argument_place(document, edit, anchor)
        if at >= 0:
            place = (after.end if after else at, after is not None)
            arguments.setdefault(place, []).append(argument)
            siblings[place] = after
    return [splice for place, items in arguments.items() for splice in _insert_items(document.text, place[0], siblings[place], items)]


def _argument_place(document: Document, edit: Edit, anchor: str) -> tuple[int, Entry | None, str]:
    """(offset, the argument before it, text) of a new argument; offset -1 where the script has no call that takes it."""
    call, is_dotted, name = edit.key.partition(".")
    entries = document.entries
    if is_dotted and any(entry.key == call or entry.key.startswith(f"{call}.") for entry in entries):
        container = _innermost_entry(document, edit.key)
        if container is not None and container.written.startswith("{"):
            return _dict_place(container, edit.key[len(container.key) + 1 :], edit)
        siblings = [entry for entry in entries if entry.key.startswith(f"{call}.") and "." not in entry.key[len(call) + 1 :]]
        opening = container.start if container else 0
        return _sibling_place(document, siblings, opening, _format_argument(name, edit.to, "{}="), anchor)
    call_entry = next((entry for entry in entries if entry.key.endswith("()")), None)
    if call_entry is None:
        return -1, None, ""
    siblings = [
        entry
        for entry in entries
        if "." not in entry.key and call_entry.start <= entry.start < entry.end <= call_entry.end and entry is not call_entry
    ]
    return _sibling_place(document, siblings, call_entry.start, _format_argument(edit.key, edit.to, "{}="), anchor)


def _innermost_entry(document: Document, key: str) -> Entry | None:
    """The entry of the longest prefix of a dotted key: the argument, or a dict in it."""
    entries = {entry.key: entry for entry in document.entries}
    parts = key.split(".")
    return next((entries[prefix] for end in range(len(parts) - 1, 0, -1) if (prefix := ".".join(parts[:end])) in entries), None)


def _format_argument(key: str, value: str | None, first: str) -> str:
    """A dotted key and its value in Python: the first name in the format `first`, the others as keys of nested dicts."""
    outer, *inner = key.split(".")
    text = value or ""
    for name in reversed(inner):
        text = f'{{"{name}": {text}}}'
    return first.format(outer) + text


def _dict_place(container: Entry, name: str, edit: Edit) -> tuple[int, Entry | None, str]:
    """The end of a dict that is an argument, before its closing brace."""
    body = container.written[1:-1].rstrip()
    at = container.start + 1 + len(body)
    item = _format_argument(name, edit.to, '"{}": ')
    return at, None, f", {item}" if body and not body.endswith(",") else item


def _sibling_place(document: Document, siblings: Sequence[Entry], opening: int, keyword: str, anchor: str) -> tuple[int, Entry | None, str]:
    if siblings:
        return 0, neighbour(document, siblings, anchor), keyword
    empty = re.compile(r"\s*\)").match(document.text, opening)
    return opening, None, keyword if empty else f"{keyword}, "


def _insert_items(text: str, at: int, after: Entry | None, items: Sequence[str]) -> list[Splice]:
    """Insert arguments after another one, on lines of their own if it has one; its comment stays beside it."""
    if after is None:
        return [Splice(at, at, "".join(items))]
    line = line_start(text, after.start)
    blanks = re.compile(r"[ \t]*").match(text, line)
    start = blanks.end() if blanks else line
    own_line = _KEYWORD.match(text, start) is not None and text.find("(", start, after.start) < 0
    if not own_line:
        return [Splice(at, at, "".join(f", {item}" for item in items))]
    gap = newline(text) + text[line:start]
    place, comma, at_end = after_item(text, at)
    if at_end and comma:
        return [Splice(place, place, "".join(f"{gap}{item}," for item in items))]
    if at_end and place > at:
        return [Splice(at, at, ","), Splice(place, place, ",".join(f"{gap}{item}" for item in items))]
    return [Splice(at, at, "".join(f",{gap}{item}" for item in items))]
