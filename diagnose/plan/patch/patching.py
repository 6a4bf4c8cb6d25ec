"""Edits to text: exactly the bytes concerned are spliced; comments, order, quoting, indentation and line ends stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import name_of
from diagnose.plan.patch import patch_keys, patch_options, patch_python, patch_toml
from diagnose.plan.patch.edit_targets import shared_out
from diagnose.plan.patch.patch_places import gap_before, key_start, last_name, neighbour
from diagnose.plan.patch.patch_variables import is_variable
from diagnose.plan.patch.splice import Splice
from diagnose.plan.rules.remedy import Edit
from diagnose.record import replace

__all__ = ["Splice", "apply", "diff", "spliced", "splices", "texts"]

_COMMANDS = ("shell", "command")


def apply(document: Document, edits: Iterable[Edit]) -> str:
    """The document's text after the edits that concern it."""
    mine = [edit for edit in edits if edit.target == document.name]
    return spliced(document.text, splices(document, mine))


def diff(documents: Sequence[Document], edits: Sequence[Edit]) -> str:
    """One unified diff over every given file that the edits touch; edits of files that were not given are not in it."""
    old = {document.name: document.outer or document.text for document in documents}
    return "".join(_unified(name, old[name], new) for name, new in texts(documents, edits).items())


def texts(documents: Sequence[Document], edits: Sequence[Edit]) -> dict[str, str]:
    """The new text of every given file that the edits touch, by name; a command that only a log echoes is no file."""
    changed = {}
    for name in dict.fromkeys(edit.target for edit in edits):
        held = [document for document in documents if document.name == name and document.form != "command"]
        if held:
            cuts = [
                replace(cut, start=cut.start + document.shift, end=cut.end + document.shift)
                for document, mine in shared_out(held, [edit for edit in edits if edit.target == name])
                for cut in splices(document, mine)
            ]
            changed[name] = spliced(held[0].outer or held[0].text, cuts)
    return changed


def spliced(text: str, cuts: Sequence[Splice]) -> str:
    """The text with all splices made; those at one place in the order given. One that stands twice (two commands that share a
    variable) is made once."""
    for _, cut in sorted(
        enumerate(dict.fromkeys(cuts)), key=lambda pair: (pair[1].start, pair[1].end > pair[1].start, pair[0]), reverse=True
    ):
        text = text[: cut.start] + cut.new + text[cut.end :]
    return text


def _unified(name: str, old: str, new: str) -> str:
    import difflib  # nor does every start need it

    label = name.lstrip("/").replace("\n", " ")
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{label}", f"b/{label}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def splices(document: Document, edits: Iterable[Edit]) -> list[Splice]:
    """How each edit changes the document's text."""
    held = {entry.key: entry for entry in document.entries}
    cuts: list[Splice] = []
    fresh: list[Edit] = []
    if document.form == "toml":
        edits = [part for edit in edits for part in (patch_toml.moved(held[edit.key], edit) if edit.key in held else [edit])]
    for edit in edits:
        entry = held.get(edit.key)
        anew = edit.frm is None and document.form == "shell" and is_variable(document, edit)  # where it counts, not where it stands
        if entry is None or anew or patch_keys.is_borrowed(document, entry):
            fresh += [edit] if edit.to is not None else []
        elif edit.to is None and not edit.renamed:
            cuts.append(_removed(document, entry))
        else:
            cuts += _changed(document, entry, edit)
    return cuts + _inserted(document, fresh)


def _changed(document: Document, entry: Entry, edit: Edit) -> list[Splice]:
    cuts = []
    if edit.renamed and document.form == "toml":
        cuts.append(patch_toml.renamed(document, entry, last_name(edit.renamed)))
    elif edit.renamed:
        old = entry.key if document.form in _COMMANDS else last_name(entry.key)
        start = document.text.find(old, key_start(document, entry))
        cuts.append(Splice(start, start + len(old), edit.renamed if document.form in _COMMANDS else last_name(edit.renamed)))
    flag = entry.start == entry.end and document.form in _COMMANDS
    if edit.to is not None and not (flag and edit.to == "true") and edit.to != entry.written:
        cuts.append(Splice(entry.start, entry.end, gap_before(document, entry) + edit.to))
    return cuts


def _removed(document: Document, entry: Entry) -> Splice:
    if document.form == "toml":
        return patch_toml.removed(document, entry)
    return patch_options.removed(document, entry) if document.form in _COMMANDS else patch_keys.removed(document, entry)


def _inserted(document: Document, edits: Sequence[Edit]) -> list[Splice]:
    """New keys beside their kin; one that turns no knob itself follows the one that needs it."""
    if document.form == "toml":
        return patch_toml.inserted(document, edits, neighbour)
    anchors: list[str] = []
    for edit in edits:
        known = framework_tables.table(document.framework).named(name_of(edit.key))
        anchors.append(edit.key if known or not anchors else anchors[-1])
    if document.form in _COMMANDS:
        return patch_options.inserted(document, edits, anchors)
    return patch_python.inserted(document, edits, anchors) if document.form == "python" else patch_keys.inserted(document, edits)
