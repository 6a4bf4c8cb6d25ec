"""Edits to commands: options in place, new ones after their kin on a continued line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.plan.patch import patch_variables
from diagnose.plan.patch.patch_places import key_start, line_end, line_start, neighbour, newline
from diagnose.plan.patch.splice import Splice
from diagnose.plan.rules.remedy import Edit

_CONTINUED = re.compile(r"[ \t]*([\\^`])[ \t]*\r?\n")


def end_of(entry: Entry) -> int:
    """Where the option ends in its command: its value may stand elsewhere, in a variable."""
    return entry.used[1] if entry.used is not None else entry.end


def removed(document: Document, entry: Entry) -> Splice:
    """An option on a line of its own goes with its line; the backslash before the last one goes with it."""
    text, start, end = document.text, key_start(document, entry), end_of(entry)
    if framework_tables.table(document.framework).variables:
        return patch_variables.removed(text, start, end)
    line = line_start(text, start)
    rest = _CONTINUED.match(text, end)
    if not text[line:start].strip():
        if rest:
            return Splice(line, rest.end(), "")
        if not text[end : line_end(text, end)].strip() and not _continues(text, line):
            return Splice(line, line_end(text, end, with_break=True), "")
        above = line_start(text, max(line - 1, 0))
        kept = text[above:line].removesuffix("\n").removesuffix("\r")
        if line and kept.endswith(("\\", "^", "`")):
            return Splice(above + len(kept[:-1].rstrip(" \t")), end, "")
    return Splice(line + len(text[line:start].rstrip(" \t")), end, "")


def _continues(text: str, line: int) -> bool:
    """Does the line before this one lead into it?"""
    return text[:line].removesuffix("\n").removesuffix("\r").endswith(("\\", "^", "`"))


def inserted(document: Document, edits: Sequence[Edit], anchors: Sequence[str]) -> list[Splice]:
    """New options beside their kin, new variables before everything that is run."""
    cuts = []
    for edit, anchor in zip(edits, anchors, strict=True):
        cuts += (
            patch_variables.inserted(document, edit)
            if patch_variables.is_variable(document, edit)
            else [_new_option(document, edit, anchor)]
        )
    return cuts


def _new_option(document: Document, edit: Edit, anchor: str) -> Splice:
    """An option after its kin, on a continued line of its own where the others stand so."""
    text = document.text
    entries = [entry for entry in document.entries if not entry.key.startswith("~")]
    if not entries:
        return Splice(len(text), len(text), "")
    after = neighbour(document, entries, anchor)
    at, start = end_of(after), key_start(document, after)
    if (item := _item_around(text, start, at)) is not None:
        return _new_item(text, item, after, option(edit))
    line = line_start(text, start)
    lead = text[line:start]
    written = option(edit)
    own_line = not lead.strip() and (line > 0 or text[start : start + 1] == "-")
    mark = _CONTINUED.match(text, at)
    sign = mark[1] if mark else text[line - 2 - (text[line - 2 : line - 1] == "\r")] if _continues(text, line) else ""
    if own_line and sign:
        return Splice(at, at, f" {sign}{newline(text)}{lead}{written}")
    if own_line and line_end(text, at) == at:  # an item of an array, or of a text over several lines
        return Splice(at, at, f"{newline(text)}{lead}{written}")
    return Splice(at, at, f" {written}")


def _item_around(text: str, start: int, end: int) -> tuple[int, int, str] | None:
    """The item of a list in which an option stands: its begin, its end, and what begins it (`- ` in YAML, else a comma parts items).
    None where the option is a word of a command."""
    quote = next((text[at : at + 1] for at in (start - 1, start) if at >= 0 and text[at : at + 1] in ("'", '"')), "")
    begin = start - 1 if quote and text[start - 1 : start] == quote else start
    stop = end + 1 if quote and text[end : end + 1] == quote else end
    lead = re.compile(r"[ \t]*(?:- +)+$").search(text, line_start(text, begin), begin)
    if lead and not re.match(r"[ \t]+\S", text[stop : line_end(text, stop)].partition(" #")[0].rstrip()):
        return begin, stop, lead[0]
    before, after = text[:begin].rstrip()[-1:], text[stop:].lstrip()[:1]
    return (begin, stop, ",") if quote and before in ("[", ",", "(") and after in (",", "]", ")") else None


def _new_item(text: str, item: tuple[int, int, str], after: Entry, written: str) -> Splice:
    """A new option after another one of a list: one item for each word, or one for both as the other has it."""
    begin, stop, sign = item
    quote = text[begin : begin + 1] if text[begin : begin + 1] in ("'", '"') else ""
    key, blank, value = written.partition(" ")
    value = "".join(shlex.split(value))
    joined = blank and "=" in text[begin : begin + len(after.key) + 2]
    words = [f"{key}={value}"] if joined else [key, value] if blank else [written]
    line = line_start(text, begin)
    if sign != ",":
        lead = re.compile(r"[ \t]*").match(text, line)
        indent = lead[0] if lead and sign.count("-") == 1 else " " * (len(sign) - 2)
        items = [f"{indent}- {_as_item(word, quote)}" for word in words]
        at = line_end(text, stop)
        return Splice(at, at, "".join(newline(text) + one for one in items))
    own_line = not text[line:begin].strip()
    gap = "," + (newline(text) + text[line:begin] if own_line else " ")
    return Splice(stop, stop, "".join(f"{gap}{_as_item(word, quote)}" for word in words))


def _as_item(word: str, quote: str) -> str:
    """A word as an item of a list, which is text whatever it looks like."""
    if quote == "'" and "'" not in word and "\\" not in word:
        return f"'{word}'"
    plain = (
        not quote
        and re.fullmatch(r"[-\w./=]+", word)
        and not re.fullmatch(r"[-+.\d_e:]+|true|false|yes|no|on|off|null", word, re.IGNORECASE)
    )
    return word if plain else json.dumps(word, ensure_ascii=False)


def option(edit: Edit) -> str:
    """An option with its value as a command line writes it."""
    if not edit.to:
        return edit.key
    return f"{edit.key} {edit.to}" if edit.key.startswith("-") else f"{edit.key}={edit.to}"
