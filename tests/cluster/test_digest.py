"""What is kept of a diagnosis says the same as the report does, in both languages, in little room and little time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from typing import Any

from cases import CORPUS, diagnosed, folders, report
from collected import for_each
from pace import within
from sweep import sample

from diagnose.cluster.store import digests
from diagnose.cluster.store.group_fingerprint import parts

CASES = folders()


@for_each("case", sample(CASES, 120))
def test_it_says_what_the_report_says(case: str) -> None:
    """Status, figures, causes, remedies and plan, each as the report of the contract has it; of configs and logs the base names."""
    kept, told = digests.read(digests.digest(diagnosed(case))), report(case)
    assert [kept[key] for key in ("status", "family", "phase")] == [told["verdict"][key] for key in ("status", "family", "phase")]
    assert kept["headline"] == {"en": told["verdict"]["headline"], "zh": report(case, "zh")["verdict"]["headline"]}
    for root in [] if told["verdict"]["event"] is None else [told["events"][told["verdict"]["event"]]]:
        for name in digests.FIGURES:
            assert kept["event"][name] == (root[name] and root[name]["bytes"])
    causes = [(cause["id"], cause["rule"], cause["certainty"], cause["also_true"]) for cause in told["causes"]]
    assert [(each["cause"], each["rule"], each["certainty"], each["also_true"]) for each in kept["causes"]] == causes[: digests.CAUSES]
    known = {(remedy["id"], remedy["rule"], remedy["fits"]) for remedy in told["remedies"]}
    assert {(each["remedy"], each["rule"], each["fits"]) for each in kept["remedies"]} <= known
    if told["plan"] is None or not told["plan"]["steps"]:
        assert kept["plan"] is None
        return
    assert kept["plan"]["steps"] == told["plan"]["steps"] and kept["plan"]["fits"] == told["plan"]["fits"]
    assert {each["remedy"] for each in kept["remedies"] if each["planned"]} == {step for step in told["plan"]["steps"] if step in
                                                                              {remedy["id"] for remedy in told["remedies"]}}  # fmt: skip
    edits = [(each["key"], each["from"], each["to"]) for each in told["plan"]["edits"]]
    assert [(each["key"], each["from"], each["to"]) for each in kept["plan"]["edits"]] == edits[: digests.EDITS]


@for_each("case", sample(CASES, 120))
def test_nothing_in_it_belongs_to_one_job(case: str) -> None:
    """A digest answers other jobs too: no folder of this one is named, and the parts are those of the fingerprint."""
    text = digests.digest(diagnosed(case))
    assert str(CORPUS) not in text
    found = parts(diagnosed(case))
    assert digests.read(text)["parts"] == (None if found is None else found._asdict())


def sentences(value: Any) -> Iterator[dict[str, str]]:
    if isinstance(value, dict):
        if set(value) == {"en", "zh"}:
            yield value
        for held in value.values():
            yield from sentences(held)
    elif isinstance(value, list):
        for held in value:
            yield from sentences(held)


def test_every_sentence_is_there_in_both_languages() -> None:
    told = [each for case in CASES for each in sentences(digests.read(digests.digest(diagnosed(case))))]
    assert len(told) > 8 * len(CASES)
    assert all(bool(each["en"]) == bool(each["zh"]) for each in told)


def test_it_is_small_and_quickly_made() -> None:
    """Some KB each: a database of a million failures must stay a file that one can copy. Well under a millisecond each."""
    failures = [diagnosed(case) for case in CASES if diagnosed(case).root is not None]
    sizes = [len(digests.digest(each).encode()) for each in failures]
    assert median(sizes) < 6 << 10 and max(sizes) < 10 << 10
    with within(0.001 * len(failures)):
        for each in failures:
            digests.digest(each)


def test_it_is_plain_json() -> None:
    text = digests.digest(diagnosed("llamafactory-6800"))
    assert json.loads(text)["version"] == digests.VERSION and "\n" not in text
