"""Promises about the project itself: files that load, paths that exist, nothing that belongs to one machine."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

from checkout import ROOT
from collected import for_each

from diagnose import __version__, rule_files

SKIPPED = {
    ".git",
    ".venv",
    ".venvs",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    "__pycache__",
    "dist",
    "build",
    "_shipped",
}


@cache
def files() -> list[Path]:
    """Every file of the project: what git tracks or would, else everything but what is made."""
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, check=True)
        names = [ROOT / name.decode() for name in done.stdout.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path for path in ROOT.rglob("*") if not SKIPPED & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in names if path.is_file())


def text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


@for_each("path", sorted((ROOT / "rules").rglob("*.yaml")))
def test_every_rule_file_loads_and_can_be_compiled(path: Path) -> None:
    """Compiled rules are JSON: a date, say, could not be kept. (A key `true` is the text "true" there.)"""
    room = path.relative_to(ROOT / "rules").parts[0].removesuffix(".yaml")
    data = rule_files.read_yaml(path, as_text=room in rule_files.AS_TEXT)
    assert data
    assert json.loads(json.dumps(data))


def test_every_config_file_of_ours_loads() -> None:
    for name in (".pre-commit-config.yaml", ".yamllint.yaml"):
        assert rule_files.read_yaml(ROOT / name)
    assert tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["name"] == "oomdoctor"


def test_the_version_is_in_one_place() -> None:
    project = tomllib.loads(text(ROOT / "pyproject.toml"))
    assert "version" not in project["project"] and project["tool"]["hatch"]["version"]["path"] == "diagnose/version.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.?\w+)?", __version__)


def pages() -> list[Path]:
    return [path for path in files() if path.suffix == ".md" and not {"corpus", "generated"} & set(path.parts)]


@for_each("page", pages())
def test_paths_named_in_the_docs_exist(page: Path) -> None:
    """A page that names a file that is gone sends its reader astray. x stands for any name."""
    named = re.findall(r"`((?:diagnose|rules|grammars|corpus|tests|benchmarks|docs)/[\w./-]*)`", text(page))
    gone = [path for path in named if not re.search(r"\b(x|ROOM|NAME)\b", path) and not (ROOT / path).exists()]
    assert not gone


def test_the_table_of_what_goes_where_names_files_that_exist() -> None:
    """Who adds something goes by this table: every path in it exists, and file names come with their folder."""
    table = text(ROOT / "CONTRIBUTING.md").partition("## Where do I add one?")[2].partition("\nNothing else")[0]
    named = re.findall(r"`([\w.-]+/[\w./-]*|[\w-]+\.(?:py|yaml|lark|toml|json|md))`", table)
    own = {"error.log", "expected.yaml"}  # of the case that is added
    named = [path for path in named if path not in own and not re.search(r"(?:^|[/_])(?:x|ROOM|NAME)\b", path)]
    assert len(named) > 30
    assert not [path for path in named if not (ROOT / path).exists()]


def test_the_map_of_packages_names_modules_that_exist() -> None:
    """In the rows of docs/architecture.md a path is relative to the package of its row."""
    rows = re.findall(r"^\| (.+?) \|.+\| (.+?) \|$", text(ROOT / "docs" / "architecture.md"), re.MULTILINE)
    gone = []
    for packages, places in rows:
        homes = [ROOT / "diagnose" / name for name in re.findall(r"`(\w+)/`", packages)] + [ROOT / "diagnose"]
        for path in re.findall(r"`(\w+/(?:\w+)?)`", places):
            if not any((home / path).exists() or (home / f"{path}.py").exists() for home in homes):
                gone.append((packages, path))
    assert rows and not gone


@for_each("path", [path for path in files() if path.suffix in (".py", ".yaml", ".lark", ".toml") and "corpus" not in path.parts])
def test_modules_named_in_comments_exist(path: Path) -> None:
    """A comment that sends its reader to another module of ours names one that is there."""
    assert not [name for name in re.findall(r"\bdiagnose/[\w/]+\.py\b", text(path)) if not (ROOT / name).exists()]


@for_each("page", pages())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text(page), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", prose)
    assert not [link for link in links if not (page.parent / link).exists()]


#: What belongs to the machine a file was written on, or to an index of packages, never to the project. Joined here, so that
#: this file does not match itself.
FOREIGN = [
    "/" + "work/",
    "/root/" + "work",
    "." + "library",
    "shared" + "/atlas",
    "pypi" + ".org",
    "files.python" + "hosted",
    "index" + "-url",
    "extra-" + "index",
    "find-" + "links",
    "/opt/" + "py",
]
#: Of these what a log of the corpus may not name either; the rest may be its author's.
OURS = FOREIGN[:3]


def test_nothing_names_a_machine_or_a_registry() -> None:
    found = []
    for path in files():
        held, told = text(path), "corpus" in path.relative_to(ROOT).parts
        found += [f"{path.relative_to(ROOT)}: {word}" for word in (OURS if told else FOREIGN) if word in held]
    assert not found


def test_the_constraints_are_names_and_releases() -> None:
    lines = [line for line in text(ROOT / "constraints.txt").splitlines() if line and not line.startswith("#")]
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][\w.]*", line) for line in lines)


def test_the_triage_extra_brings_the_compiled_search() -> None:
    """Without it a log takes several times as long to read, and who installs `triage` has many."""
    extras = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    assert all(set(extras["fast"]) <= set(extras[extra]) for extra in ("triage", "ray", "dev"))


def test_every_dependency_is_constrained() -> None:
    project = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
    asked = [*project["dependencies"], *(name for extra in project["optional-dependencies"].values() for name in extra)]
    held = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in text(ROOT / "constraints.txt").splitlines()}
    names = {re.sub(r"[-_.]+", "-", re.split(r"[<>=!\[;]", name)[0].strip()).lower() for name in asked}
    assert names <= held


def locked(name: str) -> dict[str, str]:
    """The releases of a lock file, by normalised name."""
    lines = [line.split(" ")[0] for line in text(ROOT / "locks" / name).splitlines() if line[:1].isalnum()]
    return {re.sub(r"[-_.]+", "-", line.split("==")[0].split("[")[0]).lower(): line.split("==")[1] for line in lines}


def test_the_locks_hold_every_dependency_with_a_hash_and_the_release_of_the_constraints() -> None:
    """`make locks` was run after the last change of what is needed, or of its releases."""
    project = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
    pins = {re.sub(r"[-_.]+", "-", name).lower(): release for name, release in (
        line.split("==") for line in text(ROOT / "constraints.txt").splitlines() if not line.startswith("#"))}  # fmt: skip
    for name, wanted in (
        ("core.txt", project["dependencies"]),
        ("dev.txt", project["dependencies"] + project["optional-dependencies"]["dev"]),
    ):
        releases = locked(name)
        names = {re.sub(r"[-_.]+", "-", re.split(r"[<>=!\[;]", requirement)[0].strip()).lower() for requirement in wanted}
        assert names <= releases.keys()
        assert {package: release for package, release in releases.items() if pins.get(package, release) != release} == {}
    for path in (ROOT / "locks").iterdir():
        for block in re.split(r"^(?=[a-zA-Z])", text(path), flags=re.MULTILINE)[1:]:
            assert "--hash=sha256:" in block and "://" not in block, block.split("\n")[0]


def test_what_is_called_by_private_names_has_an_upper_bound() -> None:
    """A new major release may rename what is not documented: it is tried before it is allowed."""
    project = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
    asked = [*project["dependencies"], *(name for extra in project["optional-dependencies"].values() for name in extra)]
    for package in ("lark", "typer", "uvicorn", "mcp", "ray"):
        assert all(re.search(r"<\d", name) for name in asked if re.match(rf"{package}\b", name)), package


def test_the_licence_is_whole() -> None:
    licence = text(ROOT / "LICENSE")
    assert "Apache License" in licence and "Version 2.0, January 2004" in licence
    assert all(f"   {number}. " in licence for number in range(1, 10)) and "END OF TERMS AND CONDITIONS" in licence


def test_ci_runs_what_everybody_runs() -> None:
    run = ROOT / ".ci" / "run"
    assert run.stat().st_mode & 0o111 and "make test" in text(run)


def test_rooms_have_no_catch_all() -> None:
    """Rooms are named after the trade: a file called helpers is a drawer that everything falls into."""
    drawers = {"utils", "util", "core", "helpers", "helper", "common", "manager", "base", "misc"}
    assert not [path for path in files() if path.suffix == ".py" and path.stem in drawers]
