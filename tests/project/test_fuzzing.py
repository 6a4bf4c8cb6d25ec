"""The fuzzer finds what it is there for, and what it once found stays mended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import campaign
import pytest
from collected import for_each
from fuzz_inputs import CARRIERS, Case, make

from diagnose.pipeline import explain as diagnose_case


@for_each("folder", sorted(campaign.SEEDS.iterdir()) if campaign.SEEDS.is_dir() else [])
def test_what_once_failed_is_answered(folder: Path) -> None:
    assert campaign.run_case(campaign.load_seed(folder)) == ""


def test_a_number_always_makes_the_same_case_and_every_carrier_comes() -> None:
    cases = [make(number) for number in range(120)]
    assert {case.carrier for case in cases} == set(CARRIERS)
    assert [make(case.seed).logs for case in cases[:5]] == [case.logs for case in cases[:5]]


@pytest.mark.parametrize("fault", ["an exception", "slowness"])
def test_a_mistake_is_found_and_made_small(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that fails at one word: the word is what is left of the input."""

    def explain(logs: Any, **named: Any) -> Any:
        if any(b"hello" in log for log in logs):
            if fault == "slowness":
                monkeypatch.setattr(campaign, "MAX_SECONDS", -1.0)
            else:
                raise KeyError("hello")
        else:
            monkeypatch.setattr(campaign, "MAX_SECONDS", 60.0)
        return diagnose_case(logs, **named)

    monkeypatch.setattr(campaign, "explain", explain)
    case = Case(0, "log", [b"\n".join([b"x"] * 20 + [b"hello"] + [b"y"] * 20), b"other"])
    small = campaign.shrink(case)
    assert small.logs == [b"hello"] and campaign.run_case(small)
