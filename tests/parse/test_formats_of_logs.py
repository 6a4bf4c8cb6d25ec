"""The logs of corpus/formats, one per message format, wrapper and layout: what is read of them is what stands in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from cases import CORPUS, without_advice
from collected import for_each

from diagnose import rule_files
from diagnose.pipeline import explain
from diagnose.surfaces.terminal import path_arguments

FORMATS = CORPUS / "formats"
NAMES = sorted(path.parent.name for path in FORMATS.glob("*/expected.yaml"))

#: What `expect` may say (docs/corpus.md).
EXPECTATIONS = {"status", "family", "phase", "gpu", "rank", "events", "facts", "notices", "headline"}


@cache
def wanted(name: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.load((FORMATS / name / "expected.yaml").read_bytes(), yaml.CSafeLoader)
    return data


@cache
def told(name: str) -> dict[str, Any]:
    """The report on a case, given as a person would on the command line."""
    folder, want = FORMATS / name, wanted(name)
    logs = path_arguments.logs([str(folder / log) for log in want.get("logs", ["error.log"])])
    configs = [folder / config for config in want.get("configs", [])]
    with without_advice():
        return explain(logs, configs=configs, **want.get("options", {})).to_dict("en")


def shown(value: Any) -> Any:
    """A value of the report as a person writes it: a size as it was printed, else as its bytes."""
    if isinstance(value, dict) and "bytes" in value:
        return value.get("text") or value["bytes"]
    if isinstance(value, list):
        return [shown(one) for one in value]
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    return value


def differs(want: dict[str, Any], event: dict[str, Any]) -> list[str]:
    """Where an event is not what is wanted of it. `line` is that of its first evidence, `members` are compared the same way."""
    found = []
    for key, value in want.items():
        if key == "members":
            found += [line for one, member in zip(value, event["members"], strict=True) for line in differs(one, member)]
            continue
        if key == "function":
            has = event["frames"][-1]["function"] if event["frames"] else None
        else:
            has = event["evidence"][0]["line"] if key == "line" else shown(event[key])
        if has != value:
            found.append(f"{key}: wanted {value!r}, found {has!r}")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_format_is_read(name: str) -> None:
    want, report = wanted(name)["expect"], told(name)
    found = []
    root = report["verdict"]["event"]
    of_root = {} if root is None else report["events"][root]
    for key in ("status", "family", "phase"):
        if key in want and report["verdict"][key] != want[key]:
            found.append(f"{key}: wanted {want[key]!r}, found {report['verdict'][key]!r}")
    found += differs({key: want[key] for key in ("gpu", "rank") if key in want}, of_root) if of_root else []
    if "events" in want:
        if len(want["events"]) != len(report["events"]):
            kinds = [(one["family"], one["evidence"][0]["line"]) for one in report["events"]]
            found.append(f"wanted {len(want['events'])} events, found {kinds}")
        else:
            for number, (one, event) in enumerate(zip(want["events"], report["events"], strict=True)):
                found += [f"event {number}, {line}" for line in differs(one, event)]
    facts: dict[str, Any] = {}
    for fact in report["facts"]:
        facts.setdefault(fact["name"], shown(fact["value"]))
    found += [
        f"{key}: wanted {value!r}, found {facts.get(key)!r}" for key, value in want.get("facts", {}).items() if facts.get(key) != value
    ]
    codes = [notice["code"] for notice in report["notices"]]
    found += [f"no notice {code}, only {codes}" for code in want.get("notices", []) if code not in codes]
    if "headline" in want and want["headline"] not in report["verdict"]["headline"]:
        found.append(f"headline: {report['verdict']['headline']}")
    assert not found, "\n".join(found)


@for_each("name", NAMES)
def test_evidence_is_where_it_says(name: str) -> None:
    """Every line that an event or a fact of a plain log quotes is that line."""
    lines: dict[str, list[str]] = {}
    for one in told(name)["inputs"]:
        path = Path(one["name"])
        if path.is_file() and one["kind"] == "log" and one["encoding"] == "utf-8" and path.suffix in (".log", ".out", ".err", ".txt"):
            lines[one["name"]] = path.read_bytes().decode("utf-8", "replace").split("\n")
    for event in told(name)["events"]:
        for witness in event["evidence"]:
            if witness["source"] in lines:
                assert witness["text"].rstrip("\r") in lines[witness["source"]][witness["line"] - 1]


@for_each("name", NAMES)
def test_the_case_is_in_order(name: str) -> None:
    """It says what it shows, in words of the vocabulary."""
    want = wanted(name)
    assert set(want) <= {"title", "logs", "configs", "options", "expect"} and want["title"]
    assert set(want["expect"]) <= EXPECTATIONS and "status" in want["expect"]
    vocabulary = rule_files.table("vocabulary")
    assert want["expect"].get("family", "other") in vocabulary["family"]
    assert want["expect"].get("phase", "unknown") in vocabulary["phase"]
