"""One ledger per role and group of cards, the failed role first."""

from __future__ import annotations

from diagnose.budget import extra, failure, moments, outside
from diagnose.budget.ends import spanned
from diagnose.budget.host import host
from diagnose.budget.ledger import Ledger, Moment
from diagnose.budget.remembered import Memory
from diagnose.budget.roles import Role, roles
from diagnose.budget.setup import Setup, setup
from diagnose.facts import FactBook
from diagnose.record import replace
from diagnose.units import Size


def ledgers(book: FactBook) -> tuple[Ledger, ...]:
    """What each role of this job needs on each of its cards. Reads facts by name only, so that a changed book re-prices it."""
    cast = roles(book)
    return _beside(book, tuple(_ledger(book, role, first=index == 0) for index, role in enumerate(cast)))


#: Which roles share their cards, by the fact that says so.
SHARING = {
    "colocate.actor_ref": ("actor", "reference"),
    "colocate.critic_reward": ("critic", "reward"),
    "colocate.all": ("actor", "critic", "reward", "reference", "engine"),
}


def _beside(book: FactBook, found: tuple[Ledger, ...]) -> tuple[Ledger, ...]:
    """The ledgers of roles in processes of their own that share cards: each has what the others leave. Where a message says what was
    free, the others are in it already."""
    together = [names for fact, names in SHARING.items() if book.switch(fact)]
    if not together or len(found) < 2:
        return found
    printed = found[0].role if failure.usable(book) is not None else ""
    made = []
    for ledger in found:
        sharers = {name for names in together if ledger.role in names for name in names} - {ledger.role}
        others = [_residence(book, other) for other in found if other.role in sharers]
        if ledger.role == printed or ledger.usable is None or not others:
            made.append(ledger)
            continue
        made.append(replace(ledger, usable=_left(ledger.usable, others)))
    return tuple(made)


def _residence(book: FactBook, ledger: Ledger) -> Size:
    """What a role keeps on a card while another works there, with its context: at least its emptiest moment, at most its fullest; an
    engine its share, or what sleep leaves."""
    context = outside.context(book) + outside.modules()
    if ledger.role == "engine":
        share, whole = book.ratio("rollout.gpu_memory_utilization"), ledger.capacity
        awake = whole.times(share) if whole is not None and share is not None else None
        asleep = extra.residue() if book.switch("rollout.sleep") else awake
        if awake is None or asleep is None:
            return context
        return context + Size.between(asleep.low, awake.high, asleep.bytes)
    sizes = [moment.total for moment in ledger.moments]
    rests = ledger.moment("init") or ledger.moment("load")
    if not sizes or rests is None:
        return context
    least, stepped = min(size.low for size in sizes), ledger.moment("optimizer_step")
    between = rests.total.bytes + (stepped.only("moments").bytes if stepped else 0)
    return context + Size.between(min(least, between), max(between, *(size.high for size in sizes)), between)


def _left(usable: Size, others: list[Size]) -> Size:
    low, high, middle = (sum(getattr(other, end) for other in others) for end in ("low", "high", "bytes"))
    return Size.between(max(0, usable.low - high), max(0, usable.high - low), max(0, usable.bytes - middle))


def _ledger(book: FactBook, role: Role, *, first: bool) -> Ledger:
    job = setup(book, role)
    found = list(_DRAWN.of(book, role))
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


def _drawn(book: FactBook, role: Role) -> tuple[Moment, ...]:
    return tuple(spanned(setup(book, role), _moments))


_DRAWN = Memory(_drawn)


def forget() -> None:
    """Draw every moment anew: for measuring."""
    _DRAWN.forget()


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
    shards = job.sharding
    kinds = outside.groups(shards.tensor, shards.pipeline, shards.context, shards.expert, shards.ranks)
    less = outside.context(book) + outside.modules() + outside.communicators(shards.cards, kinds)
    return Size.between(capacity.low - less.high, capacity.high - less.low, capacity.bytes - less.bytes)


def _complete(job: Setup) -> bool:
    """Whether no resident term and no activation is missing."""
    if job.role.name == "engine":
        return job.knows("P")
    needs = ["P", "T", "h", "V", *(["Pt"] if job.role.trained else []), *(["N"] if job.sharding.scheme not in ("single", "ddp") else [])]
    return job.knows(*needs)
