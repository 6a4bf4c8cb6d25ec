"""The GitHub Action, run as a runner would run it: the summary, the outputs, the SARIF file; what users write is never a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from building import copied
from checkout import ROOT
from sweep import SWEEP

CASE = ROOT / "corpus" / "llamafactory-6800"
ACTION: dict[str, Any] = yaml.load((ROOT / "action.yml").read_text(encoding="utf-8"), yaml.CSafeLoader)
INSTALL, EXPLAIN = ACTION["runs"]["steps"]


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A runner's temporary folder with the command where the first step would have installed it."""
    folder = tmp_path / "oomdoctor" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    (folder / "oomdoctor").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m diagnose "$@"\n')
    (folder / "oomdoctor").chmod(0o755)
    return tmp_path


def step(of: dict[str, Any], runner: Path, inputs: dict[str, str], **env: str) -> subprocess.CompletedProcess[bytes]:
    """A step of the action, run as a runner runs it."""
    given = {name: entry.get("default", "") for name, entry in ACTION["inputs"].items()} | inputs
    named = {name: given[value.replace("${{ inputs.", "").replace(" }}", "")] for name, value in of["env"].items()}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", of["run"]]
    environment = {**os.environ, "RUNNER_TEMP": str(runner), **named, **env}
    return subprocess.run(command, cwd=CASE, env=environment, capture_output=True, check=False)


def explain(runner: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """The second step's exit status, the summary, the outputs."""
    summary, outputs = runner / "summary.md", runner / "outputs"
    outputs.touch()
    done = step(EXPLAIN, runner, inputs, GITHUB_STEP_SUMMARY=str(summary), GITHUB_OUTPUT=str(outputs))
    told = dict(line.split("=", 1) for line in outputs.read_text(encoding="utf-8").splitlines())
    return done.returncode, summary.read_text(encoding="utf-8"), told


@pytest.mark.skipif(not SWEEP, reason="the tests themselves run in an environment that was installed so")
def test_it_installs_and_explains(tmp_path: Path) -> None:
    """Both steps, in folders with a blank in their names. Without an index: what the command needs is lent by this environment."""
    runner, sources = tmp_path / "runner temp", tmp_path / "a copy"
    runner.mkdir()
    sources.mkdir()
    copied(sources)
    # of the variables for options that say no, pip takes 0 for yes
    quick = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_COMPILE": "0"}
    lent = {"PYTHONPATH": sysconfig.get_path("purelib"), "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", **quick}
    done = step(INSTALL, runner, {"python": sys.executable}, **lent, GITHUB_ACTION_PATH=str(sources))
    assert done.returncode == 0, done.stderr.decode()
    installed = list((runner / "oomdoctor" / "lib").glob("python*/site-packages/diagnose/_shipped/compiled/*"))
    assert installed and (runner / "oomdoctor" / "bin" / "oomdoctor").is_file()
    summary, outputs = runner / "summary.md", runner / "outputs"
    paths = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs), "PYTHONPATH": lent["PYTHONPATH"]}
    assert step(EXPLAIN, runner, {"log": "error.log"}, **paths).returncode == 0
    assert "**OUT OF MEMORY**" in summary.read_text(encoding="utf-8") and "status=oom" in outputs.read_text(encoding="utf-8")


#: A Python of another release, as far as it can tell itself.
OLD = f"""#!/bin/sh
exec "{sys.executable}" -c 'import sys; sys.version_info = (3, 10, 13, "final", 0); exec(sys.argv[1])' "$2"
"""


def test_an_old_python_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Before an environment is made: what pip would say of it is long, and the log of a workflow is longer."""
    python = tmp_path / "python"
    python.write_text(OLD)
    python.chmod(0o755)
    done = step(INSTALL, tmp_path, {"python": str(python)}, GITHUB_ACTION_PATH=str(ROOT))
    assert done.returncode == 1 and not done.stderr and not (tmp_path / "oomdoctor").exists()
    (line,) = done.stdout.decode().splitlines()
    assert line.startswith("::error::") and "needs Python 3.11 or newer, and this is 3.10;" in line


#: A Python that only says what it was told: an environment holds another of its kind.
TELLTALE = """#!/bin/sh
if [ "$1" = -c ]; then exit; fi
printf '%s\\n' "$@" >> "$RUNNER_TEMP/told"
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
"""


@pytest.mark.parametrize("version", ["", "oomdoctor==0.1.0", "a path/with a blank"])
def test_what_is_installed_is_what_was_named(version: str, tmp_path: Path) -> None:
    """As one word; where nothing was named, the copy that the action came in."""
    python = tmp_path / "python"
    python.write_text(TELLTALE)
    python.chmod(0o755)
    done = step(INSTALL, tmp_path, {"python": str(python), "version": version}, GITHUB_ACTION_PATH="/the action")
    assert done.returncode == 0, done.stderr.decode()
    told = (tmp_path / "told").read_text(encoding="utf-8").splitlines()
    assert told[:3] == ["-m", "venv", str(tmp_path / "oomdoctor")]
    assert told[3:6] == ["-m", "pip", "install"] and told[-1] == (version or "/the action")


def test_the_answer_is_in_the_summary_and_in_the_outputs(runner: Path) -> None:
    sarif = runner / "out.sarif"
    status, summary, outputs = explain(runner, log="error.log", config="qwen2vl_dpo.yaml\nds_z3_config.json", sarif=str(sarif))
    assert status == 0 and "**OUT OF MEMORY**" in summary and "<details>" in summary
    assert outputs["status"] == "oom" and outputs["headline"].startswith("GPUs 3 and 6")
    assert json.loads(sarif.read_text(encoding="utf-8"))["version"] == "2.1.0"


def test_a_log_that_is_not_there_fails_the_step(runner: Path) -> None:
    status, _, outputs = explain(runner, log="no-such.log")
    assert status != 0 and outputs["status"] == ""


def test_what_users_write_is_no_command(runner: Path) -> None:
    explain(runner, log=f"error.log $(touch {runner}/hacked) `touch {runner}/hacked` ;touch {runner}/hacked")
    assert not (runner / "hacked").exists()
    assert "${{" not in EXPLAIN["run"] and "${{" not in INSTALL["run"]


def test_more_options_are_passed_on(runner: Path) -> None:
    _, summary, _ = explain(runner, log="error.log", options="--gpu=A100-80GB\n--top=1", lang="zh")
    assert "显存不足" in summary
