"""Which of a script's commands an edit is for: the one that has the key, and every other that is started alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diagnose.adapters import tables
from diagnose.adapters.settings import Document
from diagnose.adapters.translate import name_of
from diagnose.plan.remedy import Edit


def shared_out(held: Sequence[Document], edits: Iterable[Edit]) -> list[tuple[Document, list[Edit]]]:
    """A script is several documents, one for each command: each edit goes to the one that has the key, else to one that knows it, and
    with it to the commands that say the same there."""
    shares: list[tuple[Document, list[Edit]]] = [(document, []) for document in held]
    for edit in edits:
        owner = next((share for share in shares if any(entry.key == edit.key for entry in share[0].entries)), None)
        knowing = next((share for share in shares if name_of(edit.key) in tables.table(share[0].framework).known), shares[0])
        (owner or knowing)[1].append(edit)
    for document, mine in [share for share in shares if share[1]]:
        for other, theirs in shares:
            if not theirs and same_there(document, other, mine):
                theirs += mine
    return [share for share in shares if share[1]]


def same_there(document: Document, other: Document, edits: Sequence[Edit]) -> bool:
    """Whether another command of the script is started with the same values of all that is edited. One that has others trains
    something else, or has been edited by hand."""
    if (other.framework, other.entry) != (document.framework, document.entry) or not tables.table(document.framework).trainer:
        return False
    if other is document or other.form != "shell":
        return False
    mine, theirs = ({entry.key: entry.written for entry in one.entries} for one in (document, other))
    return all(mine.get(edit.key) == theirs.get(edit.key) for edit in edits)


def repeated(documents: Sequence[Document], edits: Sequence[Edit]) -> int:
    """How many commands of one script the edits change alike; 1 where it is one."""
    counts = [1]
    for name in dict.fromkeys(edit.target for edit in edits):
        held = [document for document in documents if document.name == name and document.form == "shell"]
        shares = shared_out(held, [edit for edit in edits if edit.target == name]) if held else []
        counts += [sum(one == other for _, one in shares) for _, other in shares]
    return max(counts)
