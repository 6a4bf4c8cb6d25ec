"""The tensors that a request may be: rules/tensors.yaml, typed, and whether one fits a failure."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from diagnose import shipped
from diagnose.budget.known import table
from diagnose.budget.setup import Setup
from diagnose.parse.event import Event
from diagnose.record import record


@record
class Tensor:
    """One entry of the table; `bytes` are formulas in letters, likeliest first."""

    key: str
    group: str
    bytes: tuple[str, ...]
    phases: tuple[str, ...]
    at: tuple[str, ...]
    within: tuple[str, ...]
    when: tuple[str, ...]
    solve: str
    at_least: bool

    def phase_fits(self, phase: str) -> bool:
        return phase == "unknown" or phase in self.phases

    def frame_fits(self, event: Event) -> bool:
        """Whether the traceback shows this tensor being made: a pattern in the innermost frame, and one in any frame."""
        if not event.frames:
            return False
        lines = [f"{frame.file}:{frame.function}|{frame.statement}" for frame in event.frames]
        return (not self.at or _found(self.at, lines[-1:])) and (not self.within or _found(self.within, lines))

    def agrees(self, event: Event) -> bool:
        """Frame and phase fit; without a traceback the phase alone must."""
        if not event.frames:
            return event.phase in self.phases and event.phase != "unknown"
        return self.phase_fits(event.phase) and self.frame_fits(event)


def _found(patterns: tuple[str, ...], lines: list[str]) -> bool:
    return any(re.search(pattern, line) for pattern in patterns for line in lines)


@cache
def tensors() -> tuple[Tensor, ...]:
    return tuple(
        Tensor(
            entry["key"],
            entry["group"],
            tuple(entry["bytes"]),
            tuple(entry["phases"]),
            tuple(entry.get("at", ())),
            tuple(entry.get("within", ())),
            tuple(entry.get("when", ())),
            entry.get("solve", ""),
            bool(entry.get("at_least", False)),
        )
        for entry in shipped.table("tensors")
    )


def _stated(job: Setup) -> bool:
    """Whether somebody says which attention ran; a default does not."""
    said = job.book.fact("model.attention")
    return said is not None and said.origin != "default"


#: The conditions of `when`. Unknown attention may be eager.
CONDITIONS: dict[str, Callable[[Setup], bool]] = {
    "pairs": lambda job: job.stage in table()["pairs"],
    "rollouts": lambda job: job.stage in table()["rollouts"],
    "lora": lambda job: job.trainable.lora,
    "full": lambda job: not job.trainable.lora,
    "zero": lambda job: job.sharding.zero,
    "zero12": lambda job: job.sharding.scheme in ("zero1", "zero2"),
    "zero3": lambda job: job.sharding.scheme == "zero3",
    "fsdp": lambda job: job.sharding.scheme in ("fsdp", "fsdp_grad"),
    "eager": lambda job: job.attention == "eager" or not _stated(job),
    "fused": lambda job: job.attention != "eager",
    "experts": lambda job: job.model is not None and job.model.experts is not None,
    "vision": lambda job: job.model is not None and job.model.vision is not None,
    "quantized": lambda job: job.book.word("model.quantization") not in (None, "none"),
}


def possible(tensor: Tensor, job: Setup) -> bool:
    return all(CONDITIONS[name](job) for name in tensor.when)
