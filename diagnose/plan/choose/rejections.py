"""Advice that does not apply or would do harm here, each with its one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnose import rule_files
from diagnose.catalogue import sizes_sold
from diagnose.facts import Fact, Value
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits.sentences import fact_name, fill_facts, source_text, value_text
from diagnose.plan.pricing.candidate_values import value_for
from diagnose.plan.pricing.context import Job
from diagnose.plan.rules.remedy_rules import Rule
from diagnose.units import Size, show


def contraindicated(rule: Rule, job: Job) -> Text | None:
    """The reason of the first contraindication that holds for sure; None where none does."""
    for unless in rule.not_when:
        if job.true(unless.all) is True:
            return fill_facts(unless.reason, job)
    return None


def too_unsure(rule: Rule, job: Job) -> Text | None:
    """The reason of the first contraindication that counts even where nobody knows whether it holds."""
    for unless in rule.not_when:
        if unless.even_unknown and job.true(unless.all) is None:
            return fill_facts(unless.reason, job)
    return None


def in_effect(rule: Rule, job: Job) -> Text | None:
    """Says so, with value and witness, where the knob already has what the rule would set, or can go no further."""
    fact = job.book.fact(rule.turns) if rule.turns else None
    if rule.turns is None or fact is None or fact.value is None:
        return None
    if fact.value in wanted(rule, job):
        return phrase("plan.in_effect", **told(fact))
    lowering = rule.to.aim == "largest" or any(text.endswith("%") and float(text[:-1]) < 100 for text in rule.to.values)
    floor = rule.to.least or (0 if isinstance(fact.value, float) else 1)  # a share has no least step
    if lowering and isinstance(fact.value, (int, float)) and not isinstance(fact.value, bool) and fact.value <= floor:
        return (
            phrase("plan.at_floor", least=same(f"{int(floor):,}"), **told(fact)) if floor > 1 else phrase("plan.at_minimum", **told(fact))
        )
    return None


def wanted(rule: Rule, job: Job) -> list[Value]:
    """The values that count as in effect: those the rule would set, and those at least as good."""
    if rule.turns is None:
        return []
    fixed = [text for text in rule.to.values if not text.endswith("%")] if rule.to.aim == "list" else []
    return [value_for(rule.turns, text, job.book) for text in (*fixed, *rule.already)]


def told(fact: Fact) -> dict[str, Text]:
    return {"knob": fact_name(fact.name), "value": value_text(fact.value), "witness": source_text(fact)}


def too_little_host(job: Job, host: Size | None) -> Text | None:
    """Says so where the node is known to have less memory than the remedy would take."""
    ram = job.book.size("log.container_limit") or job.book.size("host.ram")
    if host is None or ram is None or host.low <= ram.high:
        return None
    return phrase("plan.host_too_small", host=show(host.bytes), ram=str(ram))


def too_little_card(job: Job, changes: Mapping[str, Value]) -> Text | None:
    """Says so where what comes back from the host would not fit on the card; where nobody says which card it is, on none that is sold."""
    bench = job.bench
    if bench.fits({}) == "no":
        return None
    after = bench.after(changes)
    peak = bench.need(after)
    if peak is None or after is None or not after.complete:
        return None
    if bench.usable is None:
        largest = sizes_sold()[-1][1]
        return phrase("plan.no_card_holds", peak=show(peak.bytes)) if peak.low > largest.high else None
    return phrase("plan.card_too_small", peak=show(peak.bytes), usable=show(bench.usable.bytes)) if bench.fits(changes) == "no" else None
