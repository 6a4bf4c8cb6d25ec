"""The README shows what the program prints: every transcript is run and compared; `make accept` rewrites them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"

#: <!-- in FOLDER: COMMAND [lines A-B] --> and the fenced block that it explains.
TRANSCRIPT = re.compile(
    r"<!-- in (?P<folder>\S+): (?P<command>[^\n]*?)(?: \[(?P<part>[^\]]+)\])? -->\n```(?P<kind>\w*)\n(?P<shown>.*?)```", re.DOTALL
)


def printed(folder: str, command: str) -> list[str]:
    """What a command prints in a terminal of 80 columns; a word starting with `<` is standard input."""
    words = shlex.split(command)
    stdin = next((word[1:] for word in words if word.startswith("<")), None)
    words = [word for word in words if not word.startswith("<")]
    assert words[0] in ("oomdoctor", "grep"), "nothing else is run"
    program = [sys.executable, "-m", "diagnose"] if words[0] == "oomdoctor" else ["grep"]
    env = {**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)}
    given = (ROOT / folder / stdin).read_text(encoding="utf-8") if stdin else ""
    done = subprocess.run(
        [*program, *words[1:]], cwd=ROOT / folder, env=env, input=given, capture_output=True, text=True, encoding="utf-8", check=False
    )
    return done.stdout.rstrip("\n").split("\n")


def renewed(match: re.Match[str]) -> str:
    lines = printed(match["folder"], match["command"])
    if match["part"] == "patch":
        lines = lines[next(number for number, line in enumerate(lines) if line.startswith("--- ")) :]
    elif match["part"]:
        first, last = match["part"].removeprefix("lines ").split("-")
        lines = lines[int(first) - 1 : int(last)]
    head = match[0].split("```", 1)[0]
    return f"{head}```{match['kind']}\n" + "\n".join(line.rstrip() for line in lines) + "\n```"


def test_transcripts_are_what_the_program_prints(request: pytest.FixtureRequest) -> None:
    """A change of the output that the README does not show yet."""
    text = README.read_text(encoding="utf-8")
    assert len(TRANSCRIPT.findall(text)) >= 3
    now = TRANSCRIPT.sub(renewed, text)
    if request.config.getoption("update_snapshots", default=False):
        README.write_text(now, encoding="utf-8")
    else:
        assert text == now, "run `make accept` and read the difference"


def test_first_commands_are_the_two_that_everybody_needs() -> None:
    """A stranger finds `make demo` and `make test` before anything else."""
    blocks = re.findall(r"```bash\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    words = [line.split("#")[0].strip() for line in blocks[0].strip().splitlines()]
    assert words == ["make demo", "make test"]
