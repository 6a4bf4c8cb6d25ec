"""Detects changed inputs of a job without reading them, and opens its inputs in the worker process."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO, cast

from diagnose.adapters.formats.settings import MAX_READ_BYTES, ConfigSource
from diagnose.cluster.find import addresses, object_stores
from diagnose.cluster.find.job import Job
from diagnose.cluster.find.synthesize_log import is_scheduler_kill, memory_state, scheduler_log
from diagnose.errors import UserError
from diagnose.packed import unpack_limits, unpacking
from diagnose.scan.source import Source, notes_of

METADATA = "wandb-metadata.json"


# -- unread


def stamp(job: Job) -> str:
    """A hash that changes with a job's logs, configs or scheduler record: of file sizes and modification times, compared only for
    equality. Empty if there is nothing to examine."""
    marks = [file_mark(address) for address in _containers((*job.logs, *job.configs))]
    if not any(marks) and not memory_state(job.about):
        return ""
    text = "\n".join((*job.logs, *job.configs, *marks, repr(job.about)))
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=12).hexdigest()


def file_mark(address: str) -> str:
    """Size and modification time of a file or object; empty if it cannot be accessed."""
    if addresses.is_url(address):
        return object_stores.object_mark(address)
    try:
        status = os.stat(addresses.to_path(address))  # noqa: PTH116 - a tenth of the time that Path takes, and there are millions
    except (OSError, ValueError):
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


def last_modified(job: Job) -> float | None:
    """Modification time of the newest log, in seconds since 1970; None if unknown."""
    logs = _containers(job.logs)
    times = [object_stores.object_modified(log) if addresses.is_url(log) else _file_modified(log) for log in logs]
    return max((time for time in times if time is not None), default=None)


def _containers(files: tuple[str, ...]) -> list[str]:
    """The files and objects that hold the job's inputs: archives instead of their members."""
    return list(dict.fromkeys(addresses.split_member(file)[0] for file in files))


def _file_modified(address: str) -> float | None:
    try:
        return os.stat(addresses.to_path(address)).st_mtime  # noqa: PTH116
    except (OSError, ValueError):
        return None


# -- opened


def open_inputs(job: Job) -> tuple[list[Source], list[ConfigSource | Source]]:
    """The job's logs and configs as `explain` takes them.

    The scheduler's record is the last log; if the scheduler killed the job, the first, since the kills in the other logs followed from
    that. An unreadable input raises when it is read; an unreadable config stays a Source.
    """
    logs = [open_source(log) for log in job.logs]
    own_log = scheduler_log(job.about)
    if own_log is not None:
        logs.insert(0 if is_scheduler_kill(job.about) else len(logs), own_log)
    return logs, [_open_config(config) for config in job.configs]


def open_source(address: str) -> Source:
    """One file, object or archive member. Its path is kept, because it can identify the file (wandb's metadata)."""
    archive, member = addresses.split_member(address)
    name = address if addresses.is_url(address) else addresses.display_path(str(addresses.to_path(address)))
    place = METADATA if addresses.base_name(address) == METADATA else ""
    if member:
        return Source(name, opener=partial(_open_member, archive, member), place=place)
    if addresses.is_url(address):
        return Source(name, opener=partial(_open_url, address), place=place)
    return Source(name, path=addresses.to_path(address), place=place)


def _open_config(address: str) -> ConfigSource | Source:
    """A config as the adapters read it. Only a local file may refer to files beside it."""
    source = open_source(address)
    try:
        if source.path is None:
            return ConfigSource(source.name, source.read(MAX_READ_BYTES + 1))
        return ConfigSource.file(source.path)
    except UserError:
        return source


def _open_url(url: str) -> BinaryIO:
    try:
        return object_stores.open_object(*object_stores.connect(url))
    except UserError as error:
        raise OSError(0, error.what.to("en")) from error


# -- members of archives


def list_members(archive: str) -> Iterator[str | UserError]:
    """The paths of an archive's files in archive order, and errors. Raises UserError if there is no such archive."""
    for piece in unpacking.contents(open_source(archive), unpack_limits.Allowance()):
        yield piece if isinstance(piece, UserError) else piece.place


class _ArchiveReader:
    """Reads an archive forwards. Workers open members in archive order and so read it only once; a caller that needs an earlier member
    starts over."""

    def __init__(self, archive: str) -> None:
        self.archive, self.mark = archive, file_mark(archive)
        self._allowance = unpack_limits.Allowance()
        self._pieces = unpacking.contents(open_source(archive), self._allowance)
        self._passed: set[str] = set()

    def member(self, place: str) -> BinaryIO | None:
        """The member, unless it lies behind the current position."""
        if place in self._passed:
            return None
        self._allowance.remaining = unpack_limits.LARGEST
        for piece in self._pieces:
            if isinstance(piece, UserError):
                continue
            self._passed.add(piece.place)
            if piece.place == place and piece.handle is not None:
                return cast("BinaryIO", _MemberFile(piece.handle))
            self._allowance.remaining = unpack_limits.LARGEST
        return None

    def close(self) -> None:
        self._pieces.close()  # type: ignore[attr-defined]


class _MemberFile(io.RawIOBase):
    """A member of an archive whose `close` leaves the archive open."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self._file)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int | None:
        return cast("io.RawIOBase", self._file).readinto(target)


_last_archive: list[_ArchiveReader] = []  # at most the one that this process read last


def _open_member(archive: str, place: str) -> BinaryIO:
    """A file of an archive. Raises OSError if it does not exist."""
    try:
        if _last_archive and _last_archive[0].archive == archive and _last_archive[0].mark == file_mark(archive):
            member = _last_archive[0].member(place)
            if member is not None:
                return member
        while _last_archive:
            _last_archive.pop().close()
        _last_archive.append(_ArchiveReader(archive))
        member = _last_archive[0].member(place)
    except UserError as error:
        raise OSError(0, error.what.to("en")) from error
    if member is None:
        raise FileNotFoundError(2, "no such file in the archive")
    return member
