"""Layers with embeddings of their own (per-layer inputs of Gemma 4): the bytes that they keep for the backward pass in addition to what
any layer keeps."""

from __future__ import annotations

from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.trainable_params import every_linear
from diagnose.budget.terms.layer_mode import Mode, adapter_copies, computes_in_fp32, has_fp32_residual, is_upcast

EMBEDDED = "transformers modeling_gemma4.py project_per_layer_inputs"


def layer_embeddings(job: Setup) -> list[Term]:
    """The embeddings of all layers, 2*h_p*L*T bytes from the start of forward to backward; the fp32 copy that the norm of their projection
    keeps where it has a gradient; the norm's output where it learns (10*h_p*L*T in all)."""
    if not job.knows("h_p", "L", "T"):
        return []
    saved = _value_width(job) + (8 if not job.trainable.lora else 4 if _learns(job) else 0)
    return [job.term("layer_inputs", "activations", f"{saved}*h_p*L*T", source=EMBEDDED)]


def layer_embedding_gradient(job: Setup) -> list[Term]:
    """Their gradient in backward, 4*h_p*L*T bytes: every layer's slice is padded to all layers and added to the sum."""
    if not job.knows("h_p", "L", "T") or not _learns(job):
        return []
    return [job.term("layer_inputs_gradient", "activations", f"{2 * _value_width(job)}*h_p*L*T", source=EMBEDDED)]


def embedding_gate(job: Setup, how: Mode) -> list[str]:
    """Bytes per token that the gate of a layer's embedding keeps: its input, its output, the activation and the product, which an adapter
    shares or copies; and the fp32 copy of the attention values, whose norm has no weights."""
    if not job.model or not job.model.uneven:
        return []
    width, values = how.each, "4*k"
    if not how.lora:
        return [f"{width}*h", f"{3 * width}*h_p", values]
    if not _learns(job):
        return [f"{width}*h_p", values]
    return [f"{2 * width}*h_p", f"{adapter_copies(job, how) or width}*(h + h_p)", values]


def _learns(job: Setup) -> bool:
    """Whether the linears to and from these embeddings are trained, or carry adapters."""
    return not job.trainable.lora or every_linear(job.book.word("lora.targets") or "")


def _value_width(job: Setup) -> int:
    return 4 if computes_in_fp32(job) or has_fp32_residual(job) or is_upcast(job) else 2
