"""Attention scores and masks: of eager attention, of SDPA with a mask, and where no fused kernel fits."""

from __future__ import annotations

from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.layer_mode import Mode, build_mode, may_be_padded
from diagnose.release_spans import releases
from diagnose.units import Version

MATH = "ATen native/transformers/attention.cpp _scaled_dot_product_attention_math; transformers integrations/sdpa_attention.py"

#: The first torch whose math kernel computes 16-bit values in fp32 (at::globalContext().allowFP16BF16ReductionMathSDP, off).
WIDENED_MATH = Version("2.5")

#: Flash attention's widest head (ATen native/transformers/cuda/sdp_utils.cpp check_head_dim_size_flash).
WIDEST_HEAD = 256


def score_width(job: Setup, how: Mode) -> int:
    """Bytes per element of the scores that eager attention keeps: 6 for an fp32 softmax and its 16-bit copy, 4 all in fp32. Capped scores
    keep their tanh, clamped ones are kept themselves. GPT-2's softmax runs in the precision of the values (fp32 under autocast), as that of
    one fused kernel does; a dropout keeps its mask and output."""
    model = job.model
    if model and (model.native_softmax or _has_fused_softmax(job)):
        softmax = 4 if how.own else how.attended
        copy = how.attended if how.own or model.attention_dropout else 0
        return softmax + copy + (1 if model.attention_dropout else 0)
    softmax = 4 if how.attended == 4 else 6
    return softmax + (how.attended if model and (model.softcap or _clamps_scores(job, model.family)) else 0)


def _clamps_scores(job: Setup, family: str) -> bool:
    """Whether the masked scores went into a torch.max before the softmax, which keeps them (rules/ledger.yaml, clamped_scores)."""
    span = table()["clamped_scores"].get(family)
    return span is not None and releases(span).holds(job.book.version("version.transformers")) is True


def _has_fused_softmax(job: Setup) -> bool:
    """Whether one kernel scales the scores, masks them and takes their softmax in the precision of the values."""
    longest, length = job.traits.fused_softmax, job.values.get("s")
    return longest is not None and isinstance(length, int) and length <= longest


def score_count(job: Setup) -> str:
    """Scores of one layer on one card as a formula. `a` of latent attention is all heads; each tensor parallel rank computes its own."""
    parted = job.sharding.sequence and job.model is not None and job.model.latent
    return f"B*a*s*s/{job.sharding.tensor}" if parted else "B*a*s*s"


def layer_scores(job: Setup, how: Mode, width: int) -> str:
    """Bytes of the scores of one layer, `width` per element: width*B*a*s*s. Disentangled attention (DeBERTa) also keeps its mask, the
    indices at which queries and keys look up their distance, and the products for every distance (transformers modeling_deberta_v2.py
    disentangled_attention_bias)."""
    if job.model is None or not job.model.disentangled:
        return f"{width}*{score_count(job)}"
    return f"(({width}*a + 1)*B*s*s + 16*s*s + {2 * how.attended}*a*r_d*T)"


def additive_masks(job: Setup) -> str:
    """The additive mask that SDPA keeps in every layer, 2*B*s*s bytes as a formula; "" where there is none. From transformers 4.53 on each
    layer makes it of the shared boolean mask. The position bias of T5, with the mask added to it, is as large for each head."""
    if job.attention == "sdpa" and job.model is not None and job.model.relative_bias:
        masked = " + 1" if job.model.source else ""  # the boolean mask of a decoder
        return f"({build_mode(job).attended}*a{masked})*B*s*s"
    release = job.book.version("version.transformers")
    keeps = job.attention == "sdpa" and release is not None and Version("4.53") <= release and may_be_padded(job)
    return f"{build_mode(job).attended}*B*s*s" if keeps else ""


def broadcasts_keys(job: Setup) -> bool:
    """Whether one key head is broadcast to all queries without being repeated (Falcon with multi_query). Fused kernels want as many key
    heads as query heads."""
    return job.model is not None and job.model.broadcasts and job.attention in ("eager", "sdpa")


def unfused_scores(job: Setup, gone: str = "") -> list[Term]:
    """Scores that SDPA computes whole in fp32, 4*B*a*s*s bytes per layer until backward, because no fused kernel fits; in the precision of
    the values before torch 2.5. Of two kinds: a key head that is broadcast; heads wider than flash attention takes, since the
    memory-efficient kernel needs keys repeated, which transformers from 4.56 on does only where there is a mask. Rows that may be padded
    have a mask.

    With `gone` the term is that of the layer in backward: softmax, its gradient and that of the scores, 12*B*a*s*s bytes, less the `gone`
    bytes per token (a formula) of its MLP, which are free by then.
    """
    model, release = job.model, job.book.version("version.transformers")
    if model is None or job.attention != "sdpa" or not job.knows("B", "a", "s"):
        return []
    wide = model.uneven is not None and model.uneven.wide_d > WIDEST_HEAD and model.kv < model.a
    recent = (release is None or release >= Version("4.56")) and not may_be_padded(job)
    if not broadcasts_keys(job) and not (wide and recent):
        return []
    every = f"/{model.uneven.every}" if model.uneven else ""
    symbols = _math_scores(_math_width(job), gone, every)
    if wide and job.stage in table()["rollouts"] and job.values["B"] != 1:  # prompts and completions are padded to the longest
        return [job.term("scores_math", "attention_scores", f"0*({symbols})", high=symbols, source=MATH)]
    low = _math_scores(build_mode(job).attended, gone, every) if job.book.version("version.torch") is None else ""
    return [job.term("scores_math", "attention_scores", symbols, low=low, source=MATH)]


def _math_width(job: Setup) -> int:
    """Bytes per element of what torch's math kernel computes with; the wider where nobody knows the release."""
    torch = job.book.version("version.torch")
    return build_mode(job).attended if torch is not None and torch < WIDENED_MATH else 4


def _math_scores(width: int, gone: str, every: str) -> str:
    """The formula of `unfused_scores` for elements of `width` bytes."""
    return f"max({width}*B*a*s*s, {3 * width}*B*a*s*s - ({gone})*T)" if gone else f"{width}*B*a*s*s*L{every}"
