"""Opened configs to parts, and the order in which parts win: command line, script, trainer's file, launcher, DeepSpeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from diagnose.adapters.documents.open_config import Opened
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.json_file import flatten
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import Part, name_of, on
from diagnose.record import replace


def of_file(document: Opened) -> Iterator[Part]:
    """The parts of a YAML, JSON or Python config."""
    if document.form in (None, "shell") or document.kind not in framework_tables.names():
        return
    tab = framework_tables.table(document.kind)
    entry, at = "", (1, 1)
    if document.script is not None:
        entry = next((name for name in document.script.classes if name in tab.entries), next(iter(document.script.classes), ""))
        at = document.script.classes.get(entry, (1, 1))
    own_keys = tab.unknown != "anything" and document.script is None
    part = Part(
        document.source.name,
        tab,
        document.form or "yaml",
        document.text,
        document.leaves,
        entry=entry,
        entry_at=at,
        own_keys=own_keys,
        outer=document.outer,
        shift=document.shift,
    )
    yield part if document.script is None else replace(part, whole=not document.script.partial, asks=document.script.asks)
    if document.script is not None:
        if tab.role == "around":
            yield replace(part, table=framework_tables.table(framework_tables.of_role("plain")))
        for key, literal in document.script.literals.items():
            holder = next(leaf for leaf in document.leaves if leaf.key == key)
            if key == "deepspeed":
                engine = framework_tables.table(framework_tables.of_role("engine"))
                yield Part(document.source.name, engine, "python", document.text, tuple(flatten(literal, "", holder)), own_keys=False)
        if document.script.env:
            variables = framework_tables.table(framework_tables.of_role("variables"))
            yield Part(document.source.name, variables, "python", document.text, tuple(document.script.env), own_keys=False)


def leading(parts: Sequence[Part]) -> list[Part]:
    """The parts of the trainer; of a script that has none, what it says itself."""
    return [part for part in parts if part.table.trainer] or [part for part in parts if part.table.role == "plain"]


def in_order(parts: Iterable[Part]) -> list[Part]:
    """Settings that the log prints, echoed commands, commands of scripts, scripts, trainers' files, launchers, DeepSpeed
    (its file overrides what Accelerate says of it), Accelerate, servers, variables."""
    forms = {"dump": 0, "command": 1, "shell": 2, "python": 3, "yaml": 4, "json": 4, "toml": 4}

    def place(part: Part) -> tuple[int, int]:
        table = part.table
        role = 0 if table.trainer else 4 if table.serves else 1 if table.launches else {"engine": 2, "around": 3}.get(table.role, 5)
        return role, forms[part.form]

    return sorted(parts, key=place)


def taken_out(parts: Sequence[Part]) -> list[Part]:
    """The parts once the command line has taken keys out (`~key`): the framework's files still hold them and they say nothing."""
    deleted = {(part.table.name, leaf.key[1:]) for part in parts for leaf in part.leaves if leaf.key.startswith("~")}
    if not deleted:
        return list(parts)
    return [
        replace(part, leaves=tuple(_emptied(leaf) if (part.table.name, leaf.key) in deleted else leaf for leaf in part.leaves))
        for part in parts
    ]


def _emptied(leaf: Leaf) -> Leaf:
    return replace(leaf, text=None, shape="null", items=())


def named_files(part: Part) -> list[Leaf]:
    """The leaves of a part that name another config."""
    keys = {
        part.table.file_key,
        *part.table.config_keys,
        "config",
        "config_file",
        "deepspeed",
        "deepspeed_config",
        "deepspeed_config_file",
        "ds_config",
    } - {""}
    return [
        leaf
        for leaf in part.leaves
        if name_of(leaf.key) in keys and leaf.text and on(leaf) and leaf.shape == "scalar" and leaf.text.lower() not in ("true", "auto")
    ]
