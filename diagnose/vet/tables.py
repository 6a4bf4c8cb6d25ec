"""Checks the tables of rules/ against their schemas; faults have lines."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose import facts
from diagnose.phrases import Text, phrase
from diagnose.vet.fault import Fault
from diagnose.vet.sentence_length import long_sentences

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from yaml.nodes import Node

Place = tuple[str | int, ...]


def check(folder: Path) -> Iterator[Fault]:
    """All faults in the tables of a rules folder, unknown kinds of file included."""
    from diagnose.vet import schemas  # here and below: pydantic takes as long to import as a diagnosis

    for file in sorted(folder.glob("**/*.yaml")):
        kind = file.relative_to(folder).parts[0].removesuffix(".yaml")
        if kind in schemas.RULES:
            continue  # diagnose/vet/paper.py reads them
        if kind in schemas.KINDS:
            yield from of_file(file, kind)
        else:
            yield Fault(str(file), 0, phrase("vet.unknown_table", name=kind))


def of_file(file: Path, kind: str) -> Iterator[Fault]:
    """All faults in a file of this kind."""
    import yaml

    from diagnose.vet import schemas

    try:
        text = file.read_text(encoding="utf-8")
        loader = yaml.CSafeLoader(text)
        node = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else None
    except (yaml.YAMLError, OSError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        yield Fault(str(file), mark.line + 1 if mark else 0, phrase("vet.unreadable", why=why))
        return
    lines: dict[Place, int] = {(): 1}
    if node is not None:
        note_lines(node, (), lines)
    parts: list[tuple[TypeAdapter[object], object]] = [(schemas.KINDS[kind], data)]
    if kind == "frameworks" and isinstance(data, Mapping):
        knobs = {name: data[name] for name in data if "." in str(name)}
        parts = [(schemas.KINDS[kind], {name: data[name] for name in data if name not in knobs}), (schemas.KNOBS, knobs)]
        for name in knobs:
            if facts.declared(name) is None:
                yield Fault(str(file), lines[(name,)], phrase("vet.no_such_knob", name=name))
    for schema, part in parts:
        yield from faults(str(file), schema, part, lines)
    if kind == "phrases" and isinstance(data, Mapping):
        for name, entry in data.items():
            spoken = entry.get("en", "") if isinstance(entry, Mapping) else ""
            for sentence, count, most in long_sentences(str(spoken)):
                message = phrase("vet.long_sentence", field=name, count=count, most=most, sentence=sentence)
                yield Fault(str(file), lines.get((name,), 0), message)


def faults(file: str, schema: TypeAdapter[object], data: object, lines: Mapping[Place, int], deeper_than: int = -1) -> list[Fault]:
    """The deviations of data from a schema, one per place; `deeper_than`: only below this many keys."""
    from pydantic import ValidationError

    wrong: dict[Place, Fault] = {}
    try:
        schema.validate_python(data)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_context=False, include_input=False):
            at = written(fault["loc"], lines)
            field = str(next((part for part in reversed(at) if isinstance(part, str)), "-"))
            if fault["type"] == "missing":
                message = phrase("vet.missing_field", field=fault["loc"][-1])
            else:
                message = unknown(field, schema) if fault["type"] == "extra_forbidden" else phrase("vet.wrong_form", field=field)
            if len(at) > deeper_than:
                wrong.setdefault(at, Fault(file, lines[at], message))
    return list(wrong.values())


def unknown(field: str, schema: TypeAdapter[object]) -> Text:
    """The fault for an unknown field, with the most similar one of the schema."""
    form = schema.json_schema()
    field_names = {name for part in (form, *form.get("$defs", {}).values()) for name in part.get("properties", ())}
    near = difflib.get_close_matches(field, sorted(field_names), 1)
    return phrase("vet.unknown_field_near" if near else "vet.unknown_field", field=field, near="".join(near))


def note_lines(node: Node, at: Place, lines: dict[Place, int]) -> None:
    """The line of every key and item of a document by its path (keys as text, items as numbers)."""
    import yaml

    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            lines[*at, key.value] = key.start_mark.line + 1
            note_lines(value, (*at, key.value), lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            note_lines(value, (*at, index), lines)


def written(at: Place, lines: Mapping[Place, int]) -> Place:
    """A path as in the document: keys as text, without the union members that pydantic adds."""
    path: Place = ()
    for part in at:
        path = next((longer for longer in ((*path, part), (*path, str(part))) if longer in lines), path)
    return path
