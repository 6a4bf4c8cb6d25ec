"""A job before anything of it is read: logs, configs, and what its scheduler recorded."""

from __future__ import annotations

from dataclasses import dataclass, field

from diagnose.phrases import Text


@dataclass(slots=True)
class About:
    """What a scheduler or manifest records about a job; None or empty if unknown. Times are seconds since 1970 in UTC."""

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
    gpu: str = ""  # the card's name
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    elapsed: float | None = None  # seconds
    memory_limit: int | None = None  # bytes of host memory that one node (or container) may use
    memory_used: int | None = None  # bytes, of the task that used the most
    restarts: int | None = None

    @property
    def gpu_seconds(self) -> float | None:
        """GPU time of the job; None if its cards or its duration are unknown."""
        return None if self.gpus is None or self.elapsed is None else self.gpus * self.elapsed


@dataclass(slots=True)
class Job:
    """Logs that are diagnosed together.

    `id` is the same in every run over a tree: the address of the folder or log, or the id in a manifest or export. `logs` and `configs` are
    addresses (diagnose/cluster/find/addresses.py): paths, s3://..., ARCHIVE!/member.
    """

    id: str
    logs: tuple[str, ...]
    configs: tuple[str, ...] = ()
    about: About = field(default_factory=About)
    name: str = ""  # for people, where that is not the id


@dataclass(slots=True)
class UnreadableJob:
    """A job that cannot be read, or a place that cannot be searched. `fault` is a word: vanished, unreadable, link_outside, log_missing,
    broken_archive, bad_record, unknown_store, store_extra, store_failed."""

    job: Job
    fault: str
    error: Text


#: Prefixes of states in which a job has failed, the most telling first.
FAILED_STATES = ("OUT_OF_M", "OOMKILL", "FAIL", "EVICT", "ERROR", "NODE_FAIL", "BOOT_FAIL", "CRASH")


def state_severity(state: str) -> int:
    """Sort key: how strongly a scheduler's state indicates a failure, 0 for none. Of several parts of a job the most severe counts."""
    upper = state.upper()
    return next((len(FAILED_STATES) - rank for rank, prefix in enumerate(FAILED_STATES) if upper.startswith(prefix)), 0)


def has_failed(about: About) -> bool:
    """Whether the scheduler's state means failure; cancelled and running jobs have not failed."""
    return state_severity(about.state) > 0 or (not about.state and bool(about.exit_code or about.signal))
