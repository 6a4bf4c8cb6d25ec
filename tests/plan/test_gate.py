"""The gate: one test for each reason to refuse a remedy, and what is left where nothing is known."""

from __future__ import annotations

import pytest
from cases import diagnosed
from workshop import GIB, book

from diagnose import vocabulary
from diagnose.decide.verdict import Judgement
from diagnose.phrases import same
from diagnose.pipeline import explain
from diagnose.plan.choose import base_rates, gate
from diagnose.plan.choose.evaluation import offered
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.saving import Saving
from diagnose.plan.remedies import remedy_rules
from diagnose.units import Size

RULES = {rule.id: rule for rule in remedy_rules.rules()}
HELD = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which {free} is free. Of the allocated "
HELD += "memory 70.00 GiB is allocated by PyTorch, and {idle} is reserved by PyTorch but unallocated.\n"
TRAINS = "{'loss': 1.5, 'epoch': 0.1}\n"
SERVES = "INFO:     Uvicorn running on http://0.0.0.0:8000\n"


def job(**facts: str) -> Job:
    return Job(book(**facts), (), Judgement((), (), ()), (), lambda _: (), lambda *_: None)


def refused(rule: str, **facts: str) -> bool:
    return gate.refusal(RULES[rule], job(**facts)) is not None


@pytest.mark.parametrize(
    ("rule", "regime", "expected"),
    [
        ("smaller-micro-batch", "train", False),
        ("smaller-micro-batch", "serve", True),
        ("smaller-micro-batch", "load_save", True),
        ("fewer-loader-workers", "data", False),
        ("fewer-loader-workers", "serve", True),
        ("expandable-segments", "serve", False),
    ],
)
def test_programs_of_a_regime_have_its_remedies_alone(rule: str, regime: str, expected: bool) -> None:
    assert refused(rule, run__regime=regime) is expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"run__program": "jax"}, True),
        ({"run__program": "jax", "log__family": "torch_cuda"}, True),  # somebody only says that memory ran out
        ({"run__program": "jax", "log__family": "torch_cuda", "log__proved": "enabled"}, False),
        ({"log__family": "jax"}, True),
        ({"run__program": "timm"}, False),
    ],
)
def test_programs_on_another_framework_have_no_library_of_torch(facts: dict[str, str], expected: bool) -> None:
    assert refused("optimizer-in-8-bit", run__regime="train", **facts) is expected


def test_what_is_in_effect_is_not_offered_again() -> None:
    assert not refused("gradient-checkpointing", run__regime="train")
    assert refused("gradient-checkpointing", run__regime="train", train__gradient_checkpointing="enabled")
    assert refused("smaller-micro-batch", run__regime="train", train__micro_batch_size="1")


def test_figures_refute() -> None:
    figures = {"log__capacity": "79.15 GiB", "log__free": "1.50 GiB", "log__requested": "2.00 GiB", "cause__first": "logits"}
    assert refused("expandable-segments", log__reserved_unallocated="3.00 GiB", **figures)
    assert not refused("expandable-segments", log__reserved_unallocated="9.00 GiB", **figures)


def test_what_is_less_than_what_is_missing_closes_nothing() -> None:
    short = job(log__shortage="8.00 GiB")
    for gib, closes in ((3, False), (9, True)):
        offer = offered(RULES["empty-cache"], short, {}, Saving(Size.exactly(gib * GIB)), None, "unknown", same(""))
        assert (gate.closes_nothing(offer, short) is None) is closes


def test_of_two_that_undo_each_other_the_first_stays() -> None:
    rules = ("larger-engine-share", "smaller-engine-share", "fewer-sequences")
    offers = [offered(RULES[rule], job(), {}, None, None, "unknown", same("")) for rule in rules]
    assert [offer.id for offer in gate.opposites(offers)] == ["raise_gpu_memory_utilization", "lower_max_num_seqs"]


@pytest.mark.parametrize(("before", "regime"), [("", "unknown"), (TRAINS, "train"), (SERVES, "serve")])
def test_no_failure_is_without_a_next_step(before: str, regime: str) -> None:
    """Also where nothing but the message is known; a server is never told what only training has."""
    found = explain(before + HELD.format(free="1.50 GiB", idle="1.00 GiB"))
    outcome = found.outcome
    assert [fact.value for fact in found.facts if fact.name == "run.regime"] == [regime]
    assert outcome.plan is not None and 1 <= len(outcome.remedies) <= base_rates.ENTRIES + 1 and outcome.usual
    asked = [question.fact for question in outcome.questions]
    assert ("run.regime" in asked) is (regime == "unknown")
    words = found.to_markdown()
    assert regime != "serve" or not any(word in words for word in ("micro batch", "gradient", "optimizer"))


def usual(**facts: str) -> list[str]:
    """The remedies that are most likely to help, the likeliest first."""
    (rates,) = base_rates.rates(job(**facts)).values()
    return list(rates)


def test_what_helps_is_of_the_regime_and_never_mixes_host_and_card() -> None:
    card, host = usual(run__regime="train", log__phase="forward"), usual(run__regime="train", log__on_card="disabled")
    assert "lower_micro_batch" in card[:3] and "more_host_ram" not in card[:10]
    assert "more_host_ram" in host[:2] and "gradient_checkpointing" not in host
    assert not {"lower_max_model_len", "tensor_parallel"}.isdisjoint(usual(run__regime="serve", log__phase="kv_cache")[:3])
    assert usual(run__regime="nobody") == []


def test_what_leaves_the_leading_cause_as_it_is_is_not_offered() -> None:
    """A cause whose rule has `rules_out`: the remedies of that list are refused with its title, others are not."""
    found = diagnosed("a-13b-in-full-on-four-v100")
    leading = found.judgement.leading
    assert leading is not None and leading.rules_out == "leaves_states"
    assert not {remedy.id for remedy in found.outcome.remedies} & vocabulary.having("leaves_states")
    reason = next(each.reason for each in found.outcome.rejected if each.id == "lower_micro_batch")
    assert leading.title.en in reason.en and leading.title.zh in reason.zh
    assert "lora" in {remedy.id for remedy in found.outcome.remedies}
