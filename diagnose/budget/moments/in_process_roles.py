"""What other roles of a process keep on its card while one of them works: a moment is the sum of the whole process.

Roles take turns: a waiting role keeps its weights and states, unless they leave the card between phases. A critic that learns in one pass
with the policy (TRL's PolicyAndValueWrapper: the critic's forward, the policy's, then both backwards in reverse) keeps its activations,
too.
"""

from __future__ import annotations

from functools import lru_cache

from diagnose.budget.model.job_roles import Role, roles
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup, setup
from diagnose.budget.terms import activations, comm_buffers, extra_models, training_states
from diagnose.phrases import Text, phrase


def own_terms(job: Setup, *, moments: bool) -> list[Term]:
    """What a role itself keeps between two passes; `moments`: its optimizer has stepped."""
    return [
        *training_states.weights(job),
        *training_states.adapters(job),
        *(comm_buffers.whole_gradients(job) or training_states.gradients(job, resident=True)),
        *training_states.master_copies(job),
        *training_states.optimizer_states(job, exist=moments),
        *(comm_buffers.secondary_partition(job) if moments else []),
        *comm_buffers.resident_bucket(job),
        *comm_buffers.staging(job),
        *comm_buffers.ddp_buckets(job),
    ]


def staying_terms(job: Setup, resident: list[Term]) -> list[Term]:
    """What a trained role keeps on the card while other roles work."""
    return [term for term in between_steps(job, resident) if term.group not in training_states.away(job)]


#: Gradients that zero_grad frees after the optimizer step; those of ZeRO-3 and Megatron lie in buffers that stay.
FREED = ("gradients", "gradients_sharded", "gradients_whole")


def between_steps(job: Setup, resident: list[Term]) -> list[Term]:
    """What is left after an optimizer step: without the gradients that zero_grad frees. Also the state in evaluation and saving."""
    stay = job.traits.main_weights
    return [term for term in resident if stay or term.key not in FREED]


def other_role_terms(job: Setup, *, moments: bool, engine: bool = False) -> list[Term]:
    """What the other roles of this process keep on the card; `engine`: whether the rollout engine is awake."""
    host = _policy(job)
    if host is None:
        return []
    others = {role.name: role for role in _cast(job) if role.name != job.role.name}
    terms = [] if host is job else _is_waiting(host, moments=moments)
    if "critic" in others:
        terms += _is_waiting(_setup_as(job, others["critic"]), moments=moments)
    if job.role.name != "reference":
        terms += extra_models.reference(host)
    if "reward" in others:
        terms += extra_models.reward(host, others["reward"])
    terms += extra_models.teacher(host)
    return [*terms, *(extra_models.engine(host, awake=engine) if job.role.name != "engine" else [])]


def joint_activations(job: Setup) -> list[Term]:
    """What the forward pass of the role trained together with this one (critic beside policy, or the reverse) keeps for its backward;
    callers list it only for the moments before that. Empty without such a role."""
    partner = _partner(job)
    if partner is None:
        return []
    return name_by_role(partner.role, [*activations.stored_activations(partner), *activations.stem(partner)])


def joint_gradients(job: Setup) -> list[Term]:
    """All gradients of the role whose backward comes first, while that of the critic runs."""
    partner = _partner(job)
    if partner is None or job.role.hosts or comm_buffers.whole_gradients(partner) or training_states.gradients(partner, resident=True):
        return []
    return name_by_role(partner.role, training_states.gradients(partner, resident=False))


def joint_step(job: Setup) -> list[Term]:
    """Gradients and temporaries of the other role that takes the same optimizer step."""
    partner = _partner(job)
    if partner is None:
        return []
    own_keys = {term.key for term in own_terms(partner, moments=True)}
    grown = [term for term in training_states.gradients(partner, resident=False) if term.key not in own_keys]
    return name_by_role(partner.role, [*grown, *training_states.step_transient(partner)])


def name_by_role(role: Role, terms: list[Term]) -> list[Term]:
    """The same terms under another role's name, in the group extra_models."""
    name = phrase(f"ledger.role_{'actor' if role.policy else role.name}")
    return [term._replace(key=f"{role.name}_{term.key}", name=_named(name, term.name), group="extra_models") for term in terms]


@lru_cache(maxsize=1024)  # the same few names in every moment of every ledger
def _named(role: Text, name: Text) -> Text:
    return phrase("ledger.of_role", role=role, name=name)


def _policy(job: Setup) -> Setup | None:
    """The policy of this process; None where the role has a process of its own."""
    if job.role.apart:
        return None
    if job.role.hosts:
        return job
    policy = next((role for role in _cast(job) if role.hosts), None)
    return _setup_as(job, policy) if policy is not None else None


def _cast(job: Setup) -> list[Role]:
    """All roles of the job."""
    if not job.cast:
        job.cast.extend(roles(job.given))
    return job.cast


def _setup_as(job: Setup, role: Role) -> Setup:
    """The setup of another role of the same process."""
    if role.name not in job.kin:
        job.kin[role.name] = setup(job.given, role)
    return job.kin[role.name]


def _partner(job: Setup) -> Setup | None:
    """The role that learns in one pass with this one: the critic of a policy, or the reverse; None without one."""
    host = _policy(job) if job.role.joint or job.role.hosts else None
    if host is None:
        return None
    critic = next((role for role in _cast(job) if role.joint), None)
    if critic is None:
        return None
    return host if job.role.joint else _setup_as(job, critic)


def _is_waiting(job: Setup, *, moments: bool) -> list[Term]:
    """What a trained role keeps while it waits for its turn, or learns in the same pass."""
    resident = own_terms(job, moments=moments)
    return name_by_role(job.role, [term for term in (resident if job.role.joint else staying_terms(job, resident)) if term.size.high])
