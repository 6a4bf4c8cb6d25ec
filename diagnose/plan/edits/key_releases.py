"""From which release on the keys that an answer adds are there: said wherever a release that lacks one may be in use."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnose.adapters.formats.config_value import name_of
from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import declared_keys, framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.facts import FactBook
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits.edit_context import EditContext
from diagnose.plan.edits.key_spelling import fits_form, is_usable
from diagnose.plan.remedies.remedy import Edit, Since


def dated(edits: Sequence[Edit], documents: Sequence[Document], book: FactBook) -> tuple[Edit, ...]:
    """The edits, each with the release from which on its key is there, where that has to be said."""
    context = EditContext(tuple(documents), book, {})
    return tuple(edit._replace(since=_since_of(edit, context)) for edit in edits)


def _since_of(edit: Edit, context: EditContext) -> Since | None:
    if edit.to is None or (edit.frm is not None and not edit.renamed):
        return None  # the key stands there already
    name = name_of(edit.renamed or edit.key)
    own = [document for document in context.documents if document.name == edit.target]
    for document in own or [_unseen(framework_tables.of_role("engine"))]:
        if document.framework in framework_tables.names() and name in framework_tables.known(document.framework):
            return None if document.takes is not None else _first(context, document, name)  # a script at hand says itself what it takes
    return None


def _unseen(framework: str) -> Document:
    """A file of a framework that was not given."""
    return Document("", framework, "yaml", "", ())


def _first_of(framework: str, documents: Sequence[Document]) -> Document:
    return next((one for one in documents if one.framework == framework), _unseen(framework))


def _first(context: EditContext, document: Document, name: str) -> Since | None:
    """The release from which on the document's framework has a key of this name: the first of the rows that may be meant."""
    table = framework_tables.table(document.framework)
    needs = [need for key in table.keys for need in key.needs if need.key == name]
    keys = table.named(name) or [Key("", name, need.version or table.version, need.releases) for need in needs]
    keys = keys or [Key("", name, table.version)]
    known = [context.covers_release(document, key) for key in keys]
    if True in known:
        return None
    found = [since for key, there in zip(keys, known, strict=True) if there is None and (since := context.since(document, key))]
    return found[0] if found else None


def offered(knob: str, framework: str, book: FactBook, documents: Sequence[Document] = ()) -> list[Key]:
    """The keys by which a framework turns a knob, in its first document or in a file that was not given: those that all releases in
    question have come first."""
    context, document = EditContext((), book, {}), _first_of(framework, documents)
    own = [key for key in framework_tables.table(framework).of(knob) if key.addable and is_usable(document, key)]
    fitting = [key for key in own if documents and fits_form(document, key)]
    keys = [(key, context.covers_release(document, key)) for key in fitting or own]
    return [key for wanted in (True, None) for key, there in keys if there is wanted]


def of_setting(key: Key, framework: str, book: FactBook) -> Since | None:
    """The release from which on a framework has a key that is named where no file was given."""
    return EditContext((), book, {}).since(_unseen(framework), key)


def text(since: Since) -> Text:
    """`TRL 0.16 or newer`, with what older releases call the key; where it came somewhere round the one in use, between which two."""
    program = framework_tables.release_name(since.program)
    name = "plan.since_between" if since.after else "plan.since_renamed" if since.before else "plan.since"
    return phrase(name, program=program, release=same(since.release), before=same(since.before), after=same(since.after))


def said(what: Text, since: Since | None) -> Text:
    """What is set or named, and in brackets from which release on, where that has to be said."""
    return what if since is None else phrase("plan.dated", what=what, since=text(since))


#: What may be a key in a sentence, and the value that stands behind it.
_KEY = re.compile(r"(?P<key>(?:--)?[A-Za-z][\w.-]*_[\w.-]*\w)(?:(?: = |: | )(?:N|\d+|true|false|enabled|disabled)\b)?")


def in_words(sentence: Text, framework: str, documents: Sequence[Document], book: FactBook) -> Text:
    """A sentence in a program's own words, with the release behind each key that an older one lacks."""
    context, record = EditContext(tuple(documents), book, {}), declared_keys.record(framework)
    document = _first_of(framework, documents)
    for match in _KEY.finditer(sentence.en) if record is not None else ():
        name = name_of(match["key"])
        since = _first(context, document, name) if record is not None and name in record.names else None
        dated = said(same(match[0]), since)
        sentence = Text(sentence.en.replace(match[0], dated.en, 1), sentence.zh.replace(match[0], dated.zh, 1))
    return sentence
