"""The wheel carries rules and grammars, and works in an empty folder elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from building import copied
from checkout import ROOT

LOG = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 3 has a total capacity of 31.74 GiB of which 1.41 GiB "
    "is free. Process 1 has 30.33 GiB memory in use. Of the allocated memory 23.51 GiB is allocated by PyTorch, and 5.51 GiB is reserved "
    "by PyTorch but unallocated.\n"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources."""
    folder = copied(tmp_path_factory.mktemp("sources"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next((folder / "dist").glob("oomdoctor-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def run(installed: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_every_rule_and_grammar_is_in_the_wheel(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    for room in ("rules", "grammars"):
        for file in (ROOT / room).rglob("*.*"):
            assert f"diagnose/_shipped/{file.relative_to(ROOT).as_posix()}" in held
    compiled = ("rules.knobs", "rules.models.qwen2", "models.index", "judge.rules", "plan.remedies", "plan.constraints", "parse.words")
    assert {"diagnose/py.typed", *(f"diagnose/_shipped/compiled/{name}.json" for name in compiled)} <= held


def test_the_wheel_carries_nothing_else(wheel: Path) -> None:
    """No tests, no corpus, no caches."""
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert len(tops) == 2 and "diagnose" in tops
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "__pycache__" in name]


def test_it_reads_what_it_shipped(installed: Path, tmp_path: Path) -> None:
    """A folder called rules where it runs is a stranger's."""
    (tmp_path / "rules").mkdir()
    done = run(installed, tmp_path, "-c", "from diagnose import rule_files; print(rule_files.home()); rule_files.table('knobs')")
    assert done.stdout.strip() == str(installed / "diagnose" / "_shipped"), done.stderr
    assert not (tmp_path / "cache").exists(), "the shipped tables are compiled already"


def test_explain_works_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "error.log").write_text(LOG)
    main = "from diagnose.surfaces.cli.entry import run; run()"
    done = run(installed, tmp_path, "-c", main, "explain", "error.log", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert '"4.64 GiB"' in done.stdout
    done = run(installed, tmp_path, "-c", main, "explain", "error.log", "--format", "html")
    assert done.returncode == 0 and "<h1>" in done.stdout, done.stderr


def test_every_template_is_in_the_wheel(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    names = {file.relative_to(ROOT).as_posix() for file in (ROOT / "diagnose/render/markup/templates").iterdir()}
    assert len(names) > 10 and names <= held


def test_an_answer_names_no_file_that_is_not_installed(installed: Path, tmp_path: Path) -> None:
    """With all details: pages and tables of a checkout are shown by the command instead, which works where nothing else lies."""
    case = ROOT / "corpus" / "llamafactory-6800"
    for name in ("error.log", "qwen2vl_dpo.yaml", "ds_z3_config.json"):
        (tmp_path / name).write_bytes((case / name).read_bytes())
    main = "from diagnose.surfaces.cli.entry import run; run()"
    asked = ("explain", "error.log", "--config", "qwen2vl_dpo.yaml", "--config", "ds_z3_config.json", "--verbose", "--explain-budget")
    told = run(installed, tmp_path, "-c", main, *asked, "--explain-all").stdout
    files = set(re.findall(r"(?<![\w/.-])(?:docs|rules|diagnose|corpus|grammars|benchmarks)/[\w./-]+", told))
    assert not files and "oomdoctor rules show request-is-logits" in told
    shown = run(installed, tmp_path, "-c", main, "rules", "show", "request-is-logits")
    assert shown.returncode == 0 and "Logits" in shown.stdout, shown.stderr
