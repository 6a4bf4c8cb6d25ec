"""Encoder-decoder models: activations of the encoder, and of the decoder's cross attention to it."""

from __future__ import annotations

from dataclasses import replace

from diagnose.budget.model import partition
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.terms.attention_scores import score_width
from diagnose.budget.terms.decoder_layer import frozen_norm
from diagnose.budget.terms.layer_mode import Mode, adapter_copies, build_mode
from diagnose.phrases import phrase

READS = "tensors saved for backward by the attention of a decoder to its encoder"
PROJECTED = "transformers modeling_deberta_v2.py disentangled_attention_bias: query_proj and key_proj of the relative positions"


def encoder_job(job: Setup) -> Setup | None:
    """The encoder as a job of its own, whose s and T are the tokens that it reads (s_e, T_e); None without an encoder, or where these are
    unknown."""
    model = job.model.source if job.model else None
    if model is None or not job.knows("s_e", "T_e"):
        return None
    encoder_letters = {"s": job.values["s_e"], "T": job.values["T_e"]}
    return replace(job, model=model, values={**job.values, **partition.letters(model, job.sharding), **encoder_letters})


def encoder_terms(terms: list[Term]) -> list[Term]:
    """The same terms under the encoder's name. Copies of weights are left out: the whole model's count them."""
    return [
        term._replace(key=f"source_{term.key}", name=phrase("ledger.of_source", name=term.name))
        for term in terms
        if term.group != "weights"
    ]


def cross_attention(job: Setup, count: str) -> list[Term]:
    """Cross attention of `count` decoder layers ("": one), kept until backward: norm, queries and output per decoder token, keys and values
    per encoder token. Eager attention keeps scores of B*a*s*s_e elements as well."""
    if job.model is None or job.model.source is None or not job.knows("T", "T_e"):
        return []
    how = build_mode(job)
    queries, keys_values = _per_written_token(job, how), _per_read_token(job, how)
    terms = [job.term("cross", "activations", f"{_times(count)}(({queries})*T + ({keys_values})*T_e)", source=READS)]
    if job.attention == "eager":
        terms.append(job.term("cross_scores", "attention_scores", f"{_times(count)}{score_width(job, how)}*B*a*s*s_e", source=READS))
    return terms


def _times(count: str) -> str:
    return f"{count}*" if count else ""


def _per_written_token(job: Setup, how: Mode) -> str:
    """Bytes per decoder token: the norm and the input of the queries, queries and output, what adapters copy of both, and a mask of
    residual dropout."""
    if (model := job.model) is None:
        raise ValueError("a layer of no model")
    copies, names = (adapter_copies(job, how), job.trainable.names) if how.lora else (0, ())
    if model.norm_kind == "layernorm":
        norm = 4 if how.own or how.each == 4 else 2
    else:
        norm = frozen_norm(model, how) if how.lora else 8
    entered = (copies or how.each) * ("q" in names) if how.lora else 2 if how.wide else how.each
    output = copies * ("o" in names) + (how.attended if model.head_major and job.attention == "sdpa" and not copies else 0)
    return f"{norm + entered + (1 if model.dropouts else 0)}*h + {2 * how.attended + output}*q"


def _per_read_token(job: Setup, how: Mode) -> str:
    """Bytes per encoder token: keys and values, and the copy of the encoder's output that each of their linears keeps."""
    copies = adapter_copies(job, how) if how.lora else 2 if how.wide else 0
    linears = sum(name in job.trainable.names for name in ("k", "v")) if how.lora else 2
    return f"{2 * how.attended}*k" + (f" + {copies * linears}*h" if copies * linears else "")


def relative_positions(job: Setup, count: str) -> list[Term]:
    """DeBERTa's projections of its table of relative positions, which `count` layers keep until backward: 7*r_d*h bytes each (13 in fp32, 9
    under autocast), whatever the batch."""
    if not job.knows("r_d", "h"):
        return []
    how = build_mode(job)
    width = 9 if how.own and how.each == 2 else 3 * how.each + 1
    return [job.term("relative", "weights", f"{_times(count)}{width}*r_d*h", source=PROJECTED)]
