"""Whether the job's framework can be told: settings to edits, and the reason where there is no key that would count."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose.adapters.schema import framework_tables
from diagnose.facts import Value, declared
from diagnose.phrases import Text
from diagnose.plan.edits import env_edits
from diagnose.plan.edits import knob_edits as knobs
from diagnose.plan.edits.ineffective_edits import why_in_vain
from diagnose.plan.edits.setting_conflicts import contradictions
from diagnose.plan.pricing.candidate_values import ACCUMULATION, candidates, with_companions
from diagnose.plan.pricing.context import Job
from diagnose.plan.rules.remedy import Edit
from diagnose.plan.rules.remedy_rules import Rule


def generic(job: Job) -> bool:
    """Whether the files are nobody's in particular: a plain script or launcher, whose own keys no table can know."""
    return all(document.framework in framework_tables.job_independent() for document in job.documents)


def written_by_hand(job: Job) -> bool:
    """Whether a script of the user's own trains: it can do whatever torch can, key or no key."""
    plain = framework_tables.of_role("plain")
    return generic(job) and "train.framework" not in job.book and any(document.framework == plain for document in job.documents)


def of_another_trainer(rule: Rule, job: Job) -> bool:
    """Whether the remedy is one of a framework's options, while a script of the user's own trains."""
    return any("train.framework" in line.names for line in rule.where) and written_by_hand(job)


def settable(rule: Rule, job: Job) -> bool:
    """Whether the job's framework has a key for the knob. Without a framework or a value to try there is nothing to refuse."""
    entry = declared(rule.turns) if rule.turns else None
    if entry is None or not entry.is_knob or env_edits.is_ours(entry.name) or written_by_hand(job):
        return True
    if not job.documents:
        told = framework_tables.table(name).of(entry.name) if (name := job.book.word("train.framework")) in framework_tables.names() else ()
        keys = [key for key in told if key.key]  # without one it is said what it does, and nothing tells it otherwise
        asked = rule.to.values if rule.to.aim == "list" else ()
        return not told or any(not asked or not key.values or {*map(str, key.values.values())} & {*asked} for key in keys)
    tried = candidates(entry.name, rule.to, job.bench)
    return not tried or any(
        edits_of(with_companions(rule, job.bench, value), job) is not None for value in tried[: len(rule.to.values) or 1]
    )


def why_not(rule: Rule, job: Job) -> Text | None:
    """The framework's own reason why a key that it has for the knob would do nothing beside what else is set."""
    tried = candidates(rule.turns, rule.to, job.bench) if rule.turns else []
    drafts = (knobs.drafted(job.documents, job.book, {rule.turns: value}) for value in tried[:1] if rule.turns)
    return next((why for edits in drafts if edits and (why := why_in_vain(job.documents, job.book, edits)) is not None), None)


def sensible(changes: Mapping[str, Value], job: Job) -> bool:
    """Whether degrees of parallelism that change can all be meant: what they contradict now, they contradicted before."""
    if not any(knob.startswith("parallel.") for knob in changes):
        return True
    return set(contradictions(job.book.changed(changes))) <= set(contradictions(job.book))


def reads_elsewhere(knob: str, job: Job) -> bool:
    """Whether the framework takes the knob from a DeepSpeed file, or has a key for it that is read but never written here."""
    held = [framework_tables.table(document.framework) for document in job.documents]
    return any((knob.startswith("zero.") and tab.file_key) or any(key.key and key.read_only for key in tab.of(knob)) for tab in held)


def edits_of(changes: Mapping[str, Value], job: Job) -> tuple[Edit, ...] | None:
    """The edits that make these changes; accumulation that the framework works out by itself needs none. None: no key for it."""
    knobs = {name: value for name, value in changes.items() if (entry := declared(name)) and entry.is_knob}
    rest = {name: value for name, value in knobs.items() if not env_edits.is_ours(name)}
    ours = env_edits.edits(changes, job.book, job.documents)
    if not rest or not job.documents:
        return ours
    edits = job.edits(rest)
    if edits is None and ACCUMULATION in rest and len(rest) > 1:
        return edits_of({name: value for name, value in rest.items() if name != ACCUMULATION}, job)
    if edits is None and written_by_hand(job):
        return ours
    return None if edits is None else (*edits, *ours)
