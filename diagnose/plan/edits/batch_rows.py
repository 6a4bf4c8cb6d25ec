"""Rows of an optimizer step, where a framework is told those and accumulates what they take."""

from __future__ import annotations

from collections.abc import Callable

from diagnose.adapters.schema import framework_tables
from diagnose.facts import Value
from diagnose.plan.edits.edit_context import Desk
from diagnose.plan.pricing.candidate_values import SHARED
from diagnose.plan.rules.remedy import Edit


def by_global_batch(desk: Desk, steps: Value, turn: Callable[[Desk, str, Value], list[Edit] | None]) -> list[Edit] | None:
    """Where the framework is told the rows of a step and accumulates what that takes: nothing, or those rows said."""
    keys = [key for document in desk.documents for key in framework_tables.table(document.framework).keys if key.addable]
    if all(key.knob != "train.global_batch" for key in keys) or any(key.knob == "train.gradient_accumulation" for key in keys):
        return None
    micro, ranks = desk.changes.get("train.micro_batch_size", desk.book.value("train.micro_batch_size")), replicas(desk)
    known = isinstance(steps, int) and isinstance(micro, int) and ranks and desk.book.count("train.gradient_accumulation")
    if not known:
        return [] if desk.book.count("train.global_batch") else None
    return turn(desk, "train.global_batch", int(steps) * int(micro) * int(ranks))  # type: ignore[arg-type]


def replicas(desk: Desk) -> int | None:
    """How many replicas of the model see rows of their own once everything is changed that is to change."""
    ranks = desk.book.count("parallel.data")
    if ranks is None:
        return None
    for knob in SHARED:
        after = desk.changes.get(knob)
        if isinstance(after, int):
            ranks = ranks * (desk.book.count(knob) or 1) // after
    world, before = desk.changes.get("parallel.world"), desk.book.count("parallel.world")
    return ranks * world // before if isinstance(world, int) and before else ranks
