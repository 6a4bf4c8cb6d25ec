"""The shipped causes: they run on their own examples, speak for the vocabulary, and are short."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnose import shipped
from diagnose.judge.load import rules
from diagnose.vet import examples
from diagnose.vet.paper import Paper, papers

FOLDER = shipped.home() / "rules"
ALL = [item for item in papers(FOLDER) if isinstance(item, Paper) and item.room != "remedies"]


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: str(paper.data["id"]))
def test_examples_come_out_as_promised_and_every_line_is_needed(paper: Paper) -> None:
    assert [str(fault) for fault in examples.check(paper)] == []


def test_every_rule_loads() -> None:
    ours, faults = rules(trial=True)
    assert not faults
    assert {rule.id for rule in ours} == {str(paper.data["id"]) for paper in ALL if paper.data.get("status") != "retired"}


def test_the_causes_cover_the_vocabulary() -> None:
    """Every word but `unknown` has a rule that speaks for it."""
    spoken = {rule.cause for rule in rules()[0]}
    assert spoken >= set(shipped.table("vocabulary")["cause"]) - {"unknown"}


def test_each_rule_stands_in_one_short_file() -> None:
    for file in sorted(Path(FOLDER / "causes").glob("*.yaml")):
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 100, file.name
