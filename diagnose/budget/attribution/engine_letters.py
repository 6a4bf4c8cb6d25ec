"""What an inference engine counts with: the letters of its own tensors (rules/tensors.yaml, `engine`)."""

from __future__ import annotations

from diagnose.budget.model.formulas import Number
from diagnose.budget.model.role_setup import Setup

#: Letters and the settings or printed figures that say them: sequences at once, tokens of one pass, tokens that the cache holds.
SAID = {"n_q": "rollout.max_num_seqs", "n_b": "rollout.prefill_tokens", "n_kv": "rollout.cache_tokens"}


def letters(job: Setup) -> dict[str, Number]:
    """The model's dimensions, over how many cards the engine divides it, and how much it takes at once. What nobody says is left out."""
    book = job.book
    engine: dict[str, Number] = {**job.values, "t_e": book.count("rollout.tensor_parallel") or 1}
    engine |= {letter: count for letter, name in SAID.items() if (count := book.count(name))}
    cache = book.size("rollout.cache_memory")
    return engine if cache is None else {**engine, "C_kv": cache.bytes}
