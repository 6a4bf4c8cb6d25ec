"""Splits documents into parts and orders parts by precedence: command line, script, trainer's file, launcher, DeepSpeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from diagnose.adapters.documents.open_config import OpenDocument
from diagnose.adapters.formats.config_value import CONFIG_ENDINGS, Leaf, name_of
from diagnose.adapters.formats.json_file import flatten
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.ignored_keys import is_on
from diagnose.adapters.translate.config_part import Part


def document_parts(document: OpenDocument) -> Iterator[Part]:
    """The parts of a document: one per framework that its keys configure."""
    if document.form in (None, "shell") or document.kind not in framework_tables.names():
        return
    tab = framework_tables.table(document.kind)
    entry, at = "", (1, 1)
    if document.script is not None:
        entry = next((name for name in document.script.classes if name in tab.entries), next(iter(document.script.classes), ""))
        at = document.script.classes.get(entry, (1, 1))
    own_keys = tab.unknown != "anything" and document.form != "python"
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
                written = {leaf.key.removeprefix("deepspeed."): leaf for leaf in document.leaves if leaf.key.startswith("deepspeed.")}
                leaves = tuple(_placed(leaf, written.get(leaf.key)) for leaf in flatten(literal, "", holder))
                yield Part(document.source.name, engine, "python", document.text, leaves, own_keys=False)
        if document.script.env:
            variables = framework_tables.table(framework_tables.of_role("variables"))
            yield Part(document.source.name, variables, "python", document.text, tuple(document.script.env), own_keys=False)


def _placed(leaf: Leaf, written: Leaf | None) -> Leaf:
    """A leaf of a literal with the place where the script writes its value."""
    if written is None:
        return leaf
    place = {"written": written.written, "start": written.start, "end": written.end, "line": written.line, "column": written.column}
    return leaf._replace(**place)  # type: ignore[arg-type]


def trainer_parts(parts: Sequence[Part]) -> list[Part]:
    """The trainer's parts; without a trainer, those of a plain script."""
    return [part for part in parts if part.table.trainer] or [part for part in parts if part.table.role == "plain"]


def by_precedence(parts: Iterable[Part]) -> list[Part]:
    """Sort parts by precedence. By role: trainer, launcher, DeepSpeed (before Accelerate, whose settings it overrides), Accelerate,
    server, variables; then by form: log dump, echoed command, shell, Python, files."""
    forms = {"dump": 0, "command": 1, "shell": 2, "python": 3, "yaml": 4, "json": 4, "toml": 4}

    def place(part: Part) -> tuple[int, int]:
        table = part.table
        role = 0 if table.trainer else 4 if table.serves else 1 if table.launches else {"engine": 2, "around": 3}.get(table.role, 5)
        return role, forms[part.form]

    return sorted(parts, key=place)


def clear_deleted_keys(parts: Sequence[Part]) -> list[Part]:
    """Clear the keys that an override deletes (`~key`) in all parts of the framework."""
    deleted = {(part.table.name, leaf.key[1:]) for part in parts for leaf in part.leaves if leaf.key.startswith("~")}
    if not deleted:
        return list(parts)
    return [
        replace(part, leaves=tuple(_cleared(leaf) if (part.table.name, leaf.key) in deleted else leaf for leaf in part.leaves))
        for part in parts
    ]


def _cleared(leaf: Leaf) -> Leaf:
    return leaf._replace(text=None, shape="null", items=())


def file_references(part: Part) -> list[Leaf]:
    """The leaves of a part that name another config file."""
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
    named = [_with_known_name(leaf) for leaf in part.leaves if name_of(leaf.key) in keys]
    return [leaf for leaf in named if leaf.text and is_on(leaf) and leaf.shape == "scalar" and leaf.text.lower() not in ("true", "auto")]


def _with_known_name(leaf: Leaf) -> Leaf:
    """The leaf of a file in a folder that only the shell knows (`$HOME/x/zero3.json`) with the name of the file alone."""
    folder, slash, file = leaf.written.strip("\"'").rpartition("/")
    is_known = leaf.shape == "unsure" and slash and "$" in folder and "$" not in file and file.endswith(CONFIG_ENDINGS)
    return leaf._replace(text=file, shape="scalar") if is_known else leaf


# -- the `defaults:` of Hydra's and NeMo-RL's files

_DEFAULTS = "defaults"
_SELF = "_self_"
#: Longest chain of base configurations that is followed.
_MAX_DEPTH = 16


def config_stem(path: str) -> str:
    """The file name of a configuration without folder and YAML ending."""
    file = path.strip("\"'").replace("\\", "/").rstrip("/").rpartition("/")[2]
    return file.rpartition(".")[0] if file.endswith((".yaml", ".yml")) else file


def base_configs(part: Part) -> Iterator[tuple[str, Leaf]]:
    """The base configurations in a file's `defaults:` list, whole ones and members of a group (`model@a.b: hf_model`)."""
    if not part.table.interpolates or part.form != "yaml":
        return
    for leaf in part.leaves:
        head, _, member = leaf.key.partition(".")
        if head != _DEFAULTS:
            continue
        if not member:
            yield from ((name, leaf) for name in (leaf.items if leaf.shape == "list" else [leaf.text or ""]) if name and name != _SELF)
        elif "." in member and leaf.shape == "scalar" and not member.partition(".")[2].startswith(("override ", "hydra/")):
            yield leaf.text or "", leaf


def order_by_base(parts: Sequence[Part]) -> list[Part]:
    """Order files so that each precedes its bases and overrides them, or follows them if its list begins with `_self_`."""
    named = [(at, {config_stem(name) for name, _ in base_configs(part)}) for at, part in enumerate(parts)]
    named = [(at, names) for at, names in named if names]
    if not named:
        return list(parts)
    depth = dict.fromkeys(range(len(parts)), 0)
    for _ in range(_MAX_DEPTH):
        for at, names in named:
            for base, part in enumerate(parts):
                if base != at and part.form == "yaml" and part.table is parts[at].table and config_stem(part.name) in names:
                    first = _precedes_bases(parts[at])
                    depth[base] = max(depth[base], depth[at] + 1) if not first else depth[base]
                    depth[at] = max(depth[at], depth[base] + 1) if first else depth[at]
    places = [at for at, part in enumerate(parts) if part.form == "yaml" and part.table is parts[named[0][0]].table]
    ordered = iter(sorted(places, key=lambda at: min(depth[at], _MAX_DEPTH)))
    return [parts[next(ordered)] if at in places else part for at, part in enumerate(parts)]


def _precedes_bases(part: Part) -> bool:
    """Whether `_self_` is first in the file's list, so that its bases override it."""
    leaf = next((leaf for leaf in part.leaves if leaf.key == _DEFAULTS and leaf.shape == "list"), None)
    return leaf is not None and len(leaf.items) > 1 and leaf.items[0] == _SELF
