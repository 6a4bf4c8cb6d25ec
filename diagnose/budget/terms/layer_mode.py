"""How a layer computes: precision, autocast, adapters."""

from __future__ import annotations

from diagnose.budget.model.formulas import Span
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.weight_terms import adapter_width, is_prepared
from diagnose.records import NamedTuple


class Mode(NamedTuple):
    """Widths in bytes, and switches, that decide what a layer keeps.

    `each`: bytes of a computed value; `attended`: of a value that attention keeps; `wide`: fp32 weights under autocast, hence an fp32
    residual stream; `lora`: the base is frozen; `cast`: bytes of the copy that each wrapped linear makes of its input for the adapter (0:
    they share it); `own`: autocast is on, so that LayerNorm and powers compute in fp32; `fused`: norms and MLP use fused kernels (Liger).
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
    """The mode of this job's layers. Under autocast attention computes in 16 bits whatever it is given."""
    values = 4 if computes_in_fp32(job) or is_upcast(job) else 2
    autocast = runs_autocast(job)
    attended = 2 if autocast else values
    return Mode(values, attended, has_fp32_residual(job), job.trainable.lora, _copy_width(job, values, autocast), autocast, job.fused)


def _copy_width(job: Setup, values: int, autocast: bool) -> int:
    """Bytes per element of the copy that a wrapped linear makes of its input for the adapter; 0 where both have one precision. PEFT's
    adapters are fp32, but FSDP's mixed precision gathers and DeepSpeed casts them in 16 bits."""
    gathered = job.sharding.scheme.startswith("fsdp") and not computes_in_fp32(job)
    if not job.trainable.lora or job.sharding.zero or gathered:
        return 0
    adapters = 2 if autocast else 2 if adapter_width(job) == 2 else 4
    if values == 4:
        return 2 if adapters == 2 and not computes_in_fp32(job) else 0
    return 0 if adapter_width(job) == 2 else adapters


def adapter_copies(job: Setup, how: Mode) -> int:
    """Bytes per element of its input that a wrapped linear keeps for its adapter: the copy, and with dropout a mask of one byte."""
    return (how.cast or 2) + 1 if job.trainable.dropout else how.cast


def keeps_product(job: Setup, how: Mode) -> bool:
    """Whether down_proj keeps its input as it is: it is trained, or an adapter shares it."""
    return not how.lora or (how.cast == 0 and not job.trainable.dropout and job.trainable.inputs[2] > 0)


def may_be_padded(job: Setup) -> bool:
    """Whether rows of one forward pass may differ in length, so that there is a padding mask. Completions are padded to the longest of
    their round: even one row alone may have padding (TRL grpo_trainer.py pad, AgileRL utils/algo_utils.py stack_and_pad_experiences)."""
    rows, vary = job.values.get("B"), job.book.switch("data.lengths_vary")
    several = isinstance(rows, int) and (rows > 1 or (job.stage in table()["rollouts"] and job.traits.pads_rounds))
    return not job.book.switch("train.packing") and several and vary is not False


def is_padded(job: Setup) -> bool:
    """Whether rows are known to differ in length: libraries make no mask where no token is padding."""
    return may_be_padded(job) and job.book.switch("data.lengths_vary") is True
