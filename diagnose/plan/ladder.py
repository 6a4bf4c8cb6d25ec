"""Once it runs: which knob to raise next, and how far, until the card is full."""

from __future__ import annotations

from diagnose.facts import Value
from diagnose.plan.job import Job
from diagnose.plan.price import Changes
from diagnose.plan.remedy import Rung
from diagnose.plan.values import ACCUMULATION, MICRO, accumulation
from diagnose.plan.weigh import edits_of

#: Costly remedies and what switches them off again, the costliest first.
COSTLY: tuple[tuple[str, Value], ...] = (
    ("zero.offload_param", "none"),
    ("zero.offload_optimizer", "none"),
    ("fsdp.offload", False),
    ("train.activation_offload", False),
    ("train.gradient_checkpointing", "disabled"),
)
DOUBLINGS = 4


def rungs(plan: Changes, job: Job) -> tuple[Rung, ...]:
    """Steps that each fit on top of the ones before: batch, length, then costly remedies off that were on before the plan."""
    if job.bench.partial:
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


def batch(held: Changes, job: Job) -> tuple[str, Value, dict[str, Value]] | None:
    """The micro batch doubled as often as it fits, accumulation lowered by as much."""
    now = held.get(MICRO, job.book.count(MICRO))
    if not isinstance(now, int) or edits_of({MICRO: now * 2}, job) is None:
        return None
    best: dict[str, Value] = {}
    for power in range(1, DOUBLINGS + 1):
        changes: dict[str, Value] = {MICRO: now * 2**power}
        steps = held.get(ACCUMULATION, job.book.count(ACCUMULATION))
        if isinstance(steps, int) and steps % 2**power == 0:
            changes[ACCUMULATION] = steps // 2**power
        elif isinstance(steps, int) or accumulation(job.bench, 1) is not None:
            break  # nothing left to take off: a larger micro batch would change the effective batch
        if job.bench.fits({**held, **changes}) != "yes":
            break
        best = changes
    return (MICRO, now, best) if best else None


def length(held: Changes, job: Job) -> tuple[str, Value, dict[str, Value]] | None:
    """A length that the plan lowered, back up as far as it fits beside the larger batch."""
    for knob, step in (("train.max_seq_len", 512), ("rollout.completion_len", 512)):
        now, wish = held.get(knob), job.book.count(knob)
        if not isinstance(now, int) or wish is None or wish <= now:
            continue
        room = (
            [value for value in range(wish, now, -step) if job.bench.fits({**held, knob: value}) == "yes"][:1]
            if wish - now <= 8 * step
            else []
        )
        if room:
            return knob, now, {knob: room[0]}
    return None


def without(held: Changes, job: Job, knob: str, off: Value) -> tuple[str, Value, dict[str, Value]] | None:
    """A costly remedy off again, where it was on before and the card holds it."""
    now = job.book.value(knob)
    if knob in held or now is None or now == off or edits_of({knob: off}, job) is None:
        return None
    return (knob, now, {knob: off}) if job.bench.fits({**held, knob: off}) == "yes" else None
