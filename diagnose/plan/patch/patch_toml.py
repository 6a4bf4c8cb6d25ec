"""Edits to TOML: a key goes into its table, a table that is missing to the end of the file; what stands between braces stays there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from diagnose.adapters.formats.config_value import Places
from diagnose.adapters.formats.settings import Document, Entry
from diagnose.plan.patch.splice import Splice
from diagnose.plan.rules.remedy import Edit

_NAME = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')"
_PATH = re.compile(rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*")
_LAST = re.compile(rf"{_NAME}(?=[ \t]*=)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")

#: The sibling after which a key belongs.
Neighbour = Callable[[Document, Sequence[Entry], str], Entry]


def removed(document: Document, entry: Entry) -> Splice:
    """A key goes with its line, or with its comma where it stands between braces."""
    text, start = document.text, _start(document, entry)
    if _around(document, entry) is None:
        line = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", entry.end)
        return Splice(line, len(text) if stop < 0 else stop + 1, "")
    after = re.compile(r"\s*,[ \t]*").match(text, entry.end)
    if after:
        return Splice(start, after.end(), "")
    before = text[:start].rstrip()
    return Splice(len(before) - 1 if before.endswith(",") else start, entry.end, "")


def renamed(document: Document, entry: Entry, name: str) -> Splice:
    """The last name of a key, as written, becomes another."""
    start = _start(document, entry)
    match = _LAST.search(document.text, start, entry.start)
    return Splice(match.start(), match.end(), _written(name)) if match else Splice(start, start, "")


def moved(entry: Entry, edit: Edit) -> list[Edit]:
    """A key that is renamed into another table is taken out and written anew."""
    if not edit.renamed or entry.key.rpartition(".")[0] == edit.renamed.rpartition(".")[0]:
        return [edit]
    return [Edit(edit.target, edit.key, edit.frm, None), Edit(edit.target, edit.renamed, None, edit.to or entry.written)]


def inserted(document: Document, edits: Sequence[Edit], neighbour: Neighbour) -> list[Splice]:
    """New keys: beside their kin, into an empty table, or with a table of their own."""
    cuts: list[Splice] = []
    fresh: dict[str, list[Edit]] = {}
    for edit in edits:
        cut = _beside(document, edit, neighbour) or _first(document, edit)
        if cut is None:
            fresh.setdefault(edit.key.rpartition(".")[0], []).append(edit)
        else:
            cuts.append(cut)
    return [*cuts, *(_new_table(document, table, mine) for table, mine in fresh.items())]


def _beside(document: Document, edit: Edit, neighbour: Neighbour) -> Splice | None:
    """After a sibling that is written as its own key; names before it that no header holds are repeated."""
    parent = edit.key.rpartition(".")[0]
    prefix = f"{parent}." if parent else ""
    siblings = [
        entry
        for entry in document.entries
        if entry.key.startswith(prefix) and "." not in entry.key[len(prefix) :] and not _is_header(document, entry) and entry.key
    ]
    if not siblings:
        return None
    after = neighbour(document, siblings, edit.key)
    text, start = document.text, _start(document, after)
    dotted = _PATH.match(text, start, after.start)
    lead = dotted[0][: len(dotted[0]) - len(_last_of(dotted[0]))] if dotted else ""
    written = f"{lead}{_written(edit.key[len(prefix) :])} = {edit.to}"
    if _around(document, after) is not None:
        return Splice(after.end, after.end, f", {written}")
    line = text.rfind("\n", 0, start) + 1
    at = _line_end(text, after.end)
    return Splice(at, at, f"{_newline(text)}{text[line:start]}{written}")


def _first(document: Document, edit: Edit) -> Splice | None:
    """Into a table that has a header, or braces, and no key yet."""
    parent, _, name = edit.key.rpartition(".")
    text = document.text
    holder = next((entry for entry in document.entries if entry.key == parent), None) if parent else None
    written = f"{_written(name)} = {edit.to}"
    if holder is None and not parent:  # keys of no table stand before the first header
        heads = [entry for entry in document.entries if _is_header(document, entry)]
        at = _start(document, heads[0]) if heads else len(text)
        gap = _newline(text) if not heads and text and not text.endswith("\n") else ""
        return Splice(at, at, f"{gap}{written}{_newline(text)}")
    if holder is None or not _is_header(document, holder):
        return _between_braces(document, edit)
    at = _line_end(text, holder.end)
    return Splice(at, at, f"{_newline(text)}{written}")


def _between_braces(document: Document, edit: Edit) -> Splice | None:
    """Into the inline table that holds the key, or a table around it: no header may add to one."""
    names = edit.key.split(".")
    for size in range(len(names) - 1, 0, -1):
        holder = next((entry for entry in document.entries if entry.key == ".".join(names[:size])), None)
        if holder is not None and holder.written.startswith("{"):
            written = f"{'.'.join(map(_written, names[size:]))} = {edit.to}"
            body = holder.written[1:-1].rstrip()
            at = holder.start + 1 + len(body)
            return Splice(at, at, f", {written}" if body else f" {written} " if holder.written == "{}" else f" {written}")
    return None


def _new_table(document: Document, table: str, edits: Sequence[Edit]) -> Splice:
    text, newline = document.text, _newline(document.text)
    if any(name.isdecimal() for name in table.split(".")):
        return Splice(0, 0, "")  # a table inside one of an array: no knob lives there
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    header = ".".join(map(_written, table.split(".")))
    lines = [f"[{header}]", *(f"{_written(edit.key.rpartition('.')[2])} = {edit.to}" for edit in edits)]
    return Splice(len(text), len(text), gap + "".join(f"{line}{newline}" for line in lines))


def _start(document: Document, entry: Entry) -> int:
    """Where the key is written: the reader says its line and column."""
    return _places(document.text).offset(entry.line, entry.column)


@lru_cache(maxsize=4)
def _places(text: str) -> Places:
    return Places(text)


def _is_header(document: Document, entry: Entry) -> bool:
    return entry.start == entry.end and document.text.startswith("[", _start(document, entry))


def _around(document: Document, entry: Entry) -> Entry | None:
    """The inline table that holds a key."""
    return next((other for other in document.entries if other.start < entry.start and entry.end < other.end), None)


def _last_of(path: str) -> str:
    """The last name of a path as written."""
    return re.findall(_NAME, path)[-1]  # type: ignore[no-any-return]


def _written(name: str) -> str:
    return name if _BARE.fullmatch(name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_end(text: str, at: int) -> int:
    stop = text.find("\n", at)
    return len(text) if stop < 0 else stop - (text[stop - 1] == "\r")
