"""Whether a job has changed: what its files look like from outside, without a byte of them being read."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from diagnose.cluster.find import addresses, object_stores
from diagnose.cluster.find.synthesize_log import of_memory

if TYPE_CHECKING:
    from diagnose.cluster.find.job import Job


def stamp(job: Job) -> str:
    """What changes when a job's logs or configs do, or what its scheduler says of it: sizes and times as they are, never compared by
    order. Empty where none of them can be looked at."""
    marks = [mark(where) for where in _files((*job.logs, *job.configs))]
    if not any(marks) and not of_memory(job.about):
        return ""
    text = "\n".join((*job.logs, *job.configs, *marks, repr(job.about)))
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=12).hexdigest()


def mark(where: str) -> str:
    """Size and time of a file or object; empty where it cannot be looked at."""
    if addresses.is_stored(where):
        return object_stores.marks(where)
    try:
        about = os.stat(addresses.path_of(where))  # noqa: PTH116 - a tenth of the time that Path takes, and there are millions
    except (OSError, ValueError):
        return ""
    return f"{about.st_size} {about.st_mtime_ns}"


def modified(job: Job) -> float | None:
    """When the last of a job's logs was written, in seconds since 1970; None where nothing says."""
    times = [object_stores.changed(where) if addresses.is_stored(where) else _changed(where) for where in _files(job.logs)]
    return max((time for time in times if time is not None), default=None)


def _files(places: tuple[str, ...]) -> list[str]:
    """The files and objects that logs and configs lie in."""
    return list(dict.fromkeys(addresses.parted(place)[0] for place in places))


def _changed(where: str) -> float | None:
    try:
        return os.stat(addresses.path_of(where)).st_mtime  # noqa: PTH116
    except (OSError, ValueError):
        return None
