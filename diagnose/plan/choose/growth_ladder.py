"""Once it runs: which knob to raise next, and how far, until the card is full."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from diagnose.facts import Value
from diagnose.plan.edits.editability import edits_of
from diagnose.plan.pricing.candidate_values import ACCUMULATION, LENGTH, MICRO, MOST_ROWS
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.fit import MARGIN
from diagnose.plan.pricing.pricer import LONGEST, Changes
from diagnose.plan.pricing.reach import Past, furthest
from diagnose.plan.remedies.remedy import Rung

#: Costly remedies and what switches them off again, the costliest first.
COSTLY: tuple[tuple[str, Value], ...] = (
    ("zero.offload_param", "none"),
    ("zero.offload_optimizer", "none"),
    ("fsdp.offload", False),
    ("train.activation_offload", False),
    ("train.gradient_checkpointing", "disabled"),
)

#: What is raised in which steps: a length the plan cut, a budget of tokens.
LENGTHS, BUDGET, STEP = (LENGTH, "rollout.completion_len"), "train.token_budget", 512

#: A rung: the knob, its value before, and all that changes with it.
Step = tuple[str, Value, dict[str, Value]]


def rungs(plan: Changes, job: Job) -> tuple[Rung, ...]:
    """Steps that each fit on top of the ones before: batch, length, then costly remedies off that were on before the plan."""
    if job.bench.partial or not job.trains:
        return ()  # what is usable in training is not known from a failure in the rollout
    held: dict[str, Value] = dict(plan)
    steps: list[Rung] = []
    for step in (batch, length, *(lambda held, job, off=off: without(held, job, *off) for off in COSTLY)):
        found = step(held, job)
        if found is None:
            continue
        knob, before, changes = found
        held = {**held, **changes}
        need = job.bench.need(job.bench.after(held))
        if need is not None:
            steps.append(Rung(knob, before, changes[knob], need))
    return tuple(steps)


def batch(held: Changes, job: Job) -> Step | None:
    """The micro batch as large as fits, of the sizes that divide the rows of a step, so that less accumulation keeps those; where
    batches are packed by tokens, their budget."""
    if job.book.count(BUDGET):
        return budget(held, job)
    now, steps = held.get(MICRO, job.book.count(MICRO)), held.get(ACCUMULATION, job.book.count(ACCUMULATION))
    if not isinstance(now, int) or now < 1 or edits_of({MICRO: now * 2}, job) is None:
        return None
    if not isinstance(steps, int):
        return None  # with nothing to take off, a larger micro batch would change the effective batch
    choices: list[dict[str, Value]] = [
        {MICRO: now * times, ACCUMULATION: steps // times} for times in range(2, min(steps, MOST_ROWS // now) + 1) if steps % times == 0
    ]
    return raised(MICRO, now, choices, held, job)


def budget(held: Changes, job: Job) -> Step | None:
    """The budget of tokens per micro batch, which leaves the rows of a step as they are."""
    now = held.get(BUDGET, job.book.count(BUDGET))
    if not isinstance(now, int) or edits_of({BUDGET: now + STEP}, job) is None:
        return None
    return raised(BUDGET, now, [{BUDGET: value} for value in range((now // STEP + 1) * STEP, min(32 * now, LONGEST), STEP)], held, job)


def length(held: Changes, job: Job) -> Step | None:
    """A length that the plan lowered, back up as far as it fits beside the larger batch."""
    for knob in LENGTHS:
        now, wish = held.get(knob), job.book.count(knob)
        if isinstance(now, int) and wish is not None and now < wish <= LONGEST:
            values = [*range((now // STEP + 1) * STEP, wish, STEP), wish]
            if (found := raised(knob, now, [{knob: value} for value in values], held, job)) is not None:
                return found
    return None


def without(held: Changes, job: Job, knob: str, off: Value) -> Step | None:
    """A costly remedy off again, where it was on before and the card holds it."""
    now = job.book.value(knob)
    if knob in held or now is None or now == off or edits_of({knob: off}, job) is None:
        return None
    return (knob, now, {knob: off}) if job.bench.fits({**held, knob: off}) == "yes" else None


def raised(knob: str, now: Value, choices: Sequence[dict[str, Value]], held: Changes, job: Job) -> Step | None:
    """The last of ever larger choices that still fits; None where the first does not."""
    if not choices:
        return None
    found = furthest(over(choices, held, job), 1, len(choices))
    return (knob, now, choices[found - 1]) if found else None


def over(choices: Sequence[dict[str, Value]], held: Changes, job: Job) -> Callable[[int], Past]:
    """For `furthest`: a function of n that says by how many bytes the job with the n-th choice exceeds what surely fits; at most 0 where it
    fits, 1 or more where it does not or nobody knows."""

    def past(n: int) -> Past:
        changes = {**held, **choices[n - 1]}
        after, fitting = job.bench.after(changes), job.bench.fits(changes) == "yes"
        need, room = job.bench.need(after), job.bench.room(after)
        beyond = need.high - (1 - MARGIN) * room.bytes if need is not None and room is not None else 1.0
        return (min(beyond, 0.0) if fitting else max(beyond, 1.0),)

    return past
