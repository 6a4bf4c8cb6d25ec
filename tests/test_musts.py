"""What no advice may ever do, held against the whole answer to every case of the corpus."""

from __future__ import annotations

from typing import Any

import pytest
from cases import diagnosed, folders, report

from diagnose.facts import FactBook
from diagnose.plan import load

#: What puts states on other cards or into host memory: a row's logits stay whole where they are.
SHARDING = {"zero2", "zero3", "fsdp", "zero_offload_optimizer", "zero_offload_param", "fsdp_offload"}
BF16 = {"bf16", "pure_bf16", "bf16_grad_accumulation"}


def advised(name: str) -> list[str]:
    """Every remedy of an answer: the list, then the plan."""
    told = report(name)
    return [*(remedy["id"] for remedy in told["remedies"]), *((told["plan"] or {}).get("steps", []))]


def known(name: str) -> FactBook:
    return FactBook(diagnosed(name).facts)


def leading(name: str) -> list[dict[str, Any]]:
    """The causes that nothing sets aside, the first first."""
    return [cause for cause in report(name)["causes"] if not cause["also_true"]]


@pytest.mark.parametrize("name", folders())
def test_bf16_is_for_cards_that_are_known_to_have_it(name: str) -> None:
    """Below compute capability 8.0 never; where nobody says which card it is, the card comes first."""
    if BF16 & set(advised(name)):
        assert known(name).switch("hardware.bf16") is True


@pytest.mark.parametrize("name", folders())
def test_sharding_and_offload_are_no_cure_for_logits(name: str) -> None:
    """They stand after all that answers the logits, unless another leading cause calls for them, and in a plan only beside such a one."""
    found = diagnosed(name)
    causes = [cause for cause in found.judgement.causes if not cause.also_true]
    if not causes or causes[0].cause != "logits":
        return
    answers, others = set(causes[0].remedies), {word for cause in causes[1:] for word in cause.remedies}
    assert not answers & SHARDING
    ids = [remedy.id for remedy in found.outcome.remedies]
    for place, word in enumerate(ids):
        if word in SHARDING - others:
            assert not answers & set(ids[place:]), f"{word} stands before what answers the logits: {ids}"
            assert found.outcome.remedies[place].fits not in ("yes", "likely"), f"{word} alone is said to be enough"
    if found.outcome.plan and SHARDING & set(found.outcome.plan.steps) - others:
        assert answers & set(found.outcome.plan.steps), found.outcome.plan.steps


@pytest.mark.parametrize("name", folders())
def test_offload_is_never_the_answer_to_a_host_that_ran_out(name: str) -> None:
    """Nothing that takes host memory is advised where that is what ran out: with a kill the direction reverses."""
    if known(name).switch("log.on_card") is not False:
        return
    takes = {rule.remedy for rule in load.rules() if rule.takes_host} - {"disable_offload"}
    assert not (takes | {"vllm_sleep_or_separate_gpus"}) & set(advised(name))


@pytest.mark.parametrize("name", folders())
def test_expandable_segments_are_advised_only_where_they_could_help(name: str) -> None:
    """Not where they are on, not where what lies unused could not cover the request, not beside an engine that sleeps on the card."""
    if "expandable_segments" not in advised(name):
        return
    book = known(name)
    free, unused, asked = (book.size(f"log.{word}") for word in ("free", "reserved_unallocated", "requested"))
    assert book.switch("alloc.expandable_segments") is not True
    assert not (book.switch("rollout.sleep") and book.word("rollout.placement") == "colocated")
    if free is not None and unused is not None and asked is not None:
        assert (free + unused).high >= asked.low


@pytest.mark.parametrize("name", folders())
def test_no_length_limit_falls_below_the_image_tokens(name: str) -> None:
    """A limit below the tokens of a sample's images breaks the run; where pixels are what failed, the limit is not touched at all."""
    found, book = diagnosed(name), known(name)
    first = leading(name)[:1]
    if first and first[0]["id"] == "mm_inputs":
        assert "lower_seq_len" not in advised(name)
    shape, pixels = book.shape("model.shape"), book.count("data.image_pixels")
    if shape is None or shape.vision is None or pixels is None:
        return
    least = pixels / shape.vision.pixels_per_token * (book.count("data.images_per_sample") or 1)
    for remedy in found.outcome.remedies:
        wanted = dict(remedy.knobs).get("train.max_seq_len")
        assert not isinstance(wanted, int) or wanted >= least, f"{remedy.id} sets {wanted} tokens, one sample's images take {least:.0f}"
