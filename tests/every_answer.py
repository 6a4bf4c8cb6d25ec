"""What holds of the answer to every case of the corpus. tests/corpus/test_corpus.py holds each answer against all of it while it has it in
hand: to read an answer again costs a twentieth of making it, and there are two thousand."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

from cases import CORPUS, report
from fingerprints import fingerprint_of, golden

from diagnose.adapters.schema import framework_tables
from diagnose.cluster.store import digests
from diagnose.cluster.store.group_fingerprint import parts
from diagnose.diagnosis import Diagnosis
from diagnose.plan.remedies.remedy_rules import rules


def faults(name: str, diagnosis: Diagnosis) -> Iterator[str]:
    """What is wrong with the answer to a case."""
    for check in (
        every_sentence_is_there_in_both_languages,
        the_report_is_json,
        the_digest_says_what_the_report_says,
        the_fingerprint_is_the_one_that_was_committed,
        no_words_are_those_of_another_program,
        general_words_are_no_settings_of_another_program,
    ):
        try:
            check(name, diagnosis)
        except AssertionError as error:
            yield f"{check.__name__}: {error}"


def every_sentence_is_there_in_both_languages(name: str, diagnosis: Diagnosis) -> None:
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


def the_report_is_json(name: str, diagnosis: Diagnosis) -> None:
    told = report(name)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


# -- the digest that triage keeps


def the_digest_says_what_the_report_says(name: str, diagnosis: Diagnosis) -> None:
    """Status, figures, causes, remedies and plan, each as the report of the contract has it, every sentence in both languages; in some KB
    (a database of a million failures must stay a file that one can copy), and without a folder of this job: it answers other jobs too."""
    text = digests.digest(diagnosis)
    assert len(text.encode()) < 10 << 10 and str(CORPUS) not in text
    kept, told = digests.read(text), report(name)
    found = parts(diagnosis)
    assert kept["parts"] == (None if found is None else found._asdict())
    assert all(bool(each["en"]) == bool(each["zh"]) for each in _sentences(kept))
    assert [kept[key] for key in ("status", "family", "phase")] == [told["verdict"][key] for key in ("status", "family", "phase")]
    assert kept["headline"] == {"en": told["verdict"]["headline"], "zh": report(name, "zh")["verdict"]["headline"]}
    for root in [] if told["verdict"]["event"] is None else [told["events"][told["verdict"]["event"]]]:
        for figure in digests.FIGURES:
            assert kept["event"][figure] == (root[figure] and root[figure]["bytes"])
    causes = [(cause["id"], cause["rule"], cause["certainty"], cause["also_true"]) for cause in told["causes"]]
    assert [(each["cause"], each["rule"], each["certainty"], each["also_true"]) for each in kept["causes"]] == causes[: digests.CAUSES]
    known = {(remedy["id"], remedy["rule"], remedy["fits"]) for remedy in told["remedies"]}
    assert {(each["remedy"], each["rule"], each["fits"]) for each in kept["remedies"]} <= known
    if told["plan"] is None or not told["plan"]["steps"]:
        assert kept["plan"] is None
        return
    assert kept["plan"]["steps"] == told["plan"]["steps"] and kept["plan"]["fits"] == told["plan"]["fits"]
    planned = {step for step in told["plan"]["steps"] if step in {remedy["id"] for remedy in told["remedies"]}}
    assert {each["remedy"] for each in kept["remedies"] if each["planned"]} == planned
    edits = [(each["key"], each["from"], each["to"]) for each in told["plan"]["edits"]]
    assert [(each["key"], each["from"], each["to"]) for each in kept["plan"]["edits"]] == edits[: digests.EDITS]


def _sentences(value: Any) -> Iterator[dict[str, str]]:
    if isinstance(value, dict):
        if set(value) == {"en", "zh"}:
            yield value
        for held in value.values():
            yield from _sentences(held)
    elif isinstance(value, list):
        for held in value:
            yield from _sentences(held)


def the_fingerprint_is_the_one_that_was_committed(name: str, diagnosis: Diagnosis) -> None:
    """What changes here changes the groups of every database; tests/fingerprints.py says when that is right."""
    assert fingerprint_of(diagnosis) == golden().get(name)


# -- a program is told what to do in its own words: no answer has an option, key or variable that another program has

#: Options, variables and names of settings in a sentence.
NAME = re.compile(r"--[a-z][\w-]+|\b[A-Z]{2,}(?:_[A-Z]+)+\b|\b[a-z]+(?:_[a-z]+)+\b")

#: Names that general advice may use: of CUDA, PyTorch and Python, whatever some trainer calls its settings.
PLAIN = {
    "CUDA_VISIBLE_DEVICES",
    "state_dict_type",
    "local_rank",
    "inference_mode",
    "from_pretrained",
    "pin_memory",
    "batch_size",
    "vllm_tensor_parallel_size",
}


def no_words_are_those_of_another_program(name: str, diagnosis: Diagnosis) -> None:
    told = [text for remedy in diagnosis.outcome.remedies for text in (remedy.title.en, remedy.why.en)]
    program, known = _program(diagnosis), _programs_by_name()
    words = {word for text in told for word in NAME.findall(text) if word in known and program not in known[word]} if program else set()
    strange = words - _own_names(program) - PLAIN
    assert not strange, f"{program}: {sorted(strange)}"


def general_words_are_no_settings_of_another_program(name: str, diagnosis: Diagnosis) -> None:
    """What is said to a known program for want of words of its own names no setting that other tables have and its own has not."""
    program = _program(diagnosis)
    told = [remedy.why.en for remedy in diagnosis.outcome.remedies if remedy.rule in _general_rules(program)] if program else []
    words = {word for text in told for word in NAME.findall(text) if "_" in word} - PLAIN - _own_names(program)
    strange = words and words & _settings_of_tables()
    assert not strange, f"{program}: {sorted(strange)}"


def _program(diagnosis: Diagnosis) -> str:
    return next((str(fact.value) for fact in diagnosis.facts if fact.name == "run.program" and fact.value is not None), "")


@cache
def _general_rules(program: str) -> frozenset[str]:
    return frozenset(rule.id for rule in rules() if program not in rule.programs)


@cache
def _programs_by_name() -> dict[str, set[str]]:
    """By name that stands in the words of a remedy for one program: the programs that have it."""
    found = defaultdict(set)
    for rule in rules():
        for program, text in rule.programs.items():
            if program.endswith("_oom"):  # a scheduler's own words, beside the general ones
                continue
            for name in NAME.findall(text.en):
                found[name].add(program)
    return found


@cache
def _own_names(program: str) -> frozenset[str]:
    if program not in framework_tables.names():
        return frozenset()
    plain = {part.strip("-").replace("-", "_") for key in framework_tables.known(program) for part in (key, key.rpartition(".")[2])}
    return frozenset(plain | {f"--{name}" for name in plain} | {f"--{name.replace('_', '-')}" for name in plain})


@cache
def _settings_of_tables() -> frozenset[str]:
    return frozenset().union(*map(_own_names, framework_tables.names()))
