"""Prices: which ledger counts, what is believed of it, and what a change takes off which moment."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from workshop import GIB, job, reprice, term

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.catalogue import Vision, model
from diagnose.facts import FactBook
from diagnose.plan.pricing.candidate_values import candidates
from diagnose.plan.pricing.fit import MARGIN, fits
from diagnose.plan.pricing.pricer import Bench
from diagnose.plan.pricing.saving import difference, pick
from diagnose.plan.remedies.remedy_rules import Choice
from diagnose.units import Size


def size(gib: float) -> Size:
    return Size.exactly(round(gib * GIB))


def bench(facts: FactBook) -> Bench:
    return Bench(facts, reprice(facts), reprice)


# -- fits


@for_each(
    "low, middle, high, verdict",
    [(8, 9, 9.39, "yes"), (8, 9, 9.5, "likely"), (9, 9.5, 9.9, "unlikely"), (9.9, 10.2, 10.5, "unlikely"), (10.1, 10.5, 11, "no")],
)
def test_fits_are_the_words_of_the_vocabulary(low: float, middle: float, high: float, verdict: str) -> None:
    """Upper end, middle and lower end against 94 and 100 % of 10 GiB."""
    need = Size(round(low * GIB), round(high * GIB), round(middle * GIB))
    assert fits(need, size(10)) == verdict


def test_nothing_fits_into_what_is_not_known() -> None:
    assert fits(size(1), None) == "unknown" and fits(None, size(1)) == "unknown"


@given(st.integers(1, 2**40), st.integers(0, 2**38), st.integers(0, 2**38), st.integers(1, 2**40))
@settings(max_examples=200)
def test_a_larger_need_never_fits_better(base: int, width: int, more: int, room: int) -> None:
    order = ("yes", "likely", "unlikely", "no")
    small, large = Size(base, base + width, base + width // 2), Size(base + more, base + more + width, base + more + width // 2)
    assert order.index(fits(small, Size.exactly(room))) <= order.index(fits(large, Size.exactly(room)))


def test_the_margin_is_six_per_cent() -> None:
    assert pytest.approx(0.06) == MARGIN


# -- which ledger


def test_the_role_that_failed_is_the_one_that_counts() -> None:
    actor, critic = (Ledger(role, 4, (Moment("loss_call", (term("logits", 1),)),), failing="loss_call") for role in ("actor", "critic"))
    assert pick((actor, critic), "critic") is critic and pick((actor, critic), None) is actor


def test_before_a_run_the_role_that_fits_worst_counts() -> None:
    small, large = (
        Ledger(name, 1, (Moment("load", (term("weights", gib),)),), usable=size(10)) for name, gib in (("small", 2), ("large", 9))
    )
    assert pick((small, large), None) is large


def test_terms_that_both_hold_cancel_with_their_width() -> None:
    """A total known only to 1 GiB still gives an exact difference where nothing uncertain changed."""
    before, after = Size(10 * GIB, 11 * GIB, 11 * GIB), Size(7 * GIB, 8 * GIB, 8 * GIB)
    assert difference(before, after) == Size.exactly(3 * GIB)


# -- what is believed


def test_a_ledger_that_explains_little_says_likely_only_with_wide_room() -> None:
    """4 GiB on paper, 18 allocated: rows were longer or attention was eager. Checkpointing leaves more than half the card free
    however long they were; halving the logits does not."""
    facts = job(train__max_seq_len="512", ledger__verdict="below", log__on_card="enabled")
    held = bench(facts)
    held.ledgers = (replace(held.ledgers[0], observed=size(38)),)
    assert held.trust == "short"
    assert held.fits({"train.loss_kernel": "liger"}) == "unknown"
    assert held.explanations() and all(one["train.max_seq_len"] > 512 for one in held.explanations())  # type: ignore[operator]


def test_a_card_that_ran_out_although_all_fits_on_paper_is_not_explained() -> None:
    """No figure in the message, 9.5 GiB of 20 by the files: the ledger has missed something, so nothing is sure to fit."""
    held = bench(job(train__max_seq_len="256"))
    assert held.fits_on_paper and held.trust == "short"
    assert held.fits({"train.gradient_checkpointing": "enabled"}) != "yes"


def test_a_contradicted_file_is_priced_as_what_must_have_run() -> None:
    """The file says neither precision nor sharding and needs more than was allocated: half precision and ZeRO-3 are assumed
    for differences only, and said by nobody: a fact that is stated is never replaced."""
    assert bench(job(ledger__verdict="above")).assumed() == {}
    unsaid = FactBook(fact for fact in job(ledger__verdict="above") if fact.name not in ("train.precision", "zero.stage"))
    assert bench(unsaid).assumed() == {"train.precision": "bf16", "zero.stage": 3}


# -- rollout and training on one card


def rollout(facts: FactBook) -> tuple[Ledger, ...]:
    samples = (facts.count("rollout.num_generations") or 0) / 4
    moments = (Moment("generate", (term("weights", 4), term("samples", samples))), Moment("loss_backward", (term("weights", 30),)))
    return (Ledger("actor", 1, moments, size(80), size(8), "generate", size(4 + samples)),)


def test_a_failure_in_the_rollout_is_judged_by_the_rollout() -> None:
    """With an awake engine on the card 8 GiB are usable; training, when it sleeps, has more: its 30 GiB say nothing here."""
    facts = job(rollout__placement="colocated", rollout__num_generations="8", log__requested="2.00 GiB", attribution__group="samples")
    held = Bench(facts, rollout(facts), rollout)
    assert held.peak == size(8)  # 4 of weights, 2 of samples, and the 2 of their copy that found no room
    halved = held.saving({"rollout.num_generations": 4})
    assert halved is not None and halved.bytes.bytes == pytest.approx(2 * GIB, rel=0.01)  # list and copy shrink together


def test_room_that_a_change_makes_is_saved_like_bytes() -> None:
    """A smaller engine share leaves the trainer's terms as they are and widens its room: 8 GiB of 80."""

    def price(facts: FactBook) -> tuple[Ledger, ...]:
        (ledger,) = rollout(facts)
        return (replace(ledger, usable=size(8 + (0.6 - (facts.ratio("rollout.gpu_memory_utilization") or 0)) * 80)),)

    facts = job(rollout__placement="colocated", rollout__gpu_memory_utilization="0.6", rollout__num_generations="8")
    held = Bench(facts, price(facts), price)
    saving = held.saving({"rollout.gpu_memory_utilization": 0.5})
    assert saving is not None and saving.bytes.bytes == pytest.approx(8 * GIB, rel=0.01)
    assert held.fits({"rollout.gpu_memory_utilization": 0.5}) == "yes"


# -- values


@for_each(
    "now, choice, tried",
    [
        (4096, Choice("largest", step=512, least=512, most="50%"), [2048, 1536, 1024, 512]),
        (700, Choice("largest", step=512, least=512), [512]),
        (512, Choice("largest", step=512, least=512), []),
        (16, Choice(values=("25%", "12.5%")), [4, 2]),
        (2, Choice(values=("25%", "12.5%")), [1]),
        (1, Choice(values=("25%",)), []),
    ],
)
def test_values_to_try_come_mildest_first(now: int, choice: Choice, tried: list[int]) -> None:
    knob = "train.max_seq_len" if choice.aim == "largest" else "train.micro_batch_size"
    facts = job().changed({knob: now})
    assert candidates(knob, choice, bench(facts)) == tried


def test_a_row_of_prompt_and_completion_is_halved_as_a_whole() -> None:
    """2048 + 30720 tokens: half of the row is 16384, of which 14336 are left for the completion."""
    facts = job(rollout__prompt_len="2048", rollout__completion_len="30720")
    choice = Choice("largest", step=512, least=512, most="50%", beside="rollout.prompt_len")
    assert candidates("rollout.completion_len", choice, bench(facts))[0] == 14336


def test_an_unknown_value_gives_nothing_to_halve() -> None:
    assert candidates("lora.rank", Choice(values=("50%",)), bench(job())) == []


def test_a_length_never_goes_below_the_image_tokens() -> None:
    """Two images of 768 x 768 pixels at 784 pixels per token are 1,505 tokens: 1536 is the least that holds them."""
    vision = Vision("qwen2_vl", 1280, 32, 5120, 16, 14, 784, 675_000_000)
    shape = known._replace(vision=vision) if (known := model("Qwen/Qwen2.5-7B")) else None
    facts = job().changed({"model.shape": shape, "data.image_pixels": 589824, "data.images_per_sample": 2})
    choice = Choice("largest", step=512, least=512, most="50%")
    assert candidates("train.max_seq_len", choice, bench(facts)) == [2048, 1536]


def test_the_refused_request_counts_even_where_another_moment_holds_more() -> None:
    """A request that no card could meet, in a moment that otherwise holds less than the largest one: nothing fits that keeps it."""
    facts = job(log__requested="300 GiB", log__allocated="4 GiB")
    moments = (Moment("forward_end", (term("weights", 4),)), Moment("optimizer_step", (term("weights", 4), term("optimizer_states", 6))))
    ledger = Ledger("train", 2, moments, size(20), size(20), "forward_end", size(4))
    made = Bench(facts, (ledger,), lambda _: (ledger,))
    assert made.peak is not None and made.peak.bytes == size(304).bytes
    assert made.fits({}) == "no"
