"""What the process of another role keeps on a card that both share: weights and states as it waits for its turn, what its allocator may not
have given back, its CUDA context; an engine its share of the card, or what sleep leaves."""

from __future__ import annotations

from diagnose.budget.model import non_torch
from diagnose.budget.model.formulas import term
from diagnose.budget.model.job_roles import Role
from diagnose.budget.model.ledger import Ledger, Term, total
from diagnose.budget.model.role_setup import setup
from diagnose.budget.moments import in_process_roles
from diagnose.budget.terms import extra_models, training_states
from diagnose.facts import FactBook
from diagnose.phrases import phrase
from diagnose.record import replace

CONTEXT = "CUDA context and kernels (rules/ledger.yaml, outside)"
POOL = "torch keeps freed blocks until empty_cache: at most the role's largest moment"


def kept(book: FactBook, role: Role, ledger: Ledger) -> list[Term]:
    """The terms of another role, whose ledger this is, while it waits."""
    job = setup(book, role)
    if role.name == "engine":
        return [_context(book, role), *_share(book, ledger)]
    resident = in_process_roles.staying(job, in_process_roles.own(job, moments=True)) if role.trained else training_states.weights(job)
    waits = [waiting_term for waiting_term in in_process_roles.of_role(role, resident) if waiting_term.size.high]
    waiting = total([waiting_term.size for waiting_term in waits])
    peak = max((moment.total.high for moment in ledger.moments), default=0)
    pool = term("role_pool", "overhead", "0", {}, high=str(max(0, peak - waiting.high)), source=POOL)
    return [_context(book, role), *waits, _named(role, pool)]


def _context(book: FactBook, role: Role) -> Term:
    size = non_torch.context(book) + non_torch.modules()
    context_term = term("role_context", "overhead", str(size.bytes), {}, low=str(size.low), high=str(size.high), source=CONTEXT)
    return _named(role, context_term)


def _share(book: FactBook, ledger: Ledger) -> list[Term]:
    """An engine's share of the card while it generates; asleep, what it leaves."""
    share, whole = book.ratio("rollout.gpu_memory_utilization"), ledger.capacity
    if share is None or whole is None:
        return []
    if not book.switch("rollout.sleep"):
        return [term("engine", "rollout_engine", "u*C", {"u": share, "C": whole.bytes}, source="vLLM gpu_memory_utilization")]
    residue_size = extra_models.residue()
    bounds = {"low": str(residue_size.low), "high": str(residue_size.high)}
    return [term("engine_residue", "rollout_engine", str(residue_size.bytes), {}, source="measured after sleep level 1", **bounds)]


def _named(role: Role, role_term: Term) -> Term:
    name = phrase("ledger.of_role", role=phrase(f"ledger.role_{'actor' if role.policy else role.name}"), name=role_term.name)
    return replace(role_term, key=f"{role.name}_{role_term.key}", name=name)
