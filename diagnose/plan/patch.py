"""Edits to text: exactly the bytes concerned are spliced; comments, order, quoting, indentation and line ends stay."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from diagnose.adapters import tables
from diagnose.adapters.settings import Document, Entry
from diagnose.adapters.translate import name_of
from diagnose.plan.remedy import Edit
from diagnose.record import record


@record
class Splice:
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


def apply(document: Document, edits: Iterable[Edit]) -> str:
    """The document's text after the edits that concern it."""
    mine = [edit for edit in edits if edit.target == document.name]
    return spliced(document.text, splices(document, mine))


def diff(documents: Sequence[Document], edits: Sequence[Edit]) -> str:
    """One unified diff over every given file that the edits touch; edits of files that were not given are not in it."""
    old = {document.name: document.text for document in documents}
    return "".join(_unified(name, old[name], new) for name, new in texts(documents, edits).items())


def texts(documents: Sequence[Document], edits: Sequence[Edit]) -> dict[str, str]:
    """The new text of every given file that the edits touch, by name; a command that only a log echoes is no file."""
    changed = {}
    for name in dict.fromkeys(edit.target for edit in edits):
        held = [document for document in documents if document.name == name and document.form != "command"]
        if held:
            cuts = [
                cut
                for document, mine in _shared_out(held, [edit for edit in edits if edit.target == name])
                for cut in splices(document, mine)
            ]
            changed[name] = spliced(held[0].text, cuts)
    return changed


def _shared_out(held: Sequence[Document], edits: Iterable[Edit]) -> list[tuple[Document, list[Edit]]]:
    """A script is several documents, one for each command: each edit goes to the one that has the key, else to one that knows it."""
    shares: list[tuple[Document, list[Edit]]] = [(document, []) for document in held]
    for edit in edits:
        owner = next((share for share in shares if any(entry.key == edit.key for entry in share[0].entries)), None)
        knowing = next((share for share in shares if name_of(edit.key) in tables.table(share[0].framework).known), shares[0])
        (owner or knowing)[1].append(edit)
    return [share for share in shares if share[1]]


def spliced(text: str, cuts: Sequence[Splice]) -> str:
    """The text with all splices made; those at one place in the order given."""
    for _, cut in sorted(enumerate(cuts), key=lambda pair: (pair[1].start, pair[0]), reverse=True):
        text = text[: cut.start] + cut.new + text[cut.end :]
    return text


def _unified(name: str, old: str, new: str) -> str:
    label = name.lstrip("/").replace("\n", " ")
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{label}", f"b/{label}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def splices(document: Document, edits: Iterable[Edit]) -> list[Splice]:
    """How each edit changes the document's text."""
    held = {entry.key: entry for entry in document.entries}
    cuts: list[Splice] = []
    fresh: list[Edit] = []
    for edit in edits:
        entry = held.get(edit.key)
        if entry is None:
            fresh += [edit] if edit.to is not None else []
        elif edit.to is None and not edit.renamed:
            cuts.append(_removed(document, entry))
        else:
            cuts += _changed(document, entry, edit)
    return cuts + _inserted(document, fresh)


# -- change


def _changed(document: Document, entry: Entry, edit: Edit) -> list[Splice]:
    cuts = []
    if edit.renamed:
        start = _key_start(document, entry)
        cuts.append(Splice(start, start + len(_last(entry.key)), _last(edit.renamed)))
    flag = entry.start == entry.end and document.form in ("shell", "command")
    if edit.to is not None and not (flag and edit.to == "true"):
        gap = " " if entry.start == entry.end and document.text[entry.start - 1 : entry.start] not in (" ", "\t") else ""
        cuts.append(Splice(entry.start, entry.end, gap + edit.to))
    return cuts


def _last(key: str) -> str:
    """The part of a key that is written where it stands: options whole, paths by their last name."""
    return key if key.startswith("-") else key.rpartition(".")[2]


def _key_start(document: Document, entry: Entry) -> int:
    """Where the key itself is written: the last time that its name stands before the value."""
    name = entry.key if document.form in ("shell", "command") else _last(entry.key)
    return max(0, document.text.rfind(name, 0, entry.start))


# -- remove


def _removed(document: Document, entry: Entry) -> Splice:
    text, start, end = document.text, _key_start(document, entry), entry.end
    if document.form in ("shell", "command"):
        return _removed_option(text, start, end)
    if document.form == "yaml" and not _in_flow(text, start):
        line = text.rfind("\n", 0, start) + 1
        return Splice(line, _line_end(text, end, with_break=True), "")
    if text[start - 1 : start] == '"':
        start -= 1
    after = re.compile(r"\s*,[ \t]*\r?\n?[ \t]*|\s*,\s*").match(text, end)
    if after:
        return (
            Splice(start, after.end(), "")
            if "\n" not in after[0]
            else Splice(_blank_before(text, start), after.end() - len(after[0].rpartition("\n")[2]) - 1, "")
        )
    before = text[:start].rstrip()
    return Splice(len(before) - 1 if before.endswith(",") else start, end, "")


def _removed_option(text: str, start: int, end: int) -> Splice:
    """An option on a line of its own goes with its line; the backslash before the last one goes with it."""
    line = text.rfind("\n", 0, start) + 1
    rest = re.compile(r"[ \t]*\\[ \t]*\r?\n").match(text, end)
    if not text[line:start].strip():
        if rest:
            return Splice(line, rest.end(), "")
        above = text.rfind("\n", 0, max(line - 1, 0)) + 1
        kept = text[above:line].removesuffix("\n").removesuffix("\r")
        if line and kept.endswith("\\"):
            return Splice(above + len(kept[:-1].rstrip(" \t")), end, "")
    return Splice(line + len(text[line:start].rstrip(" \t")), end, "")


def _blank_before(text: str, start: int) -> int:
    """The line break before a key that stands first on its line."""
    line = text.rfind("\n", 0, start)
    return line if line >= 0 and not text[line + 1 : start].strip() else start


def _line_end(text: str, at: int, *, with_break: bool = False) -> int:
    stop = text.find("\n", at)
    if stop < 0:
        return len(text)
    return stop + 1 if with_break else stop - (text[stop - 1] == "\r")


def _in_flow(text: str, at: int) -> bool:
    """Does the key stand in {...} on its line?"""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return "{" in line or line.strip().endswith(",") or text.lstrip()[:1] == "{"


# -- insert


def _inserted(document: Document, edits: Sequence[Edit]) -> list[Splice]:
    """New keys beside their kin; one that turns no knob itself follows the one that needs it."""
    anchors: list[str] = []
    for edit in edits:
        known = tables.table(document.framework).named(name_of(edit.key))
        anchors.append(edit.key if known or not anchors else anchors[-1])
    if document.form in ("shell", "command"):
        return [_new_option(document, edit, anchor) for edit, anchor in zip(edits, anchors, strict=True)]
    if document.form == "python":
        return [_new_keyword(document, edit, anchor) for edit, anchor in zip(edits, anchors, strict=True)]
    return [_new_key(document, parent, tree) for parent, tree in _forest(document, edits)]


Tree = dict[str, "str | Tree"]


def _forest(document: Document, edits: Iterable[Edit]) -> list[tuple[str, Tree]]:
    """New keys by the deepest block that exists, blocks that do not exist yet as trees."""
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
        entry for entry in document.entries if entry.key.startswith(prefix) and "." not in entry.key[len(prefix) :] and entry.key != parent
    ]


def _neighbour(document: Document, siblings: Sequence[Entry], key: str) -> Entry:
    """The sibling after which a key belongs: the last of its own family of knobs, else the last that turns any, else the last."""
    families = {entry.knob.partition(".")[0] for entry in tables.table(document.framework).named(name_of(key))}
    kin = [entry for entry in siblings if families & {knob.partition(".")[0] for knob in entry.knobs}]
    turning = [entry for entry in siblings if entry.knobs]
    return (kin or turning or siblings)[-1]


def _new_key(document: Document, parent: str, tree: Tree) -> Splice:
    text = document.text
    siblings = _siblings(document, parent)
    as_json = document.form == "json" or any(_in_flow(text, entry.start) for entry in siblings[:1])
    if not siblings:
        return _first_key(document, parent, tree)
    after = _neighbour(document, siblings, f"{parent}.{next(iter(tree))}" if parent else next(iter(tree)))
    newline = "\r\n" if "\r\n" in text else "\n"
    if as_json:
        line = text.rfind("\n", 0, _key_start(document, after)) + 1
        lead = text[line : _key_start(document, after)].rstrip('"')
        own_line = not lead.strip()
        gap = f",{newline}{lead}" if own_line else ", "
        unit = _unit(text, lead) if own_line else ""
        body = gap.join(_json_tree(name, value, document.form, newline + lead if own_line else "", unit) for name, value in tree.items())
        return Splice(after.end, after.end, gap + body)
    indent = " " * (after.column - 1)
    lines = [line for name, value in tree.items() for line in _yaml_tree(name, value, indent)]
    at = _line_end(text, after.end)
    return Splice(at, at, "".join(newline + line for line in lines))


def _first_key(document: Document, parent: str, tree: Tree) -> Splice:
    """Into a block that is empty: {} or nothing."""
    entry = next((entry for entry in document.entries if entry.key == parent), None)
    body = "{" + ", ".join(_json_tree(name, value, document.form, "", "") for name, value in tree.items()) + "}"
    if entry is not None:
        gap = " " if entry.start == entry.end and document.text[entry.start - 1 : entry.start] not in (" ", "\t") else ""
        return Splice(entry.start, entry.end, gap + body)
    if document.form == "json":
        brace = document.text.find("{") + 1
        return Splice(brace, brace, body[1:-1])
    newline = "" if not document.text or document.text.endswith("\n") else "\n"
    lines = [line for name, value in tree.items() for line in _yaml_tree(name, value, "")]
    return Splice(len(document.text), len(document.text), newline + "\n".join(lines) + "\n")


def _unit(text: str, lead: str) -> str:
    """One step of indentation, as the file has it."""
    steps = sorted({len(match[1]) for match in re.finditer(r"^([ ]+)\S", text, re.MULTILINE)})
    return "\t" if "\t" in lead else " " * (steps[0] if steps else 2)


def _json_tree(name: str, value: str | Tree, form: str, lead: str, unit: str) -> str:
    label = f'"{name}"' if form == "json" else name
    if isinstance(value, str):
        return f"{label}: {value}"
    inner = [_json_tree(key, below, form, lead + unit if lead else "", unit) for key, below in value.items()]
    return f"{label}: {{{lead}{unit}{f',{lead}{unit}'.join(inner)}{lead}}}" if lead else f"{label}: {{{', '.join(inner)}}}"


def _yaml_tree(name: str, value: str | Tree, indent: str) -> list[str]:
    if isinstance(value, str):
        return [f"{indent}{name}: {value}"]
    return [f"{indent}{name}:", *(line for key, below in value.items() for line in _yaml_tree(key, below, f"{indent}  "))]


def _new_keyword(document: Document, edit: Edit, anchor: str) -> Splice:
    """A keyword argument after its kin in the call that it belongs to; a path of two names goes into a dict argument."""
    call, dot, name = edit.key.partition(".")
    if dot and any(entry.key == call or entry.key.startswith(f"{call}.") for entry in document.entries):
        inside = next((entry for entry in document.entries if entry.key == call), None)
        if inside is not None and inside.written.startswith("{"):
            comma = ", " if inside.written.strip("{} \n\t") else ""
            at = inside.start + len(inside.written.rstrip("} \n\t"))
            return Splice(at, at, f'{comma}"{name}": {edit.to}')
        siblings = [entry for entry in document.entries if entry.key.startswith(f"{call}.") and "." not in entry.key[len(call) + 1 :]]
        opening = document.text.find("(", inside.start) + 1 if inside else 0
        return _beside(document, siblings, opening, f"{name}={edit.to}", anchor)
    holder = next((entry for entry in document.entries if entry.key.endswith("()")), None)
    if holder is None:  # no call that takes it
        return Splice(0, 0, "")
    siblings = [
        entry
        for entry in document.entries
        if "." not in entry.key and holder.start <= entry.start < entry.end <= holder.end and entry is not holder
    ]
    keyword = f'{call}={{"{name}": {edit.to}}}' if dot else f"{edit.key}={edit.to}"
    return _beside(document, siblings, holder.start, keyword, anchor)


def _beside(document: Document, siblings: Sequence[Entry], opening: int, keyword: str, anchor: str) -> Splice:
    """A keyword after the last of its kin, on a line of its own where they stand so; first in a call that has none."""
    text = document.text
    if not siblings:
        rest = re.compile(r"\s*\)").match(text, opening)
        return Splice(opening, opening, keyword + ("" if rest else ", "))
    after = _neighbour(document, siblings, anchor)
    line = text.rfind("\n", 0, after.start) + 1
    lead = re.compile(r"[ \t]*").match(text, line)
    start = lead.end() if lead else line
    own_line = re.compile(r"[A-Za-z_]\w*\s*=").match(text, start) is not None and text.find("(", start, after.start) < 0
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = f",{newline}{text[line:start]}" if own_line else ", "
    return Splice(after.end, after.end, f"{gap}{keyword}")


def _new_option(document: Document, edit: Edit, anchor: str) -> Splice:
    """An option after its kin, on a continued line of its own where the others stand so."""
    text = document.text
    if not document.entries:
        return Splice(len(text), len(text), "")
    if document.framework == "shell":  # a variable goes before the first that the command has
        at = _key_start(document, document.entries[0])
        return Splice(at, at, f"{edit.key}={edit.to} ")
    after = _neighbour(document, document.entries, anchor)
    start = _key_start(document, after)
    line = text.rfind("\n", 0, start) + 1
    lead = text[line:start]
    bare = any(key.bare for key in tables.table(document.framework).named(name_of(edit.key)))
    written = edit.key if bare and edit.to == "true" else f"{edit.key} {edit.to}" if edit.key.startswith("-") else f"{edit.key}={edit.to}"
    own_line = not lead.strip() and line > 0
    newline = "\r\n" if "\r\n" in text else "\n"
    return Splice(after.end, after.end, f" \\{newline}{lead}{written}" if own_line else f" {written}")
