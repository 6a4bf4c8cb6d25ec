"""What the ledger knows about software: rules/ledger.yaml, typed."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from diagnose import shipped
from diagnose.record import record
from diagnose.units import Version


@cache
def table() -> dict[str, Any]:
    return cast("dict[str, Any]", shipped.table("ledger"))


@record
class Optimizer:
    """State of one optimizer per trained parameter: `slots` tensors in its precision, or `flat` bytes."""

    slots: int | None
    flat: float
    layered: bool
    source: str


@cache
def optimizer(word: str) -> Optimizer | None:
    entry = table()["optimizers"].get(word)
    if entry is None:
        return None
    return Optimizer(entry.get("slots"), float(entry.get("flat", 0)), bool(entry.get("layered", False)), entry["source"])


@record
class Block:
    """One tensor of logits shape that the loss holds."""

    name: str
    bytes: int
    shifted: bool = False
    many: bool = False
    fleeting: bool = False


@record
class Loss:
    """The blocks that a loss holds, in the order of allocation."""

    name: str
    call: tuple[Block, ...]
    backward: tuple[Block, ...]
    kept: tuple[Block, ...]
    reference: tuple[Block, ...]
    completion: bool
    source: str


@cache
def _losses() -> tuple[tuple[dict[str, Any], Loss], ...]:
    return tuple((entry["when"], _loss(entry)) for entry in table()["losses"])


def _loss(entry: dict[str, Any]) -> Loss:
    def blocks(key: str) -> tuple[Block, ...]:
        return tuple(Block(**{("name" if name == "block" else name): value for name, value in each.items()}) for each in entry.get(key, ()))

    parts = blocks("call"), blocks("backward"), blocks("kept"), blocks("reference")
    return Loss(entry["name"], *parts, entry.get("completion", False), entry["source"])


def loss_of(framework: str, stage: str, family: str, own: Version | None, transformers: Version | None) -> Loss:
    """The loss of this job: the first entry of the table that fits. `own` is the framework's version."""
    own_loss = family in table()["own_loss"] and below(table()["own_loss"][family], transformers)
    for when, loss in _losses():
        fits = (
            (framework in when.get("framework", (framework,)))
            and (stage in when.get("stage", (stage,)))
            and (not when.get("own_loss") or own_loss)
            and below(when.get("version", ""), own)
            and ("transformers" not in when or (transformers is not None and below(when["transformers"], transformers)))
        )
        if fits:
            return loss
    raise AssertionError("the last entry of rules/ledger.yaml losses holds always")


def below(limit: str, version: Version | None) -> bool:
    """Whether a version may lie under a limit "<1.2"; an unknown one may, and no limit holds always."""
    if not limit or version is None:
        return True
    match = re.fullmatch(r"<\s*(\S+)", limit)
    if not match:
        return True
    return version < Version(match[1])
