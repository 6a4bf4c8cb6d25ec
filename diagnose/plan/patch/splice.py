"""Splice: a piece of a text and what takes its place."""

from __future__ import annotations

from diagnose.record import record


@record
class Splice:
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str
