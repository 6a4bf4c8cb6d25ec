"""What could not be judged, where somebody can settle it: the few rules that lack one fact each, with the way to learn it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from diagnose import families, rule_files, vocabulary
from diagnose.phrases import Text, phrase
from diagnose.plan.pricing.context import Job
from diagnose.plan.questions.open_questions import askable, how, of_training, option
from diagnose.plan.rules.remedy import Unsettled

#: Rules that are named for one fact, and in all.
EACH, MOST = 3, 8

#: What a fuller log would say, by the fact that stands for it, and how that is asked for.
_MESSAGE = ("log.requested", "log.capacity", "log.free", "log.allocated", "log.reserved_unallocated", "log.process_in_use")
_IN_THE_LOG = {"log.requested": "message", "log.phase": "traceback", "log.step": "progress", "log.memory_grows": "series"}


def unsettled(job: Job) -> tuple[Unsettled, ...]:
    """The fact that would settle most causes first; of each cause one rule, in the order of the vocabulary. Left out: rules that lack more
    than that fact, whose cause is known, or whose fact only a log can show that shows nothing of the kind."""
    known = {cause.cause for cause in job.judgement.causes}
    by_fact: dict[str, dict[str, Unsettled]] = {}
    lacks, ways = cache(partial(lacking, job=job)), cache(partial(way_to, job=job))
    for verdict in job.judgement.undecided:
        beside_the_point = (
            verdict.cause not in vocabulary.having("fills_host")
            if job.on_host
            else not job.trains and verdict.cause in vocabulary.having("causes_of_training")
        )
        if verdict.cause in known or beside_the_point:
            continue
        facts = {fact for name in verdict.lacks for fact in lacks(name)}
        if len(facts) != 1:
            continue
        (fact,) = facts
        if (way := ways(fact)) is not None:
            by_fact.setdefault(fact, {}).setdefault(verdict.cause, Unsettled(verdict.rule, verdict.title, fact, way))
    order: Sequence[str] = rule_files.table("vocabulary")["cause"]
    first = sorted(by_fact.values(), key=lambda causes: -len(causes))
    return tuple(causes[word] for causes in first for word in sorted(causes, key=partial(place, order))[:EACH])[:MOST]


def place(order: Sequence[str], word: str) -> int:
    return order.index(word) if word in order else len(order)


def lacking(fact: str, job: Job) -> list[str]:
    """What has to be learned: the fact itself; for what is worked out, what the arithmetic lacks."""
    if fact in _MESSAGE:
        return ["log.requested"]
    if not fact.startswith(("ledger.", "attribution.")):
        return [fact]
    before = job.bench.before
    gaps = before.unknown if before is not None else ("model.shape",)
    unread = fact.startswith("attribution.") and job.book.size("log.requested") is None
    missing = [gap for gap in gaps if not job.bench.stated(gap)][:1]  # the first decides whether the others matter
    return [*(["log.requested"] if unread else []), *missing] or [fact]


def way_to(fact: str, job: Job) -> Text | None:
    """How a person learns it; None where nobody can but a log that does not say it."""
    printed = job.book.switch("log.on_card") is True and families.of(job.book.word("log.family")).allocator != ""
    if (part := _IN_THE_LOG.get(fact)) is not None:
        return phrase(f"plan.how_{part}") if printed else None
    if fact.startswith("snapshot."):
        return phrase("plan.how_snapshot") if printed else None
    if of_training(fact, job) or (fact != "model.shape" and not askable(fact, job)):
        return None
    return phrase("plan.how_by", how=how(fact, job), option=option(fact))
