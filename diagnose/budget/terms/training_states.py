"""What training adds to the weights: gradients and master copies. Re-exports weights, optimizer states and step temporaries, so that other
modules import all states from here."""

from __future__ import annotations

from diagnose.budget.model.formulas import term
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import earlier_torch, optimizer, table
from diagnose.budget.terms.optimizer_step import (
    block_letters,
    optimizer_name,
    optimizer_states,
    states_exist_from_start,
    step_transient,
    steps_in_backward,
)
from diagnose.budget.terms.weight_terms import ADAPTER, ZERO, adapters, letter, shardable, trained_weights, weights

__all__ = [
    "ADAPTER",
    "GROUPS",
    "ZERO",
    "accumulates_gradients",
    "accumulation_steps",
    "adapters",
    "embedding_gradient",
    "gradients",
    "letter",
    "master_copies",
    "optimizer_states",
    "shardable",
    "stale_gradients",
    "states_exist_from_start",
    "step_transient",
    "trained_weights",
    "weights",
]

GROUPS = ("weights", "gradients", "optimizer_states")

#: Which groups leave the card while other roles work, by what is said to be offloaded between phases.
AWAY = {"optimizer": ("gradients", "optimizer_states"), "all": GROUPS, "params": ("weights",)}


def away(job: Setup) -> tuple[str, ...]:
    """The groups of terms that leave the card while other roles work (rollout.offload_between_phases)."""
    return AWAY.get(job.book.word("rollout.offload_between_phases") or "", ())


def gradients(job: Setup, *, resident: bool) -> list[Term]:
    """Gradients at the end of backward: g*Pt bytes, /N from ZeRO-2 on and under FSDP, 0 where they are offloaded. `resident`: only what
    also exists during a forward pass, that is what accumulates or was allocated at initialisation."""
    scheme = job.sharding.scheme
    if not job.role.trained or not job.knows("Pt"):
        return []
    if job.sharding.offload_optimizer and scheme in ("zero2", "zero3", "fsdp", "fsdp_grad"):
        return [job.term("gradients_offloaded", "gradients", "0", source=ZERO)]
    whole = _gradient(job)
    used = optimizer(optimizer_name(job))
    one_block = used is not None and used.blocks and not job.trainable.lora and job.knows("P_layer", "N")
    if scheme == "zero3" and used is not None and one_block:
        block = f"{letter(job.precision.gradient, 'g')}*P_b/N"
        return [term("gradients_partition", "gradients", block, block_letters(job), source=used.source)]
    if scheme == "zero3":
        return [job.term("gradients_partition", "gradients", f"{whole}/N", source=ZERO)] if job.knows("N") else []
    zeroed = scheme in ("single", "ddp") and earlier_torch("keeps_gradients", job.book)
    if resident and not zeroed and not accumulates_gradients(job) and not job.traits.main_weights:
        return _accumulated(job) if scheme == "zero0" else []
    if steps_in_backward(job):
        embedding_symbols, source = f"{letter(job.precision.gradient, 'g')}*V*h", used.source if used is not None else ""
        return [job.term("gradients_one", "gradients", embedding_symbols, source=source)] if job.knows("V", "h") and not resident else []
    if used is not None and used.blocks and job.knows("P_layer"):
        values = block_letters(job)
        return [term("gradients", "gradients", f"{letter(job.precision.gradient, 'g') if resident else 4}*P_b", values, source=used.source)]
    if scheme in ("zero2", "fsdp", "fsdp_grad"):
        source = ZERO if job.sharding.zero else "torch FSDP: gradients after reduce-scatter"
        return [job.term("gradients_sharded", "gradients", f"{whole}/N", source=source)] if job.knows("N") else []
    return [job.term("gradients", "gradients", whole, source="parameter.grad")]


def stale_gradients(job: Setup) -> list[Term]:
    """Gradients of the step before, which last through the forward pass where zero_grad stands after it (train.late_zero_grad)."""
    if not job.book.switch("train.late_zero_grad") or gradients(job, resident=True) or steps_in_backward(job):
        return []
    return [each._replace(key="gradients_stale") for each in gradients(job, resident=False)]


def embedding_gradient(job: Setup, *, persists: bool) -> list[Term]:
    """The embedding's gradient, g*V*h bytes, which backward makes last. It comes beside all others where it is added to one that is there
    (of a tied head, or with `persists` of earlier micro batches), or is whole while the others are sharded (ZeRO-2 and 3)."""
    model, sharded = job.model, job.sharding.scheme in ("zero2", "zero3")
    if (
        model is None
        or job.trainable.lora
        or job.trainable.count != job.trainable.params
        or steps_in_backward(job)
        or not job.knows("V", "h")
    ):
        return []
    if job.sharding.scheme in ("fsdp", "fsdp_grad") or not (model.tied or persists or sharded):
        return []
    width = "2" if sharded or job.precision.gradient == 6 else letter(job.precision.gradient, "g")
    source = "torch embedding_dense_backward; torch/csrc/autograd/functions/accumulate_grad.h"
    return [job.term("embedding_gradient", "gradients", f"{width}*V*h", source=source)]


def _accumulated(job: Setup) -> list[Term]:
    """The fp32 buffer to which DeepSpeed without ZeRO adds 16-bit gradients: 4*Pt bytes from initialisation on."""
    if job.book.word("train.precision") != "bf16" or job.precision.gradient != 6:
        return []
    return [job.term("gradients_accumulated", "gradients", "4*Pt", source="DeepSpeed runtime/bf16_optimizer.py fp32_groups_gradients_flat")]


def _gradient(job: Setup) -> str:
    """Bytes of all gradients before sharding, as a formula."""
    if job.trainable.lora and not job.sharding.zero:
        return trained_weights(job)
    if job.trainable.lora and not job.traits.main_weights:
        return "4*Pt" if job.precision.gradient == 6 else "2*Pt"
    return f"{letter(job.precision.gradient, 'g')}*Pt"


def accumulates_gradients(job: Setup) -> bool:
    """Whether a forward pass may find gradients of earlier micro batches (accumulation)."""
    unsaid = job.book.count("train.gradient_accumulation") is None and job.traits.accumulates_by_default
    return unsaid or accumulation_steps(job) > 1


def accumulation_steps(job: Setup) -> int:
    """Micro batches per optimizer step: as set, or what the global batch needs on these ranks."""
    stated = job.book.count("train.gradient_accumulation")
    if stated:
        return stated
    whole, rows, ranks = job.book.count("train.global_batch"), job.values.get("b"), job.sharding.ranks
    if whole is None and job.stage in table()["rollouts"]:  # the completions of a round are trained on before the step
        generations, prompts = job.book.count("rollout.num_generations"), job.book.count("rollout.batch")
        whole = generations * (prompts or 1) if generations else None
    if whole and isinstance(rows, int) and rows and ranks:
        return max(1, whole // (rows * max(1, ranks // job.sharding.context)))
    return 1


def master_copies(job: Setup) -> list[Term]:
    """Master weights, from initialisation on: 4*Pt bytes under DeepSpeed (2 with bf16 master weights), /N from ZeRO-1 on, 0 where they are
    offloaded; 4*P_b for a block optimizer (BAdam)."""
    if not job.role.trained or not job.knows("Pt"):
        return []
    used = optimizer(optimizer_name(job))
    if not job.precision.master and used is not None and used.blocks and job.precision.weight != 4 and job.knows("P_layer"):
        return [term("master_block", "optimizer_states", "4*P_b", block_letters(job), source=used.source)]
    if not job.precision.master:
        return []
    width: float = job.precision.master_width
    if job.sharding.offload_optimizer:
        width *= job.sharding.states_kept
    if not width:
        return [job.term("master_offloaded", "optimizer_states", "0", source=ZERO)]
    if job.sharding.scheme == "zero0":
        return [
            job.term("master", "optimizer_states", f"{width:g}*Pt", source="DeepSpeed runtime/bf16_optimizer.py, fp16/fused_optimizer.py")
        ]
    return [job.term("master_partition", "optimizer_states", f"{width:g}*Pt/N", source=ZERO)] if job.knows("N") else []
