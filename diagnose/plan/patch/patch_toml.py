"""Edits to TOML: insert a key into its table or inline table, append a missing table to the file, rename and remove keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from diagnose.adapters.formats.config_value import Places
from diagnose.adapters.formats.settings import Document, Entry
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.plan.patch.patch_places import Splice, line_end, line_start, neighbour, newline
from diagnose.plan.remedies.remedy import Edit

_NAME = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')"
_PATH = lazy_compile(rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*")
_LAST = lazy_compile(rf"{_NAME}(?=[ \t]*=)")
_BARE = lazy_compile(r"[A-Za-z0-9_-]+")


def remove_key(document: Document, entry: Entry) -> Splice:
    """Remove a key with its line and the comment at its end; in an inline table with its comma alone, because other keys share the line."""
    text, start = document.text, _key_start(document, entry)
    if _inline_table_of(document, entry) is None:
        return Splice(line_start(text, start), line_end(text, entry.end, with_break=True), "")
    after = re.compile(r"\s*,[ \t]*").match(text, entry.end)
    if after:
        return Splice(start, after.end(), "")
    before = text[:start].rstrip()
    return Splice(len(before) - 1 if before.endswith(",") else start, entry.end, "")


def rename_key(document: Document, entry: Entry, name: str) -> Splice:
    """Replace the last name of a key where it is written."""
    start = _key_start(document, entry)
    match = _LAST.search(document.text, start, entry.start)
    return Splice(match.start(), match.end(), _quote_name(name)) if match else Splice(start, start, "")


def split_move(entry: Entry, edit: Edit) -> list[Edit]:
    """A rename into another table as two edits: remove the key there, add it here. Any other edit as it is."""
    if not edit.renamed or entry.key.rpartition(".")[0] == edit.renamed.rpartition(".")[0]:
        return [edit]
    return [Edit(edit.target, edit.key, edit.frm, None), Edit(edit.target, edit.renamed, None, edit.to or entry.written)]


def insert_keys(document: Document, edits: Sequence[Edit]) -> list[Splice]:
    """Insert new keys: beside related ones, into an empty table, or with a new table."""
    splices: list[Splice] = []
    new_tables: dict[str, list[Edit]] = {}
    for edit in edits:
        splice = _insert_beside(document, edit) or _insert_first(document, edit)
        if splice is None:
            new_tables.setdefault(edit.key.rpartition(".")[0], []).append(edit)
        else:
            splices.append(splice)
    return [*splices, *(_append_table(document, table, table_edits) for table, table_edits in new_tables.items())]


def _insert_beside(document: Document, edit: Edit) -> Splice | None:
    """After a sibling; a dotted prefix of that (`a.b` in `a.b.key = 1`) is repeated. None without a sibling."""
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
    text, start = document.text, _key_start(document, after)
    path = _PATH.match(text, start, after.start)
    prefix_names = path[0][: len(path[0]) - len(_last_name(path[0]))] if path else ""
    assignment = f"{prefix_names}{_quote_name(edit.key[len(prefix) :])} = {edit.to}"
    if _inline_table_of(document, after) is not None:
        return Splice(after.end, after.end, f", {assignment}")
    at = line_end(text, after.end)
    return Splice(at, at, f"{newline(text)}{text[line_start(text, start) : start]}{assignment}")


def _insert_first(document: Document, edit: Edit) -> Splice | None:
    """Into a table or inline table that has no key yet; None where there is no such table."""
    parent, _, name = edit.key.rpartition(".")
    text = document.text
    table = next((entry for entry in document.entries if entry.key == parent), None) if parent else None
    assignment = f"{_quote_name(name)} = {edit.to}"
    if table is None and not parent:  # top-level keys stand before the first header
        headers = [entry for entry in document.entries if _is_header(document, entry)]
        at = _key_start(document, headers[0]) if headers else len(text)
        gap = newline(text) if not headers and text and not text.endswith("\n") else ""
        return Splice(at, at, f"{gap}{assignment}{newline(text)}")
    if table is None or not _is_header(document, table):
        return _insert_inline(document, edit)
    at = line_end(text, table.end)
    return Splice(at, at, f"{newline(text)}{assignment}")


def _insert_inline(document: Document, edit: Edit) -> Splice | None:
    """Into the innermost inline table that encloses the key: TOML does not let a header extend one."""
    names = edit.key.split(".")
    for size in range(len(names) - 1, 0, -1):
        table = next((entry for entry in document.entries if entry.key == ".".join(names[:size])), None)
        if table is not None and table.written.startswith("{"):
            assignment = f"{'.'.join(map(_quote_name, names[size:]))} = {edit.to}"
            body = table.written[1:-1].rstrip()
            at = table.start + 1 + len(body)
            return Splice(at, at, f", {assignment}" if body else f" {assignment} " if table.written == "{}" else f" {assignment}")
    return None


def _append_table(document: Document, table: str, edits: Sequence[Edit]) -> Splice:
    text, line_break = document.text, newline(document.text)
    if any(name.isdecimal() for name in table.split(".")):
        return Splice(0, 0, "")  # a table inside an array of tables: no framework has a knob there
    gap = "" if not text else line_break if text.endswith("\n") else 2 * line_break
    header = ".".join(map(_quote_name, table.split(".")))
    lines = [f"[{header}]", *(f"{_quote_name(edit.key.rpartition('.')[2])} = {edit.to}" for edit in edits)]
    return Splice(len(text), len(text), gap + "".join(f"{line}{line_break}" for line in lines))


def _key_start(document: Document, entry: Entry) -> int:
    """Offset of the key."""
    return _places(document.text).offset(entry.line, entry.column)


@lru_cache(maxsize=4)
def _places(text: str) -> Places:
    return Places(text)


def _is_header(document: Document, entry: Entry) -> bool:
    return entry.start == entry.end and document.text.startswith("[", _key_start(document, entry))


def _inline_table_of(document: Document, entry: Entry) -> Entry | None:
    """The inline table that a key stands in."""
    return next((candidate for candidate in document.entries if candidate.start < entry.start and entry.end < candidate.end), None)


def _last_name(path: str) -> str:
    """The last name of a dotted path, with its quotes."""
    return re.findall(_NAME, path)[-1]  # type: ignore[no-any-return]


def _quote_name(name: str) -> str:
    return name if _BARE.fullmatch(name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
