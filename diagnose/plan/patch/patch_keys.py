"""Edits to YAML and JSON: a key beside its kin, a block that is missing as a tree, a key that goes with its line or its comma."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.plan.patch.patch_places import after_item, gap_before, key_start, line_end, line_start, neighbour, newline
from diagnose.plan.patch.splice import Splice
from diagnose.plan.rules.remedy import Edit

Tree = dict[str, "str | Tree"]


def is_borrowed(document: Document, entry: Entry) -> bool:
    """Does the key come from elsewhere by a YAML merge? Then it is set anew where it counts, not where others read it too."""
    if document.form != "yaml":
        return False
    parent = entry.key.rpartition(".")[0]
    block = next((other for other in document.entries if other.key == parent), None) if parent else None
    if block is not None and block.start <= entry.start <= block.end:
        return False
    return any(
        other.start < entry.start < other.end and not entry.key.startswith(f"{other.key}.") and other is not entry
        for other in document.entries
    )


def in_flow(document: Document, entry: Entry) -> bool:
    """Does the key stand between braces?"""
    if document.form == "json" or document.text.lstrip()[:1] == "{":
        return True
    at = key_start(document, entry)
    return any(other.written.startswith("{") and other.start < at < other.end for other in document.entries)


def removed(document: Document, entry: Entry) -> Splice:
    """A key goes with its line, or (as a keyword argument does) with its comma."""
    text, start, end = document.text, key_start(document, entry), entry.end
    if document.form == "yaml" and not in_flow(document, entry):
        line = line_start(text, start)
        if text[line:start].strip():  # the first key of a list's item
            return Splice(entry.start, end, f"{gap_before(document, entry)}null")
        return Splice(line, line_end(text, end, with_break=True), "")
    after = re.compile(r"\s*,[ \t]*\r?\n?[ \t]*|\s*,\s*").match(text, end)
    if after:
        return (
            Splice(start, after.end(), "")
            if "\n" not in after[0]
            else Splice(_blank_before(text, start), after.end() - len(after[0].rpartition("\n")[2]) - 1, "")
        )
    before = text[:start].rstrip()
    return Splice(len(before) - 1 if before.endswith(",") else start, end, "")


def _blank_before(text: str, start: int) -> int:
    """The line break before a key that stands first on its line."""
    line = text.rfind("\n", 0, start)
    return line if line >= 0 and not text[line + 1 : start].strip() else start


def inserted(document: Document, edits: Iterable[Edit]) -> list[Splice]:
    """New keys by the deepest block that exists, blocks that do not exist yet as trees."""
    return [cut for parent, tree in _forest(document, edits) for cut in _new_keys(document, parent, tree)]


def _forest(document: Document, edits: Iterable[Edit]) -> list[tuple[str, Tree]]:
    blocks = {entry.key for entry in document.entries if any(other.key.startswith(f"{entry.key}.") for other in document.entries)}
    blocks |= {entry.key for entry in document.entries if entry.written.startswith("{") or entry.written in ("", "null", "~")}
    forest: dict[str, Tree] = {}
    for edit in edits:
        path = edit.key.split(".")
        depth = next((size for size in range(len(path) - 1, 0, -1) if ".".join(path[:size]) in blocks), 0)
        tree = forest.setdefault(".".join(path[:depth]), {})
        for name in path[depth:-1]:
            inner = tree.setdefault(name, {})
            tree = inner if isinstance(inner, dict) else {}
        tree[path[-1]] = edit.to or ""
    return list(forest.items())


def _siblings(document: Document, parent: str) -> list[Entry]:
    prefix = f"{parent}." if parent else ""
    return [
        entry
        for entry in document.entries
        if entry.key.startswith(prefix) and "." not in entry.key[len(prefix) :] and entry.key != parent and not is_borrowed(document, entry)
    ]


def _new_keys(document: Document, parent: str, tree: Tree) -> list[Splice]:
    text = document.text
    siblings = _siblings(document, parent)
    if not siblings:
        return [_first_key(document, parent, tree)]
    name = next(iter(tree))
    after = neighbour(document, siblings, f"{parent}.{name}" if parent else name)
    if in_flow(document, after):
        return _in_braces(document, after, tree)
    start = key_start(document, after)
    indent = " " * (start - line_start(text, start))
    lines = [line for name, value in tree.items() for line in _yaml_tree(name, value, indent)]
    at = line_end(text, after.end)
    return [Splice(at, at, "".join(newline(text) + line for line in lines))]


def _in_braces(document: Document, after: Entry, tree: Tree) -> list[Splice]:
    text, start = document.text, key_start(document, after)
    lead = text[line_start(text, start) : start]
    own_line = not lead.strip()
    gap = newline(text) + lead if own_line else " "
    unit = _unit(text, lead) if own_line else ""
    items = [_json_tree(name, value, document.form, newline(text) + lead if own_line else "", unit) for name, value in tree.items()]
    place, comma, at_end = after_item(text, after.end) if own_line else (after.end, False, False)
    if at_end and comma:
        return [Splice(place, place, "".join(f"{gap}{item}," for item in items))]
    if at_end and place > after.end:
        return [Splice(after.end, after.end, ","), Splice(place, place, ",".join(f"{gap}{item}" for item in items))]
    return [Splice(after.end, after.end, "".join(f",{gap}{item}" for item in items))]


def _first_key(document: Document, parent: str, tree: Tree) -> Splice:
    """Into a block that is empty: {} or nothing."""
    entry = next((entry for entry in document.entries if entry.key == parent), None)
    body = "{" + ", ".join(_json_tree(name, value, document.form, "", "") for name, value in tree.items()) + "}"
    if entry is not None:
        return Splice(entry.start, entry.end, gap_before(document, entry) + body)
    text = document.text
    brace = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|#[^\n]*|/\*.*?\*/|---)*\{", re.DOTALL).match(text)
    if document.form == "json" or brace:
        at = brace.end() if brace else text.find("{") + 1
        return Splice(at, at, body[1:-1])
    gap = "" if not text or text.endswith("\n") else newline(text)
    lines = [line for name, value in tree.items() for line in _yaml_tree(name, value, "")]
    return Splice(len(text), len(text), gap + newline(text).join(lines) + newline(text))


def _unit(text: str, lead: str) -> str:
    """One step of indentation, as the file has it."""
    steps = sorted({len(match[1]) for match in re.finditer(r"^([ ]+)\S", text, re.MULTILINE)})
    return "\t" if "\t" in lead else " " * (steps[0] if steps else 2)


def _json_tree(name: str, value: str | Tree, form: str, lead: str, unit: str) -> str:
    label = json.dumps(name, ensure_ascii=False) if form == "json" else name
    if isinstance(value, str):
        return f"{label}: {value}"
    inner = [_json_tree(key, below, form, lead + unit if lead else "", unit) for key, below in value.items()]
    return f"{label}: {{{lead}{unit}{f',{lead}{unit}'.join(inner)}{lead}}}" if lead else f"{label}: {{{', '.join(inner)}}}"


def _yaml_tree(name: str, value: str | Tree, indent: str) -> Sequence[str]:
    if isinstance(value, str):
        return [f"{indent}{name}: {value}"]
    return [f"{indent}{name}:", *(line for key, below in value.items() for line in _yaml_tree(key, below, f"{indent}  "))]
