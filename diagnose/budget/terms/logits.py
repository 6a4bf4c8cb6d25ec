"""Logits and loss: tensors of tokens times vocabulary, which rules/losses.yaml lists as blocks of so many bytes per logit."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.budget.model.formulas import Span, formula
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.loss_table import Block, losses, named_for
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.terms.chunked_loss import fused_kernel, fused_loss_terms

__all__ = [
    "at_backward_start",
    "block_bytes",
    "block_terms",
    "during_loss_call",
    "exists",
    "fused_kernel",
    "fused_loss_terms",
    "in_evaluation",
    "loss_blocks",
]

#: A model that caps its logits keeps the tanh of them (16 bits) until backward.
CAPPED = Block("soft_cap", 2, 2, 2)


def loss_blocks(job: Setup, blocks: Sequence[Block]) -> list[Block]:
    """Those of `blocks` that this job's loss makes, with the tanh of capped logits first."""
    present = [block for block in blocks if exists(job, block)]
    return [CAPPED, *present] if present and job.model is not None and job.model.softcap else present


def shape(job: Setup, block: Block) -> str:
    """Elements of a block as a formula: T*V, less the last token of each row or all but completion tokens where the loss leaves these
    out."""
    if job.loss.completion and job.knows("G"):
        return "B*G*V"
    if block.shifted and job.sharding.context == 1 and _is_uncut(job):
        return "B*(s - 1)*V"
    return "T_l*V" if job.knows("T_l") else "T*V"  # sequence parallel ranks gather the tokens before the head


def _is_uncut(job: Setup) -> bool:
    """Whether T is B*s: no token budget lowers it."""
    rows, length, tokens = (job.values.get(name) for name in ("B", "s", "T"))
    return isinstance(rows, int) and isinstance(length, int) and job.values.get("T_l", tokens) == rows * length


def exists(job: Setup, block: Block) -> bool:
    """Whether the job makes this block. A copy of a shifted slice (`many`) is made only of more than one row."""
    rows = job.values.get("B")
    return not block.many or not isinstance(rows, int) or rows > 1


def block_bytes(job: Setup, block: Block) -> int:
    """Bytes of one block; 0 where the batch is unknown."""
    if not job.knows("T", "V", "B", "s"):
        return 0
    size = formula(f"{block.bytes}*{shape(job, block)}").evaluate(job.values)
    return round(size.mid if isinstance(size, Span) else size)


def block_terms(job: Setup, blocks: Sequence[Block]) -> list[Term]:
    """A term for every block, bytes per logit times its elements; the range is that of the releases that the job may run on."""
    if not job.knows("T", "V", "B", "s") or job.role.headless:
        return []
    return [_term(job, block) for block in loss_blocks(job, blocks)]


def _term(job: Setup, block: Block) -> Term:
    tokens = shape(job, block)
    low = f"{block.least}*{tokens}" if block.least != block.bytes else ""
    high = f"{block.most}*{tokens}" if block.most != block.bytes else ""
    return job.term(block.name, "logits", f"{block.bytes}*{tokens}", low=low, high=high, source=job.loss.source)


def during_loss_call(job: Setup) -> list[Term]:
    """The blocks alive at the peak of the loss call."""
    return fused_loss_terms(job) if fused_kernel(job) else block_terms(job, job.loss.call)


def in_evaluation(job: Setup) -> list[Term]:
    """The blocks alive in the loss call of evaluation, which returns logits: kernels spare them in training alone, but for Cut
    Cross-Entropy."""
    return fused_loss_terms(job) if fused_kernel(job) == "cut_cross_entropy" else block_terms(job, job.loss.call)


def at_backward_start(job: Setup) -> list[Term]:
    """The blocks alive when backward starts, with the logits that the caller still holds."""
    if fused_kernel(job):
        return fused_loss_terms(job, backward=True)
    held = _held_logits(job)
    keys = {term.key for term in held}
    return [*block_terms(job, [block for block in job.loss.backward if block.name not in keys]), *held]


def _held_logits(job: Setup) -> list[Term]:
    """Logits as the model returned them, where the loop keeps its outputs through backward: fp32 if the model upcasts them or the trainer
    converts what autocast gives, else 2 bytes each."""
    made = [block.name for block in job.loss.call]
    if (
        not job.traits.holds_outputs
        or job.book.switch("train.logits_freed")
        or job.stage not in ("sft", "pt")
        or not made
        or job.role.headless
        or not job.knows("T", "V", "B", "s")
    ):
        return []
    converts = named_for(losses()["outputs_in_fp32"], job.framework) and not job.sharding.zero
    wide = made[0] == "logits_fp32" or (converts and job.book.word("train.precision") in ("bf16", "fp16"))
    key = "logits_fp32" if wide else "logits_16"
    if any(block.name == key and block.bytes for block in job.loss.backward):  # what some releases alone keep is held by all
        return []
    return [
        job.term(key, "logits", f"{4 if wide else 2}*{shape(job, Block(key, 0, 0, 0))}", source="the loop's own reference to `outputs`")
    ]
