"""The configs of corpus/configs: each is told for its framework's, and its keys turn the knobs that they turn there."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from collected import for_each
from configs import NAMES, checked, files, wanted
from sweep import sample

from diagnose import check, rule_files


@cache
def told(name: str) -> dict[str, Any]:
    return checked(name).to_dict("en")


def plain(value: Any) -> Any:
    """A value of the report as a person writes it."""
    return (value.get("text") or value["bytes"]) if isinstance(value, dict) and "bytes" in value else value


@pytest.mark.parametrize("name", NAMES)
def test_a_config_is_read(name: str) -> None:
    want, report = wanted(name), told(name)
    said: dict[str, list[dict[str, Any]]] = {}
    for fact in report["facts"]:
        said.setdefault(fact["name"], []).append(fact)
    found = []
    framework = plain(said["train.framework"][0]["value"]) if "train.framework" in said else None
    if framework != want.get("framework"):
        found.append(f"framework: wanted {want.get('framework')}, found {framework}")
    for part, sources in (("knobs", {"config", "given", "derived"}), ("defaults", {"default"})):
        for knob, value in want.get(part, {}).items():
            fact = said.get(knob, [None])[0]
            if fact is None or plain(fact["value"]) != value:
                found.append(f"{knob}: wanted {value!r}, found {fact and plain(fact['value'])!r}")
            elif part == "defaults" and fact["witness"]["source"] not in sources:
                found.append(f"{knob}: is no default but from {fact['witness']}")
            elif part == "knobs" and fact["witness"]["source"] == "default":
                found.append(f"{knob}: is only a default")
    codes = [notice["code"] for notice in report["notices"]]
    found += [f"no notice {code}, only {codes}" for code in want.get("notices", []) if code not in codes]
    ignored = {fact["value"] for name in ("config.ignored_key", "config.unknown_key") for fact in said.get(name, [])}
    found += [f"{key} is not said to be ignored, only {sorted(ignored)}" for key in want.get("ignored", []) if key not in ignored]
    assert not found, "\n".join(found)


@for_each("name", sample(NAMES, 15))
def test_a_config_is_advised_on(name: str) -> None:
    """Without the failure of a rule."""
    found = check(files(name), **wanted(name).get("options", {}))
    assert not found.judgement.faults and found.outlook is not None


@for_each("name", NAMES)
def test_the_case_is_in_order(name: str) -> None:
    want = wanted(name)
    assert set(want) <= {"title", "framework", "options", "also", "knobs", "defaults", "notices", "ignored"}
    assert want["title"] and want.get("knobs")
    assert Path(name).parts[0] in {*rule_files.table("frameworks"), "mixed"}


def test_every_framework_has_three() -> None:
    """A table of keys that is never shown a real config is a guess."""
    tables = rule_files.table("frameworks")
    trainers = [name for name, table in tables.items() if table.get("trainer") and any("." in knob for knob in table)]
    counts = {name: sum(case.startswith(f"{name}/") for case in NAMES) for name in trainers}
    assert {name: count for name, count in counts.items() if count < 3} == {}
