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


def adopted(found: Sequence[Opened], begun: Sequence[Started], hint: str | None = None) -> list[Opened]:
    """The files, each with the framework of the trainer that takes it as an argument of its own (`llamafactory-cli train x.yaml`);
    keys that several frameworks know alike are those of the job's trainer: `hint`, what the other configs are, what is started."""
    takers = {
        base(word.text): start.table.name
        for start in begun
        if start.table is not None and start.table.trainer and not start.table.positional
        for word in start.launch.files
        if word.sure
    }
    told = [_of(one, takers.get(base(one.source.called or one.source.name), "")) for one in found]
    if all(one.kind != "unknown" or not one.leaves for one in told):
        return told
    said = [hint or "", *(one.kind for one in told), *(start.table.name for start in begun if start.table is not None)]
    trainers = [name for name in said if name in framework_tables.names() and framework_tables.table(name).trainer]
    return [_of(one, _one_of(rivals(one.leaves), trainers)) if one.kind == "unknown" else one for one in told]


def _one_of(kinds: Sequence[str], trainers: Iterable[str]) -> str:
    """The first trainer that is one of the kinds, or has the keys of one."""
    return next((name for name in trainers if {name, *framework_tables.bases(name)} & set(kinds)), "")


def _of(one: Opened, taker: str) -> Opened:
    """A file of another kind than a trainer's keeps it, and so does one whose kind was said."""
    another = one.kind != "unknown" and (one.kind not in framework_tables.names() or not framework_tables.table(one.kind).trainer)
    if not taker or one.kind == taker or one.form not in _FORMS or another or one.source.forced_kind:
        return one
    notices = tuple(notice for notice in one.notices if notice.code != "config.unknown_kind")
    return replace(one, kind=taker, input=replace(one.input, kind=taker), notices=notices)
