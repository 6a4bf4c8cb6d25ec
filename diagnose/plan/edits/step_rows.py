"""Rows per optimizer step: whether edits keep their number, and frameworks whose key is the global batch instead of accumulation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.facts import Value, declared
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits import env_edits
from diagnose.plan.edits.edit_context import EditContext
from diagnose.plan.edits.key_spelling import is_usable
from diagnose.plan.pricing.candidate_values import ACCUMULATION, MICRO, SHARED, WORLD, says_rows
from diagnose.plan.pricing.context import Job
from diagnose.plan.remedies.remedy import Edit


def lost_rows(changes: Mapping[str, Value], job: Job) -> Text | None:
    """Why the changes alter the number of rows per optimizer step: no key can raise the accumulation, or there is too little of it to
    lower; None where the number stays."""
    knobs = {name: value for name, value in changes.items() if (entry := declared(name)) and entry.is_knob}
    own_knobs = {name: value for name, value in knobs.items() if not env_edits.is_allocator_knob(name)}
    accumulation = job.book.count(ACCUMULATION)
    world, cards = changes.get(WORLD), job.book.count(WORLD)
    if isinstance(world, int) and cards and world > cards and accumulation and ACCUMULATION not in changes and not says_rows(job.book):
        return phrase("plan.more_rows", times=world // cards)
    if not job.documents or ACCUMULATION not in own_knobs or job.edit(job.documents, job.book, own_knobs) is not None:
        return None
    for document in job.documents:
        table = framework_tables.table(document.framework)
        for key in (*table.of(ACCUMULATION), *table.of("train.global_batch")):
            if not key.key or key.read_only:
                continue
            if not is_usable(document, key):
                return phrase("plan.cannot_accumulate", name=key.key, other=_conflicting_keys(document, key))
            micro = job.book.count(MICRO)
            if key.knob == "train.global_batch" and micro is not None and accumulation is not None:
                return phrase("plan.tell_rows", name=key.key, rows=same(str(micro * accumulation)))
    return None


def _conflicting_keys(document: Document, key: Key) -> str:
    """The keys of the document beside which this one cannot be used."""
    return ", ".join(entry.key for entry in document.entries if entry.key.lstrip("-") in (key.where or {}))


def global_batch_edits(
    context: EditContext, steps: Value, edit_knob: Callable[[EditContext, str, Value], list[Edit] | None]
) -> list[Edit] | None:
    """Accumulation of `steps` where the framework's key is the global batch: none where that is known, since accumulation follows it by
    itself, else its edit.

    None where the framework has no such key or the rows of a step are unknown. `edit_knob` makes the edit of one knob.
    """
    keys = [key for document in context.documents for key in framework_tables.table(document.framework).keys if key.addable]
    if all(key.knob != "train.global_batch" for key in keys) or any(key.knob == "train.gradient_accumulation" for key in keys):
        return None
    if context.book.count("train.global_batch"):
        return []
    micro, replicas = context.changes.get("train.micro_batch_size", context.book.value("train.micro_batch_size")), _replicas(context)
    is_known = isinstance(steps, int) and isinstance(micro, int) and replicas and context.book.count("train.gradient_accumulation")
    if not is_known:
        return None
    return edit_knob(context, "train.global_batch", int(steps) * int(micro) * int(replicas))  # type: ignore[arg-type]


#: A value that the file computes when it runs: a shell's substitution, or a division in Python.
_COMPUTED = lazy_compile(r"\$\(|`|//|\w\s*/\s*\w")

#: What a script asks its machine for.
_ASKED = lazy_compile(r"\$\((?!\()|`")


def computed_edits(context: EditContext, document: Document, knob: str, value: Value, entry: Entry) -> list[Edit] | None:
    """The edit of a value that the file computes from what is not known here; None where a new value may take its place. An unknown
    accumulation is multiplied, or follows the micro batch from which it is computed; the cards that a script counts stay counted."""
    if knob == WORLD and _ASKED.search(entry.written):
        return []
    steps = context.book.fact(ACCUMULATION)
    is_known = steps is not None and steps.value is not None and steps.origin != "default"
    if knob != ACCUMULATION or is_known or not isinstance(value, int) or not _COMPUTED.search(entry.written):
        return None
    if any(_is_computed_from(document, entry, setter) for setter in context.setters(document, MICRO)) or value == 1:
        return []
    whole = re.fullmatch(r"\$\(\((.*)\)\)", entry.written.strip("\"'"), re.DOTALL)
    inner = whole[1].strip() if whole else entry.written.strip("\"'")
    product = f"{inner} * {value}" if re.fullmatch(r"[\w\s$./*{}]+", inner) or not whole else f"({inner}) * {value}"
    new = f"({inner}) * {value}" if document.form == "python" else f"$(({product}))"
    return [Edit(document.name, entry.key, entry.written, new)]


def _is_computed_from(document: Document, entry: Entry, other: Entry) -> bool:
    """Whether an edit of one value changes the variable that another one is computed from."""
    assigned = re.search(r"(?:^|[\s;])(\w+)\s*=\s*[\"']?$", document.text[max(0, other.start - 80) : other.start])
    return assigned is not None and re.search(rf"\b{assigned[1]}\b", entry.written) is not None


def _replicas(context: EditContext) -> int | None:
    """Number of data-parallel replicas of the model after all changes."""
    replicas = context.book.count("parallel.data")
    if replicas is None:
        return None
    for knob in SHARED:
        degree = context.changes.get(knob)
        if isinstance(degree, int):
            replicas = replicas * (context.book.count(knob) or 1) // degree
    world, before = context.changes.get("parallel.world"), context.book.count("parallel.world")
    return replicas * world // before if isinstance(world, int) and before else replicas
