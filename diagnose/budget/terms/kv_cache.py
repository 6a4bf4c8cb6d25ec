"""KV caches: what an engine's share leaves after its weights, and what a trainer that generates itself takes."""

from __future__ import annotations

from diagnose.budget.model.formulas import Number, term
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.extra_models import capacity, divided
from diagnose.release_spans import releases


def engine_cache(job: Setup) -> list[Term]:
    """The engine's cache and workspaces, what its weights leave of its share: u*C - 2*P/t_e bytes. CUDA graphs lie beside the share."""
    share, whole = job.book.ratio("rollout.gpu_memory_utilization"), capacity(job)
    if share is None or whole is None or not job.knows("P"):
        return []
    per = "/t_e" if divided(job) > 1 else ""
    values: dict[str, Number] = {**job.values, "t_e": divided(job), "u": share, "C": whole.bytes}
    return [term("engine_cache", "kv_cache", f"max(0, u*C - 2*P{per})", values, source="vLLM gpu_memory_utilization")]


def own_generation(job: Setup) -> list[Term]:
    """KV cache and prompt logits where the trainer itself generates, while it does."""
    own = job.book.word("rollout.engine") in ("hf", "none")
    if job.stage not in table()["rollouts"] or not own or not job.knows("L", "k", "b", "s"):
        return []
    return cache(job, job.book.count("rollout.micro_batch") or job.values["b"], job.values["s"])


def cache(job: Setup, rows: Number, length: Number) -> list[Term]:
    """The KV cache of `rows` sequences of `length` tokens, 2*2*L*k*b_r*s bytes; a copy of one layer's while torch.cat grows it; logits of
    the prompt, 4*b_r*V, of all its positions before transformers 4.45."""
    if not job.knows("L", "k"):
        return []
    values: dict[str, Number] = {**job.values, "b_r": rows, "s": length}
    terms = [
        term("kv_cache", "kv_cache", "2*2*L*k*b_r*s", values, source="transformers DynamicCache"),
        term("kv_copy", "kv_cache", "2*2*k*b_r*s", values, low="0", source="transformers cache_utils.py: torch.cat of one layer"),
    ]
    if job.knows("V"):
        whole = releases("<4.45").holds(job.book.version("version.transformers"))  # all positions of the prompt, in 16 bits and fp32
        high = "" if whole is False else "6*b_r*s*V"
        terms.append(term("prefill_logits", "logits", "4*b_r*V", values, high=high, source="transformers generation/utils.py"))
    return terms


def of_reference(job: Setup) -> list[Term]:
    """The KV cache that a reference model of its own makes of all tokens while it scores them, 2*2*L*k*T bytes."""
    if not job.traits.reference_caches or job.reference not in ("copy", "offload") or not job.knows("L", "k", "T"):
        return []
    return [
        job.term(
            "reference_cache", "kv_cache", "2*2*L*k*T", source="transformers modeling_llama.py: use_cache of the model's configuration"
        )
    ]
