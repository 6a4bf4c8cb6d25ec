"""The files of a job's folder, and what their paths tell: kind, rank, attempt (rules/layouts.yaml)."""

from __future__ import annotations

import os
import re
import stat
from functools import cache
from typing import TYPE_CHECKING, Literal

from diagnose import rule_files
from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.scan.source import Label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Kind = Literal["log", "config", "metadata", "archive", "none"]

FILES, DEEP = 20_000, 8  # names listed at most; levels of folders
LOGS = 1024  # logs of one job
CONFIG = 256 << 10  # bytes; a larger file is data, no config
CONFIGS = 12  # more configs beside a log belong to several jobs

# texts, compiled on first use: most diagnoses read one file and need none
_PACKED = r"(?i)\.(?:gz|bz2|xz|zst|zstd)$"
_ROTATED = r"(?<=\.(?:log|out|err|txt))[.-](?:\d{1,3}|\d{8}(?:-\d{4,6})?)$"
_ARCHIVE = r"(?i)\.(?:tar(?:\.\w{1,4})?|tgz|tbz2?|txz|tzst|zip)$"


def folder_error(key: str, where: str, hint: str, **values: object) -> UserError:
    """A UserError with the sentences `key` and `hint` of rules/phrases/folder.yaml."""
    return UserError(phrase(f"folder.{key}", **values), where, phrase(f"folder.{hint}", **values), f"folder.{key}")


def kind_of(path: str) -> Kind:
    """Classify a file by its path in the folder or archive."""
    if re.search(_ARCHIVE, path):
        return "archive"
    name = strip_suffixes(path)
    return next((kind for pattern, kind in _kind_patterns() if pattern.search(name)), "none")


def strip_suffixes(path: str) -> str:
    """A path without the suffixes of compression and log rotation (`train.log.1.gz` -> `train.log`)."""
    return re.sub(_ROTATED, "", re.sub(_PACKED, "", path.replace("\\", "/")))


def label_of(file_path: str) -> Label:
    """The process that wrote a file, as far as its path tells."""
    path = strip_suffixes(file_path[-1000:])
    labels: dict[str, str] = {}
    for pattern in _label_patterns():
        match = pattern.search(path)
        for name, value in match.groupdict().items() if match else ():
            labels.setdefault(name, value)
    numbers = {name: int(value) for name, value in labels.items() if name != "host"}
    attempt = numbers.get("attempt")
    return Label(
        numbers.get("rank"), numbers.get("local_rank"), numbers.get("pid"), labels.get("host", ""), None if attempt is None else attempt + 1
    )


def natural_key(name: str) -> list[tuple[bool, int, str]]:
    """Sort key for natural order: rank_2 before rank_10."""
    return [(part.isdecimal(), int(part) if part.isdecimal() and len(part) < 20 else 0, part) for part in re.split(r"(\d+)", name[:1000])]


def earlier_runs(all_paths: Sequence[str]) -> set[str]:
    """The paths in run folders that have a later run beside them."""
    paths: set[str] = set()
    for pattern in _run_patterns():
        runs: dict[str, dict[str, list[str]]] = {}
        for path in all_paths:
            match = pattern.search(path)
            if match:
                runs.setdefault(path[: match.start("run")], {}).setdefault(match["run"], []).append(path)
        for by_run in runs.values():
            latest = max(by_run, key=lambda run: run.removeprefix("offline-"))
            paths.update(path for run, members in by_run.items() if run != latest for path in members)
    return paths


def walk(top: Path) -> list[tuple[str, Path]]:
    """List the regular files under a folder as (path in it, Path), in natural order; links that lead out of it are skipped.

    Raises UserError for a folder that cannot be read or holds more than `FILES` names.
    """
    result: list[tuple[str, Path]] = []
    inodes: set[tuple[int, int]] = set()
    count = 0
    home = top.resolve()
    for folder, subfolders, files in os.walk(top, onerror=_raise_unreadable):
        relative = os.path.relpath(folder, top).replace(os.sep, "/")
        depth = 0 if relative == "." else relative.count("/") + 1
        subfolders[:] = sorted(name for name in subfolders if not name.startswith(".") and name != "__pycache__") if depth < DEEP else []
        count += len(files) + len(subfolders)
        if count > FILES:
            raise folder_error("too_many", str(top), "name_the_logs", most=FILES)
        for name in files:
            path = top.joinpath(relative, name)
            if _is_new_file(path, home, inodes):
                result.append((name if relative == "." else f"{relative}/{name}", path))
    return sorted(result, key=lambda pair: natural_key(pair[0]))


def _raise_unreadable(error: OSError) -> None:
    raise folder_error("unreadable", str(error.filename), "check_permissions", reason=error.strerror or str(error))


def _is_new_file(path: Path, home: Path, inodes: set[tuple[int, int]]) -> bool:
    """Whether a path is a regular file inside `home` whose inode was not listed before."""
    try:
        status = path.stat()
        is_inside = not path.is_symlink() or path.resolve().is_relative_to(home)
    except (OSError, ValueError, RuntimeError):
        return not path.is_symlink()  # it exists but cannot be examined: opening it reports why
    if not is_inside or not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in inodes:
        return False
    inodes.add((status.st_dev, status.st_ino))
    return True


def assign_ranks(files: Mapping[str, tuple[Label, int | None]]) -> dict[str, Label]:
    """Complete the labels of a folder's files, by path. torchrun names its logs by local rank; the global rank is the same if all files are
    of one node.

    `files`: for each path its label and the rank that its own lines print, if any; on a later node that rank exceeds the local one.
    """
    labels = {path: label for path, (label, _) in files.items()}
    local_ranks = {path: label.local_rank for path, label in labels.items() if label.local_rank is not None and "attempt_" in path}
    nodes = {path.rpartition("attempt_")[0] for path in local_ranks}
    offsets = {rank - local_rank for path, local_rank in local_ranks.items() if (rank := files[path][1]) is not None}
    for path, local_rank in local_ranks.items():
        rank = files[path][1]
        if rank is None and len(nodes) == 1 and len(offsets) < 2:
            rank = local_rank + next(iter(offsets), 0)
        labels[path] = labels[path]._replace(rank=rank)
    return labels


@cache
def _kind_patterns() -> list[tuple[re.Pattern[str], Kind]]:
    return [(re.compile(entry["path"]), entry["is"]) for entry in rule_files.table("layouts")["files"]]


@cache
def _label_patterns() -> list[re.Pattern[str]]:
    return [re.compile(text) for text in rule_files.table("layouts")["labels"]]


@cache
def _run_patterns() -> list[re.Pattern[str]]:
    return [re.compile(text) for text in rule_files.table("layouts")["newest"]]
