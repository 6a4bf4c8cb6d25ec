"""Edits to YAML and JSON: insert keys beside related ones, create missing blocks, remove a key with its line or its comma."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.plan.patch.patch_places import Splice, after_item, gap_before, key_start, line_end, line_start, neighbour, newline
from diagnose.plan.remedies.remedy import Edit

#: What separates two keys in flow style.
_COMMA = lazy_compile(r"(?:\s|#[^\n]*|//[^\n]*)*,(?:\s|#[^\n]*|//[^\n]*)*")
#: What stands before a key that is written as `? key`.
_KEY_MARK = lazy_compile(r"([ ]*(?:- +)*)\? +")

#: Keys to insert below one block: name to value as written, or to the keys of a new block.
Tree = dict[str, "str | Tree"]


def is_merged_in(document: Document, entry: Entry) -> bool:
    """Whether the key comes from another block by a YAML merge (`<<: *anchor`). It is then set anew in its own block, because other
    blocks may merge the anchor too."""
    if document.form != "yaml":
        return False
    block = document.index.first.get(entry.key.rpartition(".")[0])
    if block is not None and block.start <= entry.start <= block.end:
        return False
    return (entry.key, entry.start) in document.index.strangers


def is_in_flow_style(document: Document, entry: Entry) -> bool:
    """Whether the key stands between braces."""
    if document.form == "json" or document.text.lstrip()[:1] == "{":
        return True
    start = key_start(document, entry)
    return any(block.written.startswith("{") and block.start < start < block.end for block in document.entries)


def remove_keys(document: Document, entries: Sequence[Entry]) -> list[Splice]:
    """Remove keys. Neighbours in flow style go together, so that their commas fit."""
    runs: list[list[Entry]] = []
    for entry in sorted(entries, key=lambda entry: entry.start):
        gap = document.text[runs[-1][-1].end : key_start(document, entry)] if runs else ""
        if runs and _COMMA.fullmatch(gap) and is_in_flow_style(document, entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return [_remove_run(document, run[0], run[-1].end) for run in runs]


def _remove_run(document: Document, entry: Entry, end: int) -> Splice:
    """Remove the keys from one to the end of another's value: with their line, and so with the comment at the line's end, which is about
    them; comments on lines of their own stay. In flow style with their comma alone, because other keys may share the line."""
    text, start = document.text, key_start(document, entry)
    if document.form == "yaml" and not is_in_flow_style(document, entry):
        line = line_start(text, start, document.form)
        if text[line:start].strip():  # the first key of a list item: the `- ` before it has to stay
            return Splice(entry.start, end, f"{gap_before(document, entry)}null")
        return Splice(line, line_end(text, end, document.form, with_break=True), "")
    after = re.compile(r"\s*,[ \t]*\r?\n?[ \t]*|\s*,\s*").match(text, end)
    if after:
        return (
            Splice(start, after.end(), "")
            if "\n" not in after[0]
            else Splice(_line_break_before(text, start), after.end() - len(after[0].rpartition("\n")[2]) - 1, "")
        )
    before = text[:start].rstrip()
    return Splice(len(before) - 1 if before.endswith(",") else start, end, "")


def _line_break_before(text: str, start: int) -> int:
    """Offset of the line break before a key that stands first on its line, else of the key."""
    line = text.rfind("\n", 0, start)
    return line if line >= 0 and not text[line + 1 : start].strip() else start


def insert_keys(document: Document, edits: Iterable[Edit]) -> list[Splice]:
    """Insert new keys into the deepest block that exists, the missing blocks with them."""
    return [splice for parent, tree in _trees_by_parent(document, edits) for splice in _insert_tree(document, parent, tree)]


def _trees_by_parent(document: Document, edits: Iterable[Edit]) -> list[tuple[str, Tree]]:
    blocks = document.index.blocks & document.index.first.keys()
    blocks |= {entry.key for entry in document.entries if entry.written.startswith("{") or entry.written in ("", "null", "~")}
    trees: dict[str, Tree] = {}
    for edit in edits:
        path = edit.key.split(".")
        depth = next((size for size in range(len(path) - 1, 0, -1) if ".".join(path[:size]) in blocks), 0)
        tree = trees.setdefault(".".join(path[:depth]), {})
        for name in path[depth:-1]:
            subtree = tree.setdefault(name, {})
            tree = subtree if isinstance(subtree, dict) else {}
        tree[path[-1]] = edit.to or ""
    return list(trees.items())


def _siblings(document: Document, parent: str) -> list[Entry]:
    prefix = f"{parent}." if parent else ""
    return [
        entry
        for entry in document.entries
        if entry.key.startswith(prefix)
        and "." not in entry.key[len(prefix) :]
        and entry.key != parent
        and not is_merged_in(document, entry)
    ]


def _insert_tree(document: Document, parent: str, tree: Tree) -> list[Splice]:
    text = document.text
    siblings = _siblings(document, parent)
    if not siblings:
        return [_insert_first_key(document, parent, tree)]
    name = next(iter(tree))
    after = neighbour(document, siblings, f"{parent}.{name}" if parent else name)
    if is_in_flow_style(document, after):
        return _insert_in_flow(document, after, tree)
    start = key_start(document, after)
    line = line_start(text, start, document.form)
    marked = _KEY_MARK.match(text, line, start)  # `? key` stands two columns further in than the keys beside it
    indent = " " * ((marked.end(1) if marked else start) - line)
    lines = [line for name, value in tree.items() for line in _yaml_tree(name, value, indent)]
    at = line_end(text, after.end, document.form)
    return [Splice(at, at, "".join(newline(text) + line for line in lines))]


def _insert_in_flow(document: Document, after: Entry, tree: Tree) -> list[Splice]:
    text, start = document.text, key_start(document, after)
    indent = text[line_start(text, start, document.form) : start]
    own_line = not indent.strip()
    gap = newline(text) + indent if own_line else " "
    unit = _indent_unit(text, indent) if own_line else ""
    items = [_json_tree(name, value, document.form, newline(text) + indent if own_line else "", unit) for name, value in tree.items()]
    place, comma, at_end = after_item(text, after.end) if own_line else (after.end, False, False)
    if at_end and comma:
        return [Splice(place, place, "".join(f"{gap}{item}," for item in items))]
    if at_end and place > after.end:
        return [Splice(after.end, after.end, ","), Splice(place, place, ",".join(f"{gap}{item}" for item in items))]
    return [Splice(after.end, after.end, "".join(f",{gap}{item}" for item in items))]


def _insert_first_key(document: Document, parent: str, tree: Tree) -> Splice:
    """Insert into a block without keys: `{}`, nothing, or an empty document."""
    entry = next((entry for entry in document.entries if entry.key == parent), None)
    body = "{" + ", ".join(_json_tree(name, value, document.form, "", "") for name, value in tree.items()) + "}"
    if entry is not None:
        return Splice(entry.start, entry.end, gap_before(document, entry) + body)
    text = document.text
    brace = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|#[^\n]*|/\*.*?\*/|---)*\{", re.DOTALL).match(text)
    if document.form == "json" or brace:
        place = brace.end() if brace else text.find("{") + 1
        return Splice(place, place, body[1:-1])
    gap = "" if not text or text.endswith("\n") else newline(text)
    lines = [line for name, value in tree.items() for line in _yaml_tree(name, value, "")]
    return Splice(len(text), len(text), gap + newline(text).join(lines) + newline(text))


def _indent_unit(text: str, indent: str) -> str:
    """One step of indentation as the file has it: a tab or its smallest number of spaces."""
    steps = sorted({len(match[1]) for match in re.finditer(r"^([ ]+)\S", text, re.MULTILINE)})
    return "\t" if "\t" in indent else " " * (steps[0] if steps else 2)


def _json_tree(name: str, value: str | Tree, form: str, lead: str, unit: str) -> str:
    """A key and its subtree in flow style. `lead`: the line break and indentation of its own line; empty: all on one line."""
    label = json.dumps(name, ensure_ascii=False) if form == "json" else name
    if isinstance(value, str):
        return f"{label}: {value}"
    items = [_json_tree(key, subtree, form, lead + unit if lead else "", unit) for key, subtree in value.items()]
    return f"{label}: {{{lead}{unit}{f',{lead}{unit}'.join(items)}{lead}}}" if lead else f"{label}: {{{', '.join(items)}}}"


def _yaml_tree(name: str, value: str | Tree, indent: str) -> Sequence[str]:
    if isinstance(value, str):
        return [f"{indent}{name}: {value}"]
    return [f"{indent}{name}:", *(line for key, subtree in value.items() for line in _yaml_tree(key, subtree, f"{indent}  "))]
