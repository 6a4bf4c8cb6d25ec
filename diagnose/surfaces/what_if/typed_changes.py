"""What a what-if answers, declared as the report is.

Annotations are evaluated here (no `from __future__ import annotations`), see `diagnose.render.data.part`.
"""

from diagnose.plan.remedies.remedy import Fits
from diagnose.render.data.part import Part


class Figures(Part):
    """Bytes: the middle and both ends of an estimate."""

    bytes: int
    low: int
    high: int


class TermChange(Part):
    """One term of a moment, in bytes."""

    name: str
    before: int
    after: int
    difference: int


class MomentChange(Part):
    """One moment as it was and as it is, and its terms that differ; null where only one of the two has it."""

    name: str
    before: Figures | None
    after: Figures | None
    terms: list[TermChange]


class RoleChange(Part):
    """What one role needs at its largest moment, before and after; null where it cannot be counted. `moments`: the moment that was
    the largest, and the one that is, where that is another."""

    role: str
    peak_moment_before: str | None
    peak_moment_after: str | None
    before: Figures | None
    after: Figures | None
    difference: int | None
    usable: Figures | None
    fits_before: Fits
    fits_after: Fits
    moments: list[MomentChange]
    unknown: list[str]


class WhatIf(Part):
    """The difference that some changes make."""

    changes: dict[str, str]
    fits_before: Fits
    fits_after: Fits
    roles: list[RoleChange]
    notices: list[str]
