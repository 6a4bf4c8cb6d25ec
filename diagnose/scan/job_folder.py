"""What lies in a job's folder, and what the paths of its files say (rules/layouts.yaml)."""

from __future__ import annotations

import os
import re
import stat
from functools import cache
from typing import TYPE_CHECKING, Literal

from diagnose import rule_files
from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.record import replace
from diagnose.scan.source import Label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Kind = Literal["log", "config", "metadata", "archive", "none"]

FILES, DEEP = 20_000, 8  # names that are looked at; folders below one another
LOGS = 1024  # logs of one job
CONFIG = 256 << 10  # a config is small; what is larger is data
CONFIGS = 12  # more of them beside a log are no configs of one job

_PACKED = re.compile(r"\.(?:gz|bz2|xz|zst|zstd)$", re.IGNORECASE)
_ROTATED = re.compile(r"(?<=\.(?:log|out|err|txt))[.-](?:\d{1,3}|\d{8}(?:-\d{4,6})?)$")
_ARCHIVE = re.compile(r"\.(?:tar(?:\.\w{1,4})?|tgz|tbz2?|txz|tzst|zip)$", re.IGNORECASE)


def trouble(key: str, where: str, hint: str, **values: object) -> UserError:
    """A complaint whose sentences are in rules/phrases/folder.yaml."""
    return UserError(phrase(f"folder.{key}", **values), where, phrase(f"folder.{hint}", **values), f"folder.{key}")


def kind_of(place: str) -> Kind:
    """What a file is, by its path in the folder or archive."""
    if _ARCHIVE.search(place):
        return "archive"
    name = bare(place)
    return next((kind for pattern, kind in _files() if pattern.search(name)), "none")


def bare(place: str) -> str:
    """A path without what compression and rotation put at its end."""
    return _ROTATED.sub("", _PACKED.sub("", place.replace("\\", "/")))


def label_of(place: str) -> Label:
    """Which process wrote a file, as far as its path tells."""
    name = bare(place[-1000:])
    found: dict[str, str] = {}
    for pattern in _labels():
        match = pattern.search(name)
        for said, value in match.groupdict().items() if match else ():
            found.setdefault(said, value)
    number = {said: int(value) for said, value in found.items() if said != "host"}
    attempt = number.get("attempt")
    return Label(
        number.get("rank"), number.get("local_rank"), number.get("pid"), found.get("host", ""), None if attempt is None else attempt + 1
    )


def natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts rank_2 before rank_10."""
    return [(part.isdecimal(), int(part) if part.isdecimal() and len(part) < 20 else 0, part) for part in re.split(r"(\d+)", name[:1000])]


def older(places: Sequence[str]) -> set[str]:
    """Those places that belong to an earlier run than the latest beside it."""
    found: set[str] = set()
    for pattern in _newest():
        runs: dict[str, dict[str, list[str]]] = {}
        for place in places:
            match = pattern.search(place)
            if match:
                runs.setdefault(place[: match.start("run")], {}).setdefault(match["run"], []).append(place)
        for of_parent in runs.values():
            latest = max(of_parent, key=lambda run: run.removeprefix("offline-"))
            found.update(place for run, members in of_parent.items() if run != latest for place in members)
    return found


def walk(top: Path) -> list[tuple[str, Path]]:
    """The regular files under a folder by their path in it, in natural order. No link leads out of it.

    Raises UserError for a folder that cannot be read, or that holds more than a job leaves behind.
    """
    found: list[tuple[str, Path]] = []
    seen: set[tuple[int, int]] = set()
    names = 0
    home = top.resolve()
    for at, below, files in os.walk(top, onerror=_refuse):
        inside = os.path.relpath(at, top).replace(os.sep, "/")
        depth = 0 if inside == "." else inside.count("/") + 1
        below[:] = sorted(name for name in below if not name.startswith(".") and name != "__pycache__") if depth < DEEP else []
        names += len(files) + len(below)
        if names > FILES:
            raise trouble("too_many", str(top), "name_the_logs", most=FILES)
        for name in files:
            path = top.joinpath(inside, name)
            if _is_ours(path, home, seen):
                found.append((name if inside == "." else f"{inside}/{name}", path))
    return sorted(found, key=lambda pair: natural(pair[0]))


def _refuse(error: OSError) -> None:
    raise trouble("unreadable", str(error.filename), "check_permissions", reason=error.strerror or str(error))


def _is_ours(path: Path, home: Path, seen: set[tuple[int, int]]) -> bool:
    """Whether a path is a regular file of this folder, met for the first time."""
    try:
        about = path.stat()
        inside = not path.is_symlink() or path.resolve().is_relative_to(home)
    except (OSError, ValueError, RuntimeError):
        return not path.is_symlink()  # it is there and cannot be looked at: said when it is opened
    if not inside or not stat.S_ISREG(about.st_mode) or (about.st_dev, about.st_ino) in seen:
        return False
    seen.add((about.st_dev, about.st_ino))
    return True


def with_ranks(files: Mapping[str, tuple[Label, int | None]]) -> dict[str, Label]:
    """The labels of one folder's files, by place: torchrun numbers its logs by local rank, and ranks follow from those on one node.

    Beside each label the rank that the file's own lines name, if any: on a later node it is higher than the local one.
    """
    labels = {place: label for place, (label, _) in files.items()}
    local = {place: label.local_rank for place, label in labels.items() if label.local_rank is not None and "attempt_" in place}
    nodes = {place.rpartition("attempt_")[0] for place in local}
    above = {printed - at for place, at in local.items() if (printed := files[place][1]) is not None}
    for place, at in local.items():
        printed = files[place][1]
        if printed is None and len(nodes) == 1 and len(above) < 2:
            printed = at + next(iter(above), 0)
        labels[place] = replace(labels[place], rank=printed)
    return labels


@cache
def _files() -> list[tuple[re.Pattern[str], Kind]]:
    return [(re.compile(entry["path"]), entry["is"]) for entry in rule_files.table("layouts")["files"]]


@cache
def _labels() -> list[re.Pattern[str]]:
    return [re.compile(text) for text in rule_files.table("layouts")["labels"]]


@cache
def _newest() -> list[re.Pattern[str]]:
    return [re.compile(text) for text in rule_files.table("layouts")["newest"]]
