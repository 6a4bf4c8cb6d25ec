"""What the job was doing, finer than a phase: read from the frames that only one activity has (rules/phases.yaml, `doing`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose import shipped
from diagnose.parse import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.parse.event import Frame


def of_frames(frames: Sequence[Frame]) -> str:
    """A word of the fact log.doing; empty where no frame (innermost first) shows one."""
    for frame in reversed(frames):
        function = frame.function.rsplit(".", 1)[-1]
        for rule in shipped.table("phases")["doing"]:
            shown = {"function": function, "file": frame.file, "statement": frame.statement}
            if all(pattern.found(rule.get(part, ""), text) for part, text in shown.items()):
                return str(rule["doing"])
    return ""
