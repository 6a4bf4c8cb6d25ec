"""Whose a configuration of few keys is, as the rest of the job tells: of the command that names it, or of the only trainer that
knows them among those that would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diagnose.adapters.documents.open_config import Opened
from diagnose.adapters.documents.started_programs import Started
from diagnose.adapters.job.named_files import base
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.config_kinds import rivals
from diagnose.record import replace

_FORMS = ("yaml", "json", "toml")


def adopted(documents: Sequence[Opened], programs: Sequence[Started], hint: str | None = None) -> list[Opened]:
    """The files, each with the framework of the trainer that takes it as an argument of its own (`llamafactory-cli train x.yaml`);
    keys that several frameworks know alike are those of the job's trainer: `hint`, what the other configs are, what is started."""
    takers = {
        base(word.text): start.table.name
        for start in programs
        if start.table is not None and start.table.trainer and not start.table.positional
        for word in start.launch.files
        if word.sure
    }
    result = [_of(document, takers.get(base(document.source.called or document.source.name), "")) for document in documents]
    if all(document.kind != "unknown" or not document.leaves for document in result):
        return result
    names = [hint or "", *(document.kind for document in result), *(start.table.name for start in programs if start.table is not None)]
    trainers = [name for name in names if name in framework_tables.names() and framework_tables.table(name).trainer]
    return [_of(document, _one_of(rivals(document.leaves), trainers)) if document.kind == "unknown" else document for document in result]


def _one_of(kinds: Sequence[str], trainers: Iterable[str]) -> str:
    """The first trainer that is one of the kinds, or has the keys of one."""
    return next((name for name in trainers if {name, *framework_tables.bases(name)} & set(kinds)), "")


def _of(document: Opened, taker: str) -> Opened:
    """A file of another kind than a trainer's keeps it, and so does one whose kind was said."""
    is_other_kind = document.kind != "unknown" and (
        document.kind not in framework_tables.names() or not framework_tables.table(document.kind).trainer
    )
    if not taker or document.kind == taker or document.form not in _FORMS or is_other_kind or document.source.forced_kind:
        return document
    notices = tuple(notice for notice in document.notices if notice.code != "config.unknown_kind")
    return replace(document, kind=taker, input=replace(document.input, kind=taker), notices=notices)
