"""How long the rows of the failed batch were, as the request implies."""

from __future__ import annotations

import re
from math import isqrt

from diagnose.budget.model.job_roles import roles
from diagnose.budget.model.ledger import Attribution
from diagnose.budget.model.role_setup import setup
from diagnose.budget.model.software_table import table
from diagnose.budget.moments import other_passes
from diagnose.facts import Fact, FactBook, Witness


def length_facts(book: FactBook, attributions: tuple[Attribution, ...]) -> list[Fact]:
    """Tokens of the failed forward pass from the best attribution, where it is the tensor; then tokens per row.

    A rollout's row is split presuming the longest completion allowed: the prompt is the rest.
    """
    best = attributions[0] if attributions else None
    if best is not None and best.key == "ledger.t_vision_scores":
        return _patch_facts(book, best)
    if best is None or not best.named or best.tokens is None:
        return []
    witness = Witness("derived", text=f"{best.formula} = {best.numbers}")

    def found(name: str, count: int) -> Fact:
        return Fact(name, count, "derived", witness)

    implied = [found("data.tokens_in_batch", best.tokens)]
    job = other_passes.job_that_failed(setup(book, roles(book)[0]))
    rows = job.values.get("B")
    if book.word("log.phase") == "eval":  # its rows say nothing about training
        return implied
    if not isinstance(rows, int) or rows < 1 or best.tokens % rows:
        return implied
    row = best.tokens * job.sharding.context // rows
    cap = job.values.get("s")
    if isinstance(cap, int) and row > cap:  # the cap is not enforced: a lower one would not be either
        return implied
    if job.stage not in table()["rollouts"] or "G" not in job.values:
        return [*implied, found("data.row_tokens", row)]
    completion = job.book.count("rollout.completion_len") or 0
    if row > completion:
        implied += [found("data.prompt_tokens", row - completion), found("data.completion_tokens", completion)]
    return implied


def _patch_facts(book: FactBook, best: Attribution) -> list[Fact]:
    """Patches of a row and bytes per score, where the request is a mask or scores over all patches of the batch (towers that flatten a
    batch into one row). Rows are presumed alike."""
    job = setup(book, roles(book)[0])
    rows, tower = job.values.get("B"), job.model.vision if job.model else None
    if tower is None or tower.kind not in table()["flattened_towers"] or not isinstance(rows, int) or rows < 1 or not best.agrees:
        return []
    width = re.match(r"([24])\*a_v\*", best.formula)
    if width is None:
        return []
    every = isqrt(best.bytes // (int(width[1]) * tower.heads))
    witness = Witness("derived", text=f"{best.formula} = {best.numbers}")
    implied = {"data.row_patches": -(-every // rows), "data.patch_score_bytes": int(width[1])}
    return [Fact(name, count, "derived", witness) for name, count in implied.items()]
