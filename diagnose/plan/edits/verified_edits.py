"""The gate through which edits reach a reader: what cannot be verified is not offered as a patch but said in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from diagnose.adapters.formats.config_value import name_of
from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.facts import FactBook, file_of
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits import key_releases
from diagnose.plan.edits.edit_context import EditContext
from diagnose.plan.edits.key_spelling import has_foreign_options, names_unseen_file, parses_options
from diagnose.plan.patch.verification import EditCheck
from diagnose.plan.remedies.remedy import Edit, Plan, Remedy

if TYPE_CHECKING:
    from diagnose.plan.remedies.outlook_values import Way


def verified(
    remedies: Sequence[Remedy], plan: Plan | None, documents: Sequence[Document], book: FactBook
) -> tuple[tuple[Remedy, ...], Plan | None]:
    """The remedies and the plan with the edits that were verified. A remedy with another one keeps none of its edits, since half of
    them may do harm; the plan keeps those of its other steps. So with a key that may not be there."""
    remedies = [replace(remedy, edits=key_releases.dated(remedy.edits, documents, book)) for remedy in remedies]
    plan = plan and replace(plan, edits=key_releases.dated(plan.edits, documents, book))
    check = EditCheck(documents)
    steps = {remedy.id: remedy for remedy in remedies if plan is not None and remedy.id in plan.steps}
    knobs = {knob: value for remedy in steps.values() for knob, value in remedy.knobs}
    doubts = {remedy.id: doubt for remedy in remedies if (doubt := _doubt(remedy.edits, documents, book))}
    is_sound = plan is not None and not doubts.keys() & steps.keys() and check.passes(plan.edits) and check.has_values(plan.edits, knobs)
    in_plan = set(plan.edits) if plan is not None and is_sound else set()
    refused = doubts.keys() | {remedy.id for remedy in remedies if not in_plan.issuperset(remedy.edits) and not check.passes(remedy.edits)}
    if plan is not None and not is_sound:
        plan, failed = _without_failing_steps(plan, steps, refused, check)
        refused |= failed
    said = (_in_words(remedy, documents, doubts.get(remedy.id, "plan.by_hand")) if remedy.id in refused else remedy for remedy in remedies)
    return tuple(said), plan


def _doubt(edits: Sequence[Edit], documents: Sequence[Document], book: FactBook) -> str:
    """The phrase for edits that add a key which the newest release that may be in use gave up or has so by itself, an option that a
    script which was not given, or a fork, may not take, or more cards than the program may see; empty without doubt."""
    context, idle = EditContext(tuple(documents), book, {}), 0
    for edit in edits:
        own = [document for document in documents if document.name == edit.target]
        found = [(document, keys) for document in own if (keys := framework_tables.table(document.framework).named(name_of(edit.key)))]
        if found and any(context.is_beyond_visible(key.knob, edit.to) for key in found[0][1]):
            return "plan.by_cards"
        if not found or edit.frm is not None or edit.to is None or any(key.struct for key in found[0][1]):
            continue
        document, keys = found[0]
        if all(context.is_given_up(document, key) for key in keys):
            return "plan.by_release"
        if not parses_options(document) or (
            has_foreign_options(document) and all(_is_newer(document, key) or context.declares(document, key) is not True for key in keys)
        ):
            return "plan.by_script"
        if names_unseen_file(document, documents) and any(key.needs for key in keys):
            return "plan.by_hand"
        idle += any(context.is_newest_default(document, key, edit.to) for key in keys)
    return "plan.by_default" if edits and idle == len(edits) else ""


def _is_newer(document: Document, key: Key) -> bool:
    """Whether a fork of a program with one configuration of its own, which refuses other keys, may be older than the key."""
    return framework_tables.table(document.framework).interpolates and key.releases.low is not None


def verified_ways(ways: Sequence[Way], documents: Sequence[Document], book: FactBook) -> tuple[Way, ...]:
    """The ways of an outlook, without the edits of those that cannot be verified."""
    check = EditCheck(documents)
    return tuple(replace(way, edits=key_releases.dated(way.edits, documents, book) if check.passes(way.edits) else ()) for way in ways)


def _without_failing_steps(plan: Plan, remedies: Mapping[str, Remedy], refused: set[str], check: EditCheck) -> tuple[Plan, set[str]]:
    """The plan with the edits of the steps that pass one after another, and the steps whose edits do not."""
    rest, kept, failed = list(plan.edits), list[Edit](), set[str]()
    for step in plan.steps:
        keys = {(edit.target, edit.key) for edit in remedies[step].edits} if step in remedies else set()
        own = [edit for edit in rest if (edit.target, edit.key) in keys]
        rest = [edit for edit in rest if edit not in own]
        values = dict(remedies[step].knobs) if step in remedies else {}
        if step not in refused and check.passes([*kept, *own]) and check.has_values([*kept, *own], values):
            kept += own
        else:
            failed.add(step)
    if check.passes([*kept, *rest]):
        kept += rest
    return replace(plan, edits=tuple(edit for edit in plan.edits if edit in kept)), failed


def _in_words(remedy: Remedy, documents: Sequence[Document], reason: str) -> Remedy:
    """The remedy with its edits as a sentence, beside the command that it may have."""
    sentence = phrase(reason, changes=_listed([_change(edit, documents) for edit in remedy.edits]))
    command = sentence if remedy.command is None else _listed([remedy.command, sentence])
    return replace(remedy, edits=(), command=command)


def _change(edit: Edit, documents: Sequence[Document]) -> Text:
    """One edit in words: where, which key, which value, from which release on."""
    return key_releases.said(_plain_change(edit, documents), edit.since)


def _plain_change(edit: Edit, documents: Sequence[Document]) -> Text:
    entries = (entry for document in documents if document.name == edit.target for entry in document.entries if entry.key == edit.key)
    line = next((entry.line for entry in entries if entry.line), 0)
    name = file_of(edit.target)
    place = f"{name}:{line}" if line else name
    key = edit.renamed or edit.key
    if edit.to is None and not edit.renamed:
        return phrase("plan.by_hand_removed", place=same(place), name=same(key))
    if edit.to == "":
        return phrase("plan.by_hand_added", place=same(place), name=same(key))
    return phrase("plan.by_hand_set", place=same(place), name=same(key), value=same(edit.to if edit.to is not None else edit.frm or ""))


def _listed(texts: Sequence[Text]) -> Text:
    separator = phrase("plan.by_hand_next")
    return Text(separator.en.join(text.en for text in texts), separator.zh.join(text.zh for text in texts))
