"""Opened configs to parts, and the order in which parts win: command line, script, trainer's file, launcher, DeepSpeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from diagnose.adapters.documents.open_config import Opened
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.json_file import flatten
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import Part, name_of, on
from diagnose.record import replace


def of_file(found: Opened) -> Iterator[Part]:
    """The parts of a YAML, JSON or Python config."""
    if found.form in (None, "shell") or found.kind not in framework_tables.names():
        return
    tab = framework_tables.table(found.kind)
    entry, at = "", (1, 1)
    if found.script is not None:
        entry = next((name for name in found.script.classes if name in tab.entries), next(iter(found.script.classes), ""))
        at = found.script.classes.get(entry, (1, 1))
    own = tab.unknown != "anything" and found.script is None
    made = Part(
        found.source.name,
        tab,
        found.form or "yaml",
        found.text,
        found.leaves,
        entry=entry,
        entry_at=at,
        own_keys=own,
        outer=found.outer,
        shift=found.shift,
    )
    yield made if found.script is None else replace(made, whole=not found.script.partial, asks=found.script.asks)
    if found.script is not None:
        if tab.role == "around":
            yield replace(made, table=framework_tables.table(framework_tables.of_role("plain")))
        for key, literal in found.script.literals.items():
            holder = next(leaf for leaf in found.leaves if leaf.key == key)
            if key == "deepspeed":
                engine = framework_tables.table(framework_tables.of_role("engine"))
                yield Part(found.source.name, engine, "python", found.text, tuple(flatten(literal, "", holder)), own_keys=False)
        if found.script.env:
            variables = framework_tables.table(framework_tables.of_role("variables"))
            yield Part(found.source.name, variables, "python", found.text, tuple(found.script.env), own_keys=False)


def leading(gathered: Sequence[Part]) -> list[Part]:
    """The parts of the trainer; of a script that has none, what it says itself."""
    return [part for part in gathered if part.table.trainer] or [part for part in gathered if part.table.role == "plain"]


def in_order(parts: Iterable[Part]) -> list[Part]:
    """Settings that the log prints, echoed commands, commands of scripts, scripts, trainers' files, launchers, DeepSpeed
    (its file overrides what Accelerate says of it), Accelerate, servers, variables."""
    forms = {"dump": 0, "command": 1, "shell": 2, "python": 3, "yaml": 4, "json": 4, "toml": 4}

    def place(part: Part) -> tuple[int, int]:
        table = part.table
        role = 0 if table.trainer else 4 if table.serves else 1 if table.launches else {"engine": 2, "around": 3}.get(table.role, 5)
        return role, forms[part.form]

    return sorted(parts, key=place)


def taken_out(gathered: Sequence[Part]) -> list[Part]:
    """The parts once the command line has taken keys out (`~key`): the framework's files still hold them and they say nothing."""
    gone = {(part.table.name, leaf.key[1:]) for part in gathered for leaf in part.leaves if leaf.key.startswith("~")}
    if not gone:
        return list(gathered)
    return [
        replace(part, leaves=tuple(_emptied(leaf) if (part.table.name, leaf.key) in gone else leaf for leaf in part.leaves))
        for part in gathered
    ]


def _emptied(leaf: Leaf) -> Leaf:
    return replace(leaf, text=None, shape="null", items=())


def named_files(part: Part) -> list[Leaf]:
    """The leaves of a part that name another config."""
    wanted = {
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
        if name_of(leaf.key) in wanted and leaf.text and on(leaf) and leaf.shape == "scalar" and leaf.text.lower() not in ("true", "auto")
    ]
