"""Roles that share a process, or cards: each has its moments, and every moment is the sum of what lies on the card."""

from __future__ import annotations

from typing import Any

import pytest
from books import GIB, book
from collected import for_each

from diagnose.budget.model.ledger import Ledger
from diagnose.budget.moments.role_ledgers import ledgers

REWARD = "Qwen/Qwen2.5-7B-Instruct"
P, VH = 7615616512, 152064 * 3584

JOB: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "train.stage": "ppo",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "train.gradient_checkpointing": "enabled",
    "train.micro_batch_size": 2,
    "model.attention": "flash_attention_2",
    "rollout.prompt_len": 512,
    "rollout.completion_len": 1536,
    "parallel.world": 8,
    "hardware.capacity": "80 GiB",
}

#: verl keeps fp32 weights and gradients, shards all of it, and its roles take turns in one process.
VERL = JOB | {"train.framework": "verl", "fsdp.sharding": "full_shard", "train.load_dtype": "fp32"}

#: TRL's critic and policy learn in one pass.
TRL = JOB | {"train.framework": "trl", "version.trl": "0.24.0", "zero.stage": 2, "train.ref_model": "copy", "rollout.engine": "hf"}

SHARED: dict[str, Any] = {
    "rollout.engine": "vllm",
    "rollout.placement": "colocated",
    "rollout.gpu_memory_utilization": 0.5,
    "rollout.tensor_parallel": 2,
    "rollout.sleep": True,
}


def drawn(job: dict[str, Any], **changes: Any) -> dict[str, Ledger]:
    return {each.role: each for each in ledgers(book(job, **changes))}


def bytes_of(ledger: Ledger, moment: str, *keys: str) -> int:
    found = ledger.moment(moment)
    assert found is not None
    return found.only(*keys).bytes if keys else found.total.bytes


def test_every_model_of_the_job_is_a_role() -> None:
    """Actor, critic, reward model, reference model and engine, whether they live in one process or not; one role for a plain job."""
    whole = VERL | SHARED | {"train.ref_model": "offload"}
    scored = JOB | {"train.framework": "trl", "version.trl": "0.24.0", "reward.shape": REWARD}
    assert [*drawn(whole)] == ["actor", "critic", "reference", "engine"]
    assert [*drawn(scored)] == ["actor", "critic", "reward"]
    assert [*drawn(VERL | {"train.stage": "grpo"})] == ["train"]
    assert [*drawn(VERL | {"critic.gpus": 0})] == ["train"]
    assert [*drawn(VERL | {"log.role": "critic"})] == ["critic", "actor"]


@pytest.mark.parametrize(("release", "learns"), [("0.11.4", False), ("0.12.0", True)])
def test_trl_has_a_value_model_since_0_12(release: str, learns: bool) -> None:
    """Before, the trainer put a value head on the policy."""
    assert ("critic" in drawn(TRL | {"version.trl": release})) == learns


def test_roles_of_one_process_add_up_at_every_moment() -> None:
    """While the actor works the critic's weights and states lie beside it, and the other way round: each side sees the whole once."""
    found = drawn(VERL)
    states, small = 12 * P // 8, 12 * (P - VH) // 8
    actor, critic = found["actor"], found["critic"]
    assert bytes_of(actor, "loss_call", "critic_weights_sharded", "critic_moments") == pytest.approx(small, abs=4)
    assert bytes_of(critic, "loss_call", "actor_weights_sharded", "actor_moments") == pytest.approx(states, abs=4)
    kept = ("weights_sharded", "moments", "actor_weights_sharded", "actor_moments")
    assert bytes_of(critic, "loss_call", *kept) == pytest.approx(states + small, abs=8)
    assert all("engine" not in term.key for moment in critic.moments for term in moment.terms)


def test_states_that_leave_the_card_between_phases_are_not_there_in_another_s_turn() -> None:
    """Each role's own switch decides for it; the other's says nothing."""
    critic_away = drawn(VERL, critic__offload_between_phases="all")
    assert bytes_of(critic_away["actor"], "loss_call", "critic_weights_sharded", "critic_moments") == 0
    assert bytes_of(critic_away["critic"], "loss_call", "weights_sharded") > 0
    actor_away = drawn(VERL, rollout__offload_between_phases="optimizer")
    assert bytes_of(actor_away["critic"], "loss_call", "actor_moments") == 0
    assert bytes_of(actor_away["critic"], "loss_call", "actor_weights_sharded") > 0
    assert bytes_of(actor_away["actor"], "loss_call", "critic_moments") > 0


def test_a_critic_is_not_evaluated() -> None:
    """TRL generates with the policy and scores with the reward model."""
    found = drawn(TRL, eval__enabled=True, eval__batch_size=4)
    assert found["actor"].moment("eval") is not None
    assert found["critic"].moment("eval") is None


def test_a_critic_has_rows_of_its_own() -> None:
    """Its micro batch and its checkpointing are what is said of it, else those of the policy."""
    one, two = drawn(VERL)["critic"], drawn(VERL, critic__micro_batch_size=4)["critic"]
    assert bytes_of(two, "forward_end", "checkpoints") == 2 * bytes_of(one, "forward_end", "checkpoints")
    whole = drawn(VERL, critic__gradient_checkpointing="disabled")
    assert bytes_of(whole["critic"], "forward_end", "layers") > 0
    assert bytes_of(whole["actor"], "forward_end", "layers") == 0


def test_a_critic_beside_adapters_learns_whole() -> None:
    """verl's critic has a switch of its own for LoRA, which is off."""
    found = drawn(VERL | {"train.finetuning": "lora", "lora.rank": 16})
    assert bytes_of(found["critic"], "loss_call", "moments") == pytest.approx(8 * (P - VH) // 8, abs=4)
    assert bytes_of(found["actor"], "loss_call", "moments") < GIB // 4


def test_a_critic_that_learns_in_the_same_pass_keeps_its_activations() -> None:
    """TRL: the critic's forward comes first, so that its checkpoints are there when the policy's loss is computed; while the critic goes
    back, all of the policy's gradients are there; one step updates both."""
    found = drawn(TRL)
    actor, critic = found["actor"], found["critic"]
    tokens = 2 * 2048
    assert bytes_of(actor, "loss_call", "critic_checkpoints") == 2 * 3584 * 28 * tokens
    assert bytes_of(actor, "layer_backward", "critic_checkpoints") > 0
    assert bytes_of(critic, "layer_backward", "actor_gradients_sharded") == pytest.approx(2 * P // 8, abs=2)
    assert bytes_of(actor, "optimizer_step", "critic_gradients_sharded") == pytest.approx(2 * (P - VH) // 8, abs=2)
    apart = drawn(VERL)
    assert bytes_of(apart["actor"], "loss_call", "critic_checkpoints") == 0


def test_frozen_models_have_a_moment_of_their_own() -> None:
    """A reference model computes while the actor's states lie beside it."""
    reference = drawn(TRL, rollout__logprob_batch=4)["reference"]
    assert bytes_of(reference, "loss_call", "actor_moments") == pytest.approx(8 * P // 8, abs=4)
    assert bytes_of(reference, "loss_call", "logprob_logits") == 8 * 4 * 2048 * 152064
    assert all(term.key != "reference" for moment in reference.moments for term in moment.terms)


def test_a_reward_model_is_sharded_under_zero3_alone() -> None:
    """TRL hands it to DeepSpeed, whose first stages leave weights whole; verl keeps it in host memory."""
    scored = {"reward.shape": REWARD}
    assert bytes_of(drawn(TRL | scored)["actor"], "loss_call", "reward") == 2 * (P - VH)
    assert bytes_of(drawn(TRL | scored | {"zero.stage": 3})["actor"], "loss_call", "reward") == pytest.approx(2 * (P - VH) // 8, abs=2)
    assert bytes_of(drawn(VERL | scored)["actor"], "loss_call", "reward") == 0


def test_an_engine_that_shares_the_card_has_its_weights_and_its_cache() -> None:
    """Its share of the card, parted: half of the weights on each of two cards, the cache takes the rest; the trainer's states beside."""
    found = drawn(VERL | SHARED)
    engine = found["engine"]
    assert bytes_of(engine, "load", "engine_weights") == P
    assert bytes_of(engine, "generate", "engine_weights", "engine_cache") == 40 * GIB
    assert bytes_of(engine, "generate", "actor_weights_sharded", "actor_moments") == pytest.approx(12 * P // 8, abs=4)
    assert bytes_of(found["actor"], "loss_call", "engine_residue") < GIB
    assert bytes_of(found["actor"], "generate", "engine") == 40 * GIB


def test_gradients_are_gone_when_others_work() -> None:
    """The optimizer step is over: an engine that generates finds no gradients, though micro batches add up in training."""
    found = drawn(VERL | SHARED | {"train.gradient_accumulation": 8})
    assert bytes_of(found["actor"], "loss_call", "gradients_sharded") > 0
    assert bytes_of(found["actor"], "generate", "gradients_sharded") == 0
    assert bytes_of(found["critic"], "loss_call", "actor_gradients_sharded") == 0


#: OpenRLHF: every role in a process of its own, all of them on the same cards.
COLOCATED = JOB | {
    "train.framework": "openrlhf",
    "zero.stage": 3,
    "actor.gpus": 8,
    "critic.gpus": 8,
    "ref.gpus": 8,
    "colocate.all": True,
}


def test_processes_of_other_roles_are_named_term_by_term() -> None:
    """What they keep, with their contexts, is what the card has less: formula, figures and source of each."""
    actor = drawn(COLOCATED)["actor"]
    found = {term.key: term for term in actor.beside}
    assert found["critic_moments"].size.bytes == pytest.approx(8 * (P - VH) // 8, abs=4)
    assert found["reference_weights_sharded"].size.bytes == pytest.approx(2 * P // 8, abs=4)
    assert {"critic_role_context", "reference_role_context"} < found.keys()
    assert all(term.source and term.numbers for term in actor.beside)
    alone = drawn(COLOCATED | {"colocate.all": False})["actor"]
    assert alone.usable is not None and actor.usable is not None
    assert alone.usable.bytes - actor.usable.bytes == sum(term.size.bytes for term in actor.beside)
    assert not alone.beside


def test_states_that_sleep_take_no_room_of_other_processes() -> None:
    """deepspeed_enable_sleep: masters, moments and gradients wait in host memory while another role works; the weights stay."""
    keys = {term.key for term in drawn(COLOCATED, rollout__offload_between_phases="optimizer")["actor"].beside}
    awake = {term.key for term in drawn(COLOCATED)["actor"].beside}
    assert {"critic_moments", "critic_master_partition", "critic_gradients_partition"} <= awake
    assert not keys & {"critic_moments", "critic_master_partition", "critic_gradients_partition"}
    assert "critic_weights_sharded" in keys


def test_no_role_counts_what_shares_its_process_twice() -> None:
    """Roles of one process stand in each other's moments, not beside them."""
    assert all(not ledger.beside for ledger in drawn(VERL | SHARED, colocate__all=True).values())


@for_each("named, failed", [(None, "actor"), ("actor", "actor"), ("critic", "critic"), ("engine", "engine"), ("reference", "actor")])
def test_the_role_that_a_process_names_is_the_one_that_failed(named: str | None, failed: str) -> None:
    """Its ledger comes first and has the failing moment; a role that the job is not known to have is taken for the policy's process."""
    phase = "generation" if failed == "engine" else "loss"
    found = ledgers(book(VERL | SHARED | {"log.role": named, "log.phase": phase, "log.allocated": "60 GiB"}))
    assert [ledger.role for ledger in found if ledger.failing] == [failed]
    assert found[0].role == failed


def test_a_critic_whose_model_is_named_stands_beside_the_policy() -> None:
    """In a framework that nobody says has one, too; where cards are counted the critic has its own."""
    plain = {**TRL, "train.framework": "deepspeed"}
    assert "critic" not in drawn(plain)
    assert "critic" in drawn({**plain, "critic.model": "meta-llama/Llama-3.1-8B"})
    for framework in ("openrlhf", "colossalai"):
        assert "critic" in drawn({**plain, "train.framework": framework})


def test_the_rows_of_a_round_are_counted_before_a_run_begins() -> None:
    """The forward pass that only scores takes all its rows at once; a run that has begun had got through it."""
    rows = {**VERL, "rollout.micro_batch": 64}
    waiting = drawn(rows)["actor"].moment("logprob")
    assert waiting is not None and waiting.of("logits").bytes > 0
    assert drawn({**rows, "log.phase": "backward"})["actor"].moment("logprob") is None
