"""Several causes at once: yielding, certainty, bytes; independence of order; faults of rules."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest
from cases import diagnosed
from collected import for_each

from diagnose.decide import competition, judging, rule_loader
from diagnose.decide.judging import judge
from diagnose.decide.rule_outcome import decide
from diagnose.decide.verdict import Verdict
from diagnose.facts import Fact, FactBook, Witness, typed
from diagnose.phrases import same
from diagnose.units import Size, size_of


def verdict(
    rule: str, cause: str, outcome: str = "fires", accounts: str = "", exact: bool = False, remedies: tuple[str, ...] = ()
) -> Verdict:
    bytes_ = size_of(accounts) if accounts else None
    return Verdict(rule, cause, outcome, "", None, same(rule), same(""), bytes_, False, (), remedies, "", exact)  # type: ignore[arg-type]


def order(*verdicts: Verdict, yields: dict[str, tuple[str, ...]] | None = None, shortage: str = "1 GiB") -> list[str]:
    return [v.cause for v in competition.ranked(verdicts, yields or {}, size_of(shortage) if shortage else None)]


def test_certain_before_likely_whatever_the_bytes() -> None:
    assert order(verdict("a", "weights", "likely", "60 GiB"), verdict("b", "fragmentation", "fires", "2 GiB")) == [
        "fragmentation",
        "weights",
    ]


def test_what_covers_the_shortage_comes_first() -> None:
    assert order(verdict("a", "weights", accounts="3 GiB"), verdict("b", "logits", accounts="9 GiB"), shortage="5 GiB") == [
        "logits",
        "weights",
    ]
    assert order(verdict("a", "config_not_effective"), verdict("b", "logits", accounts="9 GiB"), shortage="5 GiB") == [
        "logits",
        "config_not_effective",
    ]


def test_an_exact_tensor_outranks_a_larger_pool() -> None:
    assert order(verdict("a", "weights", accounts="60 GiB"), verdict("b", "logits", accounts="9 GiB", exact=True)) == ["logits", "weights"]


def test_without_figures_the_larger_share_comes_first() -> None:
    assert order(verdict("a", "weights", accounts="3 GiB"), verdict("b", "logits", accounts="9 GiB"), shortage="") == ["logits", "weights"]


def test_a_yielding_cause_goes_last_and_says_so() -> None:
    found = competition.ranked(
        [verdict("a", "logits", exact=True), verdict("b", "optimizer_states", accounts="61 GiB")], {"a": ("b",)}, None
    )
    assert [(v.cause, v.also_true) for v in found] == [("optimizer_states", False), ("logits", True)]


def test_a_certain_cause_is_told_by_its_likely_account() -> None:
    """That host RAM ran out is certain, what filled it likely; an account that the rule does not yield to adds its remedies alone."""
    rules = [verdict("killed", "host_ram"), verdict("weights", "host_ram", "likely", "87 GiB", remedies=("low_cpu_mem_usage",))]
    told = [competition.ranked(rules, yields, None)[0] for yields in ({"killed": ("host_ram",)}, {})]
    assert [(each.rule, each.outcome, each.title.en) for each in told] == [("weights", "fires", "weights"), ("killed", "fires", "killed")]


def test_yielding_to_a_word_yields_to_every_rule_of_it() -> None:
    found = competition.ranked(
        [verdict("a", "config_not_effective"), verdict("b", "activations", accounts="61 GiB")], {"a": ("activations",)}, None
    )
    assert [v.also_true for v in found] == [False, True]


def test_what_yields_to_anything_speaks_where_no_other_cause_leads() -> None:
    last = verdict("a", "unknown")
    yields: dict[str, tuple[str, ...]] = {"a": ("anything",), "c": ("everything",)}
    assert order_of([last, verdict("b", "weights", "likely")], yields) == [("weights", False)]
    assert order_of([last, verdict("c", "fragmentation")], yields) == [("fragmentation", True), ("unknown", False)]


def order_of(verdicts: list[Verdict], yields: dict[str, tuple[str, ...]]) -> list[tuple[str, bool]]:
    return [(found.cause, found.also_true) for found in competition.ranked(verdicts, yields, None)]


def test_a_probable_cause_sets_no_certain_one_aside() -> None:
    found = competition.ranked([verdict("a", "logits"), verdict("b", "weights", "likely")], {"a": ("b",)}, None)
    assert not found[0].also_true


def test_rules_of_one_cause_are_merged_under_the_best() -> None:
    found = competition.ranked(
        [verdict("a", "logits", "likely", remedies=("lower_seq_len",)), verdict("b", "logits", exact=True, remedies=("liger_kernel",))],
        {},
        None,
    )
    assert [(v.rule, v.remedies) for v in found] == [("b", ("liger_kernel", "lower_seq_len"))]


def test_silent_rules_are_no_causes() -> None:
    assert order(verdict("a", "logits", "quiet"), verdict("b", "weights", "unknown")) == []


REFERENCE = {  # the figures of a real failure in the loss of DPO on a 32 GB card
    "log.family": "torch_cuda",
    "log.on_card": "enabled",
    "log.phase": "loss",
    "log.requested": "4.64 GiB",
    "log.free": "1.41 GiB",
    "log.capacity": "31.74 GiB",
    "log.allocated": "23.51 GiB",
    "log.reserved_unallocated": "5.51 GiB",
    "log.shortage": "3.23 GiB",
    "log.foreign": "0.07 GiB",
    "log.step": "0",
    "hardware.capacity": "31.74 GiB",
    "attribution.group": "logits",
    "attribution.exact": "enabled",
    "train.gradient_checkpointing": "enabled",
    "alloc.expandable_segments": "disabled",
    "ledger.verdict": "agrees",
    "ledger.total": "23.07 GiB",
    "ledger.logits": "9.28 GiB",
    "ledger.logits_at_loss": "13.92 GiB",
    "ledger.weights": "1.93 GiB",
    "ledger.activations": "1.75 GiB",
    "ledger.states": "7.25 GiB",
    "ledger.optimizer_states": "3.55 GiB",
    "ledger.next_states": "7.09 GiB",
}


def book(facts: dict[str, str]) -> FactBook:
    return FactBook(Fact(name, typed(name, text), "log", Witness("error.log", 1)) for name, text in facts.items())


def test_logits_then_fragmentation_then_the_states_to_come() -> None:
    found = judge(book(REFERENCE))
    assert not found.faults
    said = [(v.cause, v.outcome, v.also_true) for v in found.causes]
    assert said == [("logits", "fires", False), ("fragmentation", "fires", False), ("optimizer_states", "likely", True)]
    sizes = [v.accounts_for for v in found.causes]
    assert [str(size) for size in sizes] == ["13.92 GiB", "5.51 GiB", "7.09 GiB"]


def test_states_that_fill_the_card_come_before_the_tensor_that_failed() -> None:
    found = judge(
        book(
            {
                **REFERENCE,
                "hardware.capacity": "79.15 GiB",
                "ledger.states": "68.63 GiB",
                "ledger.optimizer_states": "45.75 GiB",
                "ledger.gradients": "15.25 GiB",
                "log.reserved_unallocated": "0.44 GiB",
                "ledger.next_states": "0 GiB",
            }
        )
    )
    assert [(v.cause, v.also_true) for v in found.causes] == [("optimizer_states", False), ("logits", True)]
    assert str(found.causes[0].accounts_for) == "61.00 GiB"


@for_each(
    "case, first, aside",
    [
        ("rows-of-nine-thousand-tokens-under-a-cap-of-two", "rows-longer-than-the-limit", "longest-sample"),
        ("an-evaluation-copy-stays-on-the-card", "kept-since-one-step", "longest-sample"),
        ("merging-beside-the-model", "merging-on-the-card", "weights-at-load"),
        ("reference-copy-of-a-14b-model", "extra-models-beside-the-trained", "weights-moved-in-preparation"),
        ("bucket-of-ten-billion-elements", "request-is-a-buffer", "partition-at-start"),
        ("a-model-built-before-lightning-shards", "model-built-outside-sharding", "kept-activations-of-an-unknown-model"),
        ("the-engine-cannot-wake-up", "engine-cannot-wake", "extra-models-beside-the-trained"),
    ],
)
def test_one_story_is_told_once(case: str, first: str, aside: str) -> None:
    """Two rules that read the same evidence do not both stand: the one that says less of it is also true."""
    standing = {cause.rule: cause.also_true for cause in diagnosed(case).judgement.causes}
    assert (standing[first], standing[aside]) == (False, True)


def test_without_anything_known_nothing_is_claimed() -> None:
    found = judge(FactBook())
    assert not found.causes and not found.faults
    assert found.undecided and all(v.missing for v in found.undecided)


def test_verdicts_do_not_depend_on_the_order_of_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    known, (ours, faults) = book(REFERENCE), rule_loader.rules()
    first = judge(known)
    shuffled = list(ours)
    random.Random(7).shuffle(shuffled)
    monkeypatch.setattr(rule_loader, "rules", lambda folders=(), *, trial=False: (shuffled, list(faults)))
    again = judge(known)
    assert again.causes == first.causes and again.undecided == first.undecided


def test_a_rule_that_crashes_is_a_note_about_the_rule(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its traceback is logged, and printed where somebody asks for it; everything else is answered as ever."""
    plain = decide

    def crash(rule: rule_loader.Rule, known: FactBook) -> Verdict:
        if rule.id == "fragmented-reserve":
            raise ZeroDivisionError("sample")
        return plain(rule, known)

    monkeypatch.setattr(judging, "decide", crash)
    monkeypatch.setattr(logging.getLogger("diagnose"), "handlers", [])
    monkeypatch.delenv("OOMDOCTOR_DEBUG", raising=False)
    found = judge(book(REFERENCE))
    assert [fault.en for fault in found.faults] == ["fragmented-reserve: ZeroDivisionError: sample"]
    assert found.causes[0].cause == "logits"
    assert capfd.readouterr().err == ""
    assert [(log.name, log.exc_info is not None) for log in caplog.records] == [("diagnose", True)]
    monkeypatch.setattr(logging.getLogger("diagnose"), "handlers", [])
    monkeypatch.setenv("OOMDOCTOR_DEBUG", "1")
    judge(book(REFERENCE))
    assert "Traceback" in capfd.readouterr().err


OWN = """
id: {id}
cause: logits
title: {{en: Ours, zh: 我们的}}
status: {status}
when: {{all: [log.requested > 1 GiB]}}
evidence: {{en: "{{log.requested}}", zh: "申请 {{log.requested}}"}}
remedies: [lower_seq_len]
references: [https://example.org/page]
"""


def test_a_users_rule_replaces_ours_by_id_and_trial_waits(tmp_path: Path) -> None:
    (tmp_path / "causes").mkdir()
    (tmp_path / "causes" / "mine.yaml").write_text(OWN.format(id="fragmented-reserve", status="stable"), encoding="utf-8")
    (tmp_path / "trial.yaml").write_text(OWN.format(id="on-trial", status="trial"), encoding="utf-8")
    found = judge(book(REFERENCE), [tmp_path])
    assert "fragmentation" not in [v.cause for v in found.causes]
    assert "on-trial" not in [v.rule for v in found.all]
    assert "on-trial" in [v.rule for v in judge(book(REFERENCE), [tmp_path], trial=True).all]


def test_a_users_broken_rule_is_reported_and_sits_out(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("id: bad\ncause: logits\nwhen: {all: [log.free > 1 GB]}\n", encoding="utf-8")
    (tmp_path / "worse.yaml").write_text("id: [\n", encoding="utf-8")
    found = judge(book(REFERENCE), [tmp_path])
    assert len(found.faults) == 1 and "bad.yaml" in found.faults[0].en
    assert found.causes[0].cause == "logits"


def test_a_size_of_unknown_width_still_ranks() -> None:
    wide = Size.between(0, 2**40, 2**33)
    assert competition.ranked([verdict("a", "logits"), verdict("b", "weights")], {}, wide)
