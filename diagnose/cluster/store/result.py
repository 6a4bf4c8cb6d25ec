"""The result of one job, in flat values for transfer between processes and for the database."""

from __future__ import annotations

from dataclasses import dataclass, field

from diagnose.cluster.find.job import Job
from diagnose.phrases import Text, phrase
from diagnose.records import NamedTuple


@dataclass(slots=True)
class EventRow:
    """One event of a job, as a row of the table `events`."""

    family: str
    status: str
    exception: str
    fatal: bool
    attempt: int
    rank: int | None
    host: str
    gpu: int | None
    phase: str
    requested: int | None  # bytes
    capacity: int | None
    free: int | None
    allocated: int | None
    reserved_unallocated: int | None
    source: str
    line: int | None
    root: bool


@dataclass(slots=True)
class InputFault:
    """An unusable input of a job whose other inputs were read. `fault`: a word, as in `Result.fault`."""

    fault: str
    message: Text


@dataclass(slots=True)
class Result:
    """One job, read and diagnosed.

    `stamp` is a hash of the inputs' sizes and times before they were read, `content` of the bytes that were read, `same` of the facts and
    configs (run/dedupe_key.py): jobs with equal `same` have one diagnosis. `digest` is the diagnosis as JSON (store/digests.py), empty
    where the result of another job with this `same` carries it, and for what did not fail. `error` says why nothing could be read or
    diagnosed.
    """

    job: Job
    status: str = "unread"  # oom, suspected, lookalike, none, unread
    family: str = ""
    phase: str = ""
    headline: Text = field(default_factory=lambda: Text("", ""))
    events: tuple[EventRow, ...] = ()
    fingerprint: str = ""  # of the group (store/group_fingerprint.py); empty for what did not fail of memory
    digest: str = ""
    same: str = ""
    stamp: str = ""
    content: str = ""
    bytes: int = 0
    modified: float | None = None  # when the newest of the logs was written last, in seconds since 1970
    seconds: float = 0.0  # of processor time
    error: Text | None = None
    fault: str = ""  # unreadable, broken_archive, vanished, crashed, worker_died ...: the kind of error, one word
    troubles: tuple[InputFault, ...] = ()
    report: str = ""  # the whole report as a line of JSON, where reports were asked for
    reused: bool = False  # nothing has changed since it was read last: only `stamp`, `content` and `modified` are filled

    @property
    def failed(self) -> bool:
        """Whether memory failed, certainly or probably."""
        return self.status in ("oom", "suspected")


def unread_result(job: Job, fault: str, error: Text) -> Result:
    """The result of a job that could not be read or diagnosed."""
    return Result(job, error=error, fault=fault)


def crashed_result(job: Job, error: Exception) -> Result:
    """The result of a job that our own code failed on."""
    return unread_result(job, "crashed", phrase("cluster.crashed", error=f"{type(error).__name__}: {error}"[:300]))


class DiagnosisSummary(NamedTuple):
    """The part of a diagnosis that applies to all jobs that share it."""

    headline: Text
    fingerprint: str
