"""Edits of settings that stand in a DeepSpeed file: the trainer's key points at another file that the framework ships, or, where the
user gave the file, the file itself is edited."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import name_of
from diagnose.facts import Value
from diagnose.plan.edits.edit_context import EditContext
from diagnose.plan.edits.key_spelling import spelled_key
from diagnose.plan.edits.value_spelling import spell
from diagnose.plan.remedies.remedy import Edit
from diagnose.word_conditions import word_of


def file_edits(context: EditContext, knob: str, value: Value) -> list[Edit] | None:
    """Name another file that the framework ships: one with all wanted values, the nearest to the current one otherwise.

    A file sets stage and offload together, so each of its knobs gives the same edit. None where there is no such file.
    """
    for document in sorted(context.documents, key=lambda document: document.form == "command"):
        table = framework_tables.table(document.framework)
        entry = next((entry for entry in document.entries if name_of(entry.key) == table.file_key and table.file_key), None)
        if entry is None:
            continue
        path = entry.written.strip("\"'")
        folder, _, file = path.replace("\\", "/").rpartition("/")
        current = table.stock.get(file)
        if current is None:
            return _inside_file(context, path, knob, value) if folder or "." in file else None  # a bare word is no file
        knobs_in_files = {name for knobs in table.stock.values() for name in knobs}
        changes = {**context.changes, knob: value}
        wanted = {name: word_of(change) for name, change in changes.items() if name in knobs_in_files}
        if knob in wanted and (nearest := _nearest_file(table.stock, file, wanted)):
            new = f"{folder}/{nearest}" if folder else nearest
            return [Edit(document.name, entry.key, entry.written, spell(new, document.form))]
    return _first_file_edits(context)


def _nearest_file(stock: Mapping[str, Mapping[str, str]], file: str, wanted: Mapping[str, str]) -> str | None:
    """The shipped file with the wanted values that differs least otherwise; it keeps the ZeRO stage unless that is wanted."""
    current = stock[file]
    required = wanted if "zero.stage" in wanted else {**wanted, "zero.stage": word_of(current.get("zero.stage", ""))}
    matches = [
        name for name, knobs in stock.items() if name != file and all(word_of(knobs.get(knob, "")) == required[knob] for knob in required)
    ]
    return min(matches, key=lambda name: sum(stock[name].get(knob) != word for knob, word in current.items()), default=None)


def _first_file_edits(context: EditContext) -> list[Edit] | None:
    """Name a first file, which begins sharding: the first that the framework ships with all wanted values.

    No edits where the framework ships no files: the user has to write a whole one. None where one process has nothing to shard, or
    no file has the values.
    """
    wanted = {name: word_of(value) for name, value in context.changes.items() if name.startswith("zero.")}
    if "zero.stage" not in wanted or (context.book.count("parallel.world") or 1) < 2:
        return None
    for document in context.documents:
        table = framework_tables.table(document.framework)
        has_file = any(name_of(entry.key) == table.file_key for entry in document.entries)
        if not table.file_key or not table.trainer or has_file or _is_module(document):
            continue
        matches = [
            name for name, knobs in table.stock.items() if all(word_of(knobs.get(knob, "")) == word for knob, word in wanted.items())
        ]
        if not table.stock:
            return []
        high = context.span(document).high
        if matches and not (table.stock_since and high and high < table.stock_since):
            new = spell(f"{table.stock_folder}/{matches[0]}" if table.stock_folder else matches[0], document.form)
            return [Edit(document.name, spelled_key(document, table.file_key), None, new)]
    return None


def _inside_file(context: EditContext, path: str, knob: str, value: Value) -> list[Edit] | None:
    """The edit of one key in the user's own file, which was not given."""
    engine = framework_tables.of_role("engine")
    for key in framework_tables.table(engine).of(knob):
        if key.addable:
            document = Document(path, engine, "json", "", ())
            new = context.write_value(document, key, value, None)
            return None if new is None else [Edit(path, key.key, None, new)]
    return None


def is_file_key(document: Document, entry: Entry) -> bool:
    """Whether the key names a DeepSpeed file."""
    return name_of(entry.key) == framework_tables.table(document.framework).file_key


def _is_module(document: Document) -> bool:
    """Whether this is a configuration in Python: its program takes the file as an option of its own."""
    return document.form == "python" and bool(framework_tables.table(document.framework).detect.get("modules"))
