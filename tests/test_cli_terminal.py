"""What a good command line does beside answering: colour where it is wanted, completion in three shells, formats that make sense."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from diagnose.surfaces import speak

ENTRY = "from diagnose.surfaces.cli import main; main()"


def ran(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    return subprocess.run(
        [sys.executable, "-c", ENTRY, *words], env={**kept, "LC_ALL": "C.UTF-8", **env}, capture_output=True, text=True, check=False
    )


# -- colour


@pytest.mark.parametrize(
    ("tty", "env", "colour"),
    [
        (True, {}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"FORCE_COLOR": "0"}, False),
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "3", "TERM": "dumb"}, True),
        (False, {"FORCE_COLOR": ""}, False),
        (True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_and_for_who_asks(monkeypatch: pytest.MonkeyPatch, tty: bool, env: dict[str, str], colour: bool) -> None:
    """NO_COLOR has the last word; an empty variable is none."""
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: tty))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert speak.colourful() is colour


def test_a_program_reads_the_same_whatever_is_forced(tmp_path: Path) -> None:
    """Colour is for text alone: JSON, Markdown and the rest stay what they are."""
    (tmp_path / "error.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB.\n")
    for form in ("json", "markdown", "html", "sarif"):
        assert "\x1b" not in ran("explain", str(tmp_path / "error.log"), "--format", form, FORCE_COLOR="1").stdout
    assert "\x1b" in ran("explain", str(tmp_path / "error.log"), FORCE_COLOR="1").stdout


# -- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    left = ran(_OOMDOCTOR_COMPLETE=f"source_{shell}")
    assert left.returncode == 0 and left.stderr == "" and f"complete_{shell}" in left.stdout and "oomdoctor" in left.stdout


def test_the_option_that_people_find_prints_the_script() -> None:
    """Of the shell that it is called from; outside of one it says so."""
    left = ran("--show-completion", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "Traceback" not in left.stderr
    if bash := shutil.which("bash"):
        # the shell must stay the parent: a last command alone would take its place
        command = f'"{sys.executable}" -c "{ENTRY}" --show-completion; true'
        done = subprocess.run([bash, "-c", command], capture_output=True, text=True, check=True)
        assert "_OOMDOCTOR_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("oomdoctor exp", ["explain"]),
        ("oomdoctor explain --snap", ["--snapshot"]),
        ("oomdoctor explain --format s", ["sarif"]),
        ("oomdoctor check --gpu A100", ["A100-40GB", "A100-80GB"]),
        ("oomdoctor rules show logits-d", ["logits-dominate"]),
        ("oomdoctor bot f", ["feishu"]),
    ],
)
def test_what_was_begun_is_completed(typed: str, offered: list[str]) -> None:
    """Commands, options and their words, cards and rules; of files the shell knows more than we do."""
    left = ran(_OOMDOCTOR_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(typed.count(" ")))
    assert left.returncode == 0 and left.stdout.split() == offered


# -- formats


@pytest.mark.parametrize("form", ["html", "sarif"])
@pytest.mark.parametrize("command", ["triage", "facts"])
def test_a_format_of_one_diagnosis_is_refused_in_a_sentence(command: str, form: str, tmp_path: Path) -> None:
    """Before any work: many jobs are no page and no list of findings."""
    (tmp_path / "error.log").write_text("CUDA out of memory\n")
    left = ran(command, str(tmp_path), "--format", form)
    assert left.returncode == 2 and left.stdout == "" and len(left.stderr.splitlines()) == 1 and form in left.stderr
