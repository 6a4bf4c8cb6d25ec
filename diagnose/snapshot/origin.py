"""What a traceback says of the memory that it allocated: the place that a person wrote, and what kind of memory it is."""

from __future__ import annotations

import re
from functools import cache

from diagnose import rule_files
from diagnose.snapshot.collector import Place, Stack

#: The group of what no pattern of rules/snapshots.yaml knows, and of what has no frame of Python.
UNSORTED, NO_FRAMES = "unsorted", "not_recorded"


@cache
def _own() -> re.Pattern[str]:
    return re.compile("|".join(rule_files.table("snapshots")["own"]))


@cache
def _groups() -> list[tuple[str, re.Pattern[str] | None, re.Pattern[str] | None]]:
    def either(entry: dict[str, list[str]], key: str) -> re.Pattern[str] | None:
        return re.compile("|".join(entry[key]), re.MULTILINE) if key in entry else None

    return [(entry["group"], either(entry, "at"), either(entry, "any")) for entry in rule_files.table("snapshots")["groups"]]


def python(stack: Stack) -> list[Place]:
    """The frames of Python, the innermost first; a snapshot with `stacks="all"` has those of C++ between them."""
    return [place for place in stack if place.file.endswith(".py") or place.file.startswith("<")]


def place_of(stack: Stack) -> Place | None:
    """The innermost frame outside torch and Python itself, else the innermost one of Python."""
    frames = python(stack)
    return next((place for place in frames if not _own().search(place.file)), frames[0] if frames else None)


def group_of(stack: Stack) -> str:
    """What kind of memory it is, as far as frames tell."""
    lines = [f"{place.file}:{place.function}" for place in python(stack)]
    if not lines:
        return NO_FRAMES
    text = "\n".join(lines)
    for group, at, anywhere in _groups():
        if (at is not None and at.search(lines[0])) or (anywhere is not None and anywhere.search(text)):
            return group
    return UNSORTED
