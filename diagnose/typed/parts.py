"""What every part of the report is made of: sizes, places, values."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """Every part of a report: nothing beside what the contract names."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Size(Part):
    """A byte count: `bytes` the nearest integer, low..high what rounding and unknowns allow, `text` as printed."""

    bytes: int
    low: int
    high: int
    text: str = ""


class LineWitness(Part):
    """A line of an input, 1-based."""

    source: str
    line: int = Field(ge=1)
    column: int = Field(ge=1)
    text: str = Field(max_length=500)


class KeyWitness(Part):
    """A key of a config."""

    source: str
    line: int | None
    key: str


class WordWitness(Part):
    """Neither a line nor a key: catalogue, default, given, derived."""

    source: str
    text: str


Witness = LineWitness | KeyWitness | WordWitness


Value = Size | bool | int | float | str | None
