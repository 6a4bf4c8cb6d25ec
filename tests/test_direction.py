"""A datum walks down the list of docs/architecture.md and never back up."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "diagnose"


def order() -> list[str]:
    """The rooms in the order that the page gives them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = re.search(r"```\n(record .*?)\n```", page, re.DOTALL)
    assert block, "docs/architecture.md lists the rooms in a block that begins with record"
    return block[1].split()


def rooms() -> list[str]:
    """The rooms that exist."""
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    return sorted(files | {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()})


def files_of(room: str) -> list[Path]:
    single = PACKAGE / f"{room}.py"
    return [single] if single.is_file() else sorted((PACKAGE / room).glob("**/*.py"))


def rooms_imported_by(file: Path) -> Iterator[str]:
    """The rooms of diagnose that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide the direction"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "diagnose" and rest:
                yield rest.split(".")[0]


@pytest.mark.parametrize("room", order())
def test_a_room_only_looks_back(room: str) -> None:
    """A module that needs a later room would make the story circular."""
    later = set(order()[order().index(room) + 1 :])
    for file in files_of(room):
        assert not later & set(rooms_imported_by(file)), f"{file.relative_to(ROOT)} imports {later & set(rooms_imported_by(file))}"


def test_every_room_is_on_the_list() -> None:
    """A room that is not on the list would escape the test above; one that is only on the list is a broken promise."""
    assert set(rooms()) == set(order())


@pytest.mark.parametrize("room", ["cluster", "surfaces"])
def test_every_module_of_a_large_room_is_on_the_page(room: str) -> None:
    """The page lists these rooms module by module; what it names of them is there, and what is there is named."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:\*)?\.py)`", page))
    files = {path.name for path in (PACKAGE / room).glob("*.py")} - {"__init__.py"}
    assert not {name for name in files if not any(fnmatch(name, each) for each in named)}
    assert not {each for each in named if not list(PACKAGE.glob(f"*/{each}"))}


def test_rooms_are_two_levels_deep() -> None:
    deep = [path for path in PACKAGE.glob("*/*/**/*.py") if "_shipped" not in path.parts and "__pycache__" not in path.parts]
    assert not deep


HEAVY = ("typer", "rich", "pydantic", "lark", "yaml", "click", "dataclasses", "inspect")


@pytest.mark.parametrize("room", ["diagnose", *(f"diagnose.{room}" for room in order() if room not in ("surfaces", "typed"))])
def test_importing_a_room_imports_nothing_heavy(room: str) -> None:
    """Start-up time is made of imports: what costs more than a room does is imported where it is used."""
    code = f"import sys, {room}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []
