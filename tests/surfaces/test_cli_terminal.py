"""What a good command line does beside answering: colour where it is wanted, completion in three shells, formats that make sense."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from checkout import ROOT
from collected import for_each
from forked import ENTRY, forked
from terminals import Terminal

from diagnose.render.parts import view


def ran(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    return forked(ENTRY, *words, cwd=ROOT, env={**kept, "LC_ALL": "C.UTF-8", **env})


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
    out: Any = SimpleNamespace(isatty=lambda: tty)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert view.colourful(out) is colour


def test_a_program_reads_the_same_whatever_is_forced(tmp_path: Path) -> None:
    """Colour is for text alone: JSON, Markdown and the rest stay what they are."""
    (tmp_path / "error.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB.\n")
    for form in ("json", "markdown", "html", "sarif"):
        assert "\x1b" not in ran("explain", str(tmp_path / "error.log"), "--format", form, FORCE_COLOR="1").stdout
    assert "\x1b" in ran("explain", str(tmp_path / "error.log"), FORCE_COLOR="1").stdout


# -- progress


def test_long_reading_shows_how_far_it_is_and_leaves_no_trace() -> None:
    """A pipe that takes its time: from the second second on a line on the terminal, erased before the answer; without one nothing."""
    import pty

    terminal, end = pty.openpty()
    for errors in (end, subprocess.PIPE):
        words = [sys.executable, "-c", ENTRY, "explain", "-", "--lang", "en"]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, "TERM": "xterm"}
        ) as job:
            assert job.stdin is not None and job.stdout is not None
            job.stdin.write(b"step\n" * 1_000_000)
            job.stdin.flush()
            seen = b""
            if errors == end:
                while not re.search(rb"reading: [45]\.\d+ MiB, \d s", seen):
                    seen += os.read(terminal, 4096)
            else:
                time.sleep(2.5)
            job.stdin.write(b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB.\n")
            job.stdin.close()
            assert job.stdout.read().startswith(b"OUT OF MEMORY (-:1000001)\n")
            if job.stderr is not None:
                assert job.stderr.read() == b""
        if errors == end:
            os.close(end)
            while not seen.endswith(b"\r\x1b[K"):
                seen += os.read(terminal, 4096)


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


@for_each(
    "typed, offered",
    [
        ("oomdoctor exp", ["explain"]),
        ("oomdoctor explain --snap", ["--snapshot"]),
        ("oomdoctor explain --format s", ["sarif"]),
        ("oomdoctor check --gpu A100", ["A100-40GB", "A100-80GB"]),
        ("oomdoctor explain --set train.micro", ["train.micro_batch_size="]),
        ("oomdoctor rules show logits-d", ["logits-dominate"]),
        ("oomdoctor bot f", ["feishu"]),
    ],
)
def test_what_was_begun_is_completed(typed: str, offered: list[str]) -> None:
    """Commands, options and their words, cards and rules; of files the shell knows more than we do."""
    left = ran(_OOMDOCTOR_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(typed.count(" ")))
    assert left.returncode == 0 and left.stdout.split() == offered


@pytest.mark.parametrize("typed", ["oomdoctor explan --top", "oomdoctor explain --top many --form", "oomdoctor bot irc --http"])
def test_a_mistake_is_not_told_while_somebody_types(typed: str) -> None:
    """A sentence would stand in the middle of the line."""
    left = ran(_OOMDOCTOR_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(typed.count(" ")))
    assert (left.returncode, left.stderr) == (0, "")


#: How a shell is started without its user's own settings, and what makes it complete our command.
SHELLS = {
    "bash": (["bash", "--norc", "-i"], 'eval "$(_OOMDOCTOR_COMPLETE=source_bash oomdoctor)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u -D; eval "$(_OOMDOCTOR_COMPLETE=source_zsh oomdoctor)"'),
    "fish": (["fish", "--no-config", "-i"], "_OOMDOCTOR_COMPLETE=source_fish oomdoctor | source"),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("typed", "rest"), [("rules show logits-d", b"ominate"), ("explain trai", b"n.log")], ids=["rule", "file"])
def test_the_key_completes_in_a_real_shell(shell: str, typed: str, rest: bytes, tmp_path: Path) -> None:
    """What was typed is finished on the terminal, where that shell is installed; files by the shell itself."""
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    words, setup = SHELLS[shell]
    (tmp_path / "train.log").touch()
    (tmp_path / "oomdoctor").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{ENTRY}" "$@"\n')
    (tmp_path / "oomdoctor").chmod(0o755)
    pid, master = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        path = f"{tmp_path}:{os.environ['PATH']}"
        os.execvpe(words[0], words, {**os.environ, "HOME": str(tmp_path), "PATH": path, "TERM": "dumb", "LC_ALL": "C.UTF-8"})
    shown = Terminal(master, pid)
    try:
        os.write(master, f"{setup}; echo re''ady\n".encode())
        shown.until(b"ready\r\n")
        os.write(master, f"oomdoctor {typed}\t".encode())
        shown.until(rest)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)


# -- formats


@pytest.mark.parametrize(("command", "form"), [("triage", "sarif"), ("facts", "html"), ("facts", "sarif")])
def test_a_format_of_one_diagnosis_is_refused_in_a_sentence(command: str, form: str, tmp_path: Path) -> None:
    """Before any work: many jobs are no list of findings, and facts no page."""
    (tmp_path / "error.log").write_text("CUDA out of memory\n")
    left = ran(command, str(tmp_path), "--format", form)
    assert left.returncode == 2 and left.stdout == "" and len(left.stderr.splitlines()) == 1 and form in left.stderr
