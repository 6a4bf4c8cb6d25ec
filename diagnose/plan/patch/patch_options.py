"""Edits to command lines: insert options after related ones, on a continued line where those have one, and remove them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.plan.patch import patch_variables
from diagnose.plan.patch.patch_places import Splice, key_start, line_end, line_start, neighbour, newline
from diagnose.plan.remedies.remedy import Edit

#: A line continuation: of sh (backslash), cmd (^) or PowerShell (backquote).
_CONTINUED = lazy_compile(r"[ \t]*([\\^`])[ \t]*\r?\n")


def option_end(entry: Entry) -> int:
    """Where the option ends in its command; its value may stand elsewhere, in a variable."""
    return entry.used[1] if entry.used is not None else entry.end


def remove_option(document: Document, entry: Entry) -> Splice:
    """Remove an option, with its line if it has one of its own; with the last option the continuation before it goes too."""
    text, start, end = document.text, key_start(document, entry), option_end(entry)
    if framework_tables.table(document.framework).variables:
        return patch_variables.remove_variable(text, start, end)
    line = line_start(text, start)
    continuation = _CONTINUED.match(text, end)
    if not text[line:start].strip():
        if continuation:
            return Splice(line, continuation.end(), "")
        if not text[end : line_end(text, end)].strip() and not _is_continuation(text, line):
            return Splice(line, line_end(text, end, with_break=True), "")
        above = line_start(text, max(line - 1, 0))
        previous = text[above:line].removesuffix("\n").removesuffix("\r")
        if line and previous.endswith(("\\", "^", "`")):
            return Splice(above + len(previous[:-1].rstrip(" \t")), end, "")
    return Splice(line + len(text[line:start].rstrip(" \t")), end, "")


def _is_continuation(text: str, line: int) -> bool:
    """Whether the line before the one that begins at `line` is continued."""
    return text[:line].removesuffix("\n").removesuffix("\r").endswith(("\\", "^", "`"))


def insert_options(document: Document, edits: Sequence[Edit], anchors: Sequence[str]) -> list[Splice]:
    """Insert new options after related ones, new variables before all commands."""
    splices = []
    for edit, anchor in zip(edits, anchors, strict=True):
        splices += (
            patch_variables.insert_variable(document, edit)
            if patch_variables.is_variable(document, edit)
            else [_insert_option(document, edit, anchor)]
        )
    return splices


def _insert_option(document: Document, edit: Edit, anchor: str) -> Splice:
    """An option after a related one, on a line of its own if that has one."""
    text = document.text
    entries = [entry for entry in document.entries if not entry.key.startswith("~")]
    branches = _branches(text) if document.form == "shell" else []
    overrides = framework_tables.table(document.framework).overrides if "." in edit.key and not edit.key.startswith("-") else ""
    if overrides:  # `--cfg-options a.b=1 c.d=2`
        entries, overrides = (
            ([entry for entry in entries if _is_override(entry)], "") if any(map(_is_override, entries)) else (entries, overrides)
        )
    always = [entry for entry in entries if not _is_conditional(text, key_start(document, entry), branches)]
    entries = always or entries  # what is added under a condition counts only where that holds
    if not entries:
        return Splice(len(text), len(text), "")
    after = entries[-1] if overrides else neighbour(document, entries, anchor)
    option = f"{overrides} {format_option(edit, '=' if _joins_values(document, entries) else ' ')}".lstrip()
    at, start = option_end(after), key_start(document, after)
    if (item := _list_item_at(text, start, at)) is not None:
        return _insert_list_item(text, item, after, option)
    line = line_start(text, start)
    indent = text[line:start]
    own_line = not indent.strip() and (line > 0 or text[start : start + 1] == "-")
    continuation = _CONTINUED.match(text, at)
    sign = continuation[1] if continuation else text[line - 2 - (text[line - 2 : line - 1] == "\r")] if _is_continuation(text, line) else ""
    if own_line and sign:
        return Splice(at, at, f" {sign}{newline(text)}{indent}{option}")
    if own_line and line_end(text, at) == at:  # an item of a shell array, or of a text over several lines
        return Splice(at, at, f"{newline(text)}{indent}{option}")
    return Splice(at, at, f" {option}")


def _is_override(entry: Entry) -> bool:
    """Whether an entry of a command is a key of the program's file, as it stands behind the option that overrides it."""
    return "." in entry.key and not entry.key.startswith("-")


#: The words that begin and end what runs under a condition.
_BRANCH = lazy_compile(r"(?m)(?:^|;|\b(?:then|else|do)\b)[ \t]*(if|fi|case|esac)\b")

#: A condition before an assignment on its line: `[ -n "$TP" ] && ARGS+=(...)`.
_CONDITION = lazy_compile(r"(?:&&|\|\|)[ \t]*\w+\+?=\S*[^;]*$")
#: How far before an option its condition, and the dashes of its list, are looked for.
_NEAR, _DEEP = 4000, 200


def _branches(text: str) -> list[tuple[int, int]]:
    """The spans of a shell script that run under a condition."""
    spans, begun = [], []
    for word in _BRANCH.finditer(text):
        if word[1] in ("if", "case"):
            begun.append(word.end())
        elif begun:
            spans.append((begun.pop(), word.start()))
    return spans


def _is_conditional(text: str, at: int, branches: Sequence[tuple[int, int]]) -> bool:
    begin = max(line_start(text, at), at - _NEAR)
    return any(start <= at < end for start, end in branches) or _CONDITION.search(text[begin:at]) is not None


def _list_item_at(text: str, start: int, end: int) -> tuple[int, int, str] | None:
    """The list item that an option is: (begin, end, marker), the marker being its YAML dashes, or a comma for a list in brackets.
    None where the option is a word of a command."""
    quote = next((text[at : at + 1] for at in (start - 1, start) if at >= 0 and text[at : at + 1] in ("'", '"')), "")
    begin = start - 1 if quote and text[start - 1 : start] == quote else start
    stop = end + 1 if quote and text[end : end + 1] == quote else end
    marker = re.compile(r"[ \t]*(?:- +)+$").search(text, max(line_start(text, begin), begin - _DEEP), begin)
    if marker and not re.match(r"[ \t]+\S", text[stop : line_end(text, stop)].partition(" #")[0].rstrip()):
        return begin, stop, marker[0]
    before, after = text[:begin].rstrip()[-1:], text[stop:].lstrip()[:1]
    return (begin, stop, ",") if quote and before in ("[", ",", "(") and after in (",", "]", ")") else None


def _insert_list_item(text: str, neighbour_item: tuple[int, int, str], after: Entry, option: str) -> Splice:
    """A new option after another one of a list: one item for each word, or `--key=value` in one item if the other is written so."""
    begin, stop, marker = neighbour_item
    quote = text[begin : begin + 1] if text[begin : begin + 1] in ("'", '"') else ""
    key, separator, value = option.partition(" ")
    value = "".join(shlex.split(value))
    has_equals = separator and "=" in text[begin : begin + len(after.key) + 2]
    words = [f"{key}={value}"] if has_equals else [key, value] if separator else [option]
    line = line_start(text, begin)
    if marker != ",":
        blanks = re.compile(r"[ \t]*").match(text, line)
        indent = blanks[0] if blanks and marker.count("-") == 1 else " " * (len(marker) - 2)
        items = [f"{indent}- {_quote_item(word, quote)}" for word in words]
        at = line_end(text, stop)
        return Splice(at, at, "".join(newline(text) + item for item in items))
    own_line = not text[line:begin].strip()
    gap = "," + (newline(text) + text[line:begin] if own_line else " ")
    return Splice(stop, stop, "".join(f"{gap}{_quote_item(word, quote)}" for word in words))


def _quote_item(word: str, quote: str) -> str:
    """A word as an item of a list, quoted if YAML would read it as a number or a truth value."""
    if quote == "'" and "'" not in word and "\\" not in word:
        return f"'{word}'"
    is_plain = (
        not quote
        and re.fullmatch(r"[-\w./=]+", word)
        and not re.fullmatch(r"[-+.\d_e:]+|true|false|yes|no|on|off|null", word, re.IGNORECASE)
    )
    return word if is_plain else json.dumps(word, ensure_ascii=False)


def _joins_values(document: Document, entries: Sequence[Entry]) -> bool:
    """Whether all options of a command stand as `--key=value`: some programs read no others."""
    ends = [key_start(document, entry) + len(entry.key) for entry in entries if entry.key.startswith("-") and not entry.is_bare_flag]
    return bool(ends) and all(document.text[end : end + 1] == "=" for end in ends)


def format_option(edit: Edit, separator: str = " ") -> str:
    """`--key value` (or `--key=value`), `key=value` of Hydra, or a bare flag."""
    if not edit.to:
        return edit.key
    return f"{edit.key}{separator}{edit.to}" if edit.key.startswith("-") else f"{edit.key}={edit.to}"
