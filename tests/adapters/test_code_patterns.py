"""Patterns of code (rules/code): scripts that have them and scripts that only look like it, excerpts, pages, tracebacks."""

from pathlib import Path

import pytest
import yaml
from collected import for_each

from diagnose import rule_files
from diagnose.adapters.python import code_patterns
from diagnose.adapters.python.code_excerpts import LARGEST, parse_excerpt
from diagnose.facts import declared
from diagnose.pipeline import explain

TABLES = rule_files.table("code")


@pytest.mark.parametrize("name", sorted(TABLES))
def test_each_pattern_knows_its_scripts(name: str) -> None:
    """A file's own scripts show the pattern, and its lookalikes do not."""
    table = TABLES[name]
    assert declared(table["fact"]) is not None
    found = [any(match.fact == table["fact"] for match in code_patterns.matches(text)) for text in (*table["has"], *table["lacks"])]
    assert found == [True] * len(table["has"]) + [False] * len(table["lacks"])


@for_each(
    "text, statement, line",
    [
        ("        loss.backward()\n        total += loss\n    print(total)\nend()", "total += loss", 2),
        (">>> for x in data:\n...     loss = crit(net(x))\n...     loss.backward()\n...     seen.append(loss)", "seen.append(loss)", 4),
        ("for x in data:\n    loss.backward()\n    .....\n    seen.append(loss)\nmodel.add(Dense(256,", "seen.append(loss)", 4),
        ("for x in data:\n    print 'step', x\n    loss.backward()\n    seen.append(loss)", "seen.append(loss)", 4),
        ("for x in data:\n\n    loss.backward()\n      seen.append(loss)", "seen.append(loss)", 4),
    ],
)
def test_excerpts_are_read_as_far_as_they_go(text: str, statement: str, line: int) -> None:
    """Code that begins in the middle, has prompts, dots, Python 2 or an open bracket keeps its lines."""
    found = [match for match in code_patterns.matches(text) if match.fact == "code.loss_kept"]
    assert [(match.statement.removeprefix("... "), match.line) for match in found] == [(statement, line)]


@for_each(
    "text",
    [
        "",
        "(" * 5000,
        "for x in y:\n" * 3000,
        "a = [" * 400,
        "\n".join(f"x{i} = (" for i in range(500)),
        "y = 1\n" * (LARGEST // 6 + 1),
        "-" * 90_000 + "x.append(loss)",
        "loss" + ".a" * 20_000 + ".backward()",
    ],
)
def test_hostile_code_is_bounded(text: str) -> None:
    """Nothing raises, whatever a text holds."""
    assert isinstance(code_patterns.matches(text), list)
    parse_excerpt(text)


PAGE = "# Out of memory\n\nMy run dies after a while:\n\n```\nRuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB\n```\n\n"


@for_each(
    "text, fact",
    [
        ("The line is `meter.update(loss, n)` here.\n", "code.loss_kept"),
        ("My loop:\n\n```python\nfor x in data:\n    loss.backward()\n    total += loss\n```\n", "code.loss_kept"),
        ("My loop:\n\nfor x in data:\n    loss.backward()\n    total += loss\n\nThat is all.\n", "code.loss_kept"),
        ("It is `for x in frames:\n    out = model.inference(x)` only.\n", "code.evaluates_with_graph"),
        ("I changed `meter.update(loss, n)` already, as somebody said.\n", ""),
        ("This version works:\n\n```python\nfor x in data:\n    loss.backward()\n    total += loss\n```\n", ""),
    ],
)
def test_code_of_a_page_counts(text: str, fact: str) -> None:
    """Fences, bare code and code between backticks are read with the page's lines, but for what a sentence calls the cure."""
    diagnosis = explain(PAGE + text)
    assert [each.name for each in diagnosis.facts if each.name.startswith("code.")] == ([fact] if fact else [])
    if fact == "code.loss_kept":
        assert diagnosis.judgement is not None and diagnosis.judgement.causes[0].cause == "leak"


REPORTS = yaml.load(Path(__file__).with_name("code_pages.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


@for_each("name", [report["name"] for report in REPORTS])
def test_reports_with_code(name: str) -> None:
    """The fault in a report's code leads, with its remedy; code that only looks like one is not blamed."""
    report = next(report for report in REPORTS if report["name"] == name)
    diagnosis = explain(report["page"])
    assert diagnosis.judgement is not None and diagnosis.outcome is not None
    if report["causes"]:
        assert diagnosis.judgement.causes[0].cause in report["causes"]
        assert {remedy.id for remedy in diagnosis.outcome.remedies[:3]} & set(report["remedies"])
    else:
        assert not [fact for fact in diagnosis.facts if fact.name.startswith("code.")]
