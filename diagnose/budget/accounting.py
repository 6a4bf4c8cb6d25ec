"""The entry of the budget: ledgers of every role, the tensor behind the failed request, and facts derived from both."""

from __future__ import annotations

from diagnose.budget.attribution.request_tensor import attribute
from diagnose.budget.derived.derived_facts import derive_facts
from diagnose.budget.derived.log_comparison import VERDICTS
from diagnose.budget.model.ledger import Attribution, Ledger
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import Fact, FactBook, derived_fact
from diagnose.parse.model.event import Event

#: What a request may say of the run that the ledgers are drawn from.
REDRAWN = ("data.tokens_in_batch", "data.row_patches", "train.loss_kernel", "train.finetuning", "train.load_dtype", "attribution.pass")

#: Facts that confirm a ledger that rests on guesses: its sum is what was allocated, or the request is one of its tensors.
CONFIRMING = (*((verdict, "agrees") for verdict in ("ledger.verdict", *VERDICTS)), ("attribution.exact", True))


#: Facts that divide weights and states over cards, where they are more than one.
_DIVIDING = ("parallel.tensor", "parallel.pipeline", "parallel.expert", "fsdp.sharding", "zero.stage")


def _of_the_run(fact: Fact) -> bool:
    return fact.name.startswith("data.") or fact.name in REDRAWN


def account(book: FactBook, event: Event | None, index: int | None) -> tuple[tuple[Ledger, ...], tuple[Attribution, ...]]:
    """Compute the ledgers and attribute the failed request to tensors; the book learns the facts derived from both.

    The ledgers are computed a second time where the attribution reveals the real batch length, or that no fused loss kernel ran; and
    without the guesses (a key of an unknown program, the size in a model's name) where no figure of the failure confirms them.
    """
    role_ledgers = ledgers(book)
    named = attribute(book, role_ledgers, event, index) if event is not None and index is not None else ()
    solved = derive_facts(book, role_ledgers, named)
    if event is not None and book.confirmed() is not book and not any((fact.name, fact.value) in CONFIRMING for fact in solved):
        book.learn([derived_fact("ledger.without_guesses", True, "no figure of the failure confirms what is guessed")])
        if divides := next((name for name in _DIVIDING if (fact := book.fact(name)) and fact.origin == "guessed" and fact.value != 1), ""):
            book.learn([derived_fact("ledger.sharding_guessed", True, f"{divides} is guessed")])
        role_ledgers = ledgers(book)
        solved = derive_facts(book, role_ledgers, named)
    if any(fact.name in REDRAWN for fact in solved):
        book.learn(fact for fact in solved if _of_the_run(fact))
        role_ledgers = ledgers(book)
        solved = derive_facts(book, role_ledgers, named)
    book.learn(fact for fact in solved if not _of_the_run(fact) or fact.name not in book)
    return role_ledgers, named
