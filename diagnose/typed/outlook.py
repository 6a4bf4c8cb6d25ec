"""Whether a job without a failure fits: seats, how far it reaches, other ways."""

from __future__ import annotations

from typing import Literal

from diagnose.typed.advised import Edit
from diagnose.typed.parts import Part, Size, Value


class Seat(Part):
    """One role on its card; `margin` is what stays free, negative where it is missing."""

    role: str
    gpus: int
    peak_moment: str | None
    need: Size | None
    usable: Size | None
    margin: Size | None
    fits: Literal["yes", "likely", "unlikely", "no", "unknown"]
    complete: bool


class Reach(Part):
    """How far a knob can go: `sure` surely fits, `likely` fits if the estimate's middle is right; 0: nothing does."""

    knob: str
    now: int | None
    sure: int
    likely: int
    step: int
    limit: Literal["", "model", "search"]


class WayPrice(Part):
    results: str
    speed: str
    host_memory: Size | None


class Way(Part):
    """The job with some remedies on or off."""

    name: str
    remedies: list[str]
    without: list[str]
    knobs: dict[str, Value]
    price: WayPrice
    predicted_peak: Size | None
    fits: Literal["yes", "likely", "unlikely", "no", "unknown"]
    batch: Reach | None
    length: Reach | None
    card_gb: int | None
    edits: list[Edit]


class Check(Part):
    """What `check` adds: the card, every role on it, how far each way of running the job can go."""

    fits: Literal["yes", "likely", "unlikely", "no", "unknown"]
    card: str | None
    capacity: Size | None
    usable: Size | None
    reserved: Size | None
    kept_free: float
    roles: list[Seat]
    uncounted: list[str]
    contradictions: list[str]
    frontier: list[Way]
