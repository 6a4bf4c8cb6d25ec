"""Infers the framework of a config from the command that names it or from the job's trainer, and of a command from its script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from diagnose.adapters.documents.open_config import OpenDocument
from diagnose.adapters.job.named_files import base_name
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.config_kinds import ambiguous_kinds

if TYPE_CHECKING:
    from diagnose.adapters.documents.framework_of_command import StartedProgram

_FORMS = ("yaml", "json", "toml")


def infer_frameworks(documents: Sequence[OpenDocument], programs: Sequence[StartedProgram], hint: str | None = None) -> list[OpenDocument]:
    """Assign frameworks to config files: that of the trainer whose argument the file is (`llamafactory-cli train x.yaml`), else,
    for keys that fit several frameworks, that of the job's trainer (`hint`, then other configs, then programs)."""
    takers = {
        base_name(word.text): start.table.name
        for start in programs
        if start.table is not None and start.table.trainer and not start.table.positional
        for word in start.launch.files
        if word.sure
    }
    result = [
        _with_framework(document, takers.get(base_name(document.source.called or document.source.name), "")) for document in documents
    ]
    if all(document.kind != "unknown" or not document.leaves for document in result):
        return result
    names = [hint or "", *(document.kind for document in result), *(start.table.name for start in programs if start.table is not None)]
    trainers = [name for name in names if name in framework_tables.trainers()]
    return [
        _with_framework(document, _matching_trainer(ambiguous_kinds(document.leaves), trainers)) if document.kind == "unknown" else document
        for document in result
    ]


def with_script_frameworks(programs: Sequence[StartedProgram], documents: Sequence[OpenDocument]) -> list[StartedProgram]:
    """Add to each program the framework of its script, if that is among the documents, and the table whose options it takes, if the
    script uses the framework's own parser."""
    scripts = {
        base_name(script.source.name): script
        for script in documents
        if script.script is not None and script.kind in framework_tables.names()
    }
    result = []
    for start in programs:
        script = scripts.get(base_name(start.launch.program))
        parses = script is not None and script.script is not None and script.script.asks
        result.append(
            start._replace(runs=script.kind, table=framework_tables.table(script.kind) if parses else start.table)
            if script is not None
            else start
        )
    return result


def _matching_trainer(kinds: Sequence[str], trainers: Iterable[str]) -> str:
    """The first trainer that is, or extends, one of the kinds; empty if none."""
    return next((name for name in trainers if {name, *framework_tables.bases(name)} & set(kinds)), "")


def _with_framework(document: OpenDocument, taker: str) -> OpenDocument:
    """Set the framework, unless the user forced one or the file is of a kind that no trainer has."""
    is_other_kind = document.kind != "unknown" and document.kind not in framework_tables.trainers()
    if not taker or document.kind == taker or document.form not in _FORMS or is_other_kind or document.source.forced_kind:
        return document
    notices = tuple(notice for notice in document.notices if notice.code != "config.unknown_kind")
    return replace(document, kind=taker, input=document.input._replace(kind=taker), notices=notices)
