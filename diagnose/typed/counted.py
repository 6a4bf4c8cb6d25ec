"""What was counted: the failed request, the ledgers."""

from __future__ import annotations

from typing import Literal

from diagnose.typed.parts import Part, Size, Witness


class Attribution(Part):
    event: int
    tensor: str
    formula: str
    numbers: str
    bytes: int
    block_bytes: int
    exact: bool
    coincidence: int
    agrees: bool
    witness: Witness | None
    at_least: bool


class Term(Part):
    name: str
    size: Size
    share: float | None
    symbols: str
    numbers: str
    source: str
    key: str
    group: str


class Moment(Part):
    name: str
    total: Size
    terms: list[Term]


class Host(Part):
    total: Size
    terms: list[Term]
    moments: list[Moment]


class Budget(Part):
    role: str
    gpus: int
    capacity: Size | None
    usable: Size | None
    moments: list[Moment]
    peak_moment: str | None
    observed: Size | None
    unexplained: Size | None
    host: Host
    failing_moment: str | None
    fits: Literal["yes", "likely", "unlikely", "no", "unknown"]
    unknown: list[str]
    complete: bool
    beside: list[Term]
