"""The plan holds: what its steps add up to is what the edited files will need, and nothing cheaper was passed over."""

from __future__ import annotations

from functools import partial

import pytest
from cases import CORPUS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import AXOLOTL, FACTORY, SWIFT, TUNE
from sweep import examples
from workshop import GIB, TRAIN_YAML, cause, edit, job, judged, reprice

from diagnose import check, explain
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.budget.model.ledger import Ledger, Moment, Term
from diagnose.diagnosis import Diagnosis
from diagnose.facts import FactBook
from diagnose.phrases import same
from diagnose.plan import make
from diagnose.plan.choose.advice import job_of
from diagnose.plan.patch import patching
from diagnose.plan.remedies.remedy import Outcome, Plan
from diagnose.units import Size

#: A config, its name, and how it says full training and adapters.
FRAMEWORKS = {
    "llamafactory": ("c.yaml", FACTORY, "full", "lora"),
    "axolotl": ("c.yaml", AXOLOTL, "", "lora"),
    "torchtune": ("c.yaml", TUNE, "", "lora_"),
    "swift": ("run.sh", SWIFT, "full", "lora"),
}


def checked(name: str, text: str, gpu: str, gpus: int) -> Diagnosis:
    return check([ConfigSource(name, text.encode())], gpu=gpu, gpus=gpus, frontier=False)


def peak(found: Diagnosis) -> int:
    """What the files need, as the planner sees it."""
    need = job_of(FactBook(found.facts), found.ledgers, found.judgement, found.documents).bench.peak
    assert need is not None
    return need.bytes


def hardware(plan: Plan) -> bool:
    return any(step in ("bigger_gpu", "more_gpus") for step in plan.steps)


JOBS = st.tuples(
    st.sampled_from(sorted(FRAMEWORKS)),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([2048, 8192, 32768]),
    st.booleans(),
    st.sampled_from(["A100-80GB", "RTX 4090", "V100-32GB"]),
    st.sampled_from([1, 8]),
)


@given(JOBS)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_plan_that_fits_still_fits_once_its_edits_are_read_again(made: tuple[str, int, int, bool, str, int]) -> None:
    """The files are patched and checked anew: every step has its edit, no step raises the peak, and what was promised holds."""
    framework, rows, length, tuned, gpu, gpus = made
    name, text, whole, adapters = FRAMEWORKS[framework]
    found = checked(name, text.format(rows=rows, length=length, tuned=adapters if tuned else whole), gpu, gpus)
    plan = found.outcome.plan
    if plan is None or not plan.steps:
        return
    remedies = {remedy.id: remedy for remedy in found.outcome.remedies}
    for step in plan.steps:
        remedy = remedies[step]
        assert remedy.edits or remedy.env or remedy.price.effort == "hardware" or not remedy.knobs, step
    peaks = [remedies[step].peak for step in plan.steps if remedies[step].price.effort != "hardware"]
    told = [size.bytes for size in peaks if size is not None]
    assert told == sorted(told, reverse=True)
    assert plan.fits != "yes" or plan.margin is None or plan.margin.bytes > 0
    if plan.fits != "yes" or hardware(plan) or plan.predicted_peak is None:
        return
    again = checked(name, patching.texts(found.documents, plan.edits)[name], gpu, gpus)
    assert peak(again) <= plan.predicted_peak.bytes * 1.01
    assert again.outcome.plan is not None and again.outcome.plan.steps == ()


def planned(text: str, gpu: str, gpus: int) -> tuple[Outcome, Plan]:
    found = checked("c.yaml", text, gpu, gpus).outcome
    assert found.plan is not None
    return found, found.plan


def test_offload_of_shards_is_found_where_nothing_is_sharded_yet() -> None:
    """It applies only beside ZeRO; without it the plan would give up training all weights."""
    found, plan = planned(FACTORY.format(tuned="full", rows=1, length=4096).replace("7B", "72B"), "A100-80GB", 8)
    assert plan.fits == "yes" and set(plan.steps) >= {"zero3", "zero_offload_optimizer"}
    assert all(remedy.price.results == "keep" for remedy in found.remedies if remedy.id in plan.steps)
    assert {change.to for change in plan.edits if change.key == "deepspeed"} == {"examples/deepspeed/ds_z3_offload_config.json"}
    assert "host.ram" in [question.fact for question in found.questions]


def test_a_file_that_one_word_names_is_priced_as_a_whole() -> None:
    """Axolotl's own zero2.json offloads the optimizer: the plan's peak knows."""
    _, plan = planned(AXOLOTL.format(tuned="", rows=1, length=2048), "A100-80GB", 8)
    assert plan.steps == ("zero2",) and plan.predicted_peak is not None
    assert plan.predicted_peak.bytes < 32 * GIB


def test_where_no_remedy_is_enough_the_smallest_card_that_is_has_its_figures() -> None:
    """72 billion parameters and an adapter on 24 GB: nothing that keeps the results helps, so the class of card is named, and why."""
    found, plan = planned(FACTORY.format(tuned="lora", rows=1, length=4096).replace("7B", "72B"), "RTX 4090", 1)
    assert plan.steps[-1] == "bigger_gpu" and plan.fits == "yes" and plan.note is not None
    assert "Nothing that keeps the model and the cards is enough" in plan.note.en
    card = next(remedy for remedy in found.remedies if remedy.id == "bigger_gpu")
    assert "GB" in card.why.en and "usable there" in card.why.en and card.price.effort == "hardware"


def test_where_no_card_that_is_sold_is_enough_one_may_be_beside_other_steps() -> None:
    """72 billion parameters with adapters in long rows: the largest card alone is too small, and so are all other remedies together."""
    text = FACTORY.format(tuned="lora", rows=2, length=32768).replace("7B", "72B")
    found, plan = planned(text.replace("bf16: true", "fp16: true"), "V100-32GB", 1)
    assert plan.fits == "yes" and plan.steps[-1] == "bigger_gpu" and len(plan.steps) > 1 and plan.note is not None
    card = next(remedy for remedy in found.remedies if remedy.id == "bigger_gpu")
    assert "GB)" in card.title.en and plan.margin is not None and plan.margin.bytes > 0


def test_a_card_beside_other_steps_is_as_small_as_they_allow() -> None:
    """Sharded over two cards the weights need less than the card that would hold them whole, and the margin is that of the smaller one."""
    text = FACTORY.format(tuned="lora", rows=1, length=4096).replace("7B", "72B").replace("stage: sft", "stage: dpo")
    found, plan = planned(text, "RTX 4090", 2)
    assert plan.steps == ("zero3", "bigger_gpu") and plan.predicted_peak is not None and plan.predicted_peak.bytes < 120 * GIB
    assert plan.margin is not None and plan.margin.bytes > 0
    assert next(remedy for remedy in found.remedies if remedy.id == "bigger_gpu").peak == plan.predicted_peak


def test_what_cures_one_moment_goes_with_what_cures_the_next() -> None:
    """The load moved to the card first, the optimizer step is too large as well: the plan puts the load right and sees to the step."""
    case = CORPUS / "moved-to-the-card-before-sharding"
    found = explain(case / "error.log", configs=[case / "sft.py", case / "ds_zero3.json"]).outcome
    assert found.plan is not None and found.plan.fits == "yes" and found.plan.note is None
    assert found.plan.steps[0] == "fix_config_not_applied" and len(found.plan.steps) > 1


def outcome(facts: FactBook, *causes: object, room: float) -> Outcome:
    price = partial(reprice, room=room)
    return make(facts, price(facts), judged(*causes), [TRAIN_YAML], reprice=price, edit=edit)  # type: ignore[arg-type]


def test_steps_that_are_enough_together_lead_and_say_what_each_adds() -> None:
    """Neither is enough in 14 GiB. The saving of the second is counted after the first, and what cuts rows comes after both."""
    found = outcome(job(), cause("activations", "gradient_checkpointing", "lower_seq_len"), cause("logits", "liger_kernel"), room=14)
    assert found.plan is not None and found.plan.predicted_peak is not None
    steps = [remedy for remedy in found.remedies if remedy.id in found.plan.steps]
    assert len(steps) > 1 and [remedy.id for remedy in found.remedies][: len(steps)] == [remedy.id for remedy in steps]
    assert steps[-1].peak == found.plan.predicted_peak and "more: the peak falls from" in steps[-1].why.en


@given(st.floats(6, 40), st.sampled_from(["1", "4", "8"]), st.sampled_from(["disabled", "enabled"]))
@settings(max_examples=examples(40), deadline=None)
def test_the_ladder_never_leaves_the_card_and_keeps_the_rows_of_a_step(room: float, rows: str, checkpointing: str) -> None:
    facts = job(train__micro_batch_size=rows, train__gradient_checkpointing=checkpointing)
    plan = outcome(facts, cause("activations", "gradient_checkpointing", "lower_micro_batch", "lower_seq_len"), room=room).plan
    assert plan is not None
    peaks = [rung.predicted_peak.bytes for rung in plan.ladder]
    assert peaks == sorted(peaks) and all(each <= 0.94 * room * GIB + 1 for each in peaks)
    for rung in plan.ladder:
        if rung.knob == "train.micro_batch_size":
            assert isinstance(rung.to, int) and (int(rows) * 2) % rung.to == 0


@pytest.mark.parametrize(("accumulation", "rows"), [(6, 3), (10**12, 2)])
def test_a_batch_is_raised_by_any_factor_that_divides_the_accumulation(accumulation: int, rows: int) -> None:
    """Six micro batches of one row can be two of three, not only one of two or four; and nobody tries every size up to 10**12."""
    facts = job(
        train__micro_batch_size="1",
        train__gradient_accumulation=str(accumulation),
        train__gradient_checkpointing="enabled",
        train__loss_kernel="liger",
    )
    planned = FactBook(fact for fact in facts if not fact.name.startswith("log."))
    plan = outcome(planned, room=11.3).plan
    assert plan is not None and plan.steps == ()
    first = plan.ladder[0]
    assert (first.knob, first.frm, first.to) == ("train.micro_batch_size", 1, rows)


@pytest.mark.parametrize("word", ["lora", "qlora", "zero3"])
def test_a_card_that_somebody_else_fills_is_emptied_before_the_job_is_cut(word: str) -> None:
    """The figures of the message say that the job does not fit beside the other process; alone it would."""
    facts = job(log__foreign="12 GiB", log__requested="1 GiB", log__free="0.5 GiB", log__shortage="0.5 GiB")
    found = outcome(facts, cause("other_process", "kill_other_process"), room=20)
    assert found.plan is not None and found.plan.steps[0] == "kill_other_process" and word not in found.plan.steps


def test_what_should_fit_and_keeps_the_results_goes_before_what_surely_fits_and_changes_them() -> None:
    """One row may be enough and nothing of the data is cut; half the length surely is, and cuts it."""

    def wide(facts: FactBook) -> tuple[Ledger, ...]:
        rows, length = facts.count("train.micro_batch_size") or 1, facts.count("train.max_seq_len") or 1
        held = rows * length / 1024
        sure = length < 4096
        total = Size(round(held * GIB), round((held if sure else held * 1.4) * GIB), round(held * GIB))
        grown = Term("test.activations", same("activations"), "activations", total, "x", "x")
        return (Ledger("train", 1, (Moment("forward_end", (grown,)),), Size.exactly(5 * GIB), Size.exactly(5 * GIB), "forward_end"),)

    facts = job(train__micro_batch_size="2")
    called = judged(cause("activations", "lower_micro_batch", "lower_seq_len"))
    found = make(facts, wide(facts), called, [TRAIN_YAML], reprice=wide, edit=edit)
    assert found.plan is not None and found.plan.steps == ("lower_micro_batch",) and found.plan.fits == "likely"
    assert [remedy.id for remedy in found.remedies][:2] == ["lower_micro_batch", "lower_seq_len"]


def test_what_cures_may_be_the_smaller_part_where_only_both_together_fit() -> None:
    """Offloaded states save 6 GiB, fewer rows three times as much: the states are what the cause is about, the rows make room beside."""
    facts = job(train__micro_batch_size="4")
    price = partial(reprice, room=16)
    called = judged(cause("optimizer_states", "zero_offload_optimizer"), cause("activations", "gradient_checkpointing", also_true=True))
    found = make(facts, price(facts), called, [TRAIN_YAML], reprice=price, edit=edit)
    assert found.plan is not None and found.plan.fits == "yes"
    assert "zero_offload_optimizer" in found.plan.steps and len(found.plan.steps) == 2
