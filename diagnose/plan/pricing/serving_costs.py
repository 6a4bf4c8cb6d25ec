"""What a remedy costs where an engine serves requests and nothing is trained: answers, throughput, length; no training results."""

from __future__ import annotations

from diagnose import families
from diagnose.adapters.schema import framework_tables
from diagnose.phrases import Text, phrase
from diagnose.plan.pricing.context import Job
from diagnose.plan.rules.remedy_rules import Rule


def serves(job: Job) -> bool:
    """Whether it is an engine by itself that ran out: nothing names a trainer, a training method or a card shared with one."""
    book = job.book
    engine = book.word("log.role") == "engine" or families.of(book.word("log.family")).engine != ""
    trains = book.word("train.framework") not in (None, *framework_tables.engines()) or book.word("train.stage") is not None
    return engine and not trains and book.word("rollout.placement") is None


def price(rule: Rule, job: Job) -> Text | None:
    """The price in a server's words; None where a model is trained."""
    if not serves(job):
        return None
    if rule.serving is not None:
        return rule.serving
    results = phrase(f"plan.serving_{rule.results}")
    if rule.speed == "same":
        return results
    return phrase("plan.serving_both", results=results, speed=phrase(f"plan.serving_{rule.speed}"))
