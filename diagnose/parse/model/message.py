"""What one message says, before it is put in its place among the events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diagnose.facts import Value
    from diagnose.parse.model.event import OtherProcess
    from diagnose.units import Size


#: Figures of a card of which the first is a part of the second.
_PARTS = (("allocated", "capacity"), ("reserved_total", "capacity"), ("free", "capacity"), ("allocated", "reserved_total"))


@dataclass(slots=True, repr=False)
class Message:
    """What one message says by itself: family, status, and figures by the names of Event.

    `unread`: it holds figures that the grammar does not know. `phase`: if the message itself says when it happened. `weight`: of several
    reports of one death the one with the largest weight names it (a kernel line before a shell's "Killed").
    """

    family: str
    status: str = "oom"
    gpu: int | None = None
    pid: int | None = None
    local_rank: int | None = None
    figures: dict[str, Size | None] = field(default_factory=dict)
    processes: tuple[OtherProcess, ...] = ()
    unread: bool = False
    phase: str = ""
    weight: int = 0
    retells: bool = False  # says where it was that memory ran out, after the allocator's own message where that was printed
    guess: bool = False  # speaks only where nothing else in the logs does
    check: str = ""  # which start-up check of an inference engine refused
    reason: str = ""  # of what is no failure of memory, no proof of one, or one with a twist: which kind it is (rules/phrases/reason.yaml)
    fatal: bool = True  # False where its own words say that the run goes on
    facts: dict[str, Value] = field(default_factory=dict)  # what the wording tells beside figures
    rank: int | None = None  # that a launcher's report names
    host: str = ""
    tasks: tuple[int, ...] = ()  # a scheduler's numbers of the processes that it names
    killed: dict[str, int] = field(default_factory=dict)  # who was found dead, by who says so: each numbers processes its own way
    helper: bool = False  # of a step of the scheduler that runs no part of the job
    raised: bool = False  # of a kill: raised in a process of the job, so that the traceback above belongs to it
    said: str = ""  # the words that name what was going on, such as the method of a Ray actor

    def doubt_request(self) -> None:
        """Mark a request whose printed size no memory can have: an overflow or a negative size, which no setting cures."""
        if "requested" in self.figures and self.figures["requested"] is None:
            self.facts["log.request_overflow"] = True
            self.reason = self.reason or "request_overflow"

    def contradiction(self) -> tuple[str, str] | None:
        """The names of two figures that cannot both be true, because the part is larger than the whole; None where nothing is wrong, or
        where what lends or returns memory behind torch's back explains it."""
        if {"log.asleep", "log.windows_driver"} & self.facts.keys():
            return None
        sizes = ((name, of, self.figures.get(name), self.figures.get(of)) for name, of in _PARTS)
        return next(((name, of) for name, of, part, whole in sizes if part and whole and whole.bytes and part.low > whole.high), None)
