"""Which of a script's commands an edit is for: the one that has the key, and every other that is started alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import name_of
from diagnose.plan.rules.remedy import Edit


def shared_out(held: Sequence[Document], edits: Iterable[Edit]) -> list[tuple[Document, list[Edit]]]:
    """A script is several documents, one for each command: each edit goes to the one that has the key, else to one that knows it, and
    with it to the commands that say the same there."""
    shares: list[tuple[Document, list[Edit]]] = [(document, []) for document in held]
    written = [{entry.key: entry.written for entry in document.entries} for document in held]
    for edit in edits:
        owner = next((share for share, keys in zip(shares, written, strict=True) if edit.key in keys), None)
        knowing = next((share for share in shares if name_of(edit.key) in framework_tables.table(share[0].framework).known), shares[0])
        (owner or knowing)[1].append(edit)
    for place, (document, mine) in [(place, share) for place, share in enumerate(shares) if share[1]]:
        for other, (command, theirs) in enumerate(shares):
            if not theirs and started_alike(document, command) and same_there(written[place], written[other], mine):
                theirs += mine
    return [share for share in shares if share[1]]


def started_alike(document: Document, other: Document) -> bool:
    """Whether both are commands of a script that start the same trainer in the same way."""
    if (other.framework, other.entry) != (document.framework, document.entry) or not framework_tables.table(document.framework).trainer:
        return False
    return other is not document and other.form == "shell"


def same_there(mine: Mapping[str, str], theirs: Mapping[str, str], edits: Sequence[Edit]) -> bool:
    """Whether two commands have the same values of all that is edited. One that has others trains something else, or has been edited
    by hand."""
    return all(mine.get(edit.key) == theirs.get(edit.key) for edit in edits)


def repeated(documents: Sequence[Document], edits: Sequence[Edit]) -> int:
    """How many commands of one script the edits change alike; 1 where it is one."""
    most = 1
    for name in dict.fromkeys(edit.target for edit in edits):
        held = [document for document in documents if document.name == name and document.form == "shell"]
        counts: dict[tuple[Edit, ...], int] = {}
        for _, mine in shared_out(held, [edit for edit in edits if edit.target == name]) if held else []:
            counts[tuple(mine)] = counts.get(tuple(mine), 0) + 1
        most = max(most, *counts.values(), 1)
    return most
