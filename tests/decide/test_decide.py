"""One rule against facts: three-valued, presumptions said aloud, and firm verdicts that more knowledge cannot overturn."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose.decide.comparison import holds
from diagnose.decide.expression import parse
from diagnose.decide.rule_loader import Rule, compile_rule, rule_of, rules
from diagnose.decide.rule_outcome import decide
from diagnose.facts import Fact, FactBook, Value, Witness, typed
from diagnose.units import Size

FRAGMENTED = {
    "id": "sample",
    "cause": "fragmentation",
    "title": {"en": "In pieces", "zh": "碎片"},
    "when": {
        "all": ["log.requested > log.free", "log.requested <= log.reserved_unallocated + log.free"],
        "none": ["alloc.expandable_segments == enabled"],
    },
    "presume": {"alloc.expandable_segments": "disabled"},
    "accounts_for": "log.reserved_unallocated",
    "evidence": {
        "en": "{log.reserved_unallocated} idle, {log.requested} failed",
        "zh": "闲置 {log.reserved_unallocated}，{log.requested} 失败",
    },
}
FIGURES = {"log.requested": "4.64 GiB", "log.free": "1.41 GiB", "log.reserved_unallocated": "5.51 GiB"}


def book(facts: Mapping[str, str]) -> FactBook:
    return FactBook(
        Fact(name, typed(name, text), "log", Witness("error.log", line, 1, text)) for line, (name, text) in enumerate(facts.items(), 1)
    )


@pytest.fixture
def rule() -> Rule:
    return rule_of(FRAGMENTED)


def test_known_facts_fire(rule: Rule) -> None:
    verdict = decide(rule, book({**FIGURES, "alloc.expandable_segments": "disabled"}))
    assert verdict.outcome == "fires"
    assert verdict.explanation.en == "5.51 GiB idle, 4.64 GiB failed"
    assert verdict.explanation.zh == "闲置 5.51 GiB，4.64 GiB 失败"
    assert verdict.accounts_for is not None and verdict.accounts_for.text == "5.51 GiB"


def test_a_presumption_makes_it_likely_and_is_said_aloud(rule: Rule) -> None:
    verdict = decide(rule, book(FIGURES))
    assert verdict.outcome == "likely"
    assert verdict.assumes is not None and "expandable_segments" in verdict.assumes.en and "expandable_segments" in verdict.assumes.zh


def test_a_range_that_leaves_it_open_may_be_presumed_as_estimated() -> None:
    """A bound (pixels, lengths) gives a range from nothing to the cap: likely by its estimate, never certain."""
    raw = {
        **FRAGMENTED,
        "when": {"all": ["ledger.mm_inputs >= 2 GiB"]},
        "evidence": {"en": "{ledger.mm_inputs}", "zh": "{ledger.mm_inputs}"},
    }
    wide = FactBook([Fact("ledger.mm_inputs", Size.between(0, 8 * 2**30, 8 * 2**30), "derived", Witness("derived"))])
    assert decide(rule_of({**raw, "presume": {"ledger.mm_inputs": "as_estimated"}}), wide).outcome == "likely"
    assert decide(rule_of({**raw, "presume": {}}), wide).outcome == "unknown"


def test_the_most_that_an_estimate_allows_may_be_presumed() -> None:
    """What pinned memory is rounded up to decides: surely more fires, more by the upper end is likely, surely less is quiet."""
    rule = rule_of(
        {
            **FRAGMENTED,
            "when": {"all": ["ledger.host > log.container_limit"]},
            "presume": {"ledger.host": "at_most"},
            "accounts_for": "ledger.host",
            "evidence": {"en": "{ledger.host}", "zh": "{ledger.host}"},
        }
    )
    outcomes = {limit: decide(rule, ranged(limit)).outcome for limit in (100, 150, 300)}
    assert outcomes == {100: "fires", 150: "likely", 300: "quiet"}


def ranged(limit: int) -> FactBook:
    host = Size(113 * 2**30, 226 * 2**30, 113 * 2**30)
    return FactBook().changed({"ledger.host": host, "log.container_limit": Size.exactly(limit * 2**30)})


def test_no_cause_fills_more_than_the_card_and_nothing_fills_nothing(rule: Rule) -> None:
    """An estimate of rows that is larger than the card is an upper bound; while weights are loaded the need may well be larger."""
    held = {**FIGURES, "alloc.expandable_segments": "disabled", "log.capacity": "31.74 GiB", "log.allocated": "23.51 GiB"}
    huge = Size.exactly(9000 * 2**30)
    known: dict[str, Value] = {"log.reserved_unallocated": huge, "log.phase": "backward"}
    told = decide(rule, book(held).changed(known)).accounts_for
    assert told is not None and told.low == 0 and told.high == book(held).size("log.capacity").high  # type: ignore[union-attr]
    assert decide(rule, book(held).changed({**known, "log.phase": "model_load"})).accounts_for == huge
    nothing = rule_of({**FRAGMENTED, "accounts_for": "ledger.mm_inputs"})
    assert decide(nothing, book(held).changed({"ledger.mm_inputs": Size.exactly(0)})).accounts_for is None


def test_the_line_that_says_no_is_named(rule: Rule) -> None:
    verdict = decide(rule, book({**FIGURES, "alloc.expandable_segments": "enabled"}))
    assert (verdict.outcome, verdict.deciding) == ("quiet", "not (alloc.expandable_segments == enabled)")


def test_a_missing_fact_is_named(rule: Rule) -> None:
    verdict = decide(rule, book({name: text for name, text in FIGURES.items() if name != "log.reserved_unallocated"}))
    assert (verdict.outcome, verdict.missing) == ("unknown", "log.reserved_unallocated")


def test_witnesses_are_those_of_the_facts_that_decide(rule: Rule) -> None:
    verdict = decide(rule, book({**FIGURES, "log.capacity": "31.74 GiB"}))
    assert {witness.line for witness in verdict.evidence} == {1, 2, 3}


def test_printed_ranges_that_overlap_decide_nothing() -> None:
    """4.64 GiB may be 4.635 or 4.645: whether it is more than 4.64 GiB cannot be told."""
    known = book({"log.requested": "4.64 GiB", "log.free": "4.64 GiB"})
    assert holds(parse("log.requested > log.free"), known.value) is None
    assert holds(parse("log.requested >= 4.63 GiB"), known.value) is True
    assert holds(parse("log.requested == log.free"), known.value) is None
    assert holds(parse("log.requested != 5 GiB"), known.value) is True


@for_each(
    "line, truth",
    [
        ("version.trl < 0.7.1", True),
        ("version.trl >= 0.7.0.post1", True),
        ("version.trl == 0.7", False),
        ("train.max_seq_len <= 25% of data.longest_sample", True),
        ("train.max_seq_len * 2 < 500", False),
        ("model.attention != eager", True),
        ("log.phase == loss", None),
        ("alloc.expandable_segments != enabled", False),
        ("rollout.gpu_memory_utilization >= 0.5", True),
    ],
)
def test_each_kind_compares_as_its_kind(line: str, truth: bool | None) -> None:
    known = book(
        {
            "version.trl": "0.7.0.post1",
            "train.max_seq_len": "512",
            "data.longest_sample": "4096",
            "model.attention": "sdpa",
            "log.phase": "unknown",
            "alloc.expandable_segments": "enabled",
            "rollout.gpu_memory_utilization": "0.5",
        }
    )
    assert holds(parse(line), known.value) is truth


def test_the_word_unknown_is_no_word() -> None:
    """Readers write phase `unknown` where they could not tell: that is not a phase that differs from the others."""
    known = FactBook([Fact("log.phase", "unknown", "log", Witness("error.log", 1))])
    assert holds(parse("log.phase != loss"), known.value) is None


def test_a_compiled_rule_is_the_rule() -> None:
    assert rule_of(compile_rule(FRAGMENTED)) == rule_of(FRAGMENTED)


VALUES: Mapping[str, list[str]] = {
    "size": ["0 GiB", "0.50 GiB", "4.64 GiB", "20.00 MiB", "71.86 GiB"],
    "count": ["0", "1", "7", "4096"],
    "ratio": ["0.1", "0.5", "0.9"],
    "switch": ["enabled", "disabled"],
    "version": ["0.5", "0.7.0", "4.51.3"],
}


def values_of(name: str) -> list[str]:
    from diagnose.facts import declared

    entry = declared(name)
    assert entry is not None
    if entry.kind in ("word", "text"):
        return list(entry.words) or [
            "loss",
            "forward",
            "backward",
            "generation",
            "torch_cuda",
            "ray_oom",
            "logits",
            "agrees",
            "below",
            "above",
        ]
    return VALUES.get(entry.kind, [])


READ = sorted(
    {
        name
        for rule in rules()[0]
        for line in rule.lines
        for name in __import__("diagnose.decide.expression", fromlist=["names"]).names(line)
    }
)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_one_more_fact_never_overturns_a_firm_verdict(data: st.DataObject) -> None:
    """Unknown may become anything, likely may become firm; fires stays fires and quiet stays quiet."""
    ours = rules()[0]
    names = data.draw(st.lists(st.sampled_from([name for name in READ if values_of(name)]), min_size=4, max_size=14, unique=True))
    facts = {name: data.draw(st.sampled_from(values_of(name))) for name in names}
    *before, late = facts
    known, more = book({name: facts[name] for name in before}), book({**{name: facts[name] for name in before}, late: facts[late]})
    for each in ours:
        first, then = decide(each, known).outcome, decide(each, more).outcome
        assert first not in ("fires", "quiet") or then == first, each.id
        assert first != "likely" or then in ("likely", "fires", "quiet", "unknown"), each.id


def test_what_is_not_set_is_said_in_words() -> None:
    """A key that decides and is not there has no value to print: no dash, and no English word in a Chinese sentence."""
    from diagnose.decide.verdict_wording import fill

    assert fill("it is {config.missed_value}", lambda _: "unset", "en") == "it is unset"
    assert fill("其值仍为 {config.missed_value}", lambda _: "unset", "zh").endswith("未设置")
