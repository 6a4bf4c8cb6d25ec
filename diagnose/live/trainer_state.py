"""State of the running trainer as its callbacks record it, for the diagnosis of a later exception."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from diagnose.live.process_memory import try_call

if TYPE_CHECKING:
    from diagnose.adapters.formats.settings import ConfigSource

#: Characters of the trainer's arguments as JSON, at most.
LARGEST = 1 << 20


class TrainerState:
    """Step, phase and arguments of the trainer of this process; the latest record counts."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the previous training."""
        self.step: int | None = None
        self.steps: int | None = None
        self.evaluating = False
        self.arguments: str | None = None

    def set_step(self, step: Any, steps: Any = None) -> None:
        """Record the number of optimizer steps done and planned."""
        done, total = try_call(lambda: int(step)), try_call(lambda: int(steps))
        self.step = done if done is not None and done >= 0 else None
        self.steps = total if total and total > 0 else None

    def set_arguments(self, arguments: Any) -> None:
        """Record the trainer's arguments, those that are plain values."""
        values = try_call(lambda: dict(arguments.to_dict())) or try_call(lambda: dict(vars(arguments)))
        plain = {str(key): value for key, value in (values or {}).items() if isinstance(value, (str, int, float, bool, dict))}
        text = try_call(lambda: json.dumps(plain, default=str, indent=1))
        self.arguments = text if text and plain and len(text) < LARGEST else None

    def log_lines(self) -> list[str]:
        """The state as lines of a trainer's log."""
        lines = []
        if self.step is not None and self.steps:
            lines.append(f"{100 * self.step // self.steps:3d}%|          | {self.step}/{self.steps} [00:00<?, ?it/s]")
        if self.evaluating:
            lines.append("***** Running Evaluation *****")
        return lines

    def configs(self) -> list[ConfigSource]:
        """The trainer's arguments as a config."""
        if self.arguments is None:
            return []
        from diagnose.adapters.formats.settings import ConfigSource  # needed only once the job has failed

        return [ConfigSource("arguments of the trainer", self.arguments.encode(errors="replace"))]


STATE = TrainerState()
