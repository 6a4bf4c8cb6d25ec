"""Splits a command into parts: the trainer's options, the launcher's, and its environment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Literal

from diagnose.adapters.formats.config_value import Leaf, name_of
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Table
from diagnose.adapters.translate.config_part import Part

if TYPE_CHECKING:
    from diagnose.adapters.documents.framework_of_command import StartedProgram
    from diagnose.adapters.launch.flags import Flag


def command_parts(program: StartedProgram) -> Iterator[Part]:
    """The parts of one command: the trainer's options, then the launcher's."""
    launch = program.launch
    if program.table is not None:
        options = (_in_full(leaf, program.table) for flag in launch.flags for leaf in option_leaves(flag, program))
        leaves = (*options, *_positional(program, program.table))
        own = program.table.unknown != "anything"
        yield _part(program, program.table, leaves, launch.program, launch.program_at, own)
    launcher = framework_tables.launcher_table(launch.launcher)
    if launcher and not program.is_server and launch.launcher_flags:
        yield _part(
            program,
            framework_tables.table(launcher),
            tuple(_option_leaf(flag, program) for flag in launch.launcher_flags),
            "",
            launch.start,
            False,
        )


#: The fewest letters of an option cut short, where a script may have options of its own.
FEWEST_LETTERS = 5


def _in_full(leaf: Leaf, tab: Table) -> Leaf:
    """An option cut short (`--gradient_accum`) by its whole name, where the program's parser allows it and one option alone begins so."""
    name = name_of(leaf.key)
    if not tab.abbreviates or not leaf.key.startswith("--") or name in tab.known or tab.named(name):
        return leaf
    names = _sorted_names(tab.known)
    alike = takewhile(lambda real: real.startswith(name), map(names.__getitem__, range(bisect_left(names, name), len(names))))
    found = list(islice((real for real in alike if "." in name or "." not in real), 2))
    whole = found[0] if len(found) == 1 else name
    is_within_word = len(name) >= FEWEST_LETTERS and "_" not in whole[len(name) - 1 : len(name) + 1]
    if whole == name or (tab.unknown == "anything" and not is_within_word):  # it may be an option of the script's own
        return leaf
    return leaf._replace(key=f"--{whole.replace('_', '-') if '-' in leaf.key[2:] else whole}")


@lru_cache(maxsize=8)
def _sorted_names(known: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted({name.replace("-", "_") for name in known}))


def _positional(program: StartedProgram, tab: Table) -> Iterator[Leaf]:
    """The first positional argument, if the program takes one."""
    for word in (
        program.launch.files[:1] if tab.positional and not any(flag.name == tab.positional for flag in program.launch.flags) else ()
    ):
        shape: Literal["scalar", "unsure"] = "scalar" if word.sure else "unsure"
        text = word.text if word.sure else None
        yield Leaf(tab.positional, text, program.text[word.start : word.end], word.start, word.end, *program.place(word.start), shape)


def _part(program: StartedProgram, tab: Table, leaves: tuple[Leaf, ...], entry: str, at: int, own: bool) -> Part:
    return Part(
        program.name,
        tab,
        program.form,
        program.text,
        leaves,
        program.origin,
        program.witness,
        entry,
        program.place(at),
        whole=program.is_plain,
        own_keys=own,
    )


def option_leaves(flag: Flag, program: StartedProgram) -> list[Leaf]:
    """The leaf of an option, or the leaves of a structured override (`key={a: 1}`)."""
    leaf = _option_leaf(flag, program)
    if flag.key.startswith("-") or (leaf.text or "")[:1] not in ("[", "{", "'", '"'):
        return [leaf]
    from diagnose.adapters.formats.hydra_overrides import parse_override  # few commands hold such a value

    return parse_override(leaf)


def _option_leaf(flag: Flag, program: StartedProgram) -> Leaf:
    line, column = program.place(flag.pos)
    written = program.text[flag.start : flag.end]
    if not flag.sure:
        return Leaf(flag.key, None, written, flag.start, flag.end, line, column, "unsure", used=flag.used)
    if flag.value is None:
        return Leaf(flag.key, "true", "", flag.start, flag.end, line, column, "flag")
    if flag.value.lower() in ("none", "null"):
        return Leaf(flag.key, flag.value, written, flag.start, flag.end, line, column, "null", used=flag.used)
    leaf = Leaf(flag.key, flag.value, written, flag.start, flag.end, line, column, used=flag.used)
    return leaf._replace(shape="list", items=flag.items) if flag.items else leaf


def environment_part(program: StartedProgram) -> Part | None:
    """The command's environment variables as a part; None if it sets none."""
    leaves = []
    for name, word in () if program.launch.orphan and not program.launch.flags else program.launch.env.items():
        named = word.start - len(name) - 1  # where the name is written, unless the value stands elsewhere
        line, column = program.place(named if named >= 0 and program.text.startswith(f"{name}=", named) else word.start)
        leaves.append(
            Leaf(
                name,
                word.text if word.sure else None,
                program.text[word.start : word.end],
                word.start,
                word.end,
                line,
                column,
                "scalar" if word.sure else "unsure",
            )
        )
    if not leaves:
        return None
    own = framework_tables.table(program.table.environment if program.table is not None else framework_tables.of_role("variables"))
    return Part(program.name, own, program.form, program.text, tuple(leaves), program.origin, program.witness, own_keys=False)
