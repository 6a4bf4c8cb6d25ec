"""What one message says, before it is put in its place among the events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diagnose.parse.event import OtherProcess
    from diagnose.units import Size


@dataclass(slots=True)
class Message:
    """Family and status as far as the message alone tells, and its figures by the names of Event.

    `unread`: it holds figures that the grammar gives no meaning. `phase` where the message itself says when it happened.
    `weight`: of several traces of one death the heaviest names it (a kernel line before a shell's "Killed").
    """

    family: str
    status: str = "oom"
    gpu: int | None = None
    pid: int | None = None
    figures: dict[str, Size | None] = field(default_factory=dict)
    processes: tuple[OtherProcess, ...] = ()
    unread: bool = False
    phase: str = ""
    weight: int = 0
    check: str = ""  # which start-up check of an inference engine refused
    no_cache: bool = False  # the check found no room for any cache, whatever the requests
    served: int | None = None  # the longest request that this check wants room for, in tokens
    said: str = ""  # the words that name what was going on, such as the method of a Ray actor
