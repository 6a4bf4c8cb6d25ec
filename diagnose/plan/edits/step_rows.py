"""Whether an edit keeps the rows of an optimizer step; where it cannot, what is to be said."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.spellings import Key
from diagnose.facts import Value, declared
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits import env_edits
from diagnose.plan.edits.key_fitting import stands
from diagnose.plan.pricing.candidate_values import ACCUMULATION, MICRO, WORLD, says_rows
from diagnose.plan.pricing.context import Job


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
