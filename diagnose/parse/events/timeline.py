"""The events of a job: messages of all logs sorted into attempts and by time, folded, with their consequences."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from diagnose import families
from diagnose.facts import Notice
from diagnose.parse.events import consequences, folding, interleaved_tracebacks, log_events, nearby_marks, order
from diagnose.parse.events.attempts import Attempts
from diagnose.parse.events.survival import Survival
from diagnose.parse.frames import phases
from diagnose.parse.messages.scheduler_oom import STOPS
from diagnose.parse.text.lines import Page
from diagnose.phrases import phrase
from diagnose.records import NamedTuple
from diagnose.scan.excerpts import Excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.model.event import Event
    from diagnose.scan.log_scan import Scanned

NEARBY = 64  # messages among which the next of the same process is sought
WHOLE = 64 << 10  # bytes after the start of a run that hold what it prints about itself
#: Reasons why a message is none of a failure, and why it may be one all the same where it is the last that is printed.
LAST = {"pool_growth": "pool_refused", "segment_retry": "pool_refused", "large_alloc": "large_alloc_last"}
STOPPED = 4 << 10  # bytes before a scheduler's word that it stopped the job within which a kill is its doing


class Timeline(NamedTuple):
    """`failures` are the messages that `events` were made of; `since`: the first attempt of the launch that is diagnosed."""

    failures: tuple[PlacedMessage, ...]
    events: tuple[Event, ...]
    since: int
    launches: dict[str, Attempts]
    messages: tuple[PlacedMessage, ...]

    def failure(self, event: Event) -> PlacedMessage:
        """The message behind an event."""
        return next(failure for failure in self.failures if failure.evidence[0] == event.evidence[0])


def build_timeline(scanned: Sequence[Scanned], pages: Sequence[Sequence[Page]]) -> Timeline:
    """The timeline of a job's scanned logs."""
    launches: dict[str, Attempts] = {}
    messages: list[PlacedMessage] = []
    for number, scan in enumerate(scanned):
        launches[scan.input.name] = input_attempts = Attempts(scan.hits, scan.label.attempt)
        hits = [hit for hit in scan.hits if hit.grammar in log_events.READERS]
        input_messages = list(
            log_events.read_messages(pages[number], nearby_marks.merge_hits(hits, pages[number], log_events.READERS), number)
        )
        stopped = min((message.offset for message in input_messages if message.message.reason in STOPS), default=1 << 62)
        input_messages = [
            message for message in input_messages if message.message.status != "suspected" or message.offset < stopped - STOPPED
        ]
        for message in (input_messages := [*_without_guesses(input_messages)]):
            input_attempts.learn(message.offset)
            message.attempt = input_attempts.at(message.offset)
        input_attempts.close()
        messages += input_messages
    if not messages:
        return Timeline((), (), 1, launches, ())
    for message in messages:  # the last failure of an attempt did not know yet where that ends
        message.attempt = launches[message.page.source].at(message.offset)
    log_events.locate_all(messages)
    interleaved_tracebacks.untangle_tracebacks(messages)
    every = [page for of_input in pages for page in of_input]
    marks = nearby_marks.find_marks(every)
    failures = _failures(messages, Survival(marks), every, len(scanned) == 1)
    folded = folding.fold_events([log_events.to_event(scan) for scan in failures], [scan.repeated for scan in failures])
    launch = _diagnosed_launch(failures)
    since = min((scan.attempt.number for scan in failures if scan.attempt.launch == launch), default=1)
    state = Timeline(tuple(failures), tuple(folded), since, launches, tuple(messages))
    follow = consequences.consequences_of(
        folded, marks, lambda source, offset: launches[source].at(offset).number, lambda event: _place(state, event)
    )
    return Timeline(tuple(failures), (*folded, *follow), since, launches, tuple(messages))


def _place(state: Timeline, event: Event) -> tuple[str, int]:
    failure = state.failure(event)
    return failure.page.source, failure.offset


def _failures(messages: Sequence[PlacedMessage], survival: Survival, pages: Sequence[Page], one_log: bool) -> list[PlacedMessage]:
    """Every failure once, in the order they happened; those that the job survived are marked."""
    _mark_survived(messages, survival)
    _doubt_last_growth(messages, pages)
    failures = folding.without_repeats(_without_guesses(messages))
    for failure in failures:  # a helper that is killed after the end is not the death of the job
        if (
            not families.of(failure.message.family).kill
            or failure.by_launcher
            or not survival.had_finished(failure.page.source, failure.offset, failure.attempt.start)
        ):
            continue
        if failure.message.helper:
            failure.message.status, failure.message.reason = "lookalike", "after_end"
        saving = phases.phase_of_lines(*failure.span_before()) == "checkpoint_save"  # the last thing that a job itself does
        own = families.of(failure.message.family).own  # Ray ends the job's own workers, and says which
        failure.survived = failure.survived or failure.message.helper or not (saving or own)
    failures.sort(key=lambda failure: failure.attempt.number)
    named = next((fact.value for fact in order.root_rank(pages)), None)
    return order.sort_by_time(failures, named if isinstance(named, int) else None, pages, one_log)


def _doubt_last_growth(messages: Sequence[PlacedMessage], pages: Sequence[Page]) -> None:
    """A pool that is refused memory goes on with less; where nothing else failed and nothing is printed behind it, it may not have."""
    last = messages[-1] if messages else None
    if (
        last is None
        or last.message.reason not in LAST
        or any(placed.message.status == "oom" and not placed.is_heading for placed in messages)
    ):
        return
    page = last.page
    behind = (page.line(index).text for index in range(last.index + 1, min(len(page), last.index + 1 + NEARBY)))
    is_end = page is next(other for other in reversed(pages) if other.source == page.source)
    if is_end and not any(character.isdigit() for text in behind for character in text):  # what programs print has figures
        quoted = any(placed.is_heading for placed in messages)  # somebody says that it failed
        last.message.status, last.message.reason, last.message.fatal = "oom" if quoted else "suspected", LAST[last.message.reason], True


def _without_guesses(messages: Sequence[PlacedMessage]) -> Sequence[PlacedMessage]:
    """Drop weak witnesses, such as Ray's generic list of reasons for a lost worker, if anything else was found; what a heading of a page
    quotes, if a log speaks of a failure or the heading has no figures: then these are a person's words (inputs/prose). So are those that a
    sentence quotes where the message is printed elsewhere."""
    messages = [placed for placed in messages if not (_is_only_named(placed) and placed.is_heading)]
    printed = [placed for placed in messages if not (_is_only_named(placed) and placed.is_quoted)]
    messages = printed if any(placed.message.status == "oom" and not placed.message.guess for placed in printed) else messages
    certain = [placed for placed in messages if not placed.message.guess] or messages
    if any(not placed.is_heading and placed.message.status != "lookalike" for placed in certain):
        return [placed for placed in certain if not placed.is_heading]
    return certain


def _is_only_named(placed: PlacedMessage) -> bool:
    """Whether words that say that memory ran out have nothing with them that only a program knows: no figures, no card, no process, and no
    exception whose whole line they are."""
    message = placed.message
    is_known = message.figures or message.gpu is not None or message.host or message.tasks or message.killed
    if message.status != "oom" or is_known or "out of memory" not in placed.words.lower():
        return False
    return not placed.is_whole_line


def _mark_survived(messages: Sequence[PlacedMessage], survival: Survival) -> None:
    """Mark the failures after which the job went on, as far as its log shows."""
    next_of_input: dict[str, PlacedMessage] = {}  # by input: the next message that is not the same one printed again
    behind: dict[str, list[PlacedMessage]] = defaultdict(list)
    for placed in reversed(messages):
        source, end = placed.page.source, placed.attempt.end
        following = behind[source]
        if following and folding.repeat_key(following[-1]) != folding.repeat_key(placed):
            next_of_input[source] = following[-1]
        until = min(next_of_input[source].offset, end) if source in next_of_input else end
        placed.survived = (
            survival.goes_on(placed.page, placed.offset, end)
            or survival.is_retried(source, placed.offset, until)
            or survival.finished(source, placed.offset, end)
        )
        if survival.gave_up(source, placed.offset, end):  # it was caught, until the last
            same = next((later for later in reversed(following[-NEARBY:]) if _fails_again(later, placed)), None)
            last = survival.gave_up(source, placed.offset, min(same.offset, end) if same else end)
            placed.survived, placed.warned = not last, placed.warned and not last
        following.append(placed)


def _fails_again(later: PlacedMessage, placed: PlacedMessage) -> bool:
    """Whether a message is another failure of the same process."""
    same_process = (later.prefix, later.message.gpu) == (placed.prefix, placed.message.gpu)
    return same_process and not later.gave_up and folding.repeat_key(later) != folding.repeat_key(placed)


# -- what else is of the launch that failed


def pages_of_launch(state: Timeline, pages: Sequence[Page]) -> list[Page]:
    """The pages without what earlier runs appended to the same file, where the start of the diagnosed run was kept."""
    start: dict[str, int] = {}
    for failure in state.failures:
        if failure.attempt.number == state.since and failure.attempt.launch > 1:
            start[failure.page.source] = failure.attempt.start
    own_pages: list[Page] = []
    for page in pages:
        begin = start.get(page.source, 0)
        if begin <= page.excerpt.offset or not _is_whole(state, pages, page.source, begin):
            own_pages.append(page)
        elif begin in page.excerpt:
            index = page.index(begin)
            at = page.starts[index]
            excerpt, into = page.excerpt, 0 if index else page.excerpt.into
            excerpt_rest = Excerpt(excerpt.raw[at:], excerpt.offset + at, page.number(index), into)
            own_pages.append(Page(page.source, excerpt_rest, page.writer))
    return own_pages


def _is_whole(state: Timeline, pages: Sequence[Page], source: str, begin: int) -> bool:
    """Whether what a run prints about itself at its start was kept."""
    page = next((page for page in pages if page.source == source and begin in page.excerpt), None)
    if page is None:
        return False
    end = page.excerpt.offset + len(page.excerpt.raw)
    root = next(failure.offset for failure in state.failures if failure.attempt.number == state.since and failure.page.source == source)
    return root < end or end - begin >= WHOLE


def notices(state: Timeline, root: Event | None) -> Iterator[Notice]:
    """Remarks for the reader on how failures were sorted."""
    for event in state.events:
        if len(event.members) == folding.MEMBERS:
            unlisted = event.count - 1 - folding.MEMBERS
            if unlisted:
                yield Notice("info", "more_members", phrase("parse.more_members", count=unlisted), event.evidence[0])
    if root is None:
        return
    failed = {failure.attempt.number for failure in state.failures}
    source = root.evidence[0].source
    last = state.launches[source].last.number
    if len(failed) > 1:
        yield Notice("info", "attempts", phrase("parse.attempts", count=len(failed), which=root.attempt), root.evidence[0])
    if last > max(failed):
        yield Notice("info", "started_again", phrase("parse.started_again"), root.evidence[0])
    if not root.fatal and root.status == "oom":
        yield Notice("info", "survived", phrase("parse.survived"), root.evidence[0])


def _diagnosed_launch(failures: Sequence[PlacedMessage]) -> int:
    """The last launch that ended in a failure of its own."""
    return max(
        (failure.attempt.launch for failure in failures if failure.fatal),
        default=max((failure.attempt.launch for failure in failures), default=1),
    )
