"""What roles keep in host memory adds up on a node, not over the nodes of a job."""

from __future__ import annotations

from typing import Any

from books import book
from collected import for_each

from diagnose.budget.derived.derived_facts import derive_facts
from diagnose.budget.model.ledger import Ledger, total
from diagnose.budget.moments.host_memory import fullest_node
from diagnose.budget.moments.role_ledgers import ledgers

#: Actor and critic with their optimizers offloaded, reward and reference models beside them, each in processes of its own.
JOB: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "reward.shape": "Qwen/Qwen2.5-7B-Instruct",
    "train.framework": "openrlhf",
    "train.stage": "ppo",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "zero.stage": 2,
    "zero.offload_optimizer": "cpu",
    "zero.pin_memory": False,
    "version.deepspeed": "0.16.0",
    "actor.gpus": 8,
    "ref.gpus": 8,
    "critic.gpus": 8,
    "reward.gpus": 8,
}


def nodes(**changes: Any) -> dict[str, int]:
    return {each.role: each.host.node for each in ledgers(book(JOB, **changes))}


def kept(found: tuple[Ledger, ...]) -> dict[str, int]:
    return {each.role: each.host.total.bytes for each in found}


def test_roles_with_nodes_of_their_own_do_not_add_up() -> None:
    found = ledgers(book(JOB))
    held = kept(found)
    assert held["actor"] > 0
    assert total([term.size for term in fullest_node(found)]).bytes == max(held.values())
    assert {fact.name: fact.value for fact in derive_facts(book(JOB), found, ())}["ledger.host"].bytes == max(held.values())  # type: ignore[union-attr]


@for_each(
    "changes, laid_out",
    [
        ({}, {"actor": 0, "reference": 1, "critic": 2, "reward": 3}),
        ({"actor.gpus": 16}, {"actor": 0, "reference": 2, "critic": 3, "reward": 4}),
        ({"actor.gpus": 2, "ref.gpus": 2, "critic.gpus": 2, "reward.gpus": 2}, {"actor": 0, "reference": 0, "critic": 0, "reward": 0}),
        ({"actor.gpus": 4, "critic.gpus": 4, "ref.gpus": 4, "reward.gpus": 4}, {"actor": 0, "reference": 0, "critic": 1, "reward": 1}),
        ({"actor.gpus": 6, "ref.gpus": 4}, {"actor": 0, "reference": 1, "critic": 2, "reward": 3}),  # too few are left on the first
        ({"colocate.actor_ref": True, "colocate.critic_reward": True}, {"actor": 0, "reference": 0, "critic": 1, "reward": 1}),
        ({"parallel.nodes": 1}, {"actor": 0, "reference": 0, "critic": 0, "reward": 0}),
        ({"log.role": "reward"}, {"actor": 0, "reference": 1, "critic": 2, "reward": 3}),  # whichever failed
    ],
)
def test_processes_fill_one_node_after_the_other(changes: dict[str, Any], laid_out: dict[str, int]) -> None:
    assert nodes(**changes) == laid_out


def test_roles_on_one_node_add_up() -> None:
    found = ledgers(book(JOB, **{"actor.gpus": 2, "ref.gpus": 2, "critic.gpus": 2, "reward.gpus": 2}))
    assert total([term.size for term in fullest_node(found)]).bytes == sum(kept(found).values())
