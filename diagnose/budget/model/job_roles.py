"""Roles: which models a job has, on how many cards, in which processes. A plain job has one role; RL has policy, critic, reward, reference
and engine, which may share cards and processes."""

from __future__ import annotations

from diagnose import families
from diagnose.budget.model.software_table import table
from diagnose.catalogue import Model
from diagnose.facts import FactBook
from diagnose.records import NamedTuple
from diagnose.traits import during, traits_of

#: What a role that learns beside the policy is told for itself: its own knob, and the policy's which that stands for.
OWN = {
    "critic.micro_batch_size": "train.micro_batch_size",
    "critic.token_budget": "train.token_budget",
    "critic.context_parallel": "parallel.context",
    "critic.gradient_checkpointing": "train.gradient_checkpointing",
    "critic.offload_between_phases": "rollout.offload_between_phases",
}


class Role(NamedTuple):
    """One model on one group of cards. `headless`: instead of a vocabulary head it has one for a value or classes, or none; `offloaded`:
    its weights wait in host memory; `apart`: in a process of its own, else in the policy's; `joint`: it learns in one pass and one
    optimizer step with the policy."""

    name: str
    model: Model | None
    cards: int | None
    trained: bool
    headless: bool = False
    offloaded: bool = False
    apart: bool = False
    joint: bool = False

    @property
    def policy(self) -> bool:
        """Whether it is the model that the job is about."""
        return self.name in ("train", "actor")

    @property
    def predicts(self) -> bool:
        """Whether the job only evaluates, predicts or generates with this model."""
        return self.policy and not self.trained

    @property
    def hosts(self) -> bool:
        """Whether other roles may live in its process."""
        return self.policy and not self.apart


def roles(book: FactBook) -> tuple[Role, ...]:
    """The roles of this job, the one that failed first."""
    policy = _untied(book.shape("model.shape"), book)
    if _only_serves(book):
        return (_serving_role(book, policy),)
    world = book.count("parallel.world") or book.count("run.cuda_devices") or book.count("hardware.count")
    if book.word("train.stage") not in table()["rollouts"]:
        learns = book.switch("train.enabled") is not False and book.word("run.regime") in (None, "train", "rl")
        headless = book.word("model.head") in ("none", "classes")
        return (Role("train", policy, world, trained=learns, headless=headless),)
    counted = any(book.count(f"{name}.gpus") for name in ("actor", "critic", "reward", "ref"))
    candidates = _separate_roles(book, policy, world) if counted else _colocated_roles(book, policy, world)
    failed = book.word("log.role")
    if failed == "engine" and book.word("rollout.placement") == "separate" and all(role.name != failed for role in candidates):
        return (_serving_role(book, policy), *candidates)  # what the trainer holds is on other cards
    return tuple(sorted(candidates, key=lambda role: role.name != failed))


def _untied(model: Model | None, book: FactBook) -> Model | None:
    """The model with an output head of its own, where the framework builds one whatever the checkpoint ties."""
    if model is None or not model.tied or not traits_of(book.word("train.framework")).unties_head:
        return model
    return model._replace(tied=False, params=model.params + model.V * model.h)


def book_of_role(book: FactBook, role: Role) -> FactBook:
    """The book as seen by a role: the critic's own settings replace the policy's."""
    if role.name != "critic":
        return book
    changes = {knob: book.value(own) for own, knob in OWN.items() if book.value(own) is not None}
    if not role.apart and "critic.offload_between_phases" not in book:
        changes["rollout.offload_between_phases"] = None
    critic = traits_of(book.word("train.framework")).critic
    if critic is not None and critic.whole and book.word("train.finetuning") in table()["adapters"]:
        changes["train.finetuning"] = "full"
    return book.changed(changes) if changes else book


def _separate_roles(book: FactBook, policy: Model | None, world: int | None) -> list[Role]:
    """Roles of a job that gives each a number of cards and processes of its own."""
    separate_roles = [Role("actor", policy, book.count("actor.gpus") or world, trained=True, apart=True)]
    if book.count("critic.gpus"):
        separate_roles.append(
            Role("critic", _critic_base(book, policy), book.count("critic.gpus"), trained=True, headless=True, apart=True)
        )
    away = book.switch("ref.offload") is True
    if book.count("reward.gpus") and not book.switch("reward.remote"):
        model = book.shape("reward.shape")
        separate_roles.append(Role("reward", model, book.count("reward.gpus"), trained=False, headless=True, offloaded=away, apart=True))
    if book.count("ref.gpus"):
        separate_roles.append(Role("reference", policy, book.count("ref.gpus"), trained=False, offloaded=away, apart=True))
    if (book.word("rollout.engine") or "vllm") not in ("none", "hf") and book.count("rollout.engines"):
        cards = (book.count("rollout.engines") or 1) * (book.count("rollout.tensor_parallel") or 1)
        separate_roles.append(Role("engine", policy, cards, trained=False, apart=True))
    return separate_roles


def _colocated_roles(book: FactBook, policy: Model | None, world: int | None) -> list[Role]:
    """Roles on the policy's cards; without another role the policy is called `train`."""
    traits, reference_word = traits_of(book.word("train.framework")), book.word("train.ref_model")
    shared_roles: list[Role] = []
    if _has_critic(book):
        joint = traits.critic is not None and traits.critic.joint
        shared_roles.append(Role("critic", _critic_base(book, policy), world, trained=True, headless=True, joint=joint))
    scored = book.word("reward.model") is not None or book.shape("reward.shape") is not None
    if scored and not book.switch("reward.remote"):
        away = traits.offloads_frozen
        shared_roles.append(Role("reward", book.shape("reward.shape"), world, trained=False, headless=True, offloaded=away))
    if reference_word in ("copy", "offload") and book.word("train.finetuning") not in table()["adapters"]:
        shared_roles.append(Role("reference", policy, world, trained=False, offloaded=reference_word == "offload"))
    if book.word("rollout.placement") == "colocated" and (book.word("rollout.engine") or "none") not in ("none", "hf"):
        shared_roles.append(Role("engine", policy, world, trained=False))
    return [Role("actor" if shared_roles else "train", policy, world, trained=True), *shared_roles]


def _has_critic(book: FactBook) -> bool:
    """Whether a critic is trained in the policy's processes: for PPO, in frameworks that have one, and where its model is named."""
    critic = traits_of(book.word("train.framework")).critic
    if book.word("train.stage") != "ppo" or book.count("critic.gpus") == 0:
        return False
    if critic is None:
        return book.word("critic.model") is not None
    return during(critic.releases, book) is not False


def _critic_base(book: FactBook, policy: Model | None) -> Model | None:
    """The model that a critic starts from: its own, else the reward model, else the policy."""
    return book.shape("critic.shape") or book.shape("reward.shape") or policy


def _only_serves(book: FactBook) -> bool:
    """Whether an inference engine without a training job ran out of memory."""
    if book.word("run.regime") == "serve":
        return True
    trainer = ("train.", "zero.", "fsdp.", "actor.")
    engine = book.word("log.role") == "engine" or families.of(book.word("log.family")).engine != ""
    return engine and not any(fact.name.startswith(trainer) for fact in book)


def _serving_role(book: FactBook, model: Model | None) -> Role:
    """The engine as the only role. Of one that failed without a model, hence without a price, unless its weights are known to be in 16
    bits; one that has not run yet knows how its weights are stored (`engine_budget`)."""
    if "log.phase" not in book and book.word("log.family") is None:
        return engine_role(book, model)
    said = (book.word("rollout.quantization"), book.word("model.quantization"))
    plain = book.word("rollout.dtype") in ("fp16", "bf16") and all(word in (None, "none") for word in said)
    return engine_role(book, model if plain else None)


def engine_role(book: FactBook, model: Model | None) -> Role:
    """An inference engine in a process of its own."""
    return Role("engine", model, book.count("rollout.tensor_parallel"), trained=False, apart=True)


def is_planned(book: FactBook) -> bool:
    """Whether the job is an engine that has not run yet: nothing failed."""
    return book.word("run.regime") == "serve" and "log.phase" not in book and book.word("log.family") is None
