"""Which messages are one failure, which failures are equal ones of several processes, and which follow from another."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from diagnose.parse.events import duplicate_reports
from diagnose.parse.messages.host_oom import KILLS, joined, same_death, same_number, settle
from diagnose.parse.text.lines import Prefix
from diagnose.record import field, record, replace

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from diagnose.parse.events.log_events import Seen
    from diagnose.parse.frames.tracebacks import Traceback
    from diagnose.parse.model.event import Event

NEAR = 200  # lines within which a bare message is the same one printed again
EVIDENCE = 6  # places that one event names
MEMBERS = 256  # equal failures that one event holds with their figures; more are counted

#: What a dying job prints besides its failure: a kill of what was left, a broken collective, a library that finds no memory any more.
_ECHOES = KILLS | {"nccl", "cublas", "cudnn"}


# -- one failure, printed several times


def once(all_seen: Iterable[Seen]) -> list[Seen]:
    """Every failure once: printed again by Ray, by `raise ... from` or by a logger it is the same."""
    kept: list[Seen] = []
    alike: dict[Hashable, list[Seen]] = defaultdict(list)
    for one in duplicate_reports.joined(all_seen, _merge):
        if one.gave_up:  # the last failure that it caught is the one it speaks of
            last = next((other for other in reversed(kept) if other.fatal and other.attempt.number == one.attempt.number), None)
            if last is not None:
                _add_evidence(last, one)
                continue
        group = alike[kind(one)]
        first = _first(group[-64:], one)
        if first is None:
            kept.append(one)
            group.append(one)
        else:
            _merge(first, one)
    settle([one.message for one in kept if one.message.family in KILLS])
    return kept


def _first(group: Sequence[Seen], one: Seen) -> Seen | None:
    """The failure that this is another print of: of several deaths the one of the same process number, else the latest."""
    alike = (other for other in reversed(group) if _again(other, one))
    if one.message.family not in KILLS:
        return next(alike, None)
    return max(alike, key=lambda other: same_number(other.message, one.message), default=None)


def kind(one: Seen) -> Hashable:
    """What two prints of one failure have in common."""
    message, attempt = one.message, one.attempt.number
    if message.family in KILLS:  # kernel, scheduler and launcher each have a word for one death
        return "killed", attempt
    if message.family == "nccl":
        return message.family, attempt
    return message.family, attempt, message.gpu, figures(one), message.processes, message.reason


def figures(one: Seen) -> tuple[str, ...]:
    return tuple(f"{name} {size}" for name, size in sorted(one.message.figures.items()))


def _again(first: Seen, one: Seen) -> bool:
    if None not in (first.prefix.rank, one.prefix.rank) and first.prefix.rank != one.prefix.rank:
        return False
    if first.message.family in KILLS:
        return _one_death(first, one)
    if first.message.family == "nccl":
        return True
    if one.repeated or _of_others(first, one) or first.survived != one.survived:
        return False
    if any(figures(one)):
        return True
    alike = first.prefix == one.prefix or (
        Prefix() in (first.prefix, one.prefix) and not _own_tracebacks(first.trace, one.trace)
    )  # C++ prints to the same log without a prefix, and without a traceback
    if first.message.status == "lookalike":  # a kernel complains once per thread
        return alike and first.page.source == one.page.source
    return alike and first.page is one.page and one.index - first.index < NEAR


def _one_death(first: Seen, one: Seen) -> bool:
    """Whether two words for a kill are of one process. Launchers of two nodes each have a local rank 0."""
    launchers = None not in (first.message.local_rank, one.message.local_rank) and first.prefix != one.prefix
    return not launchers and same_death(first.message, one.message)


def _of_others(first: Seen, one: Seen) -> bool:
    """Whether two processes of one kind printed the same figures: each of them failed."""
    pids = None not in (first.pid, one.pid) and first.pid != one.pid
    hosts = "" not in (first.prefix.host, one.prefix.host) and first.prefix.host != one.prefix.host
    return (pids or hosts) and _class_of_actor(first) == _class_of_actor(one)


def _class_of_actor(one: Seen) -> str:
    return re.sub(r"[_\d]+$", "", one.trace.actor or one.prefix.actor)


def _own_tracebacks(first: Traceback, one: Traceback) -> bool:
    return bool(first.frames and one.frames)


def _merge(first: Seen, one: Seen) -> None:
    """What the second print adds to the first."""
    if one.message.weight > first.message.weight:
        first.message, one.message = one.message, first.message
        first.exception, first.words = one.exception or first.exception, one.words
        if first.message.family in KILLS:  # the line that knows most stands first
            first.evidence, one.evidence = one.evidence, first.evidence
    if first.message.family in KILLS and one.message.family in KILLS:
        joined(first.message, one.message)
    elif first.message.family == one.message.family:
        for name, size in one.message.figures.items():
            first.message.figures.setdefault(name, size)
        first.message.check = first.message.check or one.message.check
        first.message.facts = one.message.facts | first.message.facts
        first.message.processes = first.message.processes or one.message.processes
        first.message.said = first.message.said or one.message.said
    if first.message.local_rank is None:
        first.message.local_rank = one.message.local_rank
    first.message.phase = first.message.phase or one.message.phase
    first.exception = first.exception or one.exception
    first.prefix = one.prefix if first.prefix == Prefix() else first.prefix
    if not first.trace.frames and one.trace.frames:
        first.trace = one.trace
    first.warned = first.warned and one.warned
    first.survived = first.survived and one.survived
    first.by_launcher = first.by_launcher or one.by_launcher
    _add_evidence(first, one)


def _add_evidence(first: Seen, one: Seen) -> None:
    first.evidence += [place for place in one.evidence if place not in first.evidence][: EVIDENCE - len(first.evidence)]


# -- equal failures of several processes


@record(frozen=False)
class _Equal:
    """Equal failures: their first, the others, and who they are, where all of them say so."""

    first: Event
    count: int
    members: list[Event] = field(default_factory=list)
    ranks: dict[int, None] = field(default_factory=dict)
    known: dict[str, set[object]] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        for name in _IDENTITIES:
            value = _identity(event, name)
            if value is None:
                self.known.pop(name, None)
            elif name in self.known or event is self.first:
                self.known.setdefault(name, set()).add(value)
        self.ranks |= dict.fromkeys(event.ranks)
        if event is not self.first:
            self.members.append(event)

    @property
    def event(self) -> Event:
        if not self.members:
            return replace(self.first, count=self.count) if self.count > 1 else self.first
        first = _placed_like(self.first, self.members)
        return replace(first, ranks=tuple(self.ranks), count=self.count, members=tuple(self.members[:MEMBERS]))


def _placed_like(first: Event, members: Sequence[Event]) -> Event:
    """The first of equal failures; where its own traceback was not printed, or is cut off, with that of the next that has one."""
    if first.frames or first.phase != "unknown":
        return first
    shown = next((event for event in members if event.frames and event.phase != "unknown"), None)
    if shown is None:
        return first
    return replace(first, frames=shown.frames, phase=shown.phase, evidence=(first.evidence[0], *shown.evidence[1:2], *first.evidence[1:]))


def folded(events: Sequence[Event], repeated: Sequence[int] = ()) -> list[Event]:
    """Events with the equal failures of other processes inside the first of them, and consequences marked.

    `repeated`: for each event, as how many lines of other processes Ray prints its message; 0 where it is a line of its own.
    """
    events = [duplicate_reports.after_a_fault(event, events[:number]) for number, event in enumerate(events)]
    if any(event.status == "oom" for event in events):  # what is no failure of memory does not hide one
        keep = [number for number, event in enumerate(events) if event.status != "lookalike"]
        repeated = [repeated[number] for number in keep] if repeated else ()
        events = [events[number] for number in keep]
    groups: list[_Equal] = []
    alike: dict[Hashable, list[_Equal]] = defaultdict(list)
    for number, event in enumerate(events):
        times = repeated[number] if repeated else 0
        same = (event.family, event.attempt, event.fatal, event.status, str(event.requested))
        group = next((one for one in alike[same] if _equal_elsewhere(one, event, times)), None)
        if group is None:  # Ray prints the first such line at once, and the others as one: this first one is not in what was read
            group = _Equal(event, times + 1 if times else 1)
            groups.append(group)
            alike[same].append(group)
        else:
            group.count += times or 1
        group.add(event)
    kept = [group.event for group in groups]
    return [_as_consequence(event, kept, i) for i, event in enumerate(kept)]


#: What tells processes apart, the surest first.
_IDENTITIES = ("rank", "gpu", "local_rank", "pid")


def _identity(event: Event, name: str) -> object:
    """The rank of a process, which is its own in the whole job; else a number with the host that it is of."""
    value = getattr(event, name)
    return value if value is None or name == "rank" else (event.host, value)


def _equal_elsewhere(group: _Equal, event: Event, times: int) -> bool:
    """The same failure of another process: same family and request, much the same figures, another rank or card."""
    first = group.first
    held, got = first.allocated, event.allocated
    if held is not None and got is not None and abs(held.bytes - got.bytes) > held.bytes * 0.1:
        return False
    if times:
        return True
    for name in _IDENTITIES:
        value = _identity(event, name)
        if value is None or name not in group.known:
            continue
        if value not in group.known[name]:
            return True
        if name != "gpu":
            return False
        pid, pids = _identity(event, "pid"), group.known.get("pid")  # a process that sees one card only calls it 0
        return pid is not None and pids is not None and pid not in pids
    return False


# -- consequences


def _as_consequence(event: Event, events: Sequence[Event], index: int) -> Event:
    """A failure of the kind that a dying job prints, after one of the same attempt that is none of that kind."""
    if event.family not in _ECHOES or (event.family in KILLS and event.status == "oom"):
        return event
    cause = next(
        (i for i, other in enumerate(events[:index]) if other.fatal and other.family not in _ECHOES and other.attempt == event.attempt),
        None,
    )
    return event if cause is None else replace(event, consequence_of=cause)
