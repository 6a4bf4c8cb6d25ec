"""Logits and loss: tokens times vocabulary, block by block."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.budget.formula import Span, formula, term
from diagnose.budget.known import Block
from diagnose.budget.ledger import Term
from diagnose.budget.setup import Setup

#: Chunks of torchtune's and XTuner's chunked cross entropy.
CHUNKS = 8


def fused(job: Setup) -> str:
    """The kernel that spares the logits here; supervised losses only: preference and RL losses need the logits."""
    kernel = job.book.word("train.loss_kernel") or "none"
    return kernel if kernel != "none" and job.stage in ("sft", "pt") else ""


def shape(job: Setup, block: Block) -> str:
    """Tokens times vocabulary in letters."""
    if job.loss.completion and job.knows("G"):
        return "B*G*V"
    if block.shifted and job.sharding.context == 1 and _whole(job):
        return "B*(s - 1)*V"
    return "T*V"


def _whole(job: Setup) -> bool:
    """Whether T is B*s: no token budget cut it."""
    rows, length, tokens = (job.values.get(name) for name in ("B", "s", "T"))
    return isinstance(rows, int) and isinstance(length, int) and tokens == rows * length


def exists(job: Setup, block: Block) -> bool:
    """A copy of a shifted slice is made only where more than one row is computed."""
    rows = job.values.get("B")
    return not block.many or not isinstance(rows, int) or rows > 1


def block_bytes(job: Setup, block: Block) -> int:
    """Bytes of one block; 0 where the batch is unknown."""
    if not job.knows("T", "V", "B", "s"):
        return 0
    size = formula(f"{block.bytes}*{shape(job, block)}").evaluate(job.values)
    return round(size.mid if isinstance(size, Span) else size)


def terms(job: Setup, blocks: Sequence[Block]) -> list[Term]:
    if not job.knows("T", "V", "B", "s") or job.role.headless:
        return []
    made: list[Term] = []
    for block in blocks:
        if exists(job, block):
            symbols = f"{block.bytes}*{shape(job, block)}"
            if block.fleeting:  # alive for a moment in eager PyTorch: the upper end, sums are made without it
                made.append(job.term(f"fleeting_{block.name}", "logits", f"0*{shape(job, block)}", high=symbols, source=job.loss.source))
            else:
                made.append(job.term(block.name, "logits", symbols, source=job.loss.source))
    return made


def at_call(job: Setup) -> list[Term]:
    """What is alive while the loss is computed."""
    return kernel(job) if fused(job) else terms(job, job.loss.call)


def in_evaluation(job: Setup) -> list[Term]:
    """Fused kernels spare the logits in training only: evaluation returns them."""
    return kernel(job) if fused(job) == "cut_cross_entropy" else terms(job, job.loss.call)


def at_backward(job: Setup) -> list[Term]:
    """What is alive at the start of backward."""
    if fused(job):
        return kernel(job)
    fleeting = [block for block in job.loss.backward if block.fleeting]
    return terms(job, [*job.loss.call, *fleeting] if fleeting else job.loss.backward)


def kernel(job: Setup) -> list[Term]:
    """A loss that never holds all logits."""
    if not job.knows("T", "V", "h"):
        return []
    head = "" if job.trainable.lora else " + 2*V*h"
    which = fused(job)
    if which == "cut_cross_entropy":
        return [job.term("loss_fused", "logits", f"2*h*T{head}", source="Cut Cross-Entropy")]
    if which == "chunked":
        return [job.term("loss_chunked", "logits", f"10*(T/{CHUNKS})*V", source="torchtune CEWithChunkedOutputLoss")]
    rows = _chunk_rows(job)
    values = {**job.values, "R": rows}
    return [term("loss_fused", "logits", f"6*R*V + 2*h*T{head}", values, source="Liger ops/fused_linear_cross_entropy.py")]


def _chunk_rows(job: Setup) -> int:
    """Liger's rule: the next power of two of T / ceil(V/h)."""
    tokens, vocabulary, width = (job.values[name] for name in ("T", "V", "h"))
    count, parts = (tokens.mid if isinstance(tokens, Span) else tokens), -(-vocabulary // width)  # type: ignore[operator]
    return int(1 << (max(1, int(-(-count // parts))) - 1).bit_length())
