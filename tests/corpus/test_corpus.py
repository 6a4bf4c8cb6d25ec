"""The short cases of corpus/: each is diagnosed as its expected.yaml says, in both languages, and is itself in order."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from cases import CORPUS, EXPECTATIONS, diagnosed, disagreements, expected, folders, is_long, report, settings, short_cases
from collected import for_each

from diagnose import rule_files

VOCABULARY = rule_files.table("vocabulary")


def words(*room: str) -> set[str]:
    """The words of a part of the vocabulary, however it groups them."""
    found: set[str] = set()
    for part in room:
        entry = VOCABULARY[part]
        groups = entry.values() if isinstance(entry, dict) else [entry]
        for group in groups:
            found |= set(group) if isinstance(group, list) else set()
    return found


@pytest.mark.parametrize("name", short_cases())
def test_case(name: str) -> None:
    found = disagreements(name, diagnosed(name))
    assert not found, "\n".join(found)


@for_each("name", short_cases())
def test_both_languages(name: str) -> None:
    """Every sentence of the report exists in both languages, and no placeholder was left unfilled."""
    for lang in ("en", "zh"):
        told = report(name, lang)
        sentences = [told["verdict"]["headline"]]
        sentences += [cause[key] for cause in told["causes"] for key in ("title", "explanation")]
        sentences += [remedy[key] for remedy in told["remedies"] for key in ("title", "why")]
        sentences += [entry["reason"] for entry in told["rejected"]]
        sentences += [question[key] for question in told["questions"] for key in ("why", "how")]
        for sentence in sentences:
            assert sentence and not re.search(r"\{[a-z_.]+\}|\bNone\b", sentence), sentence
        if lang == "zh":
            assert re.search(r"[\u4e00-\u9fff]", told["verdict"]["headline"])


@for_each("name", short_cases())
def test_the_report_is_json(name: str) -> None:
    told = report(name)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


@for_each("name", short_cases())
def test_the_case_is_in_order(name: str) -> None:
    """Its files exist and are used, its words are words of the vocabulary, and its figures stand in its log."""
    want = expected(name)
    assert set(want) <= {"title", "log", "cause", "fix", "harmful", "best", "mistake", "configs", "options", "arithmetic", "source", "expect"}
    assert want["title"] and want["arithmetic"] and set(want["expect"]) <= EXPECTATIONS
    given = [settings(name)["logs"], *settings(name)["configs"]]
    there = {path for path in (CORPUS / name).rglob("*") if path.is_file()} - {CORPUS / name / "expected.yaml"}
    assert set(given) <= there
    log = (CORPUS / name / want.get("log", "error.log")).read_text(encoding="utf-8")
    for figure in want["expect"].get("figures", {}).values():
        assert figure in log
    for config in settings(name)["configs"]:
        if config.suffix in (".yaml", ".yml", ".json"):
            assert isinstance(yaml.load(config.read_text(encoding="utf-8"), yaml.CSafeLoader), dict)
    expect = want["expect"]
    named = {expect.get("first_cause"), *expect.get("causes", []), *expect.get("not_causes", [])} - {None}
    assert named <= words("cause"), named - words("cause")
    advised = {expect.get("first_remedy"), *expect.get("remedies", []), *expect.get("rejected", []), *expect.get("fits", {})} - {None}
    assert advised <= words("remedy"), advised - words("remedy")


def test_the_corpus_is_wide_enough() -> None:
    """At least 15 causes and 30 remedies are expected somewhere, by the references or by a short case."""
    causes: set[str] = set()
    remedies: set[str] = set()
    for name in folders():
        want = expected(name)
        if is_long(name):
            causes |= {cause["id"] for cause in want["causes"]}
            remedies |= {remedy["id"] for remedy in want["remedies"]}
        else:
            causes |= {want["expect"].get("first_cause"), *want["expect"].get("causes", [])} - {None}
            remedies |= set(want["expect"].get("remedies", []))
    assert len(causes) >= 15 and len(remedies) >= 30, (sorted(causes), sorted(remedies))
