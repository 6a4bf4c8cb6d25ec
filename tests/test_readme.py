"""The README shows what the program prints: every transcript is run and compared; `make accept` rewrites them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"

#: What a transcript may run; talks are of surfaces that do not answer on standard output.
PROGRAMS = {"oomdoctor": [sys.executable, "-m", "diagnose"], "grep": ["grep"], "talks": [sys.executable, "benchmarks/talks.py"]}

#: <!-- in FOLDER: COMMAND [lines A-B] --> and the fenced block that it explains.
TRANSCRIPT = re.compile(
    r"<!-- in (?P<folder>\S+): (?P<command>[^\n]*?)(?: \[(?P<part>[^\]]+)\])? -->\n(?P<fence>`{3,})(?P<kind>\w*)\n(?P<shown>.*?)(?P=fence)",
    re.DOTALL,
)


def printed(folder: str, command: str) -> list[str]:
    """What a command prints in a terminal of 80 columns; a word starting with `<` is standard input."""
    words = shlex.split(command)
    stdin = next((word[1:] for word in words if word.startswith("<")), None)
    words = [word for word in words if not word.startswith("<")]
    assert words[0] in PROGRAMS, "nothing else is run"
    program = PROGRAMS[words[0]]
    env = {**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    given = (ROOT / folder / stdin).read_text(encoding="utf-8") if stdin else ""
    done = subprocess.run(
        [*program, *words[1:]], cwd=ROOT / folder, env=env, input=given, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.stdout, done.stderr
    return done.stdout.rstrip("\n").split("\n")


def renewed(match: re.Match[str]) -> str:
    lines = printed(match["folder"], match["command"])
    if match["part"] == "patch":
        lines = lines[next(number for number, line in enumerate(lines) if line.startswith("--- ")) :]
    elif match["part"]:
        first, last = match["part"].removeprefix("lines ").split("-")
        lines = lines[int(first) - 1 : int(last)]
    head = match[0].split("```", 1)[0]
    return f"{head}{match['fence']}{match['kind']}\n" + "\n".join(line.rstrip() for line in lines) + f"\n{match['fence']}"


def test_transcripts_are_what_the_program_prints(request: pytest.FixtureRequest) -> None:
    """A change of the output that the README does not show yet."""
    text = README.read_text(encoding="utf-8")
    assert len(TRANSCRIPT.findall(text)) >= 3
    now = TRANSCRIPT.sub(renewed, text)
    if request.config.getoption("update_snapshots", default=False):
        README.write_text(now, encoding="utf-8")
    else:
        assert text == now, "run `make accept` and read the difference"


def test_pictures_are_there_and_small() -> None:
    """benchmarks/pictures.py makes them; a clone should not carry megabytes of them."""
    pictures = re.findall(r"!\[[^\]]+\]\((docs/images/[^)]+)\)", README.read_text(encoding="utf-8"))
    assert len(pictures) == 3
    assert all(0 < (ROOT / picture).stat().st_size <= 200_000 for picture in pictures)


def test_every_extra_that_is_named_exists() -> None:
    """Who types the install command of a surface gets that surface."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    pages = [README, ROOT / "docs" / "surfaces.md"]
    named = {
        name for page in pages for told in re.findall(r"(?:oomdoctor|\.)\[([\w,]+)\]", page.read_text("utf-8")) for name in told.split(",")
    }
    assert {"serve", "mcp", "slack", "feishu"} <= named <= set(extras)


def test_first_commands_are_the_two_that_everybody_needs() -> None:
    """A stranger finds `make demo` and `make test` before anything else."""
    blocks = re.findall(r"```bash\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    words = [line.split("#")[0].strip() for line in blocks[0].strip().splitlines()]
    assert words == ["make demo", "make test"]
