"""A Python that is too old for the package is told so in one sentence, by whatever asks the build backend first."""

from __future__ import annotations

import ast
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from building import copied
from checkout import ROOT

BACKEND = ROOT / "build_backend.py"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The build backend as a Python 3.9 sees it."""
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    return runpy.run_path(str(BACKEND))


def test_every_python_3_can_read_the_backend() -> None:
    ast.parse(BACKEND.read_text(encoding="utf-8"), feature_version=(3, 4))


@pytest.mark.parametrize("hook", ["prepare_metadata_for_build_wheel", "prepare_metadata_for_build_editable"])
def test_pip_is_told_which_python_is_needed(hook: str, backend: dict[str, Any], tmp_path: Path) -> None:
    """pip compares Requires-Python of the metadata with its own Python, and says in its words that they differ."""
    metadata = (tmp_path / backend[hook](str(tmp_path)) / "METADATA").read_text(encoding="utf-8")
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert f"Name: oomdoctor\nVersion: 0\nRequires-Python: {required}\n" in metadata


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable", "build_sdist"])
def test_other_builders_end_in_a_sentence(hook: str, backend: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match=r"^oomdoctor needs Python 3\.11 or newer, and this is 3\.9\.$"):
        backend[hook]("dist")


def old_pythons() -> list[str]:
    """Pythons of this machine below 3.11 that have a pip which knows backends in the tree (20.0)."""
    candidates = [shutil.which(f"python3.{minor}") or "" for minor in (8, 9, 10)]
    candidates += [str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.[89]*/bin/python"))]
    candidates += [str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.10*/bin/python"))]
    check = "import sys, pip; sys.exit(not ((3, 8) <= sys.version_info < (3, 11) and int(pip.__version__.split('.')[0]) >= 20))"
    return [path for path in candidates if path and subprocess.run([path, "-c", check], capture_output=True, check=False).returncode == 0]


def test_pip_of_an_old_python_ends_in_one_sentence(tmp_path: Path) -> None:
    """The whole way, without an index: nothing is fetched to be refused."""
    pythons = old_pythons()
    if not pythons:
        pytest.skip("no Python from 3.8 to 3.10 with pip is at hand")
    copied(tmp_path)
    command = [pythons[-1], "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--target", "installed", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("WARNING")]
    assert done.returncode == 1
    assert re.fullmatch(r"ERROR: Package '?oomdoctor'? requires a different Python: 3\.\d+\.\d+ not in '>=3\.11'", line)
