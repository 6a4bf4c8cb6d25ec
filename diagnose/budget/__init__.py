"""Facts to bytes: ledgers of every role, the tensor behind the request, and what follows from both."""

from __future__ import annotations

from diagnose.budget.attribute import attribute
from diagnose.budget.derived import facts
from diagnose.budget.ledger import Attribution, Host, Ledger, Moment, Term
from diagnose.budget.ledgers import ledgers
from diagnose.budget.told import another, compared
from diagnose.facts import FactBook
from diagnose.parse.event import Event


def account(book: FactBook, event: Event | None, index: int | None) -> tuple[tuple[Ledger, ...], tuple[Attribution, ...]]:
    """The ledgers and the attributions of the failed request; the book learns what follows from them.

    Where the request tells how long the batch really was, the ledgers are drawn up again with that length.
    """
    drawn = ledgers(book)
    named = attribute(book, drawn, event, index) if event is not None and index is not None else ()
    solved = facts(book, drawn, named)
    if any(fact.name == "data.tokens_in_batch" for fact in solved):
        book.learn(fact for fact in solved if fact.name.startswith("data."))
        drawn = ledgers(book)
        solved = facts(book, drawn, named)
    book.learn(fact for fact in solved if not fact.name.startswith("data.") or fact.name not in book)
    return drawn, named


__all__ = ["Attribution", "Host", "Ledger", "Moment", "Term", "account", "another", "attribute", "compared", "facts", "ledgers"]
