"""What the callbacks of a trainer note of the job, for the moment that it fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from diagnose.live.process_memory import asked

if TYPE_CHECKING:
    from diagnose.adapters.formats.settings import ConfigSource

#: Bytes of the arguments of a trainer, written as JSON.
LARGEST = 1 << 20


class Noted:
    """One process trains one thing at a time: the last word holds."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A new training begins."""
        self.step: int | None = None
        self.steps: int | None = None
        self.evaluating = False
        self.arguments: str | None = None

    def count(self, step: Any, steps: Any = None) -> None:
        """How many optimizer steps were done, and of how many."""
        done, of = asked(lambda: int(step)), asked(lambda: int(steps))
        self.step = done if done is not None and done >= 0 else None
        self.steps = of if of and of > 0 else None

    def take(self, arguments: Any) -> None:
        """The arguments of a trainer, as far as they are plain."""
        values = asked(lambda: dict(arguments.to_dict())) or asked(lambda: dict(vars(arguments)))
        plain = {str(key): value for key, value in (values or {}).items() if isinstance(value, (str, int, float, bool, dict))}
        text = asked(lambda: json.dumps(plain, default=str, indent=1))
        self.arguments = text if text and plain and len(text) < LARGEST else None

    def lines(self) -> list[str]:
        """The notes as a trainer's log would show them."""
        told = []
        if self.step is not None and self.steps:
            told.append(f"{100 * self.step // self.steps:3d}%|          | {self.step}/{self.steps} [00:00<?, ?it/s]")
        if self.evaluating:
            told.append("***** Running Evaluation *****")
        return told

    def configs(self) -> list[ConfigSource]:
        """The trainer's arguments as a config."""
        if self.arguments is None:
            return []
        from diagnose.adapters.formats.settings import ConfigSource

        return [ConfigSource("arguments of the trainer", self.arguments.encode(errors="replace"))]


NOTED = Noted()
