"""What the job was doing, finer than a phase, and by which method it trained: read from the frames that only one has
(rules/phases.yaml, `doing` and `stage`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose import shipped
from diagnose.parse import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.parse.event import Frame


def of_frames(frames: Sequence[Frame]) -> str:
    """A word of the fact log.doing; empty where no frame (innermost first) shows one."""
    return _shown(frames, "doing")


def stage_of_frames(frames: Sequence[Frame]) -> str:
    """The training method whose trainer the traceback runs through; empty where it runs through none."""
    return _shown(frames, "stage")


def _shown(frames: Sequence[Frame], what: str) -> str:
    for frame in reversed(frames):
        function = frame.function.rsplit(".", 1)[-1]
        for rule in shipped.table("phases")[what]:
            shown = {"function": function, "file": frame.file, "statement": frame.statement}
            if all(pattern.found(rule.get(part, ""), text) for part, text in shown.items()):
                return str(rule[what])
    return ""
