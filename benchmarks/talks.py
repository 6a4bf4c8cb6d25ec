"""What the README shows of surfaces that do not answer on standard output: `python benchmarks/talks.py run|mcp|slack`.

Each starts the real thing on a case of the corpus and prints what its user sees; tests/test_readme.py compares.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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
    from diagnose import explain
    from diagnose.render.chat import chat

    os.chdir(ROOT / "corpus" / "openrlhf-392")
    print(chat(explain(Path("error.log"), configs=[Path("train_ppo.sh")]), "slack", "en").text)


TALKS = {"run": run, "mcp": mcp, "slack": slack}

if __name__ == "__main__":
    TALKS[sys.argv[1]]()
