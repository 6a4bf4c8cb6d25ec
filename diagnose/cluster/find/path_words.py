"""What the words of a command line name, before anything in it is looked at."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence

from diagnose.cluster.find import addresses, list_files
from diagnose.cluster.find.file_trees import unreadable
from diagnose.cluster.find.job import Job, Unfound
from diagnose.errors import UserError
from diagnose.phrases import Text

#: What a list in a store is called: any other object is not looked into before its turn.
LISTED = re.compile(r"\.(?:jsonl?|ndjson|txt|list|lst|paths)(?:\.gz|\.zst|\.bz2|\.xz)?$", re.IGNORECASE)

#: Complaints of other rooms, in the words of Unfound.
FAULTS = {"no_such_file": "vanished", "cannot_read": "unreadable"}


def sorted_out(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Each word with what it names: folder, store, a list's kind, log, or nothing. What lies in a folder that is given is met there."""
    words = ((word, _matching(word)) for word in dict.fromkeys(paths))
    found = [one for word, matching in words for one in ([(_kind(path), path) for path in matching] or [("nothing", word)])]
    tops = {os.path.realpath(path) for kind, path in found if kind == "folder"}
    return [(kind, path) for kind, path in found if not tops or kind not in ("folder", "log") or not _is_below(path, tops)]


def _matching(word: str) -> list[str]:
    """What a word stands for, in order: itself, unless it is a pattern that the shell left alone."""
    if addresses.is_stored(word) or not any(sign in word for sign in "*?[") or os.path.lexists(word):
        return [word]
    return sorted(glob.iglob(os.path.expanduser(word), recursive=True))  # noqa: PTH207


def _kind(path: str) -> str:
    if addresses.is_stored(path):
        kind = list_files.kind_of(path, home_of(path)) if LISTED.search(path) else "log"
        return "store" if kind == "log" else kind
    if path.startswith("@") and not os.path.lexists(path):
        return "paths"
    if os.path.isdir(path):  # noqa: PTH112 - a Path takes no name with a NUL
        return "folder"
    return list_files.kind_of(addresses.written(path), home_of(path)) if os.path.isfile(path) else "log"  # noqa: PTH113


def _is_below(path: str, tops: set[str]) -> bool:
    at = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
    while True:
        if at in tops:
            return True
        above = os.path.dirname(at)  # noqa: PTH120
        if above == at:
            return False
        at = above


def where_of(path: str) -> str:
    """The address of a word."""
    return path if addresses.is_stored(path) else addresses.written(path)


def home_of(path: str) -> str:
    """The folder that a file is in, which paths in it begin in."""
    if addresses.is_stored(path):
        return path.rpartition("/")[0]
    return os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120


def refused(path: str, error: UserError | OSError) -> Unfound:
    """A word of the command line that names nothing to be read."""
    trouble = error if isinstance(error, UserError) else unreadable(addresses.shown(path), error)
    where = where_of(path)
    return Unfound(
        Job(where, (where,), name=called(addresses.shown(path), where)),
        FAULTS.get(trouble.key, trouble.key),
        Text(trouble.to("en"), trouble.to("zh")),
    )


def called(shown: str, where: str) -> str:
    return shown if shown != where else ""
