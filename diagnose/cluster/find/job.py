"""A job as triage knows it before anything is read: its logs, its configs, and what its scheduler says."""

from __future__ import annotations

from diagnose.phrases import Text
from diagnose.record import field, record


@record
class About:
    """What a scheduler or a manifest says of a job; None and empty where nothing does. Times are seconds since 1970 in UTC."""

    scheduler: str = ""  # slurm, kubernetes, manifest: who says so
    id: str = ""  # the scheduler's own number or name
    user: str = ""
    project: str = ""  # account, namespace or project
    state: str = ""  # as the scheduler spells it: OUT_OF_MEMORY, OOMKilled, FAILED
    reason: str = ""  # what it says beside the state: of an eviction, why
    exit_code: int | None = None
    signal: int | None = None
    nodes: int | None = None
    gpus: int | None = None  # over all nodes
    gpu: str = ""  # the card's name, where it is said
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    elapsed: float | None = None  # seconds
    memory_limit: int | None = None  # bytes of host memory that one node (or container) may use
    memory_used: int | None = None  # bytes, of the task that took the most
    restarts: int | None = None

    @property
    def gpu_seconds(self) -> float | None:
        """What the job cost; None where its cards or its length are not known."""
        return None if self.gpus is None or self.elapsed is None else self.gpus * self.elapsed


@record
class Job:
    """Logs that are diagnosed together. `id` is the same in every run over the same archive: the path or address of the folder or
    log, or what a manifest calls it. `logs` and `configs` are paths, addresses (s3://...) or ARCHIVE!/member. All of it is Unicode
    that any file or database takes: a path that is none is written as file:// with %-escapes (diagnose/cluster/find/addresses.py)."""

    id: str
    logs: tuple[str, ...]
    configs: tuple[str, ...] = ()
    about: About = field(default_factory=About)
    name: str = ""  # what people call it, where that is not its id


@record
class Unfound:
    """A job that is known of and cannot be read, or a place in which jobs may be: a row that says why. `fault` is the kind of error, in
    one word: vanished, unreadable, link_outside, log_missing, broken_archive, bad_record, unknown_store, store_extra, store_failed."""

    job: Job
    fault: str
    error: Text
