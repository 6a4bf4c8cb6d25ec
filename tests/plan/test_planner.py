"""What the planner must never get wrong, on a made-up job whose ledger is four plain terms."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest
from collected import for_each
from workshop import GIB, TRAIN_YAML, book, cause, edit, job, judged, reprice

from diagnose.budget.model.ledger import Ledger
from diagnose.decide.verdict import Judgement, Verdict
from diagnose.facts import Fact, FactBook, Witness
from diagnose.pipeline import explain
from diagnose.plan import make
from diagnose.plan.choose import base_rates
from diagnose.plan.choose.advice import job_of
from diagnose.plan.choose.plan_completion import spread_instead
from diagnose.plan.pricing.spread import cards_that_do
from diagnose.plan.remedies import remedy_rules
from diagnose.plan.remedies.remedy import Outcome, Remedy

BIG_ACTIVATIONS = cause("activations", "gradient_checkpointing", "lower_micro_batch", "lower_seq_len")
BIG_LOGITS = cause("logits", "lower_seq_len", "liger_kernel", "chunked_loss")


def outcome(facts: FactBook, *causes: Verdict, room: float = 20, complete: bool = True, given: bool = True) -> Outcome:
    price = partial(reprice, room=room, complete=complete)
    return make(facts, price(facts), judged(*causes), [TRAIN_YAML] if given else [], reprice=price, edit=edit)


def ids(found: Outcome) -> list[str]:
    return [remedy.id for remedy in found.remedies]


def remedy(found: Outcome, word: str) -> Remedy:
    return next(each for each in found.remedies if each.id == word)


def reason(found: Outcome, word: str) -> str:
    return next((each.reason.en for each in found.rejected if each.id == word), "")


# -- prices


def test_a_saving_is_the_difference_of_two_ledgers() -> None:
    """Nobody types numbers: 32 GiB before, 17.6 after, of which 14.4 are activations that are recomputed."""
    found = remedy(outcome(job(), BIG_ACTIVATIONS), "gradient_checkpointing")
    assert found.saves is not None and found.peak is not None
    assert found.saves.bytes / GIB == pytest.approx(14.4, abs=0.01)
    assert found.peak.bytes / GIB == pytest.approx(17.6, abs=0.01)
    assert found.fits == "yes"
    assert "14.40 GiB" in found.why.en and "14.40 GiB" in found.why.zh


def test_the_length_is_the_largest_multiple_that_fits() -> None:
    """8 GiB of states and 6 GiB per 1024 tokens in 18.8 GiB: 1792 tokens would fit, 1536 is the multiple of 512."""
    found = remedy(outcome(job(), BIG_ACTIVATIONS), "lower_seq_len")
    assert found.knobs == (("train.max_seq_len", 1536),) and found.fits == "yes"


def test_a_smaller_micro_batch_keeps_the_effective_batch() -> None:
    found = remedy(outcome(job(), BIG_ACTIVATIONS), "lower_micro_batch")
    assert dict(found.knobs) == {"train.micro_batch_size": 1, "train.gradient_accumulation": 8}


def test_host_memory_is_part_of_the_price() -> None:
    found = remedy(
        outcome(job(train__max_seq_len="1024"), cause("optimizer_states", "zero_offload_optimizer"), room=10), "zero_offload_optimizer"
    )
    assert found.price.host_memory is not None and found.price.host_memory.bytes == 12 * GIB


def test_a_node_known_to_be_too_small_rejects_offload() -> None:
    found = outcome(job(host__ram="8 GiB"), cause("optimizer_states", "zero_offload_optimizer"))
    assert "8 GiB" in reason(found, "zero_offload_optimizer")


def test_without_a_whole_ledger_nothing_is_said_to_fit() -> None:
    found = outcome(job(), BIG_ACTIVATIONS, complete=False, room=80)
    assert {each.fits for each in found.remedies} == {"unknown"}
    assert found.plan is not None and found.plan.predicted_peak is None and found.plan.steps[0] == "gradient_checkpointing"


def test_terms_that_are_known_can_be_too_much_alone() -> None:
    """32 GiB are known on a card of 20: what leaves more than that is not enough whatever the rest is, what leaves less may be, and
    nothing is said to fit."""
    found = outcome(job(zero__stage="0"), cause("optimizer_states", "liger_kernel", "gradient_checkpointing", "lora"), complete=False)
    assert {each.id: each.fits for each in found.remedies}["liger_kernel"] == "no"
    assert remedy(found, "lora").fits == remedy(found, "gradient_checkpointing").fits == "no"
    assert remedy(found, "lower_seq_len").fits == "unknown" and remedy(found, "lower_seq_len").peak is None


def test_files_that_are_not_what_ran_give_no_peak() -> None:
    """The ledger needs more than was allocated: no verdict stands, and a saving only where the tensor that failed is in the ledger."""
    for exact in ("enabled", "disabled"):
        found = outcome(job(ledger__verdict="above", attribution__exact=exact), BIG_ACTIVATIONS)
        first = found.remedies[0]
        assert first.fits == "unknown" and first.peak is None and (first.saves is not None) is (exact == "enabled")
        assert found.plan is None or (found.plan.predicted_peak is None and found.plan.fits == "unknown")


def test_files_that_are_not_what_ran_do_not_lead_to_other_results() -> None:
    """What a cause lists first and changes the results goes behind what keeps them; what no cause calls for is not sold by a ledger
    that the log contradicts."""
    listed = cause("activations", "lora", "gradient_checkpointing")
    assert ids(outcome(job(), listed, complete=False, room=80))[0] == "lora"
    assert ids(outcome(job(ledger__verdict="above"), listed))[:2] == ["gradient_checkpointing", "lora"]
    nothing = cause("optimizer_states", "optimizer_8bit")
    assert {"lora", "more_gpus"} <= set(ids(outcome(job(), nothing, given=False)))
    assert not {"lora", "more_gpus"} & set(ids(outcome(job(ledger__verdict="above"), nothing, given=False)))


# -- what is rejected


def test_what_is_in_effect_is_rejected_with_value_and_witness() -> None:
    said = reason(outcome(job(), BIG_ACTIVATIONS), "zero3")
    assert "3" in said and "train.yaml" in said


def test_a_stage_that_only_the_name_of_a_file_tells_is_no_default_of_the_framework() -> None:
    told = [Fact("zero.stage", 3, "default", Witness("default", key="zero3.json", text="zero3.json, by its name"))]
    facts = FactBook([*(fact for fact in job() if fact.name != "zero.stage"), *told])
    assert "zero3.json" in reason(outcome(facts, BIG_ACTIVATIONS), "zero3")


def test_a_micro_batch_of_one_cannot_go_down() -> None:
    found = outcome(job(train__micro_batch_size="1"), BIG_ACTIVATIONS)
    assert "lower_micro_batch" not in ids(found) and "1" in reason(found, "lower_micro_batch")


@pytest.mark.parametrize("word", ["bf16", "pure_bf16", "flash_attention"])
def test_old_cards_are_never_told_bf16_or_flash_attention(word: str) -> None:
    facts = job(
        hardware__bf16="disabled", hardware__fa2="disabled", hardware__gpu="V100-32GB", hardware__compute_capability="7.0",
        train__precision="fp32", model__attention="sdpa", zero__stage="2",
    )  # fmt: skip
    found = outcome(facts, cause("weights", "bf16", "pure_bf16", "flash_attention"))
    assert "V100-32GB" in reason(found, word)
    assert all(remedy.knobs != (("model.attention", "flash_attention_2"),) for remedy in found.remedies)


@for_each("word", ["zero_offload_optimizer", "zero_offload_param", "fsdp_offload", "activation_offload", "load_on_cpu"])
def test_offload_is_never_advised_where_the_host_ran_out(word: str) -> None:
    causes = cause("host_ram", "disable_offload", "more_host_ram", word)
    found = outcome(job(log__on_card="disabled", log__family="host_oom_killer", fsdp__sharding="full_shard"), causes)
    assert word not in ids(found) and "host RAM" in reason(found, word)
    assert "more_host_ram" in ids(found)


def test_a_host_kill_hears_nothing_of_the_card() -> None:
    found = outcome(
        job(log__on_card="disabled", log__family="host_oom_killer", zero__offload_optimizer="cpu"), cause("host_ram", "disable_offload")
    )
    assert ids(found)[0] == "disable_offload"
    assert not {"gradient_checkpointing", "lower_micro_batch", "lower_seq_len", "expandable_segments"} & set(ids(found))


def test_adapters_keep_less_on_the_host_at_the_price_of_other_results() -> None:
    killed = job(log__on_card="disabled", log__family="host_oom_killer", zero__offload_optimizer="cpu", zero__offload_param="cpu")
    found = outcome(killed, cause("host_ram", "disable_offload", "lora"))
    assert ids(found)[:2] == ["disable_offload", "lora"] and remedy(found, "lora").price.results == "change"
    assert "lora" not in ids(outcome(killed, cause("host_ram", "disable_offload")))


@pytest.mark.parametrize(("length", "holds"), [("4096", True), ("100000", False)])
def test_what_no_card_that_is_sold_holds_does_not_come_back_to_one(length: str, holds: bool) -> None:
    """Nobody says which card it is: some card may hold 30 GiB, none holds 400."""
    killed = job(log__on_card="disabled", log__family="host_oom_killer", zero__offload_optimizer="cpu", train__max_seq_len=length)

    def price(facts: FactBook) -> tuple[Ledger, ...]:
        return tuple(replace(ledger, capacity=None, usable=None) for ledger in reprice(facts))

    found = make(killed, price(killed), judged(cause("host_ram", "disable_offload")), [TRAIN_YAML], reprice=price, edit=edit)
    if holds:
        back = remedy(found, "disable_offload")
        assert back.fits == "unknown" and "each card then needs" in back.why.en
    else:
        assert "no card that is sold" in reason(found, "disable_offload") and "disable_offload" not in ids(found)


@pytest.mark.parametrize("word", ["zero3", "zero2", "more_gpus"])
def test_sharding_is_never_the_cure_for_logits(word: str) -> None:
    """Where the states are a small part of the card; where they fill it beside the logits, sharding them does help."""
    small = {"ledger__states": "2 GiB", "ledger__extra_models": "0 B", "hardware__capacity": "79.15 GiB"}
    found = outcome(job(zero__stage="0", **small), cause("logits", "lower_seq_len", word))
    assert "logits" in reason(found, word) and word not in ids(found)


def test_offload_is_no_cure_for_logits_though_it_would_make_room() -> None:
    """States share the peak, so the ledger sees the offload; alone it is not offered, and the plan's bytes must come from what eases
    the logits."""
    facts = job(train__gradient_checkpointing="enabled", train__loss_kernel="liger", train__micro_batch_size="8")
    found = outcome(facts, cause("logits", "lower_seq_len", "lower_micro_batch"), room=14)
    assert "zero_offload_optimizer" not in ids(found)
    assert found.plan is not None and "zero_offload_optimizer" not in found.plan.steps


def test_no_effect_on_this_peak_is_said_with_its_share() -> None:
    found = outcome(job(zero__offload_optimizer="cpu"), BIG_ACTIVATIONS)
    assert "activations" in reason(found, "zero_offload_param")


def test_a_change_that_makes_it_worse_is_rejected_with_both_peaks() -> None:
    facts = job(rollout__placement="separate", zero__stage="2")
    price = partial(reprice, room=20)
    found = make(facts, price(facts), judged(BIG_ACTIVATIONS), [], reprice=price, edit=edit)
    assert "32.00 GiB to 38.00 GiB" in reason(found, "fewer_processes")


# -- the allocator


FIGURES = {"log__requested": "1.00 GiB", "log__free": "0.50 GiB", "log__reserved_unallocated": "3.00 GiB"}


def test_expandable_segments_are_never_advised_when_on() -> None:
    found = outcome(job(**FIGURES), cause("fragmentation", "expandable_segments"))
    assert "expandable_segments" not in ids(found) and "enabled" in reason(found, "expandable_segments")


def test_expandable_segments_are_never_advised_where_they_cannot_cover() -> None:
    facts = job(**{**FIGURES, "log__reserved_unallocated": "0.20 GiB"}, alloc__expandable_segments="disabled")
    found = outcome(facts, cause("fragmentation", "expandable_segments"))
    assert "0.20 GiB" in reason(found, "expandable_segments")


def test_expandable_segments_save_at_most_what_lies_idle_and_join_the_plan() -> None:
    facts = job(**FIGURES, alloc__expandable_segments="disabled")
    found = outcome(facts, BIG_ACTIVATIONS, cause("fragmentation", "expandable_segments"))
    switch = remedy(found, "expandable_segments")
    assert switch.saves is not None and (switch.saves.low, switch.saves.high) == (0, facts.size("log.reserved_unallocated").bytes)  # type: ignore[union-attr]
    assert switch.fits == "no" and "only moves the crash" in switch.why.en
    assert found.plan is not None and found.plan.env == ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",)


def test_the_allocator_variable_keeps_what_it_held() -> None:
    facts = job(**FIGURES, alloc__expandable_segments="disabled", alloc__max_split_size="256 MiB", version__torch="2.10.1")
    found = outcome(facts, cause("fragmentation", "expandable_segments"))
    assert remedy(found, "expandable_segments").env == ("PYTORCH_ALLOC_CONF=expandable_segments:True,max_split_size_mb:256",)


# -- order


def test_what_keeps_the_results_leads_among_what_fits() -> None:
    found = outcome(job(), cause("activations", "lower_seq_len", "gradient_checkpointing", "lower_micro_batch"))
    assert ids(found)[0] == "gradient_checkpointing"


def test_a_free_remedy_for_a_lesser_trouble_never_leads() -> None:
    facts = job(**FIGURES, alloc__expandable_segments="disabled")
    found = outcome(facts, BIG_ACTIVATIONS, cause("fragmentation", "expandable_segments", also_true=True))
    assert ids(found)[0] == "gradient_checkpointing"


def test_new_hardware_comes_last() -> None:
    found = outcome(job(zero__stage="3"), cause("optimizer_states", "more_gpus", "zero_offload_optimizer"), given=False)
    assert ids(found)[-1] == "more_gpus"


def test_what_needs_several_cards_goes_behind_where_nothing_says_that_there_are() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/x/finetune.py", line 3, in main',
        "    model = AutoModelForCausalLM.from_pretrained(name)",
        '  File "/x/transformers/modeling_utils.py", line 3366, in from_pretrained',
        "    dispatch_model(model, **device_map_kwargs)",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB (GPU 0; 23.69 GiB total capacity; 23.01 GiB already",
    ]
    for prefix, first in (("", "load_on_cpu"), ("[rank2]: ", "zero3")):
        found = ids(explain("\n".join(f"{prefix}{line}" for line in lines)).outcome)
        assert min(("zero3", "load_on_cpu"), key=found.index) == first


def test_each_word_once_and_never_both_proposed_and_rejected() -> None:
    found = outcome(job(**FIGURES), BIG_ACTIVATIONS, BIG_LOGITS)
    assert len(ids(found)) == len(set(ids(found)))
    assert not set(ids(found)) & {each.id for each in found.rejected}


def test_the_order_of_the_rule_files_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = job(**FIGURES)
    before = outcome(facts, BIG_ACTIVATIONS, BIG_LOGITS)
    shuffled = list(remedy_rules.rules())
    random.Random(7).shuffle(shuffled)
    monkeypatch.setattr(remedy_rules, "rules", lambda trial=False: tuple(shuffled))
    after = outcome(facts, BIG_ACTIVATIONS, BIG_LOGITS)
    assert [each.id for each in before.remedies] == [each.id for each in after.remedies]
    assert {each.id for each in before.rejected} == {each.id for each in after.rejected}
    assert before.plan == after.plan


# -- the plan


def test_the_plan_is_the_first_remedy_where_that_is_enough() -> None:
    plan = outcome(job(), BIG_ACTIVATIONS).plan
    assert plan is not None and plan.steps == ("gradient_checkpointing",) and plan.fits == "yes"
    assert plan.predicted_peak is not None and plan.margin is not None
    assert plan.predicted_peak.bytes + plan.margin.bytes == 20 * GIB


def test_two_steps_that_keep_the_results_come_before_one_that_changes_them() -> None:
    """Neither checkpointing nor a fused loss is enough in 14 GiB; together they are, and nothing is cut."""
    found = outcome(job(), cause("activations", "gradient_checkpointing", "liger_kernel", "lower_seq_len"), room=14)
    assert found.plan is not None and set(found.plan.steps) == {"gradient_checkpointing", "liger_kernel"} and found.plan.fits == "yes"


def test_where_nothing_fits_the_plan_says_so() -> None:
    plan = outcome(job(), BIG_ACTIVATIONS, room=2).plan
    assert plan is not None and plan.fits == "no"


def test_what_is_not_enough_on_one_card_may_be_on_several() -> None:
    """2 GiB of weights, 12 of states and 1.1 for a row: of 6 GiB usable, four cards that share the states leave enough."""
    small = {"train__micro_batch_size": "1", "train__max_seq_len": "1024", "train__gradient_checkpointing": "enabled"}
    counted, uncounted = job(**small), job(**small).changed({"parallel.world": None})
    planned = [job_of(facts, priced(facts), judged(BIG_ACTIVATIONS), [TRAIN_YAML], (), priced, edit) for facts in (counted, uncounted)]
    assert [cards_that_do(each) for each in planned] == [None, 4]
    said = spread_instead(planned[1])
    assert said is not None and "over 4 cards" in said.en


def priced(facts: FactBook) -> tuple[Ledger, ...]:
    return reprice(facts, room=6)


def test_the_ladder_climbs_back_step_by_step() -> None:
    """After a quarter of the micro batch there is room again: the ladder doubles it as far as the card allows."""
    facts = job(train__micro_batch_size="8", train__gradient_checkpointing="enabled")
    plan = outcome(facts, cause("activations", "lower_micro_batch"), room=24).plan
    assert plan is not None and plan.steps == ("lower_micro_batch",)
    first = plan.ladder[0]
    assert (first.knob, first.frm, first.to) == ("train.micro_batch_size", 2, 4)
    assert first.predicted_peak.bytes <= 0.94 * 24 * GIB


def test_the_ladder_switches_costly_remedies_off_again() -> None:
    facts = job(train__micro_batch_size="1", zero__offload_optimizer="cpu", train__max_seq_len="8192", train__gradient_accumulation="1")
    plan = outcome(facts, cause("activations", "gradient_checkpointing"), room=14).plan
    assert plan is not None
    assert ("zero.offload_optimizer", "cpu", "none") in [(rung.knob, rung.frm, rung.to) for rung in plan.ladder]


def test_where_nothing_is_known_the_usual_remedies_are_the_plan() -> None:
    usual = make(book(run__regime="train"), (), Judgement((), (), ()), [], reprice=lambda facts: (), edit=edit)
    assert usual.usual and usual.plan is not None and usual.plan.fits == "unknown"
    assert 1 <= len(usual.remedies) <= base_rates.ENTRIES


# -- questions


def test_host_memory_is_asked_for_with_the_option_that_answers() -> None:
    found = outcome(job(), cause("optimizer_states", "zero_offload_optimizer"))
    question = next(each for each in found.questions if each.fact == "host.ram")
    assert "12.00 GiB" in question.why.en and question.set.startswith("--set host.ram=")
    answered = outcome(job(host__ram="512 GiB"), cause("optimizer_states", "zero_offload_optimizer"))
    assert "host.ram" not in [each.fact for each in answered.questions]


def test_at_most_three_questions_each_once() -> None:
    found = outcome(job(ledger__verdict="above"), BIG_ACTIVATIONS)
    asked = [each.fact for each in found.questions]
    assert len(asked) <= 3 and len(asked) == len(set(asked))


def test_a_length_cut_asks_how_long_the_samples_are() -> None:
    found = outcome(job(train__micro_batch_size="1"), cause("logits", "lower_seq_len"), room=10)
    why = next(each.why.en for each in found.questions if each.fact == "data.longest_sample")
    assert str(dict(remedy(found, "lower_seq_len").knobs)["train.max_seq_len"]) in why


# -- before a run


def planned(**facts: str) -> FactBook:
    """The made-up job as it is before anything failed: what a log says is not known."""
    return FactBook(fact for fact in job(**facts) if not fact.name.startswith("log."))


def test_before_a_run_that_does_not_fit_the_ledger_alone_finds_a_plan() -> None:
    found = outcome(planned())
    assert found.plan is not None and found.plan.fits == "yes" and found.plan.steps == (ids(found)[0],)
    assert remedy(found, found.plan.steps[0]).price.results == "keep"


def test_before_a_run_that_fits_there_is_nothing_to_do_but_room_to_use() -> None:
    found = outcome(planned(train__micro_batch_size="1", train__max_seq_len="2048"), room=30)
    assert found.remedies == () and found.plan is not None and found.plan.steps == ()
    assert found.plan.ladder[0].knob == "train.micro_batch_size"


def test_what_a_title_says_and_the_settings_refute_was_not_tried() -> None:
    """The script without lora in its name trains the whole network; where LoRA was tried in vain, it is no advice."""
    page = "# CUDA out of memory when training SDXL LoRA\n\n{}\n\n```\naccelerate launch train_text_to_image_sdxl.py \\\n"
    page += "  --pretrained_model_name_or_path=stabilityai/stable-diffusion-xl-base-1.0 --resolution=512 --train_batch_size=1\n```\n"
    told = ("24 GB do not suffice.", "I tried LoRA in vain.")
    offered = [{remedy.id for remedy in explain(page.format(text)).outcome.remedies} for text in told]
    assert ["lora" in words for words in offered] == [True, False]


def test_smaller_samples_of_one_kind_that_did_not_help_speak_against_those_of_any() -> None:
    def vain(*remedies: str) -> set[str]:
        facts = FactBook(Fact("report.tried", remedy, "said", Witness("page.md", 3)) for remedy in remedies)
        return base_rates.tried(job_of(facts, (), judged(), [], (), None, edit))

    assert vain("lower_image_resolution") == {"lower_image_resolution", "smaller_samples"}
    assert vain("lower_micro_batch") == {"lower_micro_batch"}
