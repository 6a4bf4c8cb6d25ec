"""Classifies the paths and URLs of a command line before jobs are searched for."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from diagnose.cluster.cluster_errors import error_text
from diagnose.cluster.find import addresses
from diagnose.cluster.find.file_trees import read_error
from diagnose.cluster.find.job import Job, UnreadableJob
from diagnose.cluster.find.list_files import ListKind, list_kind
from diagnose.errors import UserError

PathKind: TypeAlias = ListKind | Literal["folder", "store", "nothing"]

#: Names of lists in a store; any other object is not opened before its turn.
STORED_LIST = re.compile(r"\.(?:jsonl?|ndjson|txt|list|lst|paths)(?:\.gz|\.zst|\.bz2|\.xz)?$", re.IGNORECASE)

#: Keys of other packages' errors, as faults of an UnreadableJob.
FAULTS: Mapping[str, str] = {"no_such_file": "vanished", "cannot_read": "unreadable"}


def classify(words: Sequence[str]) -> list[tuple[PathKind, str]]:
    """Each path with its kind; patterns expanded, and paths below another named folder left to that folder."""
    matches = ((word, _expand(word)) for word in dict.fromkeys(words))
    pairs = [pair for word, paths in matches for pair in ([(_kind(path), path) for path in paths] or [("nothing", word)])]
    folders = {os.path.realpath(path) for kind, path in pairs if kind == "folder"}
    return [(kind, path) for kind, path in pairs if not folders or kind not in ("folder", "log") or not _is_below(path, folders)]


def _expand(word: str) -> list[str]:
    """The paths that match a pattern which the shell did not expand; else the word itself."""
    if addresses.is_url(word) or not any(sign in word for sign in "*?[") or os.path.lexists(word):
        return [word]
    return sorted(glob.iglob(os.path.expanduser(word), recursive=True))  # noqa: PTH207


def _kind(path: str) -> PathKind:
    if addresses.is_url(path):
        kind = list_kind(path, folder_of(path)) if STORED_LIST.search(path) else "log"
        return "store" if kind == "log" else kind
    if path.startswith("@") and not os.path.lexists(path):
        return "paths"
    if os.path.isdir(path):  # noqa: PTH112 - a Path takes no name with a NUL
        return "folder"
    return list_kind(addresses.to_address(path), folder_of(path)) if os.path.isfile(path) else "log"  # noqa: PTH113


def _is_below(path: str, folders: set[str]) -> bool:
    folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
    while True:
        if folder in folders:
            return True
        parent = os.path.dirname(folder)  # noqa: PTH120
        if parent == folder:
            return False
        folder = parent


def address_of(path: str) -> str:
    """The address of a path or URL."""
    return path if addresses.is_url(path) else addresses.to_address(path)


def folder_of(path: str) -> str:
    """The folder of a file, the base of relative paths in it."""
    if addresses.is_url(path):
        return path.rpartition("/")[0]
    return os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120


def unreadable_path(path: str, error: UserError | OSError) -> UnreadableJob:
    """The error for an unreadable path of the command line or of a list."""
    user_error = error if isinstance(error, UserError) else read_error(addresses.display_path(path), error)
    address = address_of(path)
    job = Job(address, (address,), name=name_of(addresses.display_path(path), address))
    return UnreadableJob(job, FAULTS.get(user_error.key, user_error.key), error_text(user_error))


def name_of(display: str, address: str) -> str:
    """The display name of a job if it differs from its address."""
    return display if display != address else ""
