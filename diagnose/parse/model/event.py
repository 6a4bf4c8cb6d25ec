"""What a log says happened: one value per failure message."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from diagnose.facts import Witness
from diagnose.records import NamedTuple
from diagnose.units import Size


class Frame(NamedTuple):
    """A line of a traceback; `file` as printed, `statement` the source line below it where one was printed."""

    file: str
    line: int
    function: str
    statement: str = ""


class PrintedTensor(NamedTuple):
    """A tensor by its printed shape. `width`: bytes per element, 0 where the log does not name the type; `name`: of what makes it."""

    shape: tuple[int, ...]
    width: int
    name: str

    @property
    def elements(self) -> int:
        return prod(self.shape)


class OtherProcess(NamedTuple):
    """A process that the message names by number. In a container the failed process itself is among them: `own`, as far as figures tell."""

    pid: int
    in_use: Size | None
    own: bool = False
    name: str = ""  # where the message gives one


@dataclass(slots=True, kw_only=True, repr=False)
class Event:
    """One failure (or a consequence of one) as printed; sizes are None where the message prints none.

    `family` and `phase` are words of rules/vocabulary.yaml. `consequence_of` is the index of the event that caused
    this one. Equal failures of several ranks are folded into the first of them: `ranks` names all, `members` holds the others.
    """

    family: str
    status: str = "oom"  # oom, suspected, lookalike or none: what this event alone proves
    reason: str = ""  # why it is no failure of memory, no proof of one, or none that memory cures (rules/phrases/reason.yaml)
    exception: str = ""
    fatal: bool = True
    attempt: int = 1
    rank: int | None = None
    local_rank: int | None = None
    ranks: tuple[int, ...] = ()
    host: str | None = None
    pid: int | None = None
    gpu: int | None = None
    role: str | None = None  # actor, critic, reward, reference, engine where the log names the process
    step: int | None = None
    phase: str = "unknown"
    requested: Size | None = None
    capacity: Size | None = None
    free: Size | None = None
    allowed: Size | None = None
    process_in_use: Size | None = None
    allocated: Size | None = None
    reserved_unallocated: Size | None = None
    reserved_total: Size | None = None
    private_pools: Size | None = None
    mps_allocated: Size | None = None
    other_allocations: Size | None = None
    max_allowed: Size | None = None
    current_active: Size | None = None
    other_processes: tuple[OtherProcess, ...] = ()
    frames: tuple[Frame, ...] = ()  # innermost last
    source_line: str = ""  # above a message without frames
    lines: str = ""  # its own line and those below it, where the allocator's own words say what it was for
    printed: tuple[PrintedTensor, ...] = ()  # tensors that may be the request, by the shapes that stand beside it
    consequence_of: int | None = None
    count: int = 1
    members: tuple[Event, ...] = ()
    evidence: tuple[Witness, ...] = field(default=())

    @property
    def shows_source(self) -> bool:
        """Whether frames, or the line above the message, show the code that failed."""
        return bool(self.frames or self.source_line)
