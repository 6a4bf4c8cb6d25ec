"""What the budget knows about software: rules/ledger.yaml, and its optimizers typed."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from diagnose import rule_files
from diagnose.facts import FactBook
from diagnose.records import NamedTuple
from diagnose.release_spans import releases


@cache
def table() -> dict[str, Any]:
    """rules/ledger.yaml."""
    return cast("dict[str, Any]", rule_files.table("ledger"))


class Optimizer(NamedTuple):
    """States of one optimizer: `slots` tensors per trained parameter in its own precision, or `flat` bytes per parameter (`least` in older
    releases).

    `rest`: slots of embedding, head and vectors where only matrices have `slots`; `layered`: steps inside backward; `paged`: in managed
    memory; `projected`: states of the gradient projected on a few dimensions, `random`: by a random projection (no SVD); `factored`: a row
    and a column per matrix; `blocks`: one block of layers at a time, with an fp32 copy; `exempts`: integrations may keep embeddings in 32
    bits.
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
    """The optimizer of this name; None if unknown."""
    entry = table()["optimizers"].get(word)
    if entry is None:
        return None
    flat = float(entry.get("flat", 0))
    marks = {name: bool(entry.get(name, False)) for name in ("layered", "paged", "projected", "random", "factored", "blocks", "exempts")}
    return Optimizer(
        slots=entry.get("slots"), flat=flat, least=float(entry.get("least", flat)), rest=entry.get("rest"), source=entry["source"], **marks
    )


def earlier_torch(what: str, book: FactBook) -> bool:
    """Whether the run's torch is known to be one that still does this (rules/ledger.yaml, earlier_torch)."""
    return releases(table()["earlier_torch"][what]).holds(book.version("version.torch")) is True
