"""Facts about the run that the failed request reveals: element width, row length, and whether the settings agree."""

from __future__ import annotations

from diagnose.budget.attribution.failed_tensor import identity
from diagnose.budget.model.block_rounding import POWERS, Allocator, block
from diagnose.budget.model.formulas import formula
from diagnose.budget.model.job_roles import roles
from diagnose.budget.model.ledger import Attribution
from diagnose.budget.model.precisions import WIDTH
from diagnose.budget.model.role_setup import setup
from diagnose.budget.moments import other_passes
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.units import torch_prints

#: Divisions of a power of two that people set (roundup_power2_divisions).
PARTS = (2, 4, 8, 16, 32, 64)

#: Gradients and moments of a weight matrix, or of all weights (rules/tensors).
OF_WHOLE_MATRICES = ("ledger.t_gradient_one", "ledger.t_gradient_flat", "ledger.t_moment_one")

#: What a fused or chunked loss makes itself (rules/tensors).
CHUNKS = ("ledger.t_fused_loss_chunk",)


def implied_facts(book: FactBook, attributions: tuple[Attribution, ...]) -> list[Fact]:
    """Facts from the best attribution, where frame and phase support it."""
    best = attributions[0] if attributions else None
    if best is None or not best.named:
        return _loading_by_size(book, attributions)
    if best.phase and "log.phase" not in book:
        return [_fact("log.phase", best.phase, best.tensor.en)]
    if best.at_least or best.by_frame:
        return []
    packed = [_fact("attribution.padded_tokens", best.span[0], f"{best.formula} = {best.numbers}")] if best.padded and best.span else []
    return [
        *_width_facts(best),
        *_loading_facts(book, best),
        *_row_facts(book, best),
        *packed,
        *_loss_kernel_facts(book, best),
        *_tuning_facts(book, best),
    ]


def _loading_by_size(book: FactBook, attributions: tuple[Attribution, ...]) -> list[Fact]:
    """That weights are being made, where nothing tells the phase and the request is one of them by its size alone: a run that learns
    nothing makes weights only then."""
    made = identity(attributions, book)
    others = "log.phase" in book or book.switch("train.enabled") or book.switch("run.merges")
    if made is None or made.group != "weights" or others:
        return []
    return [_fact("log.phase", "model_load", f"{made.formula} = {made.numbers}")]


def _loading_facts(book: FactBook, best: Attribution) -> list[Fact]:
    """In which precision the weights were loaded, where nobody says it and one of them failed as fp32. Two bytes would be either of two."""
    told = "train.load_dtype" in book or ("model.quantization" in book and book.word("model.quantization") != "none")
    loading = best.group == "weights" and book.word("log.phase") in ("model_load", "init")
    if told or not loading or best.width != WIDTH["fp32"]:
        return []
    return [_fact("train.load_dtype", "fp32", f"{best.formula} = {best.numbers}")]


def _tuning_facts(book: FactBook, best: Attribution) -> list[Fact]:
    """That all weights are trained, where nobody says how many: adapters have neither gradients nor moments as large as a matrix."""
    whole = best.key in OF_WHOLE_MATRICES and "r" not in formula(best.formula).names
    return [_fact("train.finetuning", "full", f"{best.formula} = {best.numbers}")] if whole and "train.finetuning" not in book else []


def _loss_kernel_facts(book: FactBook, best: Attribution) -> list[Fact]:
    """That no kernel spared the logits, where only a default says that one does, yet the request is for all logits."""
    kernel = book.fact("train.loss_kernel")
    if kernel is None or kernel.origin != "default" or kernel.value == "none" or book.word("log.phase") == "eval":
        return []
    whole = best.group == "logits" and best.key not in CHUNKS
    return [_fact("train.loss_kernel", "none", f"{best.formula} = {best.numbers}")] if whole else []


def _width_facts(best: Attribution) -> list[Fact]:
    """Bytes per element, from tensors that have no length: with a length, half as many tokens of twice the width would print alike."""
    if best.width is None or best.tokens is not None or best.solved:
        return []
    arithmetic = f"{best.formula} = {best.numbers}"
    implied = [_fact("attribution.element", "fp32" if best.width == 4 else "16_bit", arithmetic)]
    return implied if best.against is None else [*implied, _fact("attribution.against_precision", best.against, arithmetic)]


def _row_facts(book: FactBook, best: Attribution) -> list[Fact]:
    """Tokens per row, and whether that exceeds what the settings allow for one sample."""
    job = other_passes.job_that_failed(setup(book, roles(book)[0]))
    rows, cap = job.values.get("B"), book.count("train.max_seq_len")
    if best.tokens is None or not isinstance(rows, int) or rows < 1 or book.word("log.phase") == "eval":
        return []
    tokens = best.span[0] if best.span is not None else best.tokens
    row = -(-tokens * job.sharding.context // rows)
    arithmetic = f"{best.formula} = {best.numbers}"
    implied = [_fact("attribution.row_tokens", row, arithmetic)]
    apart = book.switch("train.packing") is False and not book.count("train.token_budget")  # else a row holds several samples
    if cap is None or not apart or (row > cap and _is_rounding(book, best, best.bytes * cap // row)):
        return implied
    return [*implied, _fact("attribution.over_cap", row > cap, f"{arithmetic}; limit {cap}")]


def _is_rounding(book: FactBook, best: Attribution, capped: int) -> bool:
    """Whether the tensor at the length limit may print as the request, rounded up by an allocator setting that the log does not show."""
    if "alloc.roundup" in book:
        return False
    printed = torch_prints(best.block_bytes)
    return any(torch_prints(block(capped, Allocator(divisions=(parts,) * POWERS))) == printed for parts in PARTS)


def _fact(name: str, value: Value, formula: str) -> Fact:
    return Fact(name, value, "derived", Witness("derived", text=formula))
