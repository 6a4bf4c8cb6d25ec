"""Group messages: repeats of one failure, equal failures of several processes, failures that follow from another."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from diagnose import families
from diagnose.parse.events import duplicate_reports
from diagnose.parse.messages.host_oom import join_traces, same_death, same_number, settle
from diagnose.parse.text.lines import Prefix

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.frames.tracebacks import Traceback
    from diagnose.parse.model.event import Event

NEAR = 200  # lines within which a bare message is the same one printed again
EVIDENCE = 6  # places that one event names
MEMBERS = 256  # equal failures that one event holds with their figures; more are counted


# -- one failure, printed several times


def without_repeats(all_seen: Iterable[PlacedMessage]) -> list[PlacedMessage]:
    """Drop messages that repeat a failure (by Ray, by `raise ... from`, by a logger) and merge what they add into the first."""
    unique: list[PlacedMessage] = []
    alike: dict[Hashable, list[PlacedMessage]] = defaultdict(list)
    for placed in duplicate_reports.join_duplicates(all_seen, _merge):
        if placed.gave_up:  # the last failure that it caught is the one it speaks of
            last = next(
                (earlier for earlier in reversed(unique) if earlier.fatal and earlier.attempt.number == placed.attempt.number), None
            )
            if last is not None:
                _add_evidence(last, placed)
                continue
        group = alike[repeat_key(placed)]
        first = _find_original(group[-64:], placed)
        if first is None:
            unique.append(placed)
            group.append(placed)
        else:
            _merge(first, placed)
    settle([placed.message for placed in unique if families.of(placed.message.family).kill])
    return unique


def _find_original(group: Sequence[PlacedMessage], second: PlacedMessage) -> PlacedMessage | None:
    """The failure that this message repeats: among kills preferably the one of the same process id, else the latest; None without one."""
    alike = (earlier for earlier in reversed(group) if _is_repeat(earlier, second))
    if not families.of(second.message.family).kill:
        return next(alike, None)
    return max(alike, key=lambda earlier: same_number(earlier.message, second.message), default=None)


def repeat_key(placed: PlacedMessage) -> Hashable:
    """Grouping key: equal for messages that may report one failure."""
    message, attempt = placed.message, placed.attempt.number
    if families.of(message.family).kill:  # kernel, scheduler and launcher each have a word for one death
        return "killed", attempt
    if families.of(message.family).collective:
        return message.family, attempt
    return message.family, attempt, message.gpu, figure_texts(placed), message.processes, message.reason


def figure_texts(placed: PlacedMessage) -> tuple[str, ...]:
    """Name and printed size of each figure."""
    return tuple(f"{name} {size}" for name, size in sorted(placed.message.figures.items()))


def _is_repeat(first: PlacedMessage, second: PlacedMessage) -> bool:
    if None not in (first.prefix.rank, second.prefix.rank) and first.prefix.rank != second.prefix.rank:
        return False
    if families.of(first.message.family).kill:
        return _is_same_kill(first, second)
    if families.of(first.message.family).collective:
        return True
    if second.repeated or _is_of_other_process(first, second) or first.survived != second.survived:
        return False
    if any(figure_texts(second)):
        return True
    alike = first.prefix == second.prefix or (
        Prefix() in (first.prefix, second.prefix) and not _own_tracebacks(first.trace, second.trace)
    )  # C++ prints to the same log without a prefix, and without a traceback
    if first.message.status == "lookalike":  # a kernel complains once per thread
        return alike and first.page.source == second.page.source
    return alike and first.page is second.page and second.index - first.index < NEAR


def _is_same_kill(first: PlacedMessage, second: PlacedMessage) -> bool:
    """Whether two reports of a kill mean one process. Launchers of two nodes each have a local rank 0, so theirs never do."""
    launchers = None not in (first.message.local_rank, second.message.local_rank) and first.prefix != second.prefix
    return not launchers and same_death(first.message, second.message)


def _is_of_other_process(first: PlacedMessage, second: PlacedMessage) -> bool:
    """Whether process ids or hosts show two messages with equal figures to be failures of different processes."""
    pids = None not in (first.pid, second.pid) and first.pid != second.pid
    hosts = "" not in (first.prefix.host, second.prefix.host) and first.prefix.host != second.prefix.host
    return (pids or hosts) and _class_of_actor(first) == _class_of_actor(second)


def _class_of_actor(placed: PlacedMessage) -> str:
    return re.sub(r"[_\d]+$", "", placed.trace.actor or placed.prefix.actor)


def _own_tracebacks(first: Traceback, second: Traceback) -> bool:
    return bool(first.frames and second.frames)


def _merge(first: PlacedMessage, second: PlacedMessage) -> None:
    """Add to the first message what the second says beyond it."""
    if second.message.weight > first.message.weight:
        first.message, second.message = second.message, first.message
        first.exception, first.words = second.exception or first.exception, second.words
        if families.of(first.message.family).kill:  # the line that knows most stands first
            first.evidence, second.evidence = second.evidence, first.evidence
    if families.of(first.message.family).kill and families.of(second.message.family).kill:
        join_traces(first.message, second.message)
    elif first.message.family == second.message.family:
        for name, size in second.message.figures.items():
            first.message.figures.setdefault(name, size)
        first.message.check = first.message.check or second.message.check
        first.message.facts = second.message.facts | first.message.facts
        first.message.processes = first.message.processes or second.message.processes
        first.message.said = first.message.said or second.message.said
    if first.message.local_rank is None:
        first.message.local_rank = second.message.local_rank
    first.message.phase = first.message.phase or second.message.phase
    first.exception = first.exception or second.exception
    first.prefix = second.prefix if first.prefix == Prefix() else first.prefix
    if not first.trace.frames and second.trace.frames:
        first.trace = second.trace
    first.warned = first.warned and second.warned
    first.survived = first.survived and second.survived
    first.by_launcher = first.by_launcher or second.by_launcher
    _add_evidence(first, second)


def _add_evidence(first: PlacedMessage, second: PlacedMessage) -> None:
    first.evidence += [place for place in second.evidence if place not in first.evidence][: EVIDENCE - len(first.evidence)]


# -- equal failures of several processes


@dataclass(slots=True, eq=False)
class _Equal:
    """Equal failures of several processes: the first, the others, and their identities as far as all of them state these."""

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
        first = _representative(self.first, self.members)
        return replace(first, ranks=tuple(self.ranks), count=self.count, members=tuple(self.members[:MEMBERS]))


def _representative(first: Event, members: Sequence[Event]) -> Event:
    """The first of equal failures; without a traceback of its own, with that of the next one that has one."""
    if first.frames or first.phase != "unknown":
        return first
    with_frames = next((event for event in members if event.frames and event.phase != "unknown"), None)
    if with_frames is None:
        return first
    return replace(
        first,
        frames=with_frames.frames,
        phase=with_frames.phase,
        evidence=(first.evidence[0], *with_frames.evidence[1:2], *first.evidence[1:]),
    )


def fold_events(events: Sequence[Event], repeated: Sequence[int] = ()) -> list[Event]:
    """Events with equal failures of other processes folded into the first of them, and consequences marked.

    `repeated`: for each event, of how many lines of other processes Ray says that they are the same; 0 for a line of its own.
    """
    blamed = [duplicate_reports.blame_earlier_fault(events, number) for number in range(len(events))]
    order = sorted(range(len(events)), key=lambda number: blamed[number] is not events[number])  # what follows stands behind its fault
    events, repeated = [blamed[number] for number in order], [repeated[number] for number in order] if repeated else ()
    if any(event.status == "oom" for event in events):  # what is no failure of memory does not hide one
        keep = [number for number, event in enumerate(events) if event.status != "lookalike"]
        repeated = [repeated[number] for number in keep] if repeated else ()
        events = [events[number] for number in keep]
    groups: list[_Equal] = []
    alike: dict[Hashable, list[_Equal]] = defaultdict(list)
    for number, event in enumerate(events):
        times = repeated[number] if repeated else 0
        same = (event.family, event.attempt, event.fatal, event.status, str(event.requested))
        group = next((candidate for candidate in alike[same] if _equal_elsewhere(candidate, event, times)), None)
        if group is None:  # Ray prints the first such line at once, and the others as one: this first one is not in what was read
            group = _Equal(event, times + 1 if times else 1)
            groups.append(group)
            alike[same].append(group)
        else:
            group.count += times or 1
        group.add(event)
    folded = [group.event for group in groups]
    return [_as_consequence(event, folded, i) for i, event in enumerate(folded)]


#: What tells processes apart, the surest first.
_IDENTITIES = ("rank", "gpu", "local_rank", "pid")


def _identity(event: Event, name: str) -> object:
    """The rank, which is unique in the job; other numbers together with their host."""
    value = getattr(event, name)
    return value if value is None or name == "rank" else (event.host, value)


def _equal_elsewhere(group: _Equal, event: Event, times: int) -> bool:
    """Whether the event is the same failure in another process: similar figures, another rank, card or process id."""
    first = group.first
    allocated, other_allocated = first.allocated, event.allocated
    if allocated is not None and other_allocated is not None and abs(allocated.bytes - other_allocated.bytes) > allocated.bytes * 0.1:
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


def _is_echo(name: str) -> bool:
    """Whether events of this family are side effects of a dying job: a kill of the rest, a broken collective, a library without memory."""
    family = families.of(name)
    return family.kill or family.echo


def _as_consequence(event: Event, events: Sequence[Event], index: int) -> Event:
    """The event, marked as a consequence if it is such a side effect after a failure of the same attempt that is none."""
    if not _is_echo(event.family) or (families.of(event.family).kill and event.status == "oom"):
        return event
    cause = next(
        (
            i
            for i, earlier in enumerate(events[:index])
            if earlier.fatal and not _is_echo(earlier.family) and earlier.attempt == event.attempt
        ),
        None,
    )
    return event if cause is None else replace(event, consequence_of=cause)
