"""The phase of the failure: from the frames of the traceback, else from the last lines before it (rules/phases.yaml)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from diagnose import rule_files
from diagnose.parse.model.event import Frame
from diagnose.parse.text import lazy_re

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from diagnose.scan.excerpts import Excerpt

#: Frames of torch and of decorators that only pass a call on.
_PASSES_ON = (
    r"^(_wrapped_call_impl|_call_impl|__call__|inner|wrapped_fn|wrapped_func|wrapper|wrapped"
    r"|decorate_\w+|_fn|<module>|<lambda>|apply|new_forward)$"
)


#: Bytes below a failure in which another worker may say what it was doing.
BELOW = 4 << 10


@lru_cache(maxsize=1024)
def phase_of_frames(frames: tuple[Frame, ...]) -> str:
    """The phase that frames (innermost last) show; "" where none does. Cached, because the same code fails in many jobs."""
    phase = ""
    for at in range(len(frames) - 1, -1, -1):
        frame, caller = frames[at], frames[at - 1].statement if at else ""
        phase = _phase_of_frame(frame.file, frame.function, frame.statement, caller)
        if phase:
            break
    if not phase and _builds_an_object(frames):
        phase = "init"
    for rule in _rules("context") if phase else ():
        if phase in rule["from"] and _around(rule, frames):
            phase = str(rule["phase"])
    return phase


def _builds_an_object(frames: Sequence[Frame]) -> bool:
    """Whether the innermost frame moved a tensor while an object was built, outside of any training loop: no batch was seen."""
    if not frames or runs_training(frames):
        return False
    inner = frames[-1]
    return _fits(rule_files.table("phases")["builds"], inner.file, inner.function, inner.statement, "")


@lru_cache(maxsize=4096)
def _phase_of_frame(file: str, function: str, statement: str, caller: str) -> str:
    """The phase that one frame shows; cached, because the same frames recur."""
    return next((str(rule["phase"]) for rule in _rules("frames") if _fits(rule, file, function, statement, caller)), "")


def _fits(rule: Mapping[str, Any], file: str, function: str, statement: str, caller: str) -> bool:
    function = function.rsplit(".", 1)[-1]
    if "statement" not in rule and "file" not in rule and lazy_re.matches_pattern(_PASSES_ON, function):
        return False
    frame_parts = {"file": file.replace("\\", "/"), "function": function, "statement": statement, "caller": caller}
    return all(lazy_re.matches_pattern(rule[name], text) for name, text in frame_parts.items() if name in rule)


def _around(rule: Mapping[str, Any], frames: Sequence[Frame]) -> bool:
    functions = [frame.function.rsplit(".", 1)[-1] for frame in frames]
    for name, expected in (("unless", False), ("inside", True)):
        if name in rule and any(lazy_re.matches_pattern(rule[name], function) for function in functions) is not expected:
            return False
    return any(_matches_place(rule.get("file"), rule.get("function"), frame.file, frame.function) for frame in frames)


@lru_cache(maxsize=8192)
def _matches_place(files: str | None, functions: str | None, file: str, function: str) -> bool:
    """Whether a frame matches the patterns of file and function that are not None."""
    named = {"file": files, "function": functions}
    return _fits({name: pattern for name, pattern in named.items() if pattern is not None}, file, function, "", "")


def not_over(phase: str, frames: Sequence[Frame]) -> str:
    """A phase that anything but the frames shows; "" for one that is over where they run through a training loop."""
    return "" if phase in rule_files.table("phases")["before_training"] and runs_training(frames) else phase


def runs_training(frames: Sequence[Frame]) -> bool:
    """Whether the frames run through a training loop."""
    return any(_fits(rule, frame.file, frame.function, frame.statement, "") for frame in frames for rule in _rules("training_loop"))


def phase_of_source(line: str) -> str:
    """The phase that a line of source shows by itself, without its frame; "" where it shows none."""
    return phase_of_frames((Frame("", 0, "", line),)) if line else ""


def phase_of_call(text: str) -> str:
    """The phase that the name of a remote call (Ray) shows; "" where it shows none."""
    return next((str(rule["phase"]) for rule in _rules("said") if lazy_re.matches_pattern(rule["says"], text)), "") if text else ""


def phase_of_lines(excerpt: Excerpt, start: int, end: int) -> str:
    """The phase that the last lines before a failure show, those of the excerpt's bytes `start` to `end`, or what another worker says just
    below it; "" where they show none."""
    return str(_rule_of_lines(excerpt, start, end).get("phase", ""))


def doing_of_lines(excerpt: Excerpt, start: int, end: int) -> str:
    """The activity (the fact log.doing) that they show; "" where they show none."""
    return str(_rule_of_lines(excerpt, start, end).get("doing", ""))


def _rule_of_lines(excerpt: Excerpt, start: int, end: int) -> dict[str, Any]:
    best, found = start - 1, {}
    for rule in _rules("lines"):
        at = _last(excerpt, rule, start, end)
        if at <= best or _is_over(excerpt, at, end, rule["over"]):
            continue
        if rule["phase"] == "model_load" and _bar_finished(excerpt.raw[at : min(at + 4096, end)]):
            continue
        best, found = at, rule
    line_end = max(end, excerpt.raw.find(b"\n", end, end + BELOW))
    nearest = min(end - best, BELOW) if found else BELOW
    for rule in _rules("lines"):
        for text in rule["says"] if rule.get("below") else ():
            at = excerpt.raw.find(text.encode(), line_end, line_end + nearest)
            if at >= 0:
                nearest, found = at - line_end, rule
    return found


def loaded_last(excerpt: Excerpt, start: int, end: int) -> bool:
    """Whether the last thing that these bytes show is a completed load: its bar is full, and no other bar follows."""
    for rule in _rules("lines"):
        at = _last(excerpt, rule, start, end) if rule["phase"] == "model_load" else -1
        if at >= 0 and _bar_finished(excerpt.raw[at : min(at + 4096, end)]):
            return not _is_over(excerpt, at, end, (*rule["over"], "it/s", "s/it"))
    return False


def _last(excerpt: Excerpt, rule: dict[str, Any], start: int, end: int) -> int:
    """Where what the rule says stands last; -1 for nowhere. Looked up: many failures ask for the same words in the same bytes."""
    return max(excerpt.spots.last(text.encode(), start, end) for text in rule["says"])


def _is_over(excerpt: Excerpt, at: int, end: int, words: Iterable[str]) -> bool:
    """Whether words that end a phase stand below the line that begins it (which may be its own progress bar)."""
    line_end = excerpt.raw.find(b"\n", at, end)
    return line_end >= 0 and any(excerpt.spots.last(word.encode(), line_end, end) >= 0 for word in words)


def _bar_finished(text: bytes) -> bool:
    """Whether a progress bar that starts here ran to its end."""
    line = text.partition(b"\n")[0].rstrip(b"\r").rpartition(b"\r")[2]  # what a redrawn bar shows last
    state = re.search(rb"\| (\d+)/(\d+) \[", line)
    return state is not None and state[1] == state[2]


def _rules(name: str) -> list[dict[str, Any]]:
    return rule_files.table("phases")[name]  # type: ignore[no-any-return]
