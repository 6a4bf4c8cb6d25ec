"""Replaces the defaults of a script's own options by the values on its command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from diagnose.adapters.formats.config_value import YES, Leaf, name_of
from diagnose.adapters.job.named_files import base_name
from diagnose.adapters.translate.config_part import Part
from diagnose.facts import Witness

if TYPE_CHECKING:
    from diagnose.adapters.documents.framework_of_command import StartedProgram
    from diagnose.adapters.launch.flags import Flag


def apply_script_options(parts: Sequence[Part], programs: Sequence[StartedProgram]) -> list[Part]:
    """Set scripts' options from their commands, and share entry points and switches between the parts of a framework."""
    entries: dict[str, str] = {}
    for part in parts:
        entries[part.table.name] = entries.get(part.table.name) or part.table.deciding(part.entry)
    informed = [replace(part, about=entries[part.table.name]) if entries[part.table.name] else part for part in parts]
    return _merge_trainer_parts([_with_options(part, programs) if part.form == "python" else part for part in informed])


def _merge_trainer_parts(parts: Sequence[Part]) -> list[Part]:
    """Merge the trainer's file, script and command: a switch in one of them affects keys of the others."""
    trainers = [part for part in parts if part.table.trainer and part.form != "dump"]
    if len(trainers) < 2 or any(part.merged is not None or part.table is not trainers[0].table for part in trainers):
        return list(parts)
    merged = {name_of(leaf.key): leaf for part in reversed(trainers) for leaf in part.leaves}
    return [replace(part, merged=merged) if any(part is trainer for trainer in trainers) else part for part in parts]


def _with_options(part: Part, programs: Sequence[StartedProgram]) -> Part:
    """The part of a script with its command's values; without a command, parsed settings are unsure."""
    starts = [start for start in programs if base_name(start.launch.program) == base_name(part.name)]
    if not starts:
        leaves = tuple(_unsure(leaf) if leaf.option and leaf.shape == "map" else leaf for leaf in part.leaves)
        return replace(part, leaves=leaves, whole=part.whole and not part.asks)
    if not any(leaf.option for leaf in part.leaves):
        return part
    flags = {flag.name: (flag, start) for start in starts for flag in start.launch.flags}
    places = {leaf.key: _witness(*flags[leaf.option]) for leaf in part.leaves if leaf.option in flags}
    leaves = tuple(_with_flag_value(leaf, flags[leaf.option][0]) if leaf.option in flags else leaf for leaf in part.leaves)
    left_out = tuple(leaf.key for leaf in leaves if leaf.shape == "map" and leaf.text == "False")  # calls that a switch disables
    kept = tuple(leaf for leaf in leaves if leaf.key not in left_out and not leaf.key.startswith(tuple(f"{key}." for key in left_out)))
    return replace(part, leaves=kept, elsewhere=places)


def _with_flag_value(leaf: Leaf, flag: Flag) -> Leaf:
    if not flag.sure:
        return _unsure(leaf)
    if flag.value is None:  # a bare switch inverts its default
        return leaf._replace(
            text="False" if leaf.text == "True" else "True", shape=leaf.shape if leaf.shape == "map" else "scalar", option=""
        )
    if leaf.shape == "map":
        return leaf._replace(text=str(flag.value.lower() in YES), option="")
    return leaf._replace(text=flag.value, shape="list" if flag.items else "scalar", items=flag.items, option="")


def _unsure(leaf: Leaf) -> Leaf:
    return leaf._replace(text=None, shape="unsure", items=(), option="")


def _witness(flag: Flag, start: StartedProgram) -> Witness:
    if start.witness is not None:
        return start.witness
    line, column = start.place(flag.pos)
    return Witness(start.name, line, column, key=flag.key)
