"""Stack frames of allocations: the user's line that allocated the memory, and the kind of memory it is (rules/snapshots.yaml)."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from diagnose import rule_files

#: Groups of memory that no pattern of rules/snapshots.yaml matches, and of memory without any Python frame.
UNSORTED, NO_FRAMES = "unsorted", "not_recorded"


class Frame(NamedTuple):
    """A frame of a stack; stacks list the innermost first."""

    file: str
    line: int
    function: str


Stack = tuple[Frame, ...]


@cache
def _library_files() -> re.Pattern[str]:
    return re.compile("|".join(rule_files.table("snapshots")["own"]))


@cache
def _group_patterns() -> list[tuple[str, re.Pattern[str] | None, re.Pattern[str] | None]]:
    def alternatives(entry: dict[str, list[str]], key: str) -> re.Pattern[str] | None:
        return re.compile("|".join(entry[key]), re.MULTILINE) if key in entry else None

    return [(entry["group"], alternatives(entry, "at"), alternatives(entry, "any")) for entry in rule_files.table("snapshots")["groups"]]


def python_frames(stack: Stack) -> list[Frame]:
    """The Python frames of a stack; one recorded with `stacks="all"` has C++ frames between them."""
    return [frame for frame in stack if frame.file.endswith(".py") or frame.file.startswith("<")]


def code_frame(stack: Stack) -> Frame | None:
    """The innermost frame outside torch and the standard library, else the innermost Python frame."""
    frames = python_frames(stack)
    return next((frame for frame in frames if not _library_files().search(frame.file)), frames[0] if frames else None)


def memory_group(stack: Stack) -> str:
    """The kind of memory that a stack allocated, by the patterns of rules/snapshots.yaml."""
    lines = [f"{frame.file}:{frame.function}" for frame in python_frames(stack)]
    if not lines:
        return NO_FRAMES
    text = "\n".join(lines)
    for group, innermost, any_frame in _group_patterns():
        if (innermost is not None and innermost.search(lines[0])) or (any_frame is not None and any_frame.search(text)):
            return group
    return UNSORTED
