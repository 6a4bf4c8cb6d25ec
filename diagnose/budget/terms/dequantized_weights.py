"""Weights of a quantised base in 16 bits, where a product of matrices needs them."""

from __future__ import annotations

from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.weight_terms import quantised


def _keeps(job: Setup) -> bool:
    """Whether a linear makes its weight anew with plain operators, so that autograd keeps it until the linear's backward."""
    entry = table()["quantizations"].get(job.book.word("model.quantization") or "", {})
    return job.trainable.lora and quantised(job.book) and bool(entry.get("remade"))


def in_layer(job: Setup) -> list[Term]:
    """Those of the layer that is computed again: all are kept, the largest on its way from 32 bits (4 bytes, then 1 beside them, of which
    2 stay). Kernels that keep none (Triton) are the lower end."""
    if not _keeps(job) or not job.knows("P_layer", "h", "f") or (job.model and job.model.experts):
        return []
    symbols = "2*P_layer + 3*h*f"
    return [job.term("remade", "weights", symbols, low=f"0*({symbols})", source=table()["remakes"])]


def in_all_layers(job: Setup) -> list[Term]:
    """Without checkpointing those of every layer."""
    if not _keeps(job) or not job.knows("P_layer", "L") or (job.model and job.model.experts):
        return []
    return [job.term("remade", "weights", "2*P_layer*L", low="0*P_layer*L", source=table()["remakes"])]
