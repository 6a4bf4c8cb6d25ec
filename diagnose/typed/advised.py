"""What was found and is advised: causes, remedies, the plan, questions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diagnose.typed.parts import Part, Size, Value, Witness


class Cause(Part):
    id: str
    rule: str
    certainty: Literal["certain", "likely"]
    also_true: bool
    accounts_for: Size | None
    title: str
    explanation: str
    evidence: list[Witness]
    url: str | None
    share: float | None


class Undecided(Part):
    rule: str
    fact: str | None
    how: str


class Edit(Part):
    target: str
    key: str
    from_: str | None = Field(alias="from")
    to: str | None
    renamed: str = ""


class Price(Part):
    results: str
    speed: str
    effort: str
    host_memory: Size | None


class Remedy(Part):
    id: str
    rule: str
    title: str
    why: str
    saves: Size | None
    fits: Literal["yes", "likely", "unlikely", "no", "unknown"]
    price: Price
    edits: list[Edit]
    env: list[str]
    command: str | None
    references: list[str]
    url: str | None
    peak: Size | None


class Rejected(Part):
    id: str
    rule: str
    reason: str


class Rung(Part):
    knob: str
    from_: Value = Field(alias="from")
    to: Value
    predicted_peak: Size


class Plan(Part):
    steps: list[str]
    edits: list[Edit]
    env: list[str]
    predicted_peak: Size | None
    margin: Size | None
    fits: Literal["yes", "likely", "unlikely", "no", "unknown"]
    ladder: list[Rung]
    note: str | None = None


class Question(Part):
    fact: str
    why: str
    how: str
    set: str
