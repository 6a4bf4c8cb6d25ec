"""What a training process takes of a card beside torch's allocated bytes: CUDA context, communicators."""

from __future__ import annotations

from diagnose.budget.model.software_table import earlier_torch, table
from diagnose.facts import FactBook
from diagnose.units import Size

MIB = 2**20


def context(book: FactBook, *, eager: bool = False) -> Size:
    """The CUDA context with its libraries, as measured on cards of this compute capability (rules/ledger.yaml, outside); `eager`:
    with every kernel loaded at once."""
    figures = table()["outside"]
    capability = book.version("hardware.compute_capability")
    low, high = (
        figures["eager"]
        if eager or earlier_torch("loads_all_kernels", book)
        else figures["context"].get(str(capability), figures["context"]["other"])
    )
    return Size.between(low * MIB, high * MIB)


def modules() -> Size:
    """Kernels that a training run loads beside the context: cuDNN, flash attention, Triton."""
    low, high = table()["outside"]["modules"]
    return Size.between(low * MIB, high * MIB)


def process() -> Size:
    """What one process may hold beside torch where neither its card nor its communicators are known."""
    low, high = table()["outside"]["process"]
    return Size.between(low * MIB, high * MIB)


def communicators(cards: int, groups: int = 1) -> Size:
    """NCCL communicators of a rank, one for each group that it exchanges with (data, tensor, pipeline, context, expert parallel); none on
    one card. Each further group takes up to the least that the first one takes."""
    if cards < 2:
        return Size.between(0, 0)
    low, high = table()["outside"]["nccl"]
    return Size.between(low * MIB, (high + low * max(0, groups - 1)) * MIB)


def count_groups(tensor: int, pipeline: int, context: int, expert: int, ranks: int | None) -> int:
    """Kinds of communicator groups that a rank belongs to, at least 1."""
    return max(1, sum(degree > 1 for degree in (tensor, pipeline, context, expert, ranks or 1)))
