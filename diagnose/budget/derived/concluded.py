"""A fact that follows from others."""

from __future__ import annotations

from diagnose.facts import Fact, Value, Witness
from diagnose.units import Size


def fact(name: str, value: Value, formula: str) -> Fact:
    """The formula is its witness."""
    return Fact(name, value, "derived", Witness("derived", text=formula))


def plain(size: Size) -> Size:
    """Never below nothing, and without the text of what it was made of."""
    return Size(max(0, size.low), max(0, size.high), max(0, size.bytes))
