"""How long the rows of the failed batch were, as the request implies."""

from __future__ import annotations

from diagnose.budget.known import table
from diagnose.budget.ledger import Attribution
from diagnose.budget.roles import roles
from diagnose.budget.setup import setup
from diagnose.facts import Fact, FactBook, Witness


def lengths(book: FactBook, attributions: tuple[Attribution, ...]) -> list[Fact]:
    """Tokens of the failed forward from the best attribution, where frame and phase speak for it; then per row.

    Rows of a rollout are split so that completions are as long as they may be: the prompt is the rest.
    """
    best = attributions[0] if attributions else None
    if best is None or not best.agrees or best.tokens is None:
        return []
    told = Witness("derived", text=f"{best.formula} = {best.numbers}")

    def found(name: str, count: int) -> Fact:
        return Fact(name, count, "derived", told)

    made = [found("data.tokens_in_batch", best.tokens)]
    job = setup(book, roles(book)[0])
    rows = job.values.get("B")
    if book.word("log.phase") == "eval":  # its rows say nothing about training
        return made
    if not isinstance(rows, int) or rows < 1 or best.tokens % rows:
        return made
    row = best.tokens * job.sharding.context // rows
    cap = job.values.get("s")
    if isinstance(cap, int) and row > cap:  # the cap is not enforced: a lower one would not be either
        return made
    if job.stage not in table()["rollouts"] or "G" not in job.values:
        return [*made, found("data.row_tokens", row)]
    completion = job.book.count("rollout.completion_len") or 0
    if row > completion:
        made += [found("data.prompt_tokens", row - completion), found("data.completion_tokens", completion)]
    return made
