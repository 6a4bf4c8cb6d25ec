"""Undecided cause rules that one fact would settle, each with the way to learn that fact."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from diagnose import families, rule_files, vocabulary
from diagnose.phrases import Text, phrase
from diagnose.plan.pricing.context import Job
from diagnose.plan.questions.askable_facts import answer_option, how_to_learn, is_askable, is_irrelevant
from diagnose.plan.remedies.remedy import Unsettled

#: How many rules are listed for one fact, and in all.
MOST_OF_A_FACT, MOST = 3, 8

#: Facts of torch's OOM message (one stands for all), and the part of a fuller log that would state a fact, as in `plan.how_PART`.
_MESSAGE_FACTS = ("log.requested", "log.capacity", "log.free", "log.allocated", "log.reserved_unallocated", "log.process_in_use")
_LOG_PARTS = {"log.requested": "message", "log.phase": "traceback", "log.step": "progress", "log.memory_grows": "series"}


def unsettled(job: Job) -> tuple[Unsettled, ...]:
    """Undecided rules that one learnable fact would settle; the fact that settles most causes first, of each cause one rule.

    Left out: rules whose cause is known or impossible here, that lack more facts, or whose fact nobody can learn.
    """
    known_causes = {cause.cause for cause in job.judgement.causes}
    by_fact: dict[str, dict[str, Unsettled]] = {}
    facts_to_learn, instructions = cache(partial(missing_facts, job=job)), cache(partial(how_to_settle, job=job))
    for verdict in job.judgement.undecided:
        if job.on_host:
            is_irrelevant_here = verdict.cause not in vocabulary.having("fills_host")
        else:
            is_irrelevant_here = not job.trains and verdict.cause in vocabulary.having("causes_of_training")
        if verdict.cause in known_causes or is_irrelevant_here:
            continue
        facts = {fact for name in verdict.lacks for fact in facts_to_learn(name)}
        if len(facts) != 1:
            continue
        (fact,) = facts
        if (instruction := instructions(fact)) is not None:
            by_fact.setdefault(fact, {}).setdefault(verdict.cause, Unsettled(verdict.rule, verdict.title, fact, instruction))
    all_causes: Sequence[str] = rule_files.table("vocabulary")["cause"]
    most_useful = sorted(by_fact.values(), key=lambda causes: -len(causes))
    rules = [causes[word] for causes in most_useful for word in sorted(causes, key=partial(_position, all_causes))[:MOST_OF_A_FACT]]
    return tuple(rules[:MOST])


def _position(all_causes: Sequence[str], cause: str) -> int:
    return all_causes.index(cause) if cause in all_causes else len(all_causes)


def missing_facts(fact: str, job: Job) -> list[str]:
    """The facts to learn: the fact itself; for a derived one the inputs that its computation lacks."""
    if fact in _MESSAGE_FACTS:
        return ["log.requested"]
    if not fact.startswith(("ledger.", "attribution.")):
        return [fact]
    before = job.bench.before
    gaps = before.unknown if before is not None else ("model.shape",)
    lacks_message = fact.startswith("attribution.") and job.book.size("log.requested") is None
    next_gap = [gap for gap in gaps if not job.bench.stated(gap)][:1]  # the first decides whether the others matter
    return [*(["log.requested"] if lacks_message else []), *next_gap] or [fact]


def how_to_settle(fact: str, job: Job) -> Text | None:
    """How a user learns the fact, in a sentence; None where nobody can."""
    has_torch_message = job.book.switch("log.on_card") is True and families.of(job.book.word("log.family")).allocator != ""
    if (part := _LOG_PARTS.get(fact)) is not None:
        return phrase(f"plan.how_{part}") if has_torch_message else None
    if fact.startswith("snapshot."):
        return phrase("plan.how_snapshot") if has_torch_message else None
    if is_irrelevant(fact, job) or (fact != "model.shape" and not is_askable(fact, job)):
        return None
    return phrase("plan.how_by", how=how_to_learn(fact, job), option=answer_option(fact))
