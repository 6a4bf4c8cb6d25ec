"""A log that ends in the middle of a traceback, before its exception: what failed if it was memory, for somebody who asks about one job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.facts import Fact
from diagnose.parse.facts import failure_facts
from diagnose.parse.frames import activity, phases, tracebacks
from diagnose.parse.messages import device_oom
from diagnose.parse.model.event import Event, Frame
from diagnose.parse.text.lines import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.parse.model.reading import Reading
    from diagnose.scan.log_scan import Scanned

#: Lines behind the innermost place that a traceback may still have: its source, marks under it, the rest of a box.
BEHIND = 12
#: Lines above the outermost place in which its head may stand.
ABOVE = 3

_PLACE = b'File "'
#: A place in a box of rich, where the box's width did not cut its path from its number.
_BOXED = re.compile(rb"\xe2\x94\x82 (?:[^\n\xe2]{1,400}:)?\d{1,7} in \w")
#: What stands below a place: lines of source, the rest of a box.
_BELOW = ("    ", "│", "╰")
#: An exception's line, behind the rank in brackets that wrote it.
RAISED = re.compile(r"(?:\[[^\]]{1,40}\]:?\s{0,4})?[\w.]{1,80}(?:Error|Exception|Exit|Interrupt)\b")
#: A line of a traceback below a place: indented, boxed, or the beginning of a place.
_OF_TRACEBACK = re.compile(r"\s{2,}\S|\s*[│╰|^~]|\s*$|\s*File ")
#: Stacks that are printed without a failure: by a watchdog, by logging, of threads.
_NO_FAILURE = re.compile(r"most recent call first|Stack \(most recent|[Tt]hread 0x|Thread \d")


def frames_at_last_place(log: Scanned) -> tuple[Page | None, tuple[Frame, ...], int]:
    """The frames, innermost last, of the last traceback of a page where its exception was cut off; and the place of the innermost."""
    for excerpt in reversed(log.excerpts):
        at = max(excerpt.raw.rfind(_PLACE), *(match.start() for match in _BOXED.finditer(excerpt.raw)), -1)
        if at < 0:
            continue
        page = Page(log.input.name, excerpt)
        index = page.index(excerpt.offset + at)
        prefix, end = page.line(index).prefix, index + 1
        while end < len(page) and page.line(end).text.startswith(_BELOW) and "Error" not in page.line(end).text:
            end += 1
        if end < len(page) and RAISED.match(page.line(end).text):
            return None, (), 0
        return page, tracebacks.traceback_above(page, end, prefix).frames, excerpt.offset + page.starts[index]
    return None, (), 0


def suppose_memory(logs: Sequence[Scanned], reading: Reading) -> Reading:
    """The reading with a failure that is only suspected, where nothing failed and a log ends in frames of torch that show what the job was
    doing. Many logs end so for other reasons: it is for a job that somebody asks about, not for a search through many."""
    if reading.root is not None:
        return reading
    event = next((event for log in logs if (event := _event(log)) is not None), None)
    if event is None:
        return reading
    own = (*failure_facts.figures(event), *failure_facts.circumstances(event), *failure_facts.trainer(event))
    loading = Fact("log.loading", event.phase == "model_load", "log", event.evidence[0])
    return reading._replace(events=(*reading.events, event), facts=(*reading.facts, *own, loading))


def _event(log: Scanned) -> Event | None:
    """The failure that a log would end with; None where it does not end in a traceback of torch."""
    if not log.excerpts:
        return None
    page = Page(log.input.name, log.excerpts[-1])
    last = next((at for at in range(len(page) - 1, -1, -1) if page.line(at).text.strip()), -1)
    trace = tracebacks.traceback_above(page, last + 1, page.line(last).prefix) if last >= 0 else tracebacks.Traceback()
    if not trace.frames or last - trace.places[-1] > BEHIND:
        return None
    behind = (page.line(at).text for at in range(trace.places[-1] + 1, last + 1))
    above = (page.line(at).text for at in range(max(0, trace.places[0] - ABOVE), trace.places[0]))
    if not all(map(_OF_TRACEBACK.match, behind)) or any(map(_NO_FAILURE.search, above)):
        return None
    phase = phases.phase_of_frames(trace.frames)
    if not phase or not activity.asks_torch("", trace.frames):
        return None
    witness = page.witness(page.excerpt.offset + page.starts[trace.places[-1]])
    return Event(
        family=device_oom.family_of("out of memory"),
        status="suspected",
        reason="cut_traceback",
        phase=phase,
        frames=trace.frames,
        evidence=(witness,),
    )
