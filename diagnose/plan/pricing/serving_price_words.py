"""Prices of remedies for a job that serves requests: effects on answers, throughput and length instead of on training."""

from __future__ import annotations

from diagnose import families
from diagnose.adapters.schema import framework_tables
from diagnose.phrases import Text, phrase
from diagnose.plan.pricing.context import Job
from diagnose.plan.remedies.remedy_rules import Rule


def serves(job: Job) -> bool:
    """Whether an inference engine of its own ran out: no fact names a trainer, a training method or a card shared with one."""
    if job.regime == "serve":
        return True
    book = job.book
    engine = book.word("log.role") == "engine" or families.of(book.word("log.family")).engine != ""
    trains = book.word("train.framework") not in (None, *framework_tables.engines()) or book.word("train.stage") is not None
    return engine and not trains and book.word("rollout.placement") is None


def price(rule: Rule, job: Job) -> Text | None:
    """The price in terms of serving; None for a job that trains."""
    if not serves(job):
        return None
    if (said := rule.serving_in.get(job.book.word("run.program") or "", rule.serving)) is not None:
        return said
    results = phrase(f"plan.serving_{rule.results}")
    if rule.speed == "same":
        return results
    return phrase("plan.serving_both", results=results, speed=phrase(f"plan.serving_{rule.speed}"))
