"""What a sparse MLP keeps for backward, in bytes per token, with and without adapters on its experts."""

from __future__ import annotations

from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.layer_mode import Mode, keeps_product
from diagnose.budget.terms.weight_terms import merged_experts
from diagnose.catalogue import Model
from diagnose.units import Version


def experts(job: Setup, how: Mode) -> str:
    """The k_e experts of a token, its permuted copies, the shared expert, and the router."""
    moe = job.model.experts if job.model else None
    width, product = how.each, how.each if keeps_product(job, how) else 0
    adapted = adapts_experts(job)
    routed = 4 * width if not how.lora or adapted else 3 * width
    permuted = 2 * width if not how.lora or adapted else width
    if job.traits.fused_layers:  # the activation is made again, and routing weights multiply it: what experts give is not kept
        routed, permuted = routed - width, permuted - width
    router = ["4*E", "32*k_e"]
    if adapted and merged_experts(job):  # the router's adapter is part of its weight; the shared expert carries none
        router, product = [*router, f"{4 if moe and moe.router_fp32 and not how.own else width}*h"], 0
    if moe and moe.router_fp32 and not how.lora:
        router.append("4*h")
    shared = []
    if moe and moe.shared:
        shared.append(f"{3 * width + product}*f_s")
        shared += [f"{width}*h"] if moe.shared_gate else []
    return " + ".join([f"{routed}*k_e*f_e", f"{permuted}*k_e*h", *shared, *router])


def backward_transient(job: Setup, how: Mode) -> str:
    """The peak that backward of a sparse layer adds to what the layer saved, the largest of three: the routing weights' gradient, computed
    from the experts' outputs; frozen experts recomputed while the permuted tokens are still there; the products inside the experts, when
    their outputs are free. Where experts work one after the other it is that of one, who has his share of the tokens, beside the gradients
    of the layer's output and input. Megatron multiplies by routing weights inside the experts (core/fusions/fused_bias_swiglu.py
    WeightedSwiGLUFunction) and exchanges tokens between ranks (core/transformer/moe/token_dispatcher.py). Raises ValueError for a model
    without experts."""
    if (moe := job.model.experts if job.model else None) is None:
        raise ValueError("a sparse layer without experts")
    width, frozen = how.each, how.lora and not adapts_experts(job)
    gate = width if moe.shared_gate else 0
    if job.traits.fused_layers:  # gradients of permuted tokens before and after their exchange; those of gate and up beside them
        return f"max({2 * width}*h*k_e, {width}*h*k_e + {2 * width}*k_e*f_e) + {width + gate}*h"
    # A softmax makes fp32 weights; those of a sigmoid (with a bias for the choice) are what autocast's product of the router makes.
    routed = 4 if moe.routed_fp32 and not (how.own and moe.router_bias) else width
    if moe.shared and not moe.shared_gate:  # computed behind the experts, so its part is gone before theirs
        product = width if keeps_product(job, how) else 0
        outputs = f"{3 * routed}*h*k_e - {3 * width + product}*f_s"
    else:
        outputs = f"{3 * routed}*h*k_e"
        if frozen:
            outputs = f"max({outputs}, {width + 2 * routed}*h*k_e + {2 * width}*h)"
    inside = f"{(3 if frozen else 2) * width}*k_e*f_e - {width}*h*k_e"
    if loops_over_experts(job):
        return f"max({outputs}, {inside}, 0)/E + {2 * width + gate}*h"
    return f"max({outputs}, {inside}, 0) + {width + gate}*h"


def adapts_experts(job: Setup) -> bool:
    """Whether the targets put adapters on the experts, in models whose experts are one tensor or many linears."""
    return any(name in job.trainable.names for name in ("gate", "up", "down"))


def loops_over_experts(job: Setup) -> bool:
    """Whether the layer calls its experts one after the other: those of transformers before 5, but for models whose experts are one tensor
    (modeling_mixtral.py, modeling_qwen3_moe.py at v4.57.1)."""
    release, moe = job.book.version("version.transformers"), job.model.experts if job.model else None
    if release is None or release >= Version("5") or moe is None or job.traits.main_weights:
        return False
    return job.model is not None and job.model.family not in table()["experts_in_one"]


def has_shared_expert(model: Model | None) -> bool:
    """Whether a shared expert serves every token."""
    return bool(model and model.experts and model.experts.shared)
