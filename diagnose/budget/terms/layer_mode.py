"""How one layer computes: precision, autocast, adapters."""

from __future__ import annotations

from dataclasses import dataclass

from diagnose.budget.model.formulas import Span
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.weight_terms import adapter_width, is_prepared


@dataclass(slots=True)
class Mode:
    """How the layer computes.

    `each`: bytes of a computed value, `attended`: of what attention keeps; `wide`: an fp32 residual stream of fp32 weights under
    autocast; `cast`: bytes of the own copy that every wrapped linear makes of its input (0: none, they share it); `own`: autocast
    is on, so LayerNorm and powers are computed in fp32.
    """

    each: int
    attended: int
    wide: bool
    lora: bool
    cast: int
    own: bool
    fused: bool


def computes_in_fp32(job: Setup) -> bool:
    """Whether values are computed in fp32."""
    compute = job.precision.compute
    return (compute.low if isinstance(compute, Span) else compute) == 4


def has_fp32_residual(job: Setup) -> bool:
    """Whether the residual stream is fp32: fp32 weights under autocast. FSDP's mixed precision casts the weights instead."""
    return job.precision.autocast and not job.sharding.scheme.startswith("fsdp")


def is_upcast(job: Setup) -> bool:
    """Whether a quantised base was prepared for training: embeddings come out in fp32, and every quantised linear gives its output in
    the precision of its input (bitsandbytes nn/modules.py Linear4bit.forward), so all values between linears are fp32. DeepSpeed
    casts the whole model, FSDP's mixed precision what it gathers."""
    return job.trainable.lora and is_prepared(job) and not job.sharding.zero and not job.sharding.scheme.startswith("fsdp")


def runs_autocast(job: Setup) -> bool:
    """Whether the forward runs under autocast. Trainers switch it on for every 16-bit run whose weights are not cast beforehand."""
    lora = job.trainable.lora and job.book.word("train.precision") != "pure_bf16"
    return not computes_in_fp32(job) and not job.sharding.zero and (has_fp32_residual(job) or lora)


def build_mode(job: Setup) -> Mode:
    """Adapters in the precision of what they read share it; PEFT's are fp32 and make copies, as DeepSpeed's are not. Under autocast
    attention computes in 16 bits whatever it is given."""
    values = 4 if computes_in_fp32(job) or is_upcast(job) else 2
    autocast = runs_autocast(job)
    attended = 2 if autocast else values
    return Mode(values, attended, has_fp32_residual(job), job.trainable.lora, _copy_width(job, values, autocast), autocast, job.fused)


def _copy_width(job: Setup, values: int, autocast: bool) -> int:
    """Bytes of the copy that a wrapped linear makes of its input. FSDP's mixed precision gathers adapters in 16 bits, as DeepSpeed
    casts them, so they read what the base reads."""
    gathered = job.sharding.scheme.startswith("fsdp") and not computes_in_fp32(job)
    if not job.trainable.lora or job.sharding.zero or gathered:
        return 0
    adapters = 2 if autocast else 2 if adapter_width(job) == 2 else 4
    if values == 4:
        return 2 if adapters == 2 and not computes_in_fp32(job) else 0
    return 0 if adapter_width(job) == 2 else adapters


def adapter_copies(job: Setup, how: Mode) -> int:
    """Bytes per element that a wrapped linear keeps of its input for itself: its copy, and a mask of one byte with dropout."""
    return (how.cast or 2) + 1 if job.trainable.dropout else how.cast


def keeps_product(job: Setup, how: Mode) -> bool:
    """Whether the input of down_proj is kept as it is: it is trained, or an adapter shares it."""
    return not how.lora or (how.cast == 0 and not job.trainable.dropout and job.trainable.inputs[2] > 0)


def may_be_padded(job: Setup) -> bool:
    """Whether rows of one forward may differ in length, so that a mask is made of their padding. Completions are padded to the longest of
    their round: one row alone has padding, too (TRL grpo_trainer.py pad, AgileRL utils/algo_utils.py stack_and_pad_experiences)."""
    rows, vary = job.values.get("B"), job.book.switch("data.lengths_vary")
    several = isinstance(rows, int) and (rows > 1 or (job.stage in table()["rollouts"] and job.traits.pads_rounds))
    return not job.book.switch("train.packing") and several and vary is not False


def is_padded(job: Setup) -> bool:
    """Whether rows are known to differ in length: libraries make no mask where no token is padding."""
    return may_be_padded(job) and job.book.switch("data.lengths_vary") is True
