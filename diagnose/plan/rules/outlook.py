"""Before a run: how each role sits on its card, and how far every way of running the job can be taken. Only the values."""

from __future__ import annotations

from typing import Literal

from diagnose.facts import Value
from diagnose.phrases import Text
from diagnose.plan.rules.remedy import Edit, Fits
from diagnose.record import record
from diagnose.units import Size


@record
class Seat:
    """One role on its cards: its largest moment, what that needs, what it can have, and what stays free (negative: is missing)."""

    role: str
    gpus: int
    moment: str | None
    need: Size | None
    usable: Size | None
    margin: Size | None
    fits: Fits
    complete: bool


@record
class Reach:
    """How far one knob can go, in the knob's own unit. `sure`: at that value it surely fits; `likely`: it fits if the estimate's
    middle is right; 0: not even at `least`. `limit`: what ended the search where memory did not: the model's own length, or the
    largest value that is looked at."""

    knob: str
    now: int | None
    sure: int
    likely: int
    least: int = 1
    limit: Literal["", "model", "search"] = ""


@record
class Way:
    """The job with some remedies switched on (`remedies`) or costly ones off (`without`); `dials`: the
    remedies that have no value of their own, with the one that fits. `need` and `fits` are of the batch and
    length as configured; `card` is the smallest class of cards (GB as sold) that holds it, looked for where no card is named."""

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


@record
class Outlook:
    """What `check` adds to a diagnosis. `reserved`: what lies outside torch's pool (the CUDA context, communicators); `kept`: the
    share of the rest that stays free because an estimate is one and a pool has gaps; `uncounted`: roles too little known to judge;
    `contradictions`: settings that cannot all be meant, so that nothing is known to fit."""

    card: str | None
    capacity: Size | None
    usable: Size | None
    reserved: Size | None
    kept: float
    seats: tuple[Seat, ...]
    ways: tuple[Way, ...]
    uncounted: tuple[str, ...] = ()
    contradictions: tuple[Text, ...] = ()
