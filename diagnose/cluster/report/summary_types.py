"""The values of a triage summary: failures in groups, with costs and one plan per group. Its size is bounded, whatever the number of
jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from diagnose.cluster.store.group_fingerprint import Parts
from diagnose.errors import log_crash
from diagnose.phrases import Text, phrase
from diagnose.plan.remedies.remedy import Edit
from diagnose.records import NamedTuple

T = TypeVar("T")

#: What failures can be grouped by.
BY = ("fingerprint", "cause", "phase", "family", "tensor", "frame", "framework", "user", "project", "gpu")


class Store(Protocol):
    """The part of the database interface that the report uses: SQL on one connection, and where errors go."""

    def query(self, sql: str, params: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]: ...

    def add_error(self, fault: str, message: Text, job: str | None = None) -> None: ...


def build_or_report(store: Store, job: str, build: Callable[[], T]) -> T | None:
    """What `build` makes of a stored diagnosis; where it crashes, None and an error of the job, so that the report goes on without it."""
    try:
        return build()
    except Exception as error:
        log_crash("the report", error)
        store.add_error("not_reported", phrase("cluster.not_reported", error=f"{type(error).__name__}: {error}"[:300]), job)
        return None


@dataclass(slots=True)
class Cost:
    """GPU-seconds of jobs; `known`: the number of jobs for which they are known."""

    seconds: float = 0.0
    known: int = 0
    jobs: int = 0

    @property
    def hours(self) -> float | None:
        """GPU-hours; None if unknown for all jobs."""
        return self.seconds / 3600 if self.known else None


@dataclass(slots=True)
class Period:
    """From the first to the last failure, in seconds since 1970; `dated`: the number of jobs with a date, `by_log`: those dated by their
    log files."""

    first: float | None = None
    last: float | None = None
    dated: int = 0
    by_log: int = 0


@dataclass(slots=True)
class Named:
    """A user, project, framework or state with its number of jobs."""

    name: str
    jobs: int


@dataclass(slots=True)
class Step:
    """A remedy of a plan, with what it costs: whether the trained model changes (`results`), and `speed`."""

    remedy: str
    title: Text
    results: str
    speed: str


@dataclass(slots=True)
class Variant:
    """Jobs of a group whose configs agree in the keys that the plan edits. `edits`: those that most of them need; `alike` of `jobs` get
    the same new values; in `fitting` the plan fits."""

    framework: str
    jobs: int
    alike: int
    fitting: int
    steps: tuple[str, ...]
    edits: tuple[Edit, ...]
    env: tuple[str, ...]


@dataclass(slots=True)
class Plan:
    """What to change in a group: the steps that most of its jobs need, and the edits for each variant of their configs."""

    steps: tuple[Step, ...]
    variants: tuple[Variant, ...]
    more: int = 0  # jobs of variants that are not shown
    fits: tuple[Named, ...] = ()  # jobs by the word for how well their plan fits; "none" without a plan


@dataclass(slots=True)
class Example:
    """The latest job of a group."""

    job: str
    name: str
    headline: Text
    diagnosis: str


class Tried(NamedTuple):
    """What became of a remedy in a group, as its reports and the notes of whoever asks say."""

    remedy: str
    worked: int
    failed: int


@dataclass(slots=True)
class Near:
    """Another group that may be the same mistake: common and differing parts of the fingerprint."""

    key: str
    number: int
    similarity: float
    same: tuple[str, ...]
    other: tuple[str, ...]


#: What the latest run changed: jobs of a group that no run had found; again some after a run without; none after a run with some.
Change = Literal["", "new", "back", "gone"]


@dataclass(slots=True)
class Group:
    """Failures with the same key: a fingerprint or grouping value. `number` counts from the dearest group."""

    key: str
    number: int
    title: Text
    jobs: int
    cost: Cost
    period: Period
    certain: int  # jobs whose leading cause is certain
    fingerprints: int
    users: tuple[Named, ...]
    user_count: int
    projects: tuple[Named, ...]
    project_count: int
    frameworks: tuple[Named, ...]
    plan: Plan | None
    example: Example
    parts: Parts | None = None
    short: int | None = None  # bytes that half of the jobs lacked at most
    change: Change = ""  # since the run before
    near: tuple[Near, ...] = ()
    tried: tuple[Tried, ...] = ()


@dataclass(slots=True)
class Counts:
    """Jobs by result."""

    jobs: int = 0
    oom: int = 0
    suspected: int = 0
    lookalike: int = 0
    none: int = 0
    unread: int = 0

    @property
    def failed(self) -> int:
        """Jobs with a certain or probable memory failure."""
        return self.oom + self.suspected


@dataclass(slots=True)
class Cause:
    """A leading cause over all failures; empty if unknown."""

    cause: str
    title: Text
    jobs: int
    cost: Cost


@dataclass(slots=True)
class Times:
    """Failures over time, in slots of `width` seconds from `start`; for each slot the jobs of the first groups and of all others."""

    start: float = 0.0
    width: int = 86400
    slots: tuple[tuple[int, ...], ...] = ()
    groups: int = 0  # of so many groups each has its own figure in a slot; the last figure is that of all others


@dataclass(slots=True)
class Lack:
    """A histogram of missing memory: bin n counts jobs missing up to 256 MiB << n (the first: 0 or less); known for `known` jobs."""

    bins: tuple[int, ...] = ()
    known: int = 0
    median: int | None = None


@dataclass(slots=True)
class Unread:
    """A job that could not be read."""

    job: str
    fault: str
    message: Text


@dataclass(slots=True)
class Summary:
    """The whole summary. `total`: number of all groups, of which `groups` has the dearest; `states`: scheduler states of jobs without
    memory failure."""

    by: str
    since: float | None
    counts: Counts
    states: tuple[Named, ...]
    cost: Cost
    period: Period
    groups: tuple[Group, ...]
    total: int
    causes: tuple[Cause, ...]
    times: Times = field(default_factory=Times)
    lack: Lack = field(default_factory=Lack)
    unread: tuple[Unread, ...] = ()
    root: str = ""  # the folder that all jobs lie in, with its last slash
    tool: str = ""

    @property
    def left(self) -> int:
        """Failures in groups that are not listed."""
        return self.counts.failed - sum(group.jobs for group in self.groups)
