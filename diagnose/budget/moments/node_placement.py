"""On which node each role of a job lies: what several roles keep in host memory adds up only where they share one."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.budget.model.job_roles import Role
from diagnose.budget.model.ledger import Ledger, Term, total
from diagnose.budget.model.state_sharding import CARDS_OF_A_NODE
from diagnose.facts import FactBook
from diagnose.record import replace

#: In which order their processes are started.
ORDER = ("actor", "reference", "critic", "reward", "engine")


def laid_out(
    book: FactBook, cast: Sequence[Role], role_ledgers: tuple[Ledger, ...], sharing: Sequence[Sequence[str]]
) -> tuple[Ledger, ...]:
    """The ledgers with the node of each role. Roles in processes of their own fill one node after the other, each with its cards, as
    Ray packs them; those that share cards (`sharing`) or processes lie together."""
    if book.count("parallel.nodes") == 1 or len(cast) < 2 or not all(role.apart for role in cast):
        return role_ledgers
    cards = {role.name: ledger.gpus for role, ledger in zip(cast, role_ledgers, strict=True)}
    starts: dict[str, int] = {}
    used = 0  # cards, those that were left over on a node among them
    for name in sorted(cards, key=ORDER.index):
        beside = [starts[partner] for names in sharing if name in names for partner in names if partner in starts]
        if not beside:
            free_cards = -used % CARDS_OF_A_NODE
            used += free_cards if cards[name] > free_cards else 0
        starts[name] = beside[0] if beside else used // CARDS_OF_A_NODE
        used += 0 if beside else cards[name]
    return tuple(replace(ledger, host=replace(ledger.host, node=starts[ledger.role])) for ledger in role_ledgers)


def fullest(ledgers: Sequence[Ledger]) -> tuple[Term, ...]:
    """What stays in the host memory of the node that keeps most, from the first step to the last."""
    terms_of_node: dict[int, tuple[Term, ...]] = {}
    for ledger in ledgers:
        terms_of_node[ledger.host.node] = (*terms_of_node.get(ledger.host.node, ()), *ledger.host.terms)
    return max(terms_of_node.values(), key=lambda terms: total([term.size for term in terms]).bytes, default=())
