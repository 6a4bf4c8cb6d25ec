"""Who holds which model on how many cards: one role for a plain job, one per group of cards where models live apart."""

from __future__ import annotations

from diagnose.budget.known import table
from diagnose.catalogue import Model
from diagnose.facts import FactBook
from diagnose.record import record


@record
class Role:
    """One model on one group of cards. `headless`: a value head takes the place of the output head; `offloaded`: the
    weights wait in host memory."""

    name: str
    model: Model | None
    cards: int | None
    trained: bool
    headless: bool = False
    offloaded: bool = False


def roles(book: FactBook) -> tuple[Role, ...]:
    """The roles of this job, the one that failed first."""
    policy = book.shape("model.shape")
    if _only_serves(book):
        return (_server(book, policy),)
    world = book.count("parallel.world") or book.count("run.cuda_devices") or book.count("hardware.count")
    apart = ("actor.gpus", "critic.gpus", "reward.gpus", "ref.gpus", "rollout.engines")
    if book.word("train.stage") not in table()["rollouts"] or not any(book.count(name) for name in apart[:4]):
        return (Role("train", policy, world, trained=True),)
    found = [Role("actor", policy, book.count("actor.gpus") or world, trained=True)]
    if book.count("critic.gpus"):
        base = book.shape("critic.shape") or book.shape("reward.shape") or policy
        found.append(Role("critic", base, book.count("critic.gpus"), trained=True, headless=True))
    away = book.switch("ref.offload") is True
    if book.count("reward.gpus") and not book.switch("reward.remote"):
        found.append(Role("reward", book.shape("reward.shape"), book.count("reward.gpus"), trained=False, headless=True, offloaded=away))
    if book.count("ref.gpus"):
        found.append(Role("reference", policy, book.count("ref.gpus"), trained=False, offloaded=away))
    if (book.word("rollout.engine") or "vllm") not in ("none", "hf") and book.count("rollout.engines"):
        cards = (book.count("rollout.engines") or 1) * (book.count("rollout.tensor_parallel") or 1)
        found.append(Role("engine", policy, cards, trained=False))
    failed = book.word("log.role")
    return tuple(sorted(found, key=lambda role: role.name != failed))


def _only_serves(book: FactBook) -> bool:
    """Whether an inference engine ran out that stands in no training job: nothing is known of a trainer."""
    trainer = ("train.", "zero.", "fsdp.", "actor.")
    return book.word("log.family") in ("vllm_kv", "sglang_kv") and not any(fact.name.startswith(trainer) for fact in book)


def _server(book: FactBook, model: Model | None) -> Role:
    """The engine alone. Its weights are priced only where the log says that they are loaded in 16 bits."""
    plain = book.word("rollout.dtype") in ("fp16", "bf16") and book.word("rollout.quantization") in (None, "none")
    return Role("engine", model if plain else None, book.count("rollout.tensor_parallel"), trained=False)
