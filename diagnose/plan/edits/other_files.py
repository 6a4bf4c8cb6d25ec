"""Knobs that live in a file which a key names: another of the files that the framework ships, or a key of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import name_of
from diagnose.facts import Value
from diagnose.plan.edits.edit_context import Desk
from diagnose.plan.edits.key_fitting import spelled_key
from diagnose.plan.edits.value_spelling import spelled
from diagnose.plan.rules.remedy import Edit


def another_file(desk: Desk, knob: str, value: Value) -> list[Edit] | None:
    """Name another of the files that the framework ships: the one that says all that is asked of it and is nearest otherwise. One
    word names stage and offload together, so every knob that is in it gives the same edit."""
    for document in desk.documents:
        tab = framework_tables.table(document.framework)
        entry = next((entry for entry in document.entries if name_of(entry.key) == tab.file_key and tab.file_key), None)
        if entry is None or document.form == "command":
            continue
        path = entry.written.strip("\"'")
        folder, _, file = path.replace("\\", "/").rpartition("/")
        now = tab.stock.get(file)
        if now is None:
            return inside(desk, path, knob, value) if folder or "." in file else None  # else a word of the framework's
        said = {name for held in tab.stock.values() for name in held}
        asked = {name: framework_tables.word_of(wanted) for name, wanted in {**desk.changes, knob: value}.items() if name in said}
        if knob in asked and (best := nearest(tab.stock, file, asked)):
            new = f"{folder}/{best}" if folder else best
            return [Edit(document.name, entry.key, entry.written, spelled(new, document.form))]
    return first_file(desk)


def nearest(stock: Mapping[str, Mapping[str, Any]], file: str, asked: Mapping[str, str]) -> str | None:
    """The file that says what is asked, keeps the stage unless that is asked for, and differs least otherwise."""
    now = stock[file]
    kept = asked if "zero.stage" in asked else {**asked, "zero.stage": framework_tables.word_of(now.get("zero.stage", ""))}
    fitting = [
        name
        for name, held in stock.items()
        if name != file and all(framework_tables.word_of(held.get(each, "")) == kept[each] for each in kept)
    ]
    return min(fitting, key=lambda name: sum(stock[name].get(other) != word for other, word in now.items()), default=None)


def first_file(desk: Desk) -> list[Edit] | None:
    """No file is named yet, so sharding begins with one: the simplest that the framework ships with all that is asked of it.
    Where it ships none the user's own file has to be written; no single key of it would do. One process has nobody to
    share with."""
    asked = {name: framework_tables.word_of(value) for name, value in desk.changes.items() if name.startswith("zero.")}
    if "zero.stage" not in asked or (desk.book.count("parallel.world") or 1) < 2:
        return None
    for document in desk.documents:
        tab = framework_tables.table(document.framework)
        named = any(name_of(entry.key) == tab.file_key for entry in document.entries)
        if not tab.file_key or not tab.trainer or named:
            continue
        fitting = [
            name
            for name, held in tab.stock.items()
            if all(framework_tables.word_of(held.get(knob, "")) == word for knob, word in asked.items())
        ]
        if not tab.stock:
            return []
        if fitting:
            new = spelled(f"{tab.stock_folder}/{fitting[0]}" if tab.stock_folder else fitting[0], document.form)
            return [Edit(document.name, spelled_key(document, tab.file_key), None, new)]
    return None


def inside(desk: Desk, path: str, knob: str, value: Value) -> list[Edit] | None:
    """The file is not known: say which key of it."""
    engine = framework_tables.of_role("engine")
    for key in framework_tables.table(engine).of(knob):
        if key.addable:
            document = Document(path, engine, "json", "", ())
            new = desk.written(document, key, value, None)
            return None if new is None else [Edit(path, key.key, None, new)]
    return None


def names_file(document: Document, entry: Entry) -> bool:
    """Does the key name a DeepSpeed file, so that another file is how the knob is turned?"""
    return name_of(entry.key) == framework_tables.table(document.framework).file_key
