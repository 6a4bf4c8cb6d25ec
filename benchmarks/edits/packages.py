"""Fetch the published packages that judge our edits, without what they depend on, and unpack what declares their options.

    python benchmarks/edits/packages.py [FRAMEWORK...]

They come through pip into .venvs/edits, which is ignored; nothing of them is run. Packages without wheels are fetched as sources.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from diagnose.units import Version

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".venvs" / "edits"
LIST = Path(__file__).with_name("packages.yaml")

#: Files that may declare options, or that modules read when they are imported.
ENDINGS = (".py", ".yaml", ".yml", ".toml", ".json", "version/version", "launcher/src/main.rs", "router/src/main.rs", "common/arg.cpp")


@cache
def listed() -> Mapping[str, Mapping[str, Any]]:
    data: Mapping[str, Mapping[str, Any]] = yaml.safe_load(LIST.read_text())
    return data


def is_recorded(name: str, release: str) -> bool:
    """Whether rules/declared holds what a release declares; the others only judge."""
    first = listed()[name].get("recorded", "0")
    return first is not False and Version(str(first)) <= Version(release)


def entries_at(name: str, release: str) -> list[str]:
    """The entry points that a release has."""
    return [
        entry
        for entry, said in listed()[name]["entries"].items()
        if Version(str(said.get("since", "0"))) <= Version(release)
        and ("until" not in said or Version(release) <= Version(str(said["until"])))
    ]


def wanted(name: str) -> Iterator[tuple[str, str, bool | str]]:
    """(package, release, whether from its sources or which repository) of a framework, and of what stands beside it."""
    entry = listed()[name]
    for release in () if entry.get("installed") else entry["releases"]:
        repository = entry.get("repository")
        place = repository.get(str(release)) if isinstance(repository, Mapping) else repository
        yield entry.get("package", name), str(release), place or entry.get("source", False)
    for package, releases in (*entry.get("beside", {}).items(), *entry.get("with", {}).items()):
        yield from ((package, str(release), False) for release in releases)


def tree(package: str, release: str) -> Path:
    return FOLDER / f"{package}-{release}"


def fetch(package: str, release: str, source: bool | str) -> str:
    """Fetch and unpack one release; what went wrong, else nothing."""
    target = tree(package, release)
    if target.is_dir():
        return ""
    if isinstance(source, str):
        return _clone(source.format(release), target)
    downloads = FOLDER / "downloads" / f"{package}-{release}"
    downloads.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python", "--dest"]
    command += [str(downloads), f"{package}=={release}"]
    if source:  # building its metadata needs torch and setuptools in this environment; its own build would compile
        command += ["--no-binary", ":all:", "--no-build-isolation"]
    environment = {
        **os.environ,
        "VLLM_TARGET_DEVICE": "empty",
        "SETUPTOOLS_SCM_PRETEND_VERSION": release,
        "VLLM_VERSION_OVERRIDE": release,
        "DS_BUILD_OPS": "0",
    }
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    archives = sorted(path for path in downloads.iterdir() if path.suffix in (".whl", ".gz", ".zip"))
    if not archives and source:  # of some releases only wheels are published
        return fetch(package, release, source=False)
    if not archives:
        return run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "nothing came"
    unpack(archives[0], target)
    return ""


def _clone(source: str, target: Path) -> str:
    """What is no package: `owner/name@tag` of a public repository (or a branch, a commit), or `owner/name@tag:folder` of it."""
    repository, _, place = source.partition("@")
    tag, _, folder = place.partition(":")
    archive = FOLDER / "downloads" / f"{target.name}.git"
    git = ["git", "-C", str(archive)]
    if not archive.is_dir():
        subprocess.run(["git", "init", "--quiet", "--bare", str(archive)], check=True)
        command = [*git, "fetch", "--quiet", "--depth", "1", f"https://github.com/{repository}", tag]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            shutil.rmtree(archive)
            return (run.stderr.strip().splitlines() or ["nothing came"])[-1]
        subprocess.run([*git, "update-ref", f"refs/heads/{tag}", "FETCH_HEAD"], check=True)
    listed_names = subprocess.run([*git, "ls-tree", "-r", "-z", "--name-only", tag], capture_output=True, text=True, check=True).stdout
    names = [name for name in listed_names.split("\0") if name.startswith(folder) and name.endswith(ENDINGS) and not name.endswith(".json")]
    files = subprocess.run([*git, "archive", "--format=tar", f"--prefix={target.name}/", tag, *names], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(files.stdout)) as sources:
        _keep_all(sources, target, f"{folder}/" if folder else "")
    return ""


def _keep_all(sources: tarfile.TarFile, target: Path, folder: str = "") -> None:
    for member in sources:
        inner = member.name.partition("/")[2].removeprefix(folder)
        opened = sources.extractfile(member) if member.isfile() and inner.endswith(ENDINGS) else None
        if opened is not None:
            keep(target, inner, opened.read())


def unpack(archive: Path, target: Path) -> None:
    """The text files of a wheel or of sources, without the folder that sources stand in."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(ENDINGS):
                    keep(target, name, wheel.read(name))
        return
    with tarfile.open(archive) as sources:
        _keep_all(sources, target)


def keep(target: Path, name: str, content: bytes) -> None:
    name = re.sub(r"^[^/]+\.data/purelib/", "", name)
    parts = PurePosixPath(name).parts
    if not PurePosixPath(name).is_absolute() and ".." not in parts and "tests" not in parts[:2]:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main() -> int:
    failed = 0
    for name in sys.argv[1:] or listed():
        for package, release, source in wanted(name):
            said = fetch(package, release, source)
            failed += bool(said)
            if said:
                print(f"{package} {release}: {said}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
