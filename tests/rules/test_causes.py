"""The shipped causes: they run on their own examples, speak for the vocabulary, and are short."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from diagnose import rule_files
from diagnose.decide.expression import Comparison
from diagnose.decide.rule_loader import rules
from diagnose.vet import examples
from diagnose.vet.paper import Paper, papers

FOLDER = rule_files.home() / "rules"


@cache
def every_paper() -> tuple[Paper, ...]:
    return tuple(item for item in papers(FOLDER) if isinstance(item, Paper) and item.room != "remedies")


def test_examples_come_out_as_promised_and_every_line_is_needed() -> None:
    assert [str(fault) for paper in every_paper() for fault in examples.check(paper)] == []


def test_every_rule_loads() -> None:
    ours, faults = rules(trial=True)
    assert not faults
    assert {rule.id for rule in ours} == {str(paper.data["id"]) for paper in every_paper() if paper.data.get("status") != "retired"}


def test_the_causes_cover_the_vocabulary() -> None:
    """Every word but `unknown` has a rule that speaks for it."""
    spoken = {rule.cause for rule in rules()[0]}
    assert spoken >= set(rule_files.table("vocabulary")["cause"]) - {"unknown"}


def test_each_rule_stands_in_one_short_file() -> None:
    for file in sorted(Path(FOLDER / "causes").glob("*.yaml")):
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 100, file.name


FIGURE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(%| [KMGT]?i?B\b| \*)?")


def figures(line: Comparison) -> set[str]:
    """The figures of a condition that somebody chose: not releases, small counts and the indices of cards and stages."""
    found = {number + unit for number, unit in FIGURE.findall(str(line).replace(" %", "%"))}
    plain = {figure for figure in found if figure in ("0", "1", "2", "3")}
    return set() if "version." in str(line) else found - plain


def test_every_figure_has_a_reason() -> None:
    """docs/rules.md says why a bound is as high as it is; one that nobody can explain does not get in."""
    text = (rule_files.home() / "docs" / "rules.md").read_text(encoding="utf-8")
    table = text.partition("## The figures in conditions")[2].partition("\n## ")[0]
    explained = {figure for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for figure in re.findall(r"`([^`]+)`", row)}
    used = {
        figure for rule in rules()[0] if rule.url.startswith("docs/generated/causes") for line in rule.lines for figure in figures(line)
    }
    assert used == explained
