"""Value types of the outlook before a run: how each role fits its card, and how far each way of running the job reaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from diagnose.facts import Value
from diagnose.phrases import Text
from diagnose.plan.remedies.remedy import Edit, Fits
from diagnose.records import NamedTuple
from diagnose.units import Size

if TYPE_CHECKING:
    from diagnose.budget.terms.engine_budget import Holding


class Seat(NamedTuple):
    """How one role fits its cards: the moment of its peak, what it needs and can use there, and the margin (negative: is missing). `holds`:
    the requests that the cache of an engine holds."""

    role: str
    gpus: int
    moment: str | None
    need: Size | None
    usable: Size | None
    margin: Size | None
    fits: Fits
    complete: bool
    holds: Holding | None = None


@dataclass(slots=True, unsafe_hash=True)
class Reach:
    """The largest value of one knob at which the job fits, in the knob's own unit.

    `sure`: it fits at the estimate's upper end; `likely`: at its middle; 0: not even at `least`. `limit`: what ended the search where
    memory did not: the model's own length, or the largest value that the search tries.
    """

    knob: str
    now: int | None
    sure: int
    likely: int
    least: int = 1
    limit: Literal["", "model", "search"] = ""


@dataclass(slots=True, unsafe_hash=True)
class Way:
    """The job with some remedies turned on (`remedies`) or costly ones off (`without`).

    `dials`: the remedies that set the value at which the job fits, with that value. `need` and `fits` are those of the batch and
    length as configured. `card`: the smallest class of cards (GB as sold) that holds the job, known where no card is named.
    """

    remedies: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    dials: tuple[tuple[str, Value], ...] = ()
    knobs: tuple[tuple[str, Value], ...] = ()
    results: str = "keep"
    speed: str = "same"
    need: Size | None = None
    fits: Fits = "unknown"
    batch: Reach | None = None
    length: Reach | None = None
    card: int | None = None
    host_memory: Size | None = None
    edits: tuple[Edit, ...] = ()


class Outlook(NamedTuple):
    """What `check` adds to a diagnosis.

    `reserved`: memory outside torch's pool (the CUDA context, communicators). `kept`: the share of the usable memory that is left free
    for estimation error and fragmentation. `uncounted`: roles of which too little is known. `contradictions`: settings that exclude
    each other, so that nothing is known to fit.
    """

    card: str | None
    capacity: Size | None
    usable: Size | None
    reserved: Size | None
    kept: float
    seats: tuple[Seat, ...]
    ways: tuple[Way, ...]
    uncounted: tuple[str, ...] = ()
    contradictions: tuple[Text, ...] = ()
