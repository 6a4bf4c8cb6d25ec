"""DoRA: adapters with a learned magnitude per output. Every wrapped linear keeps the outputs that its magnitude scales, and computes the
norm of its adapted weight in every forward, for which whole matrices exist for a moment.

The widths were read off models of transformers (benchmarks/activations).
"""

from __future__ import annotations

from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.terms.layer_mode import Mode, build_mode
from diagnose.budget.terms.weight_terms import adapter_width, is_quantised
from diagnose.units import Version

SOURCE = "PEFT tuners/lora/dora.py DoraLinearLayer.forward, get_lora_weight, get_weight_norm"

#: Inputs and outputs of the linears of a layer, in letters; those of attention come first.
SIDES = {"q": ("h", "q"), "k": ("h", "k"), "v": ("h", "k"), "o": ("q", "h"), "gate": ("h", "f"), "up": ("h", "f"), "down": ("f", "h")}

#: The first PEFT that takes the linear's output where there is no dropout, and does not compute it again.
REUSES = Version("0.14.0")


def is_dora(job: Setup) -> bool:
    """Whether the adapters are DoRA's. Latent attention and mixtures of experts are not modelled: PEFT refuses their fused tensors."""
    return job.trainable.kind == "dora" and job.model is not None and job.model.experts is None and job.model.latent is None


def outputs(job: Setup, how: Mode) -> list[str]:
    """Kept until backward, in bytes per token of a layer: of every wrapped linear its output and that of its adapter, before they are
    scaled. A quantised o_proj gives its output in the precision of attention, unless a prepared bias, which is fp32, is taken off again."""
    if not is_dora(job):
        return []
    low = 4 if adapter_width(job) == 4 and not how.own and not job.sharding.zero else 2
    apart = how.attended != how.each and job.model is not None and not job.model.o_bias
    attended = [name for name in _names(job) if apart and name == "o"]
    groups = ((how.each, [name for name in _names(job) if name not in attended]), (how.attended, attended))
    return [f"{width + low}*({_sum(names)})" for width, names in groups if names]


def _sum(names: list[str]) -> str:
    """The summed output widths of these linears, each letter once."""
    widths = [SIDES[name][1] for name in names]
    counts = {letter: widths.count(letter) for letter in ("h", "q", "k", "f")}
    return " + ".join(letter if count == 1 else f"{count}*{letter}" for letter, count in counts.items() if count)


def scaling(job: Setup, how: Mode) -> list[str]:
    """The peak in backward of a scaled linear of the MLP beside what the layer saved, 12*f + h bytes per token: three fp32 tensors of its
    output, where magnitudes are fp32 and values 16-bit."""
    wide = how.each == 2 and how.cast != 0 and any(name in _names(job) for name in ("gate", "up"))
    return ["12*f + h"] if is_dora(job) and wide else []


def norm(job: Setup) -> str:
    """Bytes of the largest weight norm of a wrapped linear, as a formula: an identity of its inputs, a 16-bit copy of that under autocast,
    then weight, update, scaled update and their sum beside what the update's graph keeps of the identity."""
    if not is_dora(job) or not job.role.trained or not _names(job):
        return ""
    how = build_mode(job)
    wide = _reads_fp32(job, how)
    eye, saved = (2, 2) if adapter_width(job) != 4 or job.sharding.zero else (6, 2) if how.own else (4, 4)
    if wide:
        width = 12 if job.precision.weight == 4 and not is_quantised(job.book) else 16
    else:
        width = 8 if is_quantised(job.book) else 6
    inputs = dict.fromkeys(SIDES[name][0] for name in _names(job))
    sides = dict.fromkeys(SIDES[name] for name in _names(job))
    parts = [f"{eye}*{into}*{into}" for into in inputs] + [f"{saved}*{into}*{into} + {width}*{into}*{out}" for into, out in sides]
    return f"max({', '.join(parts)})"


def norm_transient(job: Setup, beside: str = "") -> list[Term]:
    """The weight norm being computed in a layer's forward; with `beside` (bytes of another peak, a formula) only what exceeds that."""
    norm_formula = norm(job)
    if not norm_formula:
        return []
    return [job.term("dora_norm", "weights", f"max(0, {norm_formula} - {beside})" if beside else norm_formula, source=SOURCE)]


def weights(job: Setup, count: str) -> list[Term]:
    """Weights cast or dequantised for a second run of the linear, which autograd keeps: 2 to 4 bytes times P_w in each of `count` layers
    ("": one). The linear runs twice with dropout, and before PEFT 0.14 always."""
    if not is_dora(job) or not job.role.trained or job.traits.adapters_like_weights:
        return []
    release, how = job.book.version("version.peft"), build_mode(job)
    again = job.trainable.dropout or (release is not None and release < REUSES)
    if _reads_fp32(job, how):
        width = 2 if how.own else 0 if job.precision.weight == 4 and not is_quantised(job.book) else 4
    else:
        width = 2 if is_quantised(job.book) else 0
    if not again or not width or not job.knows("P_w"):
        return []
    return [job.term("dora_weights", "weights", f"{count}*{width}*P_w" if count else f"{width}*P_w", source=SOURCE)]


def _names(job: Setup) -> tuple[str, ...]:
    """The wrapped linears that the model has."""
    gated = job.model is None or job.model.gated
    return tuple(name for name in job.trainable.names if gated or name != "gate")


def _reads_fp32(job: Setup, how: Mode) -> bool:
    """Whether what the adapter reads is fp32: the values are, or PEFT casts them to the adapters' precision."""
    uncast = job.traits.adapter_inputs_uncast or is_quantised(job.book)
    return how.each == 4 or how.cast == 4 or (how.cast == 2 and not uncast)
