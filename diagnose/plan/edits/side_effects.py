"""What an edit sets besides what it was made for: one key may stand for several settings, and one word may name a whole file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Document
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import name_of
from diagnose.errors import UserError
from diagnose.facts import FactBook, Value, declared
from diagnose.parse.model.reading import Reading
from diagnose.plan.patch import patching
from diagnose.plan.rules.remedy import Edit

#: Facts that an edit may change: settings, not what was found out about keys and files.
KINDS = ("switch", "word", "count", "ratio", "size")


def implied(edits: Sequence[Edit], changes: Mapping[str, Value], documents: Sequence[Document], book: FactBook) -> dict[str, Value]:
    """The settings that the edited files have otherwise than before, beside `changes`; read only where an edited key can set more."""
    whole = [document for document in documents if document.text and document.form != "command"]
    touched = [(document, edit) for edit in edits for document in whole if document.name == edit.target]
    if not any(manifold(document, edit) or decides(document, changes) for document, edit in touched):
        return {}
    try:
        after = patching.texts(whole, [edit for edit in edits if any(edit.target == document.name for document in whole)])
    except UserError:
        return {}
    before = {document.name: document.text for document in whole}
    known = FactBook(fact for fact in book if fact.origin in ("given", "log"))
    was, now = read(before, known), read({**before, **after}, known)
    names = [name for name in {**was, **now} if name not in changes and was.get(name) != now.get(name)]
    return {name: now.get(name) for name in names if (entry := declared(name)) is not None and entry.kind in KINDS}


def manifold(document: Document, edit: Edit) -> bool:
    """Whether the key sets several things, or names a file that does."""
    tab = framework_tables.table(document.framework)
    name = name_of(edit.renamed or edit.key)
    return name == tab.file_key or len({key.knob for key in tab.keys if key.key == name}) > 1


def decides(document: Document, changes: Mapping[str, Value]) -> bool:
    """Whether a default of the framework hangs on a setting that changes."""
    return any(knob in (key.given or {}) for key in framework_tables.table(document.framework).keys for knob in changes)


def read(texts: Mapping[str, str], known: FactBook) -> dict[str, Value]:
    """What the adapters make of these files."""
    sources = [ConfigSource(name, text.encode()) for name, text in texts.items()]
    book = FactBook(known)
    book.learn(config_reader.read(sources, Reading(), FactBook(known)).facts)
    return {fact.name: book.value(fact.name) for fact in book if not fact.name.startswith("config.")}
