"""Rule files as written: documents with every scalar as text, and the line of each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnose.phrases import Text, phrase
from diagnose.vet.fault import Fault

if TYPE_CHECKING:
    from yaml.nodes import Node

#: The rooms of a rules folder whose files hold rules, and the field by which one is known.
ROOMS = {"causes": "cause", "remedies": "remedy", "versions": "library"}


@dataclass(slots=True, eq=False)
class Paper:
    """A rule as written; equal only to itself, so that what is computed of it can be kept. `lines`: the line of each part by path; `name`:
    the file's stem."""

    file: str
    name: str
    room: str
    data: Mapping[str, Any]
    lines: Mapping[tuple[str | int, ...], int]

    def fault(self, at: tuple[str | int, ...], key: str, **values: object) -> Fault:
        """The fault `vet.KEY` at a part, or at the nearest enclosing part with a line."""
        return self.says(at, phrase(f"vet.{key}", **values))

    def says(self, at: tuple[str | int, ...], message: Text) -> Fault:
        while at and at not in self.lines:
            at = at[:-1]
        return Fault(self.file, self.lines.get(at, 0), message)


def papers(folder: Path) -> Iterator[Paper | Fault]:
    """Every rule of a folder, and a fault for each unreadable file."""
    for room, field in ROOMS.items():
        for file in sorted((folder / room).glob("*.yaml")):
            yield from _read(file, room)
        for file in sorted(folder.glob("*.yaml")):
            yield from (item for item in _read(file, room) if isinstance(item, Paper) and {"id", field} <= item.data.keys())


def _read(file: Path, room: str) -> Iterator[Paper | Fault]:
    import yaml

    try:
        text = file.read_text(encoding="utf-8")
        # An alias is a second place for one truth, and a way to write a file that grows without bound.
        alias = next((event for event in yaml.parse(text, yaml.CBaseLoader) if isinstance(event, yaml.AliasEvent)), None)
        if alias is not None:
            yield Fault(str(file), alias.start_mark.line + 1 if alias.start_mark else 0, phrase("vet.alias"))
            return
        nodes = list(yaml.compose_all(text, yaml.CBaseLoader))
    except (yaml.YAMLError, OSError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        yield Fault(str(file), mark.line + 1 if mark else 0, phrase("vet.unreadable", why=why))
        return
    for node in nodes:
        yield from _papers(file, room, node)


def _papers(file: Path, room: str, node: Node | None) -> Iterator[Paper | Fault]:
    """The rules of one document: the document itself, or each entry of a list (rules/versions)."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            yield from _papers(file, room, entry)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[tuple[str | int, ...], int] = {}
        data = _plain(node, (), lines)
        yield Paper(str(file), file.stem, room, data, lines)
    else:
        yield Fault(str(file), 0, phrase("vet.not_a_rule"))


def _plain(node: Node, at: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int]) -> Any:
    """A YAML node as dicts, lists and texts; records the line of every part."""
    import yaml

    lines[at] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(value, (*at, key.value), lines) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value, (*at, index), lines) for index, value in enumerate(node.value)]
    return node.value
