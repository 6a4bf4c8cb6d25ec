"""Rules and grammars are found, compiled and kept, and nothing foreign is ever unpickled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT

from diagnose import disk_cache, rule_files


@pytest.fixture
def cache_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An XDG_CACHE_HOME of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(disk_cache, "private_folder", disk_cache.private_folder.__wrapped__)
    return tmp_path


def test_a_table_is_the_yaml_it_was_made_of(cache_root: Path) -> None:
    """Read twice, built and kept, it is the same, and files that changed are read again."""
    table = rule_files.table.__wrapped__
    first = table("facts")
    assert first == table("facts") == rule_files.read_yaml(ROOT / "rules" / "facts.yaml")
    assert list(cache_root.rglob("*.rules.facts.json"))


def test_what_is_kept_is_built_again_when_a_file_changes(cache_root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("one")
    nowhere = tmp_path / "nowhere"
    assert disk_cache.recall("x", source.read_bytes, [disk_cache.mark(source)], nowhere) == b"one"
    assert disk_cache.recall("x", lambda: b"not built again", [disk_cache.mark(source)], nowhere) == b"one"
    source.write_text("three")
    assert disk_cache.recall("x", source.read_bytes, [disk_cache.mark(source)], nowhere) == b"three"


def test_what_the_wheel_shipped_comes_first(cache_root: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"key\nshipped")
    assert disk_cache.recall("x", lambda: b"built", [], tmp_path) == b"shipped"


def test_the_folder_is_closed_to_others(cache_root: Path) -> None:
    folder = disk_cache.private_folder()
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700 and folder.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755])
def test_a_folder_that_others_may_write_into_is_not_used(cache_root: Path, mode: int) -> None:
    """A saved grammar is a pickle: whoever can put one there could run code."""
    (cache_root / "oomdoctor").mkdir()
    (cache_root / "oomdoctor").chmod(mode)
    assert disk_cache.private_folder() is None
    assert disk_cache.recall("x", lambda: b"built", [], cache_root / "nowhere") == b"built"


def test_a_link_in_its_place_is_not_followed(cache_root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (cache_root / "oomdoctor").symlink_to(tmp_path / "elsewhere")
    assert disk_cache.private_folder() is None


def test_a_folder_of_somebody_else_is_not_used(cache_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_cache.private_folder() is not None
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert disk_cache.private_folder() is None


def test_a_read_only_home_costs_only_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("a file, where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert disk_cache.private_folder.__wrapped__() is None


@pytest.mark.parametrize("path", sorted(path.stem for path in (ROOT / "grammars").glob("*.lark")))
def test_every_grammar_is_compiled_once(path: str, cache_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept is what was built, and reading it needs no lark."""
    build = rule_files.parser.__wrapped__
    fresh = build(path)
    monkeypatch.setitem(sys.modules, "lark", None)
    assert vars(build(path)) == vars(fresh)
    assert any(f"grammar.{path}." in str(file) for file in cache_root.rglob("*"))


#: With the package, lark takes its compile for its own; where it is not installed `re` stands in, which has the same.
WITH_REGEX = "try: import regex\nexcept ImportError: import re, sys; sys.modules['regex'] = re"
WITHOUT_REGEX = "import sys; sys.modules['regex'] = None"


@pytest.mark.parametrize("first", [WITHOUT_REGEX, WITH_REGEX])
def test_grammars_load_with_and_without_the_regex_package(first: str, tmp_path: Path) -> None:
    """Lark uses `regex` wherever it happens to be installed, and it is beside most training frameworks."""
    names = [path.stem for path in (ROOT / "grammars").glob("*.lark")]
    code = f"{first}\nimport lark\nfrom diagnose import rule_files\nfor name in {names!r}: rule_files.parser(name)"
    for _ in ("built", "loaded"):
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})


def test_the_container_is_held_to_hashes_and_runs_as_nobody() -> None:
    """What it copies and installs is in the checkout; it serves and triages, so both extras are locked."""
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    installs = [part for verb, words in steps if verb == "RUN" for part in words.split("&&") if "pip install" in part]
    assert "--require-hashes" in installs[0] and all("--no-deps" in step for step in installs[1:])
    locks = [word for word in installs[0].split() if word.startswith("locks/")]
    locked = "".join((ROOT / lock).read_text(encoding="utf-8") for lock in locks)
    assert locks and all(f"\n{name}==" in locked for name in ("duckdb", "fastapi", "mcp", "uvicorn"))
    last = max(place for place, (verb, _) in enumerate(steps) if verb == "FROM")
    user = next(words for verb, words in steps[last:] if verb == "USER")
    assert user.split(":")[0].isdigit() and int(user.split(":")[0]) > 0
    assert next(words for verb, words in steps if verb == "ENTRYPOINT") == '["oomdoctor"]'
