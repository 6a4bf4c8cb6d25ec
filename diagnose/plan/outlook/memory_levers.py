"""The switches that a job has before it runs: remedies that one key turns on, and costly ones in effect that could be turned off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from diagnose.facts import Value
from diagnose.plan.choose.evaluation import host_of
from diagnose.plan.choose.growth_ladder import COSTLY
from diagnose.plan.choose.ranking import EFFORT, RESULTS, SPEED
from diagnose.plan.choose.rejections import contraindicated, in_effect, too_little_host, too_unsure
from diagnose.plan.choose.relevance import splits
from diagnose.plan.edits.editability import edits_of, settable
from diagnose.plan.pricing.candidate_values import LENGTH, MICRO, changes_of
from diagnose.plan.pricing.context import Job
from diagnose.plan.rules.remedy_rules import Rule
from diagnose.record import record
from diagnose.units import Size

#: What the frontier itself measures: how many rows, how many tokens.
MEASURED = (MICRO, LENGTH, "train.token_budget", "rollout.completion_len", "rollout.prompt_len")


@record
class Lever:
    """A switch with what it changes and costs. `to`: where a dial is turned to; `off`: it turns a costly remedy off again."""

    remedy: str
    rule: Rule | None
    changes: dict[str, Value]
    results: str
    speed: str
    effort: str
    host: Size | None = None
    to: Value = None
    off: bool = False


def levers(job: Job) -> list[Lever]:
    """The remedies that this job could switch on, the cheapest first: the remedies' own conditions decide."""
    found = (lever_of(rule, job) for rule in job.rules)
    return sorted(filter(None, found), key=cost)


def cost(lever: Lever) -> tuple[int, int, int, str]:
    return RESULTS.index(lever.results), SPEED.index(lever.speed), EFFORT.index(lever.effort), lever.remedy


def lever_of(rule: Rule, job: Job) -> Lever | None:
    """The remedy as a switch; None where it does not apply, is contraindicated or in effect, or no key turns it."""
    if not may_be_turned(rule) or not applies(rule, job) or (is_dial(rule) and job.bench.fits({}) in ("yes", "likely", "unknown")):
        return None
    changes = changes_of(rule, job.bench, allowed=lambda changes: edits_of(changes, job) is not None)
    if not changes or splits(changes, job) or edits_of(changes, job) is None:
        return None
    host = host_of(rule, job, changes)
    if too_little_host(job, host) is not None:
        return None
    takes = host if host and host.bytes > 0 else None
    to = changes.get(rule.turns or "") if is_dial(rule) else None
    return Lever(rule.remedy, rule, changes, rule.results, rule.speed, rule.effort, takes, to)


def may_be_turned(rule: Rule) -> bool:
    """Whether it is priced by the ledger and one key in a file turns it: no new hardware, no code, not what is measured here."""
    turned = rule.turns is not None and rule.turns not in MEASURED and not any(text.endswith("%") for text in rule.to.values)
    return rule.ledger and turned and rule.effort not in ("hardware", "code")


def is_dial(rule: Rule) -> bool:
    """Whether it has no value of its own but the largest at which the job fits: for a job that does not."""
    return rule.to.aim != "list"


def applies(rule: Rule, job: Job) -> bool:
    """Whether its conditions hold for sure and there is a key for it."""
    held = job.true(rule.where) is True and not (contraindicated(rule, job) or in_effect(rule, job) or too_unsure(rule, job))
    return held and settable(rule, job)


def together(some: Iterable[Lever], job: Job, before: Sequence[Lever] = ()) -> list[Lever]:
    """`before` and as many of the others as go with it, in order: no knob is turned twice, and the conditions of each hold once
    those before it are in effect."""
    chosen = list(before)
    for lever in some:
        if lever in chosen or any(knob in merged(chosen) for knob in lever.changes):
            continue
        then = Job(job.book.changed(merged(chosen)), job.ledgers, job.judgement, job.documents, job.reprice, job.edit, job.rules)
        if lever.rule is None or applies(lever.rule, then):
            chosen.append(lever)
    return chosen


def merged(chosen: Iterable[Lever]) -> dict[str, Value]:
    return {knob: value for lever in chosen for knob, value in lever.changes.items()}


def reverted(job: Job) -> Iterator[Lever]:
    """Costly remedies that are in effect, each switched off."""
    for knob, off in COSTLY:
        now = job.book.value(knob)
        rule = next((rule for rule in job.rules if rule.turns == knob and rule.ledger), None)
        changes: Mapping[str, Value] = {knob: off}
        if now is None or now == off or rule is None or edits_of(changes, job) is None:
            continue
        yield Lever(rule.remedy, rule, dict(changes), "keep", "faster", rule.effort, off=True)
