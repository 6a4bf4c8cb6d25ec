"""The levers of a job before it runs: remedies that one key turns on, and costly remedies in effect that could be turned off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from diagnose.facts import Value
from diagnose.plan.choose.evaluation import host_of
from diagnose.plan.choose.gate import contraindicated, in_effect, too_little_host, too_unsure
from diagnose.plan.choose.growth_ladder import COSTLY
from diagnose.plan.choose.ranking import EFFORT, RESULTS, SPEED
from diagnose.plan.choose.relevance import splits
from diagnose.plan.edits.editability import edits_of, is_settable
from diagnose.plan.pricing.candidate_values import LENGTH, MICRO, changes_of
from diagnose.plan.pricing.context import Job
from diagnose.plan.remedies.remedy_rules import Rule
from diagnose.units import Size

#: Knobs that the frontier measures itself, so that no lever turns them: rows and tokens.
MEASURED = (MICRO, LENGTH, "train.token_budget", "rollout.completion_len", "rollout.prompt_len")


@dataclass(slots=True)
class Lever:
    """A remedy that one key turns on, with what it changes and costs. `to`: the value of a dial; `reverts`: it turns the remedy off."""

    remedy: str
    rule: Rule | None
    changes: dict[str, Value]
    results: str
    speed: str
    effort: str
    host: Size | None = None
    to: Value = None
    reverts: bool = False


def levers(job: Job) -> list[Lever]:
    """The remedies that this job could turn on by their own conditions, the cheapest first."""
    candidates = (make_lever(rule, job) for rule in job.rules)
    return sorted(filter(None, candidates), key=cost_rank)


def cost_rank(lever: Lever) -> tuple[int, int, int, str]:
    """Sort key, the cheapest first: the effects on results and speed, then the effort."""
    return RESULTS.index(lever.results), SPEED.index(lever.speed), EFFORT.index(lever.effort), lever.remedy


def make_lever(rule: Rule, job: Job) -> Lever | None:
    """The remedy as a lever; None where it does not apply, is contraindicated or in effect, or no key turns it on."""
    if not is_switch(rule) or not is_applicable(rule, job) or (is_dial(rule) and job.bench.fits({}) in ("yes", "likely", "unknown")):
        return None
    changes = changes_of(rule, job.bench, allowed=lambda changes: edits_of(changes, job) is not None)
    if not changes or splits(changes, job) or edits_of(changes, job) is None:
        return None
    host = host_of(rule, job, changes)
    if too_little_host(job, host) is not None:
        return None
    host_memory = host if host and host.bytes > 0 else None
    to = changes.get(rule.turns or "") if is_dial(rule) else None
    return Lever(rule.remedy, rule, changes, rule.results, rule.speed, rule.effort, host_memory, to)


def is_switch(rule: Rule) -> bool:
    """Whether the ledger prices the remedy and one key turns it on: no new hardware, no code, no knob that is measured here."""
    is_turnable = rule.turns is not None and rule.turns not in MEASURED and not any(text.endswith("%") for text in rule.to.values)
    return rule.ledger and is_turnable and rule.effort not in ("hardware", "code")


def is_dial(rule: Rule) -> bool:
    """Whether the remedy sets the largest or smallest value at which the job fits, so that it is for jobs that do not fit."""
    return rule.to.aim != "list"


def is_applicable(rule: Rule, job: Job) -> bool:
    """Whether the remedy's conditions hold for certain and the framework has a key for it."""
    holds = job.true(rule.where) is True and not (contraindicated(rule, job) or in_effect(rule, job) or too_unsure(rule, job))
    return holds and is_settable(rule, job)


def combine(candidates: Iterable[Lever], job: Job, first: Sequence[Lever] = ()) -> list[Lever]:
    """`first` and, in order, each candidate that goes with it: it turns no knob again, and its conditions hold once the levers before
    it are in effect."""
    combination = list(first)
    for lever in candidates:
        if lever in combination or any(knob in merged_changes(combination) for knob in lever.changes):
            continue
        book = job.book.changed(merged_changes(combination))
        changed_job = Job(book, job.ledgers, job.judgement, job.documents, job.reprice, job.edit, job.rules)
        if lever.rule is None or is_applicable(lever.rule, changed_job):
            combination.append(lever)
    return combination


def merged_changes(combination: Iterable[Lever]) -> dict[str, Value]:
    """The changes of all levers together."""
    return {knob: value for lever in combination for knob, value in lever.changes.items()}


def revertible_levers(job: Job) -> Iterator[Lever]:
    """A lever for each costly remedy in effect that turns it off."""
    for knob, default in COSTLY:
        current = job.book.value(knob)
        rule = next((rule for rule in job.rules if rule.turns == knob and rule.ledger), None)
        changes: Mapping[str, Value] = {knob: default}
        if current is None or current == default or rule is None or edits_of(changes, job) is None:
            continue
        yield Lever(rule.remedy, rule, dict(changes), "keep", "faster", rule.effort, reverts=True)
