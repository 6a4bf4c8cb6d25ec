"""A knob and its new value to edits of the user's own files: the tables of rules/frameworks read the other way."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.spellings import Key, Table
from diagnose.adapters.translate.translation import name_of
from diagnose.facts import FactBook, Value
from diagnose.plan.edits.batch_rows import by_global_batch
from diagnose.plan.edits.edit_context import Desk
from diagnose.plan.edits.ineffective_edits import why_in_vain
from diagnose.plan.edits.key_fitting import fits_form, holds, key_of, means, same_word, spelled_key, stands
from diagnose.plan.edits.other_files import another_file, names_file
from diagnose.plan.edits.value_spelling import flagged, now, spelled
from diagnose.plan.rules.remedy import Edit
from diagnose.record import replace
from diagnose.word_conditions import hold


def edits(documents: Sequence[Document], book: FactBook, changes: Mapping[str, Value]) -> tuple[Edit, ...] | None:
    """The edits that give the knobs these values; None where a knob has no key here, or one that would do nothing."""
    made = drafted(documents, book, changes)
    return None if made and why_in_vain(documents, book, made) is not None else made


def drafted(documents: Sequence[Document], book: FactBook, changes: Mapping[str, Value]) -> tuple[Edit, ...] | None:
    """The same, whether or not the keys count beside what else stands there."""
    made: list[Edit] = []
    desk = Desk(tuple(documents), book, changes)
    for knob, value in changes.items():
        found = turn(desk, knob, value)
        if found is None:
            return None
        made += [edit for edit in (in_its_shell(edit, documents) for edit in found) if edit not in made]
    return tuple(made)


def in_its_shell(edit: Edit, documents: Sequence[Document]) -> Edit:
    """For the shell of Windows single quotes are no quotes."""
    document = next((one for one in documents if one.name == edit.target and one.form in ("shell", "command")), None)
    if document is None or edit.to is None or edit.to[:1] != "'":
        return edit
    from diagnose.adapters.shell.shell_text import dialect_of

    if dialect_of(document.text) != "cmd":
        return edit
    escaped = "".join(shlex.split(edit.to)).replace('"', '\\"')
    return replace(edit, to=f'"{escaped}"')


def turn(desk: Desk, knob: str, value: Value) -> list[Edit] | None:
    """The edits for one knob: where it is set now, else where it can be added, else through the file that a key names."""
    setting = [document for document in desk.documents if desk.setters(document, knob)]
    for document in setting:
        if (made := reset(desk, document, knob, value)) is not None:
            return [where_it_stands(desk, document, edit) for edit in made]
    if any(not names_file(document, entry) for document in setting for entry in desk.setters(document, knob)):
        return None  # what is set there would win over what is added elsewhere
    if value is not None and desk.book.value(knob) == value:
        return []
    for document in homes(desk, knob):
        if (made := added(desk, document, knob, value)) is not None:
            return made
    if knob == "train.gradient_accumulation" and (made := by_global_batch(desk, value, turn)) is not None:
        return made
    return another_file(desk, knob, value)


def reset(desk: Desk, document: Document, knob: str, value: Value) -> list[Edit] | None:
    """Change the key that sets the knob now, or put another key of the same framework in its place."""
    tab = framework_tables.table(document.framework)
    current = desk.setters(document, knob)
    ranked = sorted(current, key=lambda entry: rank(tab, knob, entry))
    for entry in ranked:
        key = key_of(document, tab, knob, entry)
        if key.read_only:
            continue
        new = desk.written(document, key, value, entry)
        if new is not None:
            changed = [] if new == entry.written and not flagged(entry) else [Edit(document.name, entry.key, now(entry), new)]
            if flagged(entry) and new == "true":
                changed = []
            return [*changed, *silenced(desk, document, knob, value, entry), *desk.needed(document, key, value)]
    fresh = added(desk, document, knob, value)
    if fresh is None and not off_is_enough(desk, document, tab, knob, value):
        return None
    first = next((index for index, key in enumerate(tab.of(knob)) if fresh and key.key == name_of(fresh[0].key)), None)
    return [*(fresh or []), *silenced(desk, document, knob, value, None, first)]


def where_it_stands(desk: Desk, document: Document, edit: Edit) -> Edit:
    """An edit of `${name}` goes to what it names, where that serves nothing but the same knobs."""
    entry = next((entry for entry in document.entries if entry.key == edit.key), None)
    if entry is None or edit.to is None or "${" not in entry.written or not framework_tables.table(document.framework).interpolates:
        return edit
    from diagnose.adapters.job.interpolation import referenced_key

    target = referenced_key(entry.written)
    holder = next((other for other in document.entries if target and name_of(other.key) == target), None)
    mine = [other for one in desk.documents if one.framework == document.framework for other in one.entries]
    users = [
        other for other in mine if target and re.search(rf"\$\{{[^}}]*{re.escape(target)}\b", other.written) and not holds(other, mine)
    ]
    if holder is None or holder.knobs or "${" in holder.written or any(user.knobs != entry.knobs for user in users):
        return edit
    return Edit(document.name, holder.key, now(holder), edit.to)


def rank(tab: Table, knob: str, entry: Entry) -> int:
    return next((index for index, key in enumerate(tab.of(knob)) if key.key == name_of(entry.key)), 99)


def silenced(desk: Desk, document: Document, knob: str, value: Value, keep: Entry | None, first: int | None = None) -> list[Edit]:
    """Other keys that turn the same knob elsewhere are switched off or taken out. `first`: the rank of the key that was added."""
    tab, made = framework_tables.table(document.framework), []
    first = rank(tab, knob, keep) if keep is not None else first
    for entry in desk.setters(document, knob):
        key = key_of(document, tab, knob, entry)
        if entry is keep or means(key, entry) == value:
            continue
        if first is not None and key.read_only and first < rank(tab, knob, entry):
            continue  # the key that was changed or added wins over it
        off = "false" if key.values and "true" in key.values and not flagged(entry) else None
        if off is not None and key.values and key.values.get("false") not in (None, "nothing"):
            off = None
        made.append(Edit(document.name, entry.key, now(entry), spelled(off, document.form) if off else None))
    return made


def off_is_enough(desk: Desk, document: Document, tab: Table, knob: str, value: Value) -> bool:
    """Nothing needs to be written where the wanted value is what holds without any key."""
    presumed = [key for key in tab.of(knob) if key.default is not None and not key.within and stands(document, key)]
    return any(same_word(value, key.default or "") for key in presumed if _holds(desk, key))


def _holds(desk: Desk, key: Key) -> bool:
    """Whether what a default presumes of other knobs is so."""
    return hold(key.given, desk.book.value) is True


def homes(desk: Desk, knob: str) -> list[Document]:
    """Documents whose framework has a key for the knob: DeepSpeed's own file for its knobs, the trainer's for the rest."""
    own = [document for document in desk.documents if framework_tables.table(document.framework).trainer]
    other = [document for document in desk.documents if not framework_tables.table(document.framework).trainer]
    files = (
        sorted(other, key=lambda document: document.framework != framework_tables.of_role("engine")) if knob.startswith("zero.") else other
    )
    ordered = [*own, *files]
    return sorted(ordered, key=lambda document: document.form == "command")


def added(desk: Desk, document: Document, knob: str, value: Value) -> list[Edit] | None:
    tab = framework_tables.table(document.framework)
    span = desk.span(document)
    keys = [key for key in tab.of(knob) if key.addable and key.takes not in ("any", "part", "basename")]
    usable = [key for key in keys if desk.covered(key, span) is not False and fits_form(document, key) and stands(document, key)]
    blocks = {name_of(entry.key).partition(".")[0] for entry in document.entries}

    def unfit(key: Key) -> tuple[bool, bool]:
        """A key whose block stands there comes before one that needs a new block, one of every possible release before one of some."""
        return "." in key.key and key.key.partition(".")[0] not in blocks, desk.covered(key, span) is not True

    for key in sorted(usable, key=unfit):
        if any(name_of(entry.key) == key.key and knob in entry.knobs for entry in document.entries):
            continue
        new = desk.written(document, key, value, None)
        if new is not None:
            present = next((entry for entry in document.entries if name_of(entry.key) == key.key), None)
            fresh = desk.plus(document, key) + spelled_key(document, key.key)
            if not present and new == "true" and fresh.startswith("-") and tab.switch(key.key):
                new = ""
            first = Edit(document.name, present.key if present else fresh, now(present) if present else None, new)
            return [first, *desk.needed(document, key, value)]
    return None
