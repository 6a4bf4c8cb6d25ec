"""Whether an edit keeps the rows of an optimizer step; where it cannot, what is to be said."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.spellings import Key
from diagnose.facts import Value, declared
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits import env_edits
from diagnose.plan.edits.edit_context import Desk
from diagnose.plan.edits.key_fitting import stands
from diagnose.plan.pricing.candidate_values import ACCUMULATION, MICRO, SHARED, WORLD, says_rows
from diagnose.plan.pricing.context import Job
from diagnose.plan.rules.remedy import Edit


def lost(changes: Mapping[str, Value], job: Job) -> Text | None:
    """What to say where the rows of a step cannot be kept: more accumulation is wanted and the framework cannot be told, or less of it
    than there is; None where they can be."""
    knobs = {name: value for name, value in changes.items() if (entry := declared(name)) and entry.is_knob}
    rest = {name: value for name, value in knobs.items() if not env_edits.is_ours(name)}
    before = job.book.count(ACCUMULATION)
    world, cards = changes.get(WORLD), job.book.count(WORLD)
    if isinstance(world, int) and cards and world > cards and before and ACCUMULATION not in changes and not says_rows(job.book):
        return phrase("plan.more_rows", times=world // cards)
    if not job.documents or ACCUMULATION not in rest or job.edit(job.documents, job.book, rest) is not None:
        return None
    for document in job.documents:
        tab = framework_tables.table(document.framework)
        for key in (*tab.of(ACCUMULATION), *tab.of("train.global_batch")):
            if not key.key or key.read_only:
                continue
            if not stands(document, key):
                return phrase("plan.cannot_accumulate", name=key.key, other=_in_the_way(document, key))
            micro = job.book.count(MICRO)
            if key.knob == "train.global_batch" and micro is not None and before is not None:
                return phrase("plan.tell_rows", name=key.key, rows=same(str(micro * before)))
    return None


def _in_the_way(document: Document, key: Key) -> str:
    """The keys beside which this one cannot be used, as they stand in the document."""
    return ", ".join(entry.key for entry in document.entries if entry.key.lstrip("-") in (key.where or {}))


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
