"""Stack frames of allocations: the user's line that allocated the memory, and the kind of memory it is (rules/snapshots.yaml)."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from diagnose import rule_files
from diagnose.records import NamedTuple

#: Groups of memory that no pattern of rules/snapshots.yaml matches, and of memory without any Python frame.
UNSORTED, NO_FRAMES = "unsorted", "not_recorded"

_CACHED = 1 << 14  # files and functions that are matched once: stacks share their frames


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


@lru_cache(_CACHED)
def _is_library(file: str) -> bool:
    return _library_files().search(file) is not None


@lru_cache(_CACHED)
def _group_number(file: str, function: str, is_innermost: bool) -> int:
    """The first group with a pattern that matches this frame, else the number of groups."""
    line = f"{file}:{function}"
    for number, (_, innermost, any_frame) in enumerate(_group_patterns()):
        if (is_innermost and innermost is not None and innermost.search(line)) or (any_frame is not None and any_frame.search(line)):
            return number
    return len(_group_patterns())


def python_frames(stack: Stack) -> list[Frame]:
    """The Python frames of a stack; one recorded with `stacks="all"` has C++ frames between them."""
    return [frame for frame in stack if frame.file.endswith(".py") or frame.file.startswith("<")]


def code_frame(stack: Stack) -> Frame | None:
    """The innermost frame outside torch and the standard library, else the innermost Python frame."""
    frames = python_frames(stack)
    return next((frame for frame in frames if not _is_library(frame.file)), frames[0] if frames else None)


def user_frames(stack: Stack) -> Stack:
    """The frames outside torch and the standard library, the outermost first; without one, what `code_frame` gives."""
    own = tuple(frame for frame in reversed(python_frames(stack)) if not _is_library(frame.file))
    return own or tuple(filter(None, [code_frame(stack)]))


def memory_group(stack: Stack) -> str:
    """The kind of memory that a stack allocated, by the patterns of rules/snapshots.yaml."""
    frames = python_frames(stack)
    if not frames:
        return NO_FRAMES
    number = min(_group_number(frame.file, frame.function, frame is frames[0]) for frame in frames)
    return _group_patterns()[number][0] if number < len(_group_patterns()) else UNSORTED
