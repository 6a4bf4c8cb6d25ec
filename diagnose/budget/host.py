"""Host memory of one node: what is offloaded there."""

from __future__ import annotations

from diagnose.budget.formula import Number, term
from diagnose.budget.ledger import Host, Term
from diagnose.budget.setup import Setup
from diagnose.budget.states import ZERO, letter


def host(job: Setup) -> Host:
    """Offloaded states of all ranks of a node, without pinned copies and staging buffers."""
    if not job.knows("P"):
        return Host()
    nodes = max(1, job.book.count("parallel.nodes") or 1)
    values: dict[str, Number] = {**job.values, "nodes": nodes}
    per = "/nodes" if nodes > 1 else ""
    made: list[Term] = []
    if job.role.offloaded:
        made.append(term("host_parameters", "weights", f"2*P{per}", values, source=ZERO))
    elif job.sharding.offload_param:
        made.append(term("host_parameters", "weights", f"{letter(job.precision.weight, 'w')}*P{per}", values, source=ZERO))
    if job.role.trained and job.sharding.offload_optimizer and job.knows("Pt"):
        each = letter(job.precision.gradient, "g")
        made.append(term("host_gradients", "gradients", f"{each}*Pt{per}", values, source=ZERO))
        made.append(term("host_states", "optimizer_states", f"{12 if job.precision.master else 8}*Pt{per}", values, source=ZERO))
    made += _between_phases(job, values, per) if job.role.trained else []
    if job.reference == "offload":
        made.append(term("host_reference", "extra_models", f"2*P{per}", values, source=ZERO))
    if job.checkpointing == "offload" and job.role.trained and job.knows("h", "L", "T"):
        values["n_r"] = max(1, job.sharding.cards // nodes)
        made.append(term("host_checkpoints", "activations", "2*h*L*T*n_r", values, source="pinned hidden states"))
    return Host(tuple(made))


def _between_phases(job: Setup, values: dict[str, Number], per: str) -> list[Term]:
    """What leaves the cards while an engine generates, unless it lives on the host anyway."""
    away = job.book.word("rollout.offload_between_phases")
    made: list[Term] = []
    if away in ("params", "all") and not job.sharding.offload_param:
        made.append(term("host_parameters", "weights", f"{letter(job.precision.weight, 'w')}*P{per}", values, source=ZERO))
    if away in ("optimizer", "all") and not job.sharding.offload_optimizer and job.knows("Pt"):
        made.append(term("host_states", "optimizer_states", f"{12 if job.precision.master else 8}*Pt{per}", values, source=ZERO))
    return made
