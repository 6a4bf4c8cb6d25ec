"""What the decoder layers keep for backward, per token and layer, and what recomputing one layer takes.

The widths are those of docs/memory.md: saved tensors of a pre-norm decoder layer as transformers writes it.
"""

from __future__ import annotations

from diagnose.budget.formula import Span
from diagnose.budget.ledger import Term
from diagnose.budget.setup import Setup
from diagnose.record import record
from diagnose.units import Version

SAVED = "tensors saved for backward by a transformers decoder layer (docs/memory.md)"


@record
class Layer:
    """Bytes per token that one layer keeps (`dense`, and `sparse` for a mixture of experts), as texts in letters;
    `scores`: bytes of attention scores and masks per layer, "" where the kernel keeps none."""

    dense: str
    sparse: str
    scores: str
    transient: str
    score_transient: str
    before_mlp: str


def layer(job: Setup) -> Layer:
    attention, lora = _attention(job), job.trainable.lora
    norms = _norms(job)
    eager = job.attention == "eager"
    shared = _inputs(job) if lora else ""
    mlp = _mlp(job)
    dense = " + ".join(part for part in (norms, attention, mlp, shared) if part)
    sparse = " + ".join(part for part in (norms, attention, _experts(job), shared) if part) if job.model and job.model.experts else ""
    transient = "4*f + 2*h" if job.model is None or job.model.gated else "2*f + 2*h"
    if sparse:
        transient = "4*k_e*f_e + 4*f_s + 2*h + 12*h*k_e"
    scores = "6*B*a*s*s" if eager else _masks(job)
    before = " + ".join(part for part in (norms, attention, shared) if part)
    return Layer(dense, sparse, scores, transient, "8*B*a*s*s" if eager else "", before)


def _double(job: Setup) -> bool:
    """fp32 training: every 16-bit width doubles."""
    compute = job.precision.compute
    return (compute.low if isinstance(compute, Span) else compute) == 4


def _norms(job: Setup) -> str:
    """fp32 copy of the input, normalised value, and the input of the linears that follow."""
    count = job.model.norms if job.model else 2
    kind = job.model.norm_kind if job.model else "rms"
    if job.trainable.lora:
        each = 2 if job.fused else 4
        return f"{count * each}*h"
    if _double(job):
        return f"{count * 8 + 8}*h"
    if job.fused:
        return f"{count * 2 + 4}*h"
    if job.precision.autocast:
        return f"{count * 8 + 10}*h"
    if kind == "layernorm":
        return "8*h"
    return f"{count * (8 if kind == 'rms_wide' else 6) + 4}*h"


def _attention(job: Setup) -> str:
    if job.model and job.model.latent:
        return _latent(job)
    width = 2 if _double(job) else 1
    query, key = _copies(job)
    extra = ""
    if job.model and job.model.qk_norm != "none":
        each = 8 if job.model.norm_kind == "rms_wide" else 6
        extra = f" + {each}*q + {each}*k"
    return (f"{query * width}*q + {key * width}*k" if key else f"{query * width}*q") + extra


def _copies(job: Setup) -> tuple[int, int]:
    """Bytes per query and key width by implementation and release: repeated keys, contiguous copies."""
    release = job.book.version("version.transformers")
    if job.attention in ("flash_attention_2", "flash_attention_3", "flex", "xformers", "unsloth"):
        return 4, 4
    if job.attention == "eager" or release is None or release < Version("4.48"):
        return 8, 0
    if release < Version("4.53"):
        return 10, 0
    return (8, 0) if _padded(job) else (6, 4) if release < Version("4.56") else (4, 4)


def _latent(job: Setup) -> str:
    """Compressed and expanded queries, keys and values of MLA; values stay a view of the whole expansion."""
    parts = ["8*r_kv", "4*a*(d_n + d_r)", "2*a*(d_n + d_v)", "2*a*d_v"]
    if job.model and job.model.latent and job.model.latent.q_rank:
        parts.insert(0, "8*r_q")
    return " + ".join(parts)


def _mlp(job: Setup) -> str:
    gated = job.model is None or job.model.gated
    width = 2 if _double(job) else 1
    if job.trainable.lora:  # the product is kept as adapter input where down_proj carries one
        return f"{(4 if job.fused else 6) * width}*f" if gated else f"{2 * width}*f"
    if not gated:
        return f"{4 * width}*f"
    return f"{(6 if job.fused else 8) * width}*f"


def _experts(job: Setup) -> str:
    return "8*k_e*f_e + 8*f_s + 2*k_e*2*h" if job.model and job.model.experts and job.model.experts.shared else "8*k_e*f_e + 2*k_e*2*h"


def _inputs(job: Setup) -> str:
    """Inputs of the adapters: a cast copy each, and with dropout a one-byte mask."""
    wide, out, down = job.trainable.inputs
    widths = [f"{wide}*h"] * (wide > 0) + ["q"] * out + (["f"] if not (job.model and job.model.experts) else ["k_e*f_e"]) * down
    if not widths:
        return ""
    if job.trainable.dropout:
        return f"3*({' + '.join(widths)})"
    if job.sharding.zero:  # 16-bit adapters share their inputs with the frozen linears
        return "4*h" + (" + 2*f" if down and not (job.model and job.model.experts) else "")
    return f"{2 if job.precision.compute == 2 else 4}*({' + '.join(widths)})"


def _padded(job: Setup) -> bool:
    rows = job.values.get("B")
    return not job.book.switch("train.packing") and isinstance(rows, int) and rows > 1


def _masks(job: Setup) -> str:
    """From transformers 4.53 SDPA turns the shared boolean mask into an additive one in every layer and keeps it."""
    release = job.book.version("version.transformers")
    keeps = job.attention == "sdpa" and release is not None and Version("4.53") <= release and _padded(job)
    return "2*B*s*s" if keeps else ""


def shared_mask(job: Setup) -> list[Term]:
    """One additive mask for all layers (SDPA before 4.53, with padding); beside eager scores it is nothing."""
    if job.attention != "sdpa" or _masks(job) or not _padded(job) or not job.knows("B", "s"):
        return []
    return [job.term("mask", "activations", "2*B*s*s", source="transformers _prepare_4d_causal_attention_mask")]


def stem(job: Setup) -> list[Term]:
    """Embedding output, final norm in fp32 and 16 bits, input of the head."""
    if not job.knows("h", "T"):
        return []
    return [job.term("stem", "activations", "8*h*T", source=SAVED)]


def checkpoints(job: Setup) -> list[Term]:
    """One hidden state per layer; fp32 where the residual stream is fp32."""
    each = 4 if job.precision.autocast or _double(job) else 2
    if job.checkpointing == "offload" or job.book.switch("train.activation_offload"):
        return [job.term("checkpoints_offloaded", "activations", f"2*{each}*h*T", source="two layers in flight, the rest on the host")]
    if job.checkpointing == "selective":
        symbols = "(2*h + 4*q + 4*k + 4*f)*L*T"
        return [job.term("checkpoints_selective", "activations", symbols, source="outputs of matrix products and attention")]
    return [job.term("checkpoints", "activations", f"{each}*h*L*T", source="torch.utils.checkpoint: the input of every layer")]


def stored(job: Setup) -> list[Term]:
    """What all layers keep until backward."""
    if not job.role.trained or not job.knows("h", "L", "T"):
        return []
    if job.checkpointing not in ("disabled", "none", "false") or job.book.switch("train.activation_offload"):
        return [*shared_mask(job), *checkpoints(job)]
    return [*shared_mask(job), *layers(job, dense="L_d" if job.knows("L_d") else "", count="L")]


def layers(job: Setup, *, dense: str, count: str) -> list[Term]:
    """Complete layers: `count` of them (a letter or a number), the first `dense` of which are not sparse."""
    made = layer(job)
    terms: list[Term] = []
    if made.sparse:
        if dense and dense != "0":
            terms.append(job.term("layers_dense", "activations", f"{dense}*({made.dense})*T", source=SAVED, layers=_said(job, dense)))
        sparse = f"({count} - {dense})" if dense and dense != "0" else count
        terms.append(job.term("layers_sparse", "activations", f"{sparse}*({made.sparse})*T", source=SAVED, layers=_said(job, count, dense)))
    else:
        terms.append(job.term("layers", "activations", f"{count}*({made.dense})*T", source=SAVED, layers=_said(job, count)))
    if made.scores and job.knows("B", "a", "s"):
        key = "scores" if job.attention == "eager" else "masks"
        group = "attention_scores" if job.attention == "eager" else "activations"
        terms.append(job.term(key, group, f"{count}*{made.scores}", source=SAVED, layers=_said(job, count)))
    return terms


def _said(job: Setup, count: str, less: str = "") -> int:
    """How many layers a count in letters or figures means."""

    def number(text: str) -> int:
        value = job.values.get(text, text or 0)
        return int(value.mid) if isinstance(value, Span) else int(value)

    return number(count) - number(less)


def recomputed(job: Setup) -> list[Term]:
    """The working set of the layer in backward: all it saves (under checkpointing) and the gradients inside it."""
    if not job.role.trained or not job.knows("h", "f", "T"):
        return []
    made = layer(job)
    saves = made.sparse or made.dense
    again = job.checkpointing not in ("disabled", "none", "false") or bool(job.book.switch("train.activation_offload"))
    if not again:
        return [job.term("layer_transient", "activations", f"({made.transient})*T", source=SAVED)]
    terms = [job.term("layer_recomputed", "activations", f"(({saves}) + {made.transient})*T", source=SAVED)]
    if not made.scores or not job.knows("B", "a", "s"):
        return terms
    if not made.score_transient:
        return [*terms, job.term("masks", "activations", made.scores, source=SAVED, layers=1)]
    # The gradients of the MLP are gone when those of the scores exist: together they are the upper end.
    both = f"{made.scores} + {made.score_transient}"
    return [*terms, job.term("scores_backward", "attention_scores", both, low=made.scores, source=SAVED)]
