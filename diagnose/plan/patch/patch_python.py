"""Edits to scripts: a keyword argument in the call that it belongs to, an entry in a dict that is an argument."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.plan.patch.patch_places import after_item, line_start, neighbour, newline
from diagnose.plan.patch.splice import Splice
from diagnose.plan.rules.remedy import Edit

_KEYWORD = re.compile(r"[A-Za-z_]\w*\s*=|[\"']\w+[\"']\s*:")


def inserted(document: Document, edits: Sequence[Edit], anchors: Sequence[str]) -> list[Splice]:
    """New arguments; those that go to one place together, so that their commas fit."""
    places: dict[tuple[int, bool], list[str]] = {}
    held: dict[tuple[int, bool], Entry | None] = {}
    for edit, anchor in zip(edits, anchors, strict=True):
        at, after, item = _placed(document, edit, anchor)
        if at >= 0:
            place = (after.end if after else at, after is not None)
            places.setdefault(place, []).append(item)
            held[place] = after
    return [cut for place, items in places.items() for cut in _written(document.text, place[0], held[place], items)]


def _placed(document: Document, edit: Edit, anchor: str) -> tuple[int, Entry | None, str]:
    """Where an argument goes (-1: nowhere), after which other one, and how it is written."""
    call, dot, name = edit.key.partition(".")
    entries = document.entries
    if dot and any(entry.key == call or entry.key.startswith(f"{call}.") for entry in entries):
        inside = _innermost(document, edit.key)
        if inside is not None and inside.written.startswith("{"):
            return _in_dict(inside, edit.key[len(inside.key) + 1 :], edit)
        siblings = [entry for entry in entries if entry.key.startswith(f"{call}.") and "." not in entry.key[len(call) + 1 :]]
        opening = inside.start if inside else 0
        return _beside(document, siblings, opening, _nested(name, edit.to, "{}="), anchor)
    holder = next((entry for entry in entries if entry.key.endswith("()")), None)
    if holder is None:  # no call that takes it
        return -1, None, ""
    siblings = [
        entry for entry in entries if "." not in entry.key and holder.start <= entry.start < entry.end <= holder.end and entry is not holder
    ]
    return _beside(document, siblings, holder.start, _nested(edit.key, edit.to, "{}="), anchor)


def _innermost(document: Document, key: str) -> Entry | None:
    """What stands for the longest part of a dotted key: the argument, or a dict in it."""
    held = {entry.key: entry for entry in document.entries}
    parts = key.split(".")
    return next((held[part] for end in range(len(parts) - 1, 0, -1) if (part := ".".join(parts[:end])) in held), None)


def _nested(key: str, value: str | None, first: str) -> str:
    """A dotted key as a script writes it: its first part in the form `first`, the others as keys of dicts."""
    outer, *inner = key.split(".")
    text = value or ""
    for name in reversed(inner):
        text = f'{{"{name}": {text}}}'
    return first.format(outer) + text


def _in_dict(inside: Entry, name: str, edit: Edit) -> tuple[int, Entry | None, str]:
    """After the last entry of a dict, or into an empty one."""
    body = inside.written[1:-1].rstrip()
    at = inside.start + 1 + len(body)
    item = _nested(name, edit.to, '"{}": ')
    return at, None, f", {item}" if body and not body.endswith(",") else item


def _beside(document: Document, siblings: Sequence[Entry], opening: int, keyword: str, anchor: str) -> tuple[int, Entry | None, str]:
    if siblings:
        return 0, neighbour(document, siblings, anchor), keyword
    empty = re.compile(r"\s*\)").match(document.text, opening)
    return opening, None, keyword if empty else f"{keyword}, "


def _written(text: str, at: int, after: Entry | None, items: Sequence[str]) -> list[Splice]:
    """Arguments after another one: on lines of their own where it stands so, its comment staying beside it."""
    if after is None:
        return [Splice(at, at, "".join(items))]
    line = line_start(text, after.start)
    lead = re.compile(r"[ \t]*").match(text, line)
    start = lead.end() if lead else line
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
