"""What the ledger knows about software: rules/ledger.yaml, typed."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from diagnose import rule_files
from diagnose.facts import FactBook
from diagnose.record import record
from diagnose.ternary import Truth
from diagnose.traits import Releases
from diagnose.units import Version


@cache
def table() -> dict[str, Any]:
    return cast("dict[str, Any]", rule_files.table("ledger"))


@record
class Optimizer:
    """State of one optimizer per trained parameter: `slots` tensors in its precision, or `flat` bytes (`least` in older releases).

    `rest`: slots of embedding, head and vectors where only matrices have `slots`; `layered`: steps inside the backward pass;
    `paged`: in managed memory; `projected`: states of the gradient's projection on a few dimensions, `random`: one that is drawn and
    not computed; `factored`: a row and a column per matrix; `blocks`: one block of layers at a time, with an fp32 copy; `exempts`:
    integrations may keep embeddings in 32 bits.
    """

    slots: int | None
    flat: float
    least: float
    layered: bool
    paged: bool
    rest: int | None
    projected: bool
    random: bool
    factored: bool
    blocks: bool
    exempts: bool
    source: str


@cache
def optimizer(word: str) -> Optimizer | None:
    entry = table()["optimizers"].get(word)
    if entry is None:
        return None
    flat = float(entry.get("flat", 0))
    marks = {name: bool(entry.get(name, False)) for name in ("layered", "paged", "projected", "random", "factored", "blocks", "exempts")}
    return Optimizer(
        slots=entry.get("slots"), flat=flat, least=float(entry.get("least", flat)), rest=entry.get("rest"), source=entry["source"], **marks
    )


def below(limit: str, version: Version | None) -> bool:
    """Whether a version may lie under a limit "<1.2"; an unknown one may, and no limit holds always."""
    if not limit or version is None:
        return True
    match = re.fullmatch(r"<\s*(\S+)", limit)
    if not match:
        return True
    return version < Version(match[1])


def during(releases: Releases, book: FactBook) -> Truth:
    """Whether a job's releases lie in these spans; None where one that decides is not known."""
    dated = [(span, book.version(fact)) for fact, span in releases]
    if not all(within(span, version) for span, version in dated):
        return False
    return True if all(version is not None for _, version in dated) else None


def within(span: str, version: Version | None) -> bool:
    """Whether a release may lie in a span such as ">=4.53 <4.56"; an unknown one may."""
    return version is None or all(version >= bound if lower else version < bound for lower, bound in _bounds(span))


@cache
def _bounds(span: str) -> tuple[tuple[bool, Version], ...]:
    """The bounds of a span, each whether it is the lower one. Raises ValueError for a text that is none."""
    bounds = [re.fullmatch(r"(>=|<)(\d\S*)", part) for part in span.split()]
    if not bounds or not all(bounds):
        raise ValueError(f"not a span of releases: {span}")
    return tuple((match[1] == ">=", Version(match[2])) for match in bounds if match)
