"""What docs/ shows of surfaces that do more than answer: `python benchmarks/talks.py triage|run|mcp|slack|feishu|python|action`.

Each starts the real thing on cases of the corpus and prints what its user sees; tests/project/test_readme.py compares.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diagnose.phrases import Lang
    from diagnose.render.markup.chat_within_limit import Platform

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = [sys.executable, "-m", "diagnose"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "COLUMNS": "80", "NO_COLOR": "1"}


def run() -> None:
    """A command that prints the log of the case and fails; what `oomdoctor run` adds on standard error."""
    with tempfile.TemporaryDirectory() as folder:
        case = Path(shutil.copytree(ROOT / "corpus" / "openrlhf-392", Path(folder) / "job"))
        train = case / "train.py"
        train.write_text("import sys; sys.stdout.write(open('error.log').read()); sys.exit(1)\n", encoding="utf-8")
        words = [*PROGRAM, "run", "--log", "train.log", "--config", "train_ppo.sh", "--", sys.executable, "train.py"]
        done = subprocess.run(words, cwd=case, env=ENVIRONMENT, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode == 1, done.stderr
        print(done.stderr, end="")


def mcp() -> None:
    """The tools as an agent sees them, and what one of them answers."""
    from mcp import Client, StdioServerParameters, stdio_client

    case = ROOT / "corpus" / "openrlhf-392"
    job = {
        "text": (case / "error.log").read_text(encoding="utf-8"),
        "configs": [{"name": "train_ppo.sh", "text": (case / "train_ppo.sh").read_text(encoding="utf-8")}],
    }

    async def talk() -> tuple[Any, Any]:
        program = StdioServerParameters(command=sys.executable, args=["-m", "diagnose", "mcp"], env=ENVIRONMENT)
        async with Client(stdio_client(program)) as client:
            return await client.list_tools(), await client.call_tool("what_if", {"changes": {"train.micro_batch_size": 1}, **job})

    listed, answered = asyncio.run(talk())
    print("tools:", ", ".join(tool.name for tool in listed.tools))
    print('what_if {"changes": {"train.micro_batch_size": 1}, "text": ..., "configs": [...]}')
    print("\n".join(part.text for part in answered.content if hasattr(part, "text")))


def slack() -> None:
    """The message that the bot sends to the thread."""
    message("slack", "en")


def feishu() -> None:
    """The words of the card."""
    message("feishu", "zh")


def message(platform: Platform, lang: Lang) -> None:
    from diagnose import explain
    from diagnose.render.markup.chat_within_limit import chat

    os.chdir(ROOT / "corpus" / "openrlhf-392")
    print(chat(explain(Path("error.log"), configs=[Path("train_ppo.sh")]), platform, lang).text)


def python() -> None:
    """What `watch` adds on standard error before the exception goes on; of a traceback in the form that all releases of Python print."""
    raised = (
        (ROOT / "corpus" / "openrlhf-392" / "error.log").read_text(encoding="utf-8").rpartition("OutOfMemoryError: ")[2].partition("\n")[0]
    )
    lines = [
        "from pathlib import Path",
        "from diagnose import watch",
        "class OutOfMemoryError(RuntimeError): pass",
        "with watch(config=Path('train_ppo.sh'), lang='en'):",
        f"    raise OutOfMemoryError({raised!r})",
    ]
    folder = ROOT / "corpus" / "openrlhf-392"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=folder,
        env={**ENVIRONMENT, "PYTHONNODEBUGRANGES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr.rstrip().endswith(raised), done.stderr
    print(done.stderr.partition("Traceback (most recent call last)")[0])


def action() -> None:
    """The summary that the GitHub Action writes: the second step, with the command where the first would have put it."""
    import yaml

    step = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"][1]
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "oomdoctor" / "bin"
        tools.mkdir(parents=True)
        (tools / "python").symlink_to(sys.executable)
        (tools / "oomdoctor").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m diagnose "$@"\n', encoding="utf-8")
        (tools / "oomdoctor").chmod(0o755)
        files = {"RUNNER_TEMP": folder, "GITHUB_STEP_SUMMARY": f"{folder}/summary", "GITHUB_OUTPUT": f"{folder}/outputs"}
        inputs = {"LOGS": "error.log", "CONFIGS": "train_ppo.sh", "OPTIONS": "", "OOM_LANG": "en", "SARIF": ""}
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=ROOT / "corpus" / "openrlhf-392",
            env={**ENVIRONMENT, **files, **inputs},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        print(Path(f"{folder}/summary").read_text(encoding="utf-8"), end="")


def triage() -> None:
    """The week of benchmarks/week.py in groups."""
    from week import lay

    with tempfile.TemporaryDirectory() as folder:
        words = [*PROGRAM, "triage", str(lay(Path(folder))), "--top", "1", "--lang", "en"]
        done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        print(done.stdout, end="")


TALKS = {"triage": triage, "run": run, "mcp": mcp, "slack": slack, "feishu": feishu, "python": python, "action": action}

if __name__ == "__main__":
    TALKS[sys.argv[1]]()
