"""One ledger per role and group of cards, the failed role first."""

from __future__ import annotations

from diagnose.budget import extra, failure, moments
from diagnose.budget.host import host
from diagnose.budget.ledger import Ledger, Moment
from diagnose.budget.roles import Role, roles
from diagnose.budget.setup import Setup, setup
from diagnose.facts import FactBook
from diagnose.units import Size

#: CUDA context with its libraries, and the first NCCL communicators, outside torch's allocator (docs/memory.md).
CONTEXT = Size.between(300 * 2**20, 600 * 2**20)
NCCL = Size.between(500 * 2**20, 1500 * 2**20)


def ledgers(book: FactBook) -> tuple[Ledger, ...]:
    """What each role of this job needs on each of its cards. Reads facts by name only, so that a changed book re-prices it."""
    cast = roles(book)
    return tuple(_ledger(book, role, first=index == 0) for index, role in enumerate(cast))


def _ledger(book: FactBook, role: Role, *, first: bool) -> Ledger:
    job = setup(book, role)
    found = _moments(job)
    failing, whole = None, None
    if first and _failed_here(book, role) and found:
        failing, found, whole = moments.failing(job, found)
    capacity = book.size("log.capacity") or book.size("hardware.capacity")
    return Ledger(
        role=role.name,
        gpus=job.sharding.cards,
        moments=tuple(found),
        capacity=capacity,
        usable=_usable(book, job, capacity, printed=first),
        failing=failing,
        observed=failure.observed(book) if first and _failed_here(book, role) else None,
        host=host(job),
        unknown=job.unknown,
        complete=_complete(job),
        whole=whole,
    )


def _moments(job: Setup) -> list[Moment]:
    if job.role.name == "engine":
        return moments.engine(job)
    return moments.trained(job) if job.role.trained else moments.frozen(job)


def _failed_here(book: FactBook, role: Role) -> bool:
    """Whether the failure in the log is this role's: no other is named, and there is one."""
    named = book.word("log.role")
    return "log.phase" in book and (named is None or named == role.name or role.name == "train")


def _usable(book: FactBook, job: Setup, capacity: Size | None, *, printed: bool) -> Size | None:
    """Free + allocated + unallocated at the failure, for the process that `printed` it; else capacity less context and communicators."""
    figure = failure.usable(book) if printed else None
    if figure is not None:
        moved = extra.moved_share(job)
        return figure if moved is None else figure + moved
    if capacity is None:
        return None
    less = CONTEXT + NCCL if job.sharding.cards > 1 else CONTEXT
    return Size.between(capacity.low - less.high, capacity.high - less.low, capacity.bytes - less.bytes)


def _complete(job: Setup) -> bool:
    """Whether no resident term and no activation is missing."""
    if job.role.name == "engine":
        return job.knows("P")
    needs = ["P", "T", "h", "V", *(["Pt"] if job.role.trained else []), *(["N"] if job.sharding.scheme not in ("single", "ddp") else [])]
    return job.knows(*needs)
