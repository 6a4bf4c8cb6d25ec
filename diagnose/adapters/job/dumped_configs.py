"""Parts from settings that the log prints: what was in effect, whatever a file says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from diagnose.adapters.formats import printed_settings, yaml_file
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.schema import framework_tables, lexicon
from diagnose.adapters.schema.config_kinds import kind_of_keys, programs_of_options
from diagnose.adapters.schema.table_types import Table
from diagnose.adapters.translate.config_part import Part
from diagnose.parse.model.reading import Dump


def dump_parts(dumps: Iterable[Dump], hint: str | None) -> list[Part]:
    """The parts of all dumps. `hint`: the job's trainer, which may extend the one whose class was printed.

    A key whose value differs between dumps of one framework (an engine each for the actor and the reference model) is unsure.
    """
    result: list[Part] = []
    leaves_by_kind: dict[tuple[str, str, str], list[dict[str, Leaf]]] = {}  # by table, and by how and by whom they were printed
    for dump in dumps:
        for part in _parts_of_dump(dump, hint):
            result.append(part)
            leaves_by_kind.setdefault((part.table.name, dump.form, dump.framework), []).append({leaf.key: leaf for leaf in part.leaves})
    unsure: dict[str, dict[str, Leaf]] = {}
    for (name, _, _), dumps_of_kind in leaves_by_kind.items():
        unsure.setdefault(name, {}).update(_partly_absent(dumps_of_kind))
    for name, keys in unsure.items():
        keys.update(_contradicting([leaves for kind, lists in leaves_by_kind.items() if kind[0] == name for leaves in lists]))
    return [_mark_unsure(part, unsure[part.table.name]) for part in result]


def unclaimed_parts(dumps: Iterable[Dump], hint: str | None) -> Iterator[Part]:
    """The dumps of programs that no framework claims, to be read by the names of their keys."""
    for dump in dumps:
        try:
            leaves = _leaves(dump)
        except (Unreadable, RecursionError):
            continue
        if leaves and _table(dump, leaves, hint) is None:
            yield _part(dump, lexicon.table(), leaves, whole=False)


def _partly_absent(dumps: Sequence[dict[str, Leaf]]) -> dict[str, Leaf]:
    """Keys that some dumps of one kind lack, where they have their default."""
    every = {key: leaf for leaves in dumps for key, leaf in leaves.items()}
    return {key: leaf for key, leaf in every.items() if any(key not in leaves for leaves in dumps)}


def _contradicting(dumps: Sequence[dict[str, Leaf]]) -> dict[str, Leaf]:
    """Keys that two dumps set to different values."""
    values: dict[str, set[tuple[str | None, tuple[str, ...]]]] = {}
    result: dict[str, Leaf] = {}
    for leaves in dumps:
        for key, leaf in leaves.items():
            if leaf.shape not in ("map", "null") and leaf.text != "auto":
                values.setdefault(key, set()).add((_fold_case(leaf.text), leaf.items))
                if len(values[key]) > 1:
                    result[key] = leaf
    return result


def _fold_case(text: str | None) -> str | None:
    """JSON writes true where Python writes True."""
    return text.lower() if text in ("True", "False") else text


def _mark_unsure(part: Part, unsure: dict[str, Leaf]) -> Part:
    """Mark the unsure keys of the part, adding those that it lacks."""
    present = {leaf.key for leaf in part.leaves}
    marked = tuple(leaf._replace(shape="unsure") if leaf.key in unsure and leaf.shape != "map" else leaf for leaf in part.leaves)
    first = part.leaves[0]
    absent = tuple(
        leaf._replace(shape="unsure", line=first.line, column=first.column)
        for key, leaf in unsure.items()
        if key not in present and leaf.shape != "map"
    )
    return replace(part, leaves=marked + absent)


def _parts_of_dump(dump: Dump, hint: str | None) -> Iterator[Part]:
    try:
        leaves = _leaves(dump)
    except (Unreadable, RecursionError):
        return
    tab = _table(dump, leaves, hint)
    if tab is None or not leaves:
        return
    yield _part(dump, tab, leaves, whole=tab.dumps_whole)
    nested = [leaf for leaf in leaves if leaf.key.startswith("deepspeed.")]
    if nested and tab.role != "engine":
        inner = [leaf._replace(key=leaf.key.removeprefix("deepspeed.")) for leaf in nested]
        yield _part(dump, framework_tables.table(framework_tables.of_role("engine")), inner, whole=False)


def _part(dump: Dump, tab: Table, leaves: Sequence[Leaf], whole: bool) -> Part:
    begin, word = dump.lines[0], dump.text.partition("(")[0] if "(" in dump.text[:80] else ""
    return Part(
        begin.source,
        tab,
        "dump",
        dump.text,
        tuple(leaves),
        "log" if dump.effective else "config",
        entry=word if any(name in word for name in tab.entries) else "",
        entry_at=(begin.line, begin.column),
        whole=whole,
        own_keys=False,
        lines=dump.lines,
    )


def _leaves(dump: Dump) -> list[Leaf]:
    if dump.form == "yaml":
        return yaml_file.Reader(dump.text).leaves()
    if dump.form == "overrides":
        return printed_settings.parse_overrides(dump.text)
    reader = printed_settings.Reader(dump.text)
    if dump.form == "values":
        return reader.bracket_leaves()
    rows = reader.row_leaves()
    return [leaf._replace(key=_json_key(leaf.key)) for leaf in rows] if dump.framework == framework_tables.of_role("engine") else rows


def _json_key(key: str) -> str:
    """The JSON key for a row that DeepSpeed's engine prints."""
    first, dot, inner = key.partition(".")
    if first == "zero_config":
        return f"zero_optimization{dot}{inner}"
    return {"zero_optimization_stage": "zero_optimization.stage", "bfloat16_enabled": "bf16.enabled", "fp16_enabled": "fp16.enabled",
            "float16_enabled": "fp16.enabled"}.get(key, key)  # fmt: skip


def _table(dump: Dump, leaves: Sequence[Leaf], hint: str | None) -> Table | None:
    """The framework that the dump names, else the one that its keys identify."""
    if not dump.framework:
        if (trainer := next(programs_of_options({leaf.key for leaf in leaves}), None)) is not None:
            return _extended(framework_tables.table(trainer), hint)
        kind, _ = kind_of_keys(leaves)
        return framework_tables.table(kind) if kind in framework_tables.trainers() else None
    return _extended(framework_tables.table(dump.framework), hint)


def _extended(tab: Table, hint: str | None) -> Table:
    """Replace the general trainer by the job's own one, which prints the same arguments."""
    if tab.role == "general" and hint in framework_tables.names():
        extension = framework_tables.table(hint or "")
        if extension.trainer and "per_device_train_batch_size" in extension.known:
            return extension
    return tab
