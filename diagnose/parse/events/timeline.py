"""What happened: the messages of all logs as failures of attempts, in order, folded, with what follows from them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from diagnose.facts import Notice
from diagnose.parse.events import attempts, consequences, folding, interleaved_tracebacks, nearby_marks, order
from diagnose.parse.events import log_events as events
from diagnose.parse.events.attempts import Attempts
from diagnose.parse.events.survival import Survival
from diagnose.parse.frames import phases
from diagnose.parse.messages.host_oom import KILLS
from diagnose.parse.messages.scheduler_oom import STOPS
from diagnose.parse.text.lines import Page
from diagnose.phrases import phrase
from diagnose.record import record
from diagnose.scan.excerpts import Excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.parse.events.log_events import Seen
    from diagnose.parse.model.event import Event
    from diagnose.scan.log_scan import Scanned

NEARBY = 64  # messages among which the next of the same process is sought
WHOLE = 64 << 10  # bytes after the start of a run that hold what it prints about itself
STOPPED = 4 << 10  # bytes before a scheduler's word that it stopped the job within which a kill is its doing


@record
class Happened:
    """`failures` are the messages that `events` were made of; `since` the first attempt of the launch that the events' root is of."""

    failures: tuple[Seen, ...]
    events: tuple[Event, ...]
    since: int
    launches: dict[str, Attempts]
    messages: tuple[Seen, ...]

    def failure(self, event: Event) -> Seen:
        """The message that an event was made of."""
        return next(one for one in self.failures if one.evidence[0] == event.evidence[0])


def happened(scanned: Sequence[Scanned], pages: Sequence[Sequence[Page]]) -> Happened:
    launches: dict[str, Attempts] = {}
    messages: list[Seen] = []
    for number, one in enumerate(scanned):
        launches[one.input.name] = known = Attempts(one.hits, one.label.attempt)
        hits = [hit for hit in one.hits if hit.grammar in events.READERS]
        found = list(events.seen(pages[number], nearby_marks.with_messages(hits, pages[number], events.READERS), number))
        stopped = min((message.offset for message in found if message.message.reason in STOPS), default=1 << 62)
        found = [message for message in found if message.message.status != "suspected" or message.offset < stopped - STOPPED]
        for message in found:
            known.learn(message.offset)
            message.attempt = known.at(message.offset)
        known.close()
        messages += found
    if not messages:
        return Happened((), (), 1, launches, ())
    for message in messages:  # the last failure of an attempt did not know yet where that ends
        message.attempt = launches[message.page.source].at(message.offset)
    placed = [events.placed(message) for message in messages]
    interleaved_tracebacks.untangle(placed)
    every = [page for of_input in pages for page in of_input]
    marks = nearby_marks.marks(every)
    failures = _failures(placed, Survival(marks), every, len(scanned) == 1)
    told = folding.folded([events.event(one) for one in failures], [one.repeated for one in failures])
    launch = attempts.launch_of(failures)
    since = min((one.attempt.number for one in failures if one.attempt.launch == launch), default=1)
    state = Happened(tuple(failures), tuple(told), since, launches, tuple(messages))
    follow = consequences.after(told, marks, lambda source, offset: launches[source].at(offset).number, lambda event: _place(state, event))
    return Happened(tuple(failures), (*told, *follow), since, launches, tuple(messages))


def _place(state: Happened, event: Event) -> tuple[str, int]:
    one = state.failure(event)
    return one.page.source, one.offset


def _failures(messages: Sequence[Seen], survival: Survival, pages: Sequence[Page], one_log: bool) -> list[Seen]:
    """Every failure once, in the order that they happened, those marked that the job survived."""
    _mark_survived(messages, survival)
    failures = folding.once(_without_guesses(messages))
    for one in failures:  # a helper that is killed after the end is not the death of the job
        if one.message.family not in KILLS or one.by_launcher or not survival.had_finished(one.page.source, one.offset, one.attempt.start):
            continue
        if one.message.helper:
            one.message.status, one.message.reason = "lookalike", "after_end"
        saving = phases.of_lines(one.bytes_before()) == "checkpoint_save"  # the last thing that a job itself does
        own = one.message.family == "ray_oom"  # Ray ends the job's own workers, and says which
        one.survived = one.survived or one.message.helper or not (saving or own)
    failures.sort(key=lambda one: one.attempt.number)
    named = next((fact.value for fact in order.root_rank(pages)), None)
    return order.in_order(failures, named if isinstance(named, int) else None, pages, one_log)


def _without_guesses(messages: Sequence[Seen]) -> Sequence[Seen]:
    """Ray prints what may have happened whenever a worker is gone: that counts where nothing else was found."""
    told = [one for one in messages if one.message.family not in KILLS or one.message.weight]
    return told or messages


def _mark_survived(messages: Sequence[Seen], survival: Survival) -> None:
    """Which failures the job lived on after, as far as its log goes on."""
    after: dict[str, Seen] = {}  # by input: the next message that is not the same one printed again
    behind: dict[str, list[Seen]] = defaultdict(list)
    for one in reversed(messages):
        source, end = one.page.source, one.attempt.end
        following = behind[source]
        if following and folding.kind(following[-1]) != folding.kind(one):
            after[source] = following[-1]
        until = min(after[source].offset, end) if source in after else end
        one.survived = (
            survival.goes_on(one.page, one.offset, end)
            or survival.is_retried(source, one.offset, until)
            or survival.finished(source, one.offset, end)
        )
        if survival.gave_up(source, one.offset, end):  # it was caught, until the last
            same = next((other for other in reversed(following[-NEARBY:]) if _fails_again(other, one)), None)
            last = survival.gave_up(source, one.offset, min(same.offset, end) if same else end)
            one.survived, one.warned = not last, one.warned and not last
        following.append(one)


def _fails_again(other: Seen, one: Seen) -> bool:
    """Whether a message is another failure of the same process."""
    same_process = (other.prefix, other.message.gpu) == (one.prefix, one.message.gpu)
    return same_process and not other.gave_up and folding.kind(other) != folding.kind(one)


# -- what else is of the launch that failed


def of_launch(state: Happened, pages: Sequence[Page]) -> list[Page]:
    """The pages without what earlier runs printed that someone appended this one to, where the start of this one was kept."""
    start: dict[str, int] = {}
    for one in state.failures:
        if one.attempt.number == state.since and one.attempt.launch > 1:
            start[one.page.source] = one.attempt.start
    kept: list[Page] = []
    for page in pages:
        begin = start.get(page.source, 0)
        if begin <= page.excerpt.offset or not _is_whole(state, pages, page.source, begin):
            kept.append(page)
        elif begin in page.excerpt:
            index = page.index(begin)
            at = page.starts[index]
            excerpt, into = page.excerpt, 0 if index else page.excerpt.into
            rest = Excerpt(excerpt.raw[at:], excerpt.offset + at, page.number(index), into)
            kept.append(Page(page.source, rest, page.writer))
    return kept


def _is_whole(state: Happened, pages: Sequence[Page], source: str, begin: int) -> bool:
    """Whether what a run says about itself when it starts was kept."""
    page = next((page for page in pages if page.source == source and begin in page.excerpt), None)
    if page is None:
        return False
    end = page.excerpt.offset + len(page.excerpt.raw)
    root = next(one.offset for one in state.failures if one.attempt.number == state.since and one.page.source == source)
    return root < end or end - begin >= WHOLE


def notices(state: Happened, root: Event | None) -> Iterator[Notice]:
    """What a reader should know of how the failures were sorted."""
    for event in state.events:
        if len(event.members) == folding.MEMBERS:
            more = event.count - 1 - folding.MEMBERS
            if more:
                yield Notice("info", "more_members", phrase("parse.more_members", count=more), event.evidence[0])
    if root is None:
        return
    failed = {one.attempt.number for one in state.failures}
    source = root.evidence[0].source
    last = state.launches[source].last.number
    if len(failed) > 1:
        yield Notice("info", "attempts", phrase("parse.attempts", count=len(failed), which=root.attempt), root.evidence[0])
    if last > max(failed):
        yield Notice("info", "started_again", phrase("parse.started_again"), root.evidence[0])
    if not root.fatal and root.status == "oom":
        yield Notice("info", "survived", phrase("parse.survived"), root.evidence[0])
