"""Launches in different arms of a branch: which of them runs is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.adapters.launch.flags import Flag
from diagnose.record import replace

if TYPE_CHECKING:
    from diagnose.adapters.launch.launch_command import Launch


def settled(found: list[Launch]) -> list[Launch]:
    """Of launches in different arms of a branch it is unknown which runs: what they do not agree on is unsure."""
    apart = [one for one in found if one.maybe and _starts(one)]
    made = []
    for one in found:
        rivals = [other for other in apart if one.maybe and other is not one and _excludes(one.maybe, other.maybe)] if _starts(one) else []
        if not rivals:
            made.append(one)
            continue
        flags = tuple(_agreed(flag, [other.flags for other in rivals]) for flag in one.flags)
        before = tuple(_agreed(flag, [other.launcher_flags for other in rivals]) for flag in one.launcher_flags)
        made.append(replace(one, flags=flags, launcher_flags=before))
    return made


def _starts(one: Launch) -> bool:
    return bool(one.launcher) or one.program.partition(" ")[0] in rule_files.table("programs")["commands"]


def _excludes(mine: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> bool:
    """Do two launches stand in different arms of one branch?"""
    theirs = dict(other)
    return any(block in theirs and theirs[block] != arm for block, arm in mine)


def _agreed(flag: Flag, others: Sequence[Sequence[Flag]]) -> Flag:
    held = [next((other for other in flags if other.name == flag.name), None) for flags in others]
    return flag if all(other is not None and other.sure and other.value == flag.value for other in held) else replace(flag, sure=False)
