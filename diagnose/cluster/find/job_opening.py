"""What a Job names, opened: in the worker that reads it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from diagnose.adapters.formats.settings import LARGEST, ConfigSource
from diagnose.cluster.find import addresses, object_stores
from diagnose.cluster.find.file_stamp import mark
from diagnose.cluster.find.synthesize_log import ended, spoken
from diagnose.errors import UserError
from diagnose.packed import unpack_limits, unpacking
from diagnose.packed.unpack_limits import LARGEST as EXPANDED
from diagnose.scan.source import Source, notes_of

if TYPE_CHECKING:
    from diagnose.cluster.find.job import Job

METADATA = "wandb-metadata.json"


def materials(job: Job) -> tuple[list[Source], list[ConfigSource | Source]]:
    """The logs and configs of a job, as `explain` takes them. What its scheduler says is the last of the logs; where the scheduler ended
    it, the first: what was killed was killed after that.

    What cannot be read says so when its turn comes: such a config stays a Source.
    """
    logs = [source(log) for log in job.logs]
    told = spoken(job.about)
    if told is not None:
        logs.insert(0 if ended(job.about) else len(logs), told)
    return logs, [config(each) for each in job.configs]


def source(where: str) -> Source:
    """One file, object or member. (A place makes what lies there more than a log: what wandb wrote down of the machine.)"""
    archive, member = addresses.parted(where)
    name = where if addresses.is_stored(where) else addresses.shown(str(addresses.path_of(where)))
    place = METADATA if addresses.last(where) == METADATA else ""
    if member:
        return Source(name, opener=partial(_member, archive, member), place=place)
    if addresses.is_stored(where):
        return Source(name, opener=partial(_stored, where), place=place)
    return Source(name, path=addresses.path_of(where), place=place)


def config(where: str) -> ConfigSource | Source:
    """A config as the adapters read it. Only one that lies on this machine may name others beside it."""
    one = source(where)
    try:
        if one.path is None:
            return ConfigSource(one.name, one.read(LARGEST + 1))
        return ConfigSource.file(one.path)
    except UserError:
        return one


def _stored(url: str) -> BinaryIO:
    try:
        return object_stores.opened(*object_stores.reached(url))
    except UserError as trouble:
        raise OSError(0, trouble.what.to("en")) from trouble


# -- members of archives


def places(where: str) -> Iterator[str | UserError]:
    """The files in an archive by their places, as they come, and what is wrong with it. Raises UserError where there is none."""
    for piece in unpacking.contents(source(where), unpack_limits.Allowance()):
        yield piece if isinstance(piece, UserError) else piece.place


class _Reading:
    """An archive that is read from its start to its end. Jobs come in its order, so that a worker that opens the members of one after
    the other reads it once; one that lies further back begins again."""

    def __init__(self, archive: str) -> None:
        self.archive, self.mark = archive, mark(archive)
        self._allowance = unpack_limits.Allowance()
        self._pieces = unpacking.contents(source(archive), self._allowance)
        self._passed: set[str] = set()

    def member(self, place: str) -> BinaryIO | None:
        """The member, if it lies ahead."""
        if place in self._passed:
            return None
        self._allowance.remaining = EXPANDED
        for piece in self._pieces:
            if isinstance(piece, UserError):
                continue
            self._passed.add(piece.place)
            if piece.place == place and piece.handle is not None:
                return cast("BinaryIO", _Borrowed(piece.handle))
            self._allowance.remaining = EXPANDED
        return None

    def close(self) -> None:
        self._pieces.close()  # type: ignore[attr-defined]


class _Borrowed(io.RawIOBase):
    """A member that its reader may close without the archive being closed."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self._opened)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int | None:
        return cast("io.RawIOBase", self._opened).readinto(target)


_open: list[_Reading] = []  # the archive that was read last, in this process


def _member(archive: str, place: str) -> BinaryIO:
    """A file of an archive, at its start. Raises OSError where it is not there (any more)."""
    try:
        if _open and _open[0].archive == archive and _open[0].mark == mark(archive):
            found = _open[0].member(place)
            if found is not None:
                return found
        while _open:
            _open.pop().close()
        _open.append(_Reading(archive))
        found = _open[0].member(place)
    except UserError as trouble:
        raise OSError(0, trouble.what.to("en")) from trouble
    if found is None:
        raise FileNotFoundError(2, "no such file in the archive")
    return found
