"""How likely each cause is where no rule settles it: counts of labelled failures, moved by evidence."""

from __future__ import annotations

import pytest
from workshop import book, cause

from diagnose import rule_files
from diagnose.decide import hypotheses
from diagnose.decide.comparison import holds
from diagnose.decide.expression import comparison_of, parse, to_data


def likely(*verdicts: str, **facts: str) -> dict[str, float]:
    spoken = [cause(name, outcome="likely") for name in verdicts]
    return hypotheses.probabilities(book(run__regime="train", **facts), spoken)


def test_probabilities_are_of_one_cause_and_ordered() -> None:
    found = likely(log__phase="backward")
    assert sum(found.values()) == pytest.approx(1) and list(found.values()) == sorted(found.values(), reverse=True)
    assert next(iter(found)) == "activations"


@pytest.mark.parametrize(
    ("cause", "before", "after"),
    [
        ("optimizer_states", {"train__finetuning": "full"}, {"train__finetuning": "lora"}),
        ("leak", {"log__step": "4000"}, {"log__step": "1"}),
        ("other_process", {"log__capacity": "80 GiB", "log__foreign": "40 GiB"}, {"log__capacity": "80 GiB", "log__foreign": "1 GiB"}),
        ("logits", {"log__capacity": "80 GiB", "log__requested": "9 GiB"}, {"log__capacity": "80 GiB", "log__requested": "64 MiB"}),
    ],
)
def test_evidence_speaks_for_and_against(cause: str, before: dict[str, str], after: dict[str, str]) -> None:
    assert likely(**before)[cause] > 2 * likely(**after)[cause]


def test_nobody_else_is_suspected_where_all_that_others_hold_would_not_be_enough() -> None:
    figures = {"log__capacity": "24 GiB", "log__foreign": "12 GiB", "log__free": "4 GiB", "log__reserved_unallocated": "0 B"}
    assert (
        likely(log__requested="10 GiB", **figures)["other_process"]
        > 0.1
        > 0.01
        > likely(log__requested="422 GiB", **figures)["other_process"]
    )


def test_an_unknown_fact_says_nothing_and_a_rule_that_speaks_does() -> None:
    assert likely(log__phase="forward") == likely(log__phase="forward", log__requested="1 GiB")  # the card is unknown
    assert likely("leak", log__phase="forward")["leak"] > likely(log__phase="forward")["leak"]
    assert likely("rollout_engine")["rollout_engine"] > 2 * likely().get("rollout_engine", 0.0)


def test_host_and_card_are_never_mixed() -> None:
    assert next(iter(likely(log__on_card="disabled"))) == "host_ram" and "activations" not in likely(log__on_card="disabled")
    assert hypotheses.probabilities(book(run__regime="nobody"), []) == {}


def test_every_condition_can_be_read() -> None:
    for rows in rule_files.table("hypotheses")["evidence"].values():
        for row in rows:
            for line in row.get("when", ()):
                assert holds(comparison_of(to_data(parse(line))), book().value) is None
