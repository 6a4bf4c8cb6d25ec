"""The GitHub Action, run as a runner would run it: the summary, the outputs, the SARIF file; what users write is never a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
CASE = ROOT / "corpus" / "llamafactory-6800"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPLAIN = ACTION["runs"]["steps"][1]


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A runner's temporary folder with the command where the first step would have installed it."""
    folder = tmp_path / "oomdoctor" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    (folder / "oomdoctor").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m diagnose "$@"\n')
    (folder / "oomdoctor").chmod(0o755)
    return tmp_path


def explain(runner: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """The second step's exit status, the summary, the outputs."""
    given = {name: entry.get("default", "") for name, entry in ACTION["inputs"].items()} | inputs
    env = {name: value.replace("${{ inputs.", "").replace(" }}", "") for name, value in EXPLAIN["env"].items()}
    summary, outputs = runner / "summary.md", runner / "outputs"
    outputs.touch()
    environment = {**os.environ, "RUNNER_TEMP": str(runner), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs)}
    environment |= {name: given[key] for name, key in env.items()}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", EXPLAIN["run"]],
        cwd=CASE,
        env=environment,
        capture_output=True,
        check=False,
    )
    told = dict(line.split("=", 1) for line in outputs.read_text(encoding="utf-8").splitlines())
    return done.returncode, summary.read_text(encoding="utf-8"), told


def test_the_answer_is_in_the_summary_and_in_the_outputs(runner: Path) -> None:
    sarif = runner / "out.sarif"
    status, summary, outputs = explain(runner, log="error.log", config="qwen2vl_dpo.yaml\nds_z3_config.json", sarif=str(sarif))
    assert status == 0 and "**OUT OF MEMORY**" in summary and "<details>" in summary
    assert outputs["status"] == "oom" and outputs["headline"].startswith("GPU 3")
    assert json.loads(sarif.read_text(encoding="utf-8"))["version"] == "2.1.0"


def test_a_log_that_is_not_there_fails_the_step(runner: Path) -> None:
    status, _, outputs = explain(runner, log="no-such.log")
    assert status != 0 and outputs["status"] == ""


def test_what_users_write_is_no_command(runner: Path) -> None:
    explain(runner, log=f"error.log $(touch {runner}/hacked) `touch {runner}/hacked` ;touch {runner}/hacked")
    assert not (runner / "hacked").exists()
    assert "${{" not in EXPLAIN["run"] and "${{" not in ACTION["runs"]["steps"][0]["run"]


def test_more_options_are_passed_on(runner: Path) -> None:
    _, summary, _ = explain(runner, log="error.log", options="--gpu=A100-80GB\n--top=1", lang="zh")
    assert "显存不足" in summary
