"""One ledger per role and group of cards, the failed role first."""

from __future__ import annotations

from dataclasses import replace

from diagnose.budget.model import non_torch
from diagnose.budget.model.formulas import term
from diagnose.budget.model.job_roles import Role, is_planned, roles
from diagnose.budget.model.ledger import Host, Ledger, Moment, Term, total
from diagnose.budget.model.role_setup import Setup, setup
from diagnose.budget.moments import failure_moment, host_memory, in_process_roles, step_moments
from diagnose.budget.moments.host_memory import estimate_host
from diagnose.budget.moments.precision_range import span_guesses, span_readings
from diagnose.budget.moments.read_set_memo import ReadSetMemo
from diagnose.budget.terms import denoiser, extra_models, training_states
from diagnose.facts import FactBook
from diagnose.phrases import phrase
from diagnose.records import NamedTuple
from diagnose.units import Size


def ledgers(book: FactBook) -> tuple[Ledger, ...]:
    """A ledger of what each role needs on each of its cards. Reads facts by name only, so that a changed book re-prices it. What is only
    guessed has no part in it where the log's figures did not confirm it (`accounting`)."""
    if book.switch("ledger.without_guesses"):
        book = book.confirmed()
    cast = roles(book)
    drafts = _DRAFTS.of(book, cast)
    role_ledgers = tuple(_ledger(book, cast, index, draft) for index, draft in enumerate(drafts))
    return _share_cards(
        book, cast, host_memory.place_on_nodes(book, cast, role_ledgers, [names for fact, names in SHARING.items() if book.switch(fact)])
    )


#: Which roles share their cards, by the fact that says so.
SHARING = {
    "colocate.actor_ref": ("actor", "reference"),
    "colocate.critic_reward": ("critic", "reward"),
    "colocate.all": ("actor", "critic", "reward", "reference", "engine"),
}


def _share_cards(book: FactBook, cast: tuple[Role, ...], role_ledgers: tuple[Ledger, ...]) -> tuple[Ledger, ...]:
    """Reduce the usable memory of roles in separate processes by what others keep on the same cards. Not for the role whose message prints
    free memory: that figure already counts the others."""
    together = [names for fact, names in SHARING.items() if book.switch(fact)]
    if not together or len(role_ledgers) < 2 or not all(role.apart for role in cast):
        return role_ledgers
    printed = role_ledgers[0].role if failure_moment.usable_memory(book) is not None else ""
    combined = []
    for ledger in role_ledgers:
        sharers = {name for names in together if ledger.role in names for name in names} - {ledger.role}
        others = [
            term
            for role, ledger_of_role in zip(cast, role_ledgers, strict=True)
            if role.name in sharers
            for term in idle_role_terms(book, role, ledger_of_role)
        ]
        if ledger.role == printed or ledger.usable is None or not others:
            combined.append(ledger)
            continue
        combined.append(replace(ledger, usable=_subtract(ledger.usable, total([term.size for term in others])), beside=tuple(others)))
    return tuple(combined)


def _subtract(usable: Size, others: Size) -> Size:
    ends = (usable.low - others.high, usable.high - others.low, usable.bytes - others.bytes)
    return Size.between(*(max(0, end) for end in ends))


class RoleDraft(NamedTuple):
    """The part of a role's ledger that no figure of the message changes. `job` has no book (`Setup.reading`); `kinds`: number of
    communicator groups that a rank belongs to."""

    job: Setup
    moments: tuple[Moment, ...]
    cards: int
    kinds: int
    host: Host
    unknown: tuple[str, ...]
    complete: bool


def _ledger(book: FactBook, cast: tuple[Role, ...], index: int, draft: RoleDraft) -> Ledger:
    role, first = cast[index], index == 0
    failed_here = first and _is_failed_role(book, role, cast)
    printed = failure_moment.usable_memory(book) if first else None
    job = draft.job.reading(book) if failed_here or printed is not None else None
    failing, role_moments, whole = None, draft.moments, None
    if failed_here and job is not None and role_moments:
        drafted = list(role_moments)
        failing, drawn_moments, whole = step_moments.failing_moment(job, drafted)
        role_moments = tuple(span_guesses(job, drawn_moments, lambda reading: step_moments.failing_moment(reading, drafted)[1]))
    capacity = book.size("log.capacity") or book.size("hardware.capacity")
    return Ledger(
        role=role.name,
        gpus=draft.cards,
        moments=role_moments,
        capacity=capacity,
        usable=_usable_memory(book, draft, capacity) if job is None or printed is None else _with_moved_share(job, printed),
        failing=failing,
        observed=failure_moment.observed_allocation(book) if failed_here else None,
        host=draft.host,
        unknown=draft.unknown,
        complete=draft.complete,
        whole=whole,
    )


def _draft_roles(book: FactBook, cast: tuple[Role, ...]) -> tuple[RoleDraft, ...]:
    """Drafts of all roles. Roles of one process appear in each other's moments, so that each is set up once and shared."""
    jobs = [setup(book, role) for role in cast]
    for job in jobs:
        job.cast.extend(cast)
        job.kin.update((sibling.role.name, sibling) for sibling in jobs)
    return tuple(map(_of, jobs))


def _of(job: Setup) -> RoleDraft:
    shards = job.sharding
    kinds = non_torch.count_groups(shards.tensor, shards.pipeline, shards.context, shards.expert, shards.ranks)
    moments = tuple(span_readings(job, _moments))
    return RoleDraft(job.reading(_NO_BOOK), moments, shards.cards, kinds, estimate_host(job), job.unknown, _is_complete(job))


_NO_BOOK = FactBook()  # drafts outlive the job that they were made for
_DRAFTS = ReadSetMemo(_draft_roles)


def clear_cache() -> None:
    """Forget all drafts: for benchmarks."""
    _DRAFTS.forget()


def _moments(job: Setup) -> list[Moment]:
    if job.role.name == "engine":
        return step_moments.engine_moments(job)
    if job.role.predicts:
        return step_moments.prediction_moments(job)
    if denoiser.is_denoiser(job):
        from diagnose.budget.moments import denoiser_moments  # few jobs make pictures: not loaded at start

        return denoiser_moments.moments(job)
    return step_moments.training_moments(job) if job.role.trained else step_moments.frozen_moments(job)


def _is_failed_role(book: FactBook, role: Role, cast: tuple[Role, ...]) -> bool:
    """Whether the log's failure is this role's: it names this role or none, or one that the job is not known to have, in a process shared
    with this role."""
    named = book.word("log.role")
    if "log.phase" not in book:
        return False
    return named in (None, role.name) or (not role.apart and all(member.name != named for member in cast))


def _with_moved_share(job: Setup, printed: Size) -> Size:
    """What torch could use as this role's process printed it at the failure, and what a changed share of an engine gives back."""
    moved = extra_models.moved_share(job)
    return printed if moved is None else printed + moved


def _usable_memory(book: FactBook, draft: RoleDraft, capacity: Size | None) -> Size | None:
    """Capacity less context and communicators, where no message prints what torch could use."""
    if capacity is None:
        return None
    outside_torch = non_torch.context(book) + non_torch.modules() + non_torch.communicators(draft.cards, draft.kinds)
    return Size.between(capacity.low - outside_torch.high, capacity.high - outside_torch.low, capacity.bytes - outside_torch.bytes)


def _is_complete(job: Setup) -> bool:
    """Whether no resident term and no activation is missing. What an engine's passes take beside weights and cache is not estimated."""
    if job.role.name == "engine":
        if job.role.apart and is_planned(job.book):
            from diagnose.budget.terms import engine_budget  # not loaded where nothing is served

            return engine_budget.is_complete(job)
        return job.knows("P") and (not job.role.apart or failure_moment.engine_is_loading(job.book))
    if denoiser.is_denoiser(job):
        return denoiser.is_complete(job)
    needs = [
        "P",
        "T",
        "h",
        "V",
        *(["T_e"] if job.model and job.model.source else []),
        *(["Pt"] if job.role.trained else []),
        *(["N"] if job.sharding.scheme not in ("single", "ddp") else []),
    ]
    return job.knows(*needs)


CONTEXT = "CUDA context and kernels (rules/ledger.yaml, outside)"
POOL = "torch keeps freed blocks until empty_cache: at most the role's largest moment"


def idle_role_terms(book: FactBook, role: Role, ledger: Ledger) -> list[Term]:
    """The terms that another role keeps on a shared card while it waits for its turn."""
    job = setup(book, role)
    if role.name == "engine":
        return [_context_term(book, role), *_engine_share(book, ledger)]
    resident = (
        in_process_roles.staying_terms(job, in_process_roles.own_terms(job, moments=True)) if role.trained else training_states.weights(job)
    )
    waits = [waiting_term for waiting_term in in_process_roles.name_by_role(role, resident) if waiting_term.size.high]
    waiting = total([waiting_term.size for waiting_term in waits])
    peak = max((moment.total.high for moment in ledger.moments), default=0)
    pool = term("role_pool", "overhead", "0", {}, high=str(max(0, peak - waiting.high)), source=POOL)
    return [_context_term(book, role), *waits, _name_by_role(role, pool)]


def _context_term(book: FactBook, role: Role) -> Term:
    size = non_torch.context(book) + non_torch.modules()
    context_term = term("role_context", "overhead", str(size.bytes), {}, low=str(size.low), high=str(size.high), source=CONTEXT)
    return _name_by_role(role, context_term)


def _engine_share(book: FactBook, ledger: Ledger) -> list[Term]:
    """An engine's share of the card while it generates, or its residue while it sleeps."""
    share, whole = book.ratio("rollout.gpu_memory_utilization"), ledger.capacity
    if share is None or whole is None:
        return []
    if not book.switch("rollout.sleep"):
        return [term("engine", "rollout_engine", "u*C", {"u": share, "C": whole.bytes}, source="vLLM gpu_memory_utilization")]
    residue_size = extra_models.residue()
    bounds = {"low": str(residue_size.low), "high": str(residue_size.high)}
    return [term("engine_residue", "rollout_engine", str(residue_size.bytes), {}, source="measured after sleep level 1", **bounds)]


def _name_by_role(role: Role, role_term: Term) -> Term:
    name = phrase("ledger.of_role", role=phrase(f"ledger.role_{'actor' if role.policy else role.name}"), name=role_term.name)
    return role_term._replace(key=f"{role.name}_{role_term.key}", name=name)
