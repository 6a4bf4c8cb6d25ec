"""The report's section on a job before it runs: how each role fits its card, how far the job can grow, other ways of running it.

Annotations are evaluated here (no `from __future__ import annotations`), see `part`.
"""

from typing import TYPE_CHECKING, Literal

from diagnose.phrases import Text
from diagnose.plan.remedies.remedy import Fits
from diagnose.render.data.part import Edit, Part, Size, Value, at, itself

if TYPE_CHECKING:
    from diagnose.plan.remedies import outlook_values


class Holds(Part):
    """The requests of the longest context that an engine's cache holds at once, over the range of the estimate."""

    length: int
    low: float
    likely: float
    high: float


class Seat(Part):
    """How one role fits its card; `margin` is the memory that stays free, negative if some is missing."""

    role: str
    gpus: int
    peak_moment: str | None = at("moment")
    need: Size | None
    usable: Size | None
    margin: Size | None
    fits: Fits
    complete: bool
    holds: Holds | None


class Reach(Part):
    """How far a knob can be raised. `sure`: fits at the upper end of the estimate; `likely`: fits at its middle; 0: nothing does."""

    knob: str
    now: int | None
    sure: int
    likely: int
    step: int = at("least")
    limit: Literal["", "model", "search"]


class WayPrice(Part):
    results: str
    speed: str
    host_memory: Size | None


class Way(Part):
    """The job with some remedies turned on or off."""

    name: str = at(lambda way: _name(way))
    remedies: list[str]
    without: list[str]
    knobs: dict[str, Value] = at(lambda way: dict(way.knobs))
    price: WayPrice = at(itself)
    predicted_peak: Size | None = at("need")
    fits: Fits
    batch: Reach | None
    length: Reach | None
    card_gb: int | None = at("card")
    edits: list[Edit]


def _name(way: "outlook_values.Way") -> Text:
    from diagnose.render.parts.outlook_view import way_name  # only `check` has an outlook

    return Text(way_name(way, "en"), way_name(way, "zh"))


class Check(Part):
    """The card, how every role fits it, and how far each way of running the job reaches."""

    fits: Fits
    card: str | None
    capacity: Size | None
    usable: Size | None
    reserved: Size | None
    kept_free: float = at("kept")
    roles: list[Seat] = at("seats")
    uncounted: list[str]
    contradictions: list[str]
    frontier: list[Way] = at("ways", "The job as configured first.")
