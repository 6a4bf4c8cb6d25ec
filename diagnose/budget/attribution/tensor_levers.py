"""What lowers a tensor: the knobs that its formula follows, each with its power."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from diagnose.budget.attribution.tensor_candidate import evaluate_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from diagnose.budget.attribution.tensor_candidate import Candidate
    from diagnose.budget.model.formulas import Number
    from diagnose.budget.model.role_setup import Setup

#: The letters of formulas that grow in proportion to a knob.
LETTERS = {
    "train.max_seq_len": ("s", "T", "p"),
    "train.micro_batch_size": ("b", "B", "T"),
    "rollout.completion_len": ("G",),
    "data.image_size": ("x",),
    "data.image_pixels": ("n_v", "n_i", "n_l"),
    "data.images_per_sample": ("n_v",),
    "lora.rank": ("r",),
    "zero.reduce_bucket": ("R",),
    "zero.sub_group": ("S",),
    "parallel.world": ("N",),
    "rollout.max_num_seqs": ("n_q",),
    "rollout.prefill_tokens": ("n_b",),
    "rollout.tensor_parallel": ("t_e",),
}
LENGTH, ROWS, COMPLETION, BUDGET, CONTEXT = (
    "train.max_seq_len",
    "train.micro_batch_size",
    "rollout.completion_len",
    "train.token_budget",
    "parallel.context",
)


def levers(candidate: Candidate, job: Setup, rows_knob: str) -> dict[str, float]:
    """The power of every knob in the tensor's bytes: 2 where half the value leaves a quarter, -1 where twice the value leaves half.
    `rows_knob`: what sets the rows of this pass instead of train.micro_batch_size."""
    powers: dict[str, float] = {}
    for knob, letters in LETTERS.items():
        values: Mapping[str, Number] = candidate.values
        scaled = {letter: 2 * value for letter in letters if isinstance(value := values.get(letter), (int, float))}
        size = evaluate_bytes(candidate.symbols, {**values, **scaled}) if scaled else None
        power = round(log2(size / candidate.bytes), 1) if size else 0.0
        if power:
            powers[knob] = power
    return of_this_pass(powers, job, rows_knob) | ({CONTEXT: -1.0} if ROWS in powers else {})


def of_this_pass(powers: dict[str, float], job: Setup, rows_knob: str) -> dict[str, float]:
    """The powers with the knobs that set rows and length of the failed pass."""
    return {**_of_the_pass(powers, rows_knob, job), **_of_completions(powers, job)}


def _of_the_pass(powers: dict[str, float], rows_knob: str, job: Setup) -> dict[str, float]:
    """The powers with the knob that sets the rows of this pass; where micro batches are filled by tokens, that is their budget."""
    if ROWS not in powers:
        return powers
    by_tokens = rows_knob == ROWS and bool(job.book.count(BUDGET))
    return {(BUDGET if by_tokens else rows_knob) if knob == ROWS else knob: power for knob, power in powers.items()}


def _of_completions(powers: dict[str, float], job: Setup) -> dict[str, float]:
    """The power of the longest completion where rows are a prompt and a completion: that of the length, by the completion's part of it."""
    completion, length = job.book.count(COMPLETION), job.values.get("s")
    if LENGTH not in powers or COMPLETION in powers or not completion or not isinstance(length, int) or length < completion:
        return {}
    return {COMPLETION: round(powers[LENGTH] * completion / length, 1)}
