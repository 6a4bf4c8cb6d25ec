"""Messages in their place: which process printed them, with which traceback, in which phase."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from diagnose import shipped
from diagnose.parse import device_oom, host_oom, phase, progress, runtime_oom, serving_oom, traceback, wording
from diagnose.parse.event import Event
from diagnose.parse.lines import Prefix, clean
from diagnose.parse.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from diagnose.facts import Witness
    from diagnose.parse.event import Frame
    from diagnose.parse.lines import Page
    from diagnose.parse.traceback import Traceback
    from diagnose.scan import Hit

READERS: dict[str, ModuleType] = {"device_oom": device_oom, "runtime_oom": runtime_oom, "host_oom": host_oom, "serving_oom": serving_oom}
JOINED = 16  # lines that one message may be wrapped into
LONGEST = 4000  # characters of a message that are parsed
CONTEXT = 400  # characters of its line before it

#: A line of source or a sentence about memory that only quotes a message.
_QUOTED = (
    r"(?i)\b(?:raise\s+\w+|print|warn|log\w*\.\w+|in str|in e)\b[^:]*\($|[\"'`]$.*"
    r"|\b(?:if|when|avoid|prevent|get|got|cause[sd]?|an?|your)\s+$"
)
_WARNING = re.compile(r"Warning|\bWARN|\bretry|reduc(?:e|ing) batch", re.IGNORECASE)


@dataclass(slots=True)
class Seen:
    """A message and its place. `order` puts it among the others of the job."""

    message: Message
    page: Page
    offset: int
    order: tuple[int, int]
    prefix: Prefix = field(default_factory=Prefix)
    exception: str = ""
    words: str = ""
    warned: bool = False
    same_line: str = ""  # what stands before it in its own line, where that holds a traceback
    trace: Traceback = field(default_factory=lambda: traceback.Traceback())
    evidence: list[Witness] = field(default_factory=list)
    attempt: int = 1

    @property
    def index(self) -> int:
        return self.page.index(self.offset)

    def bytes_before(self, reach: int = 64 << 10) -> bytes:
        """What the log says before the message, as far as the page reaches back."""
        at = self.offset - self.page.excerpt.offset
        return self.page.excerpt.raw[max(0, at - reach) : at]


def seen(pages: Sequence[Page], hits: Sequence[Hit], source: int) -> Iterator[Seen]:
    """The messages at the hits of one input, in order."""
    at, last_line = 0, (-1, "")
    for hit in hits:
        if hit.grammar not in READERS:
            continue
        while at < len(pages) - 1 and hit.offset not in pages[at].excerpt:
            at += 1
        if hit.offset not in pages[at].excerpt:
            continue
        if hit.grammar != "device_oom" and last_line == (hit.line, hit.grammar):
            continue  # two words of one sentence
        found = _read(hit.grammar, pages[at], hit.offset, source)
        if found is not None:
            last_line = (hit.line, hit.grammar)
            yield found


def _read(grammar: str, page: Page, offset: int, source: int) -> Seen | None:
    reader = READERS[grammar]
    prefix, before, after = page.around(offset)
    if grammar == "host_oom" and before.endswith("OutOf"):
        return None  # the MemoryError of torch.OutOfMemoryError: loading a grammar to find that out costs 7 ms
    text = after if grammar == "device_oom" else clean(before[-CONTEXT:] + after)[1]
    text = _joined(text, page, page.index(offset), prefix, reader.goes_on)
    message: Message | None = reader.read(_first_only(text) if grammar == "device_oom" else text)
    exception = wording.exception_before(before)
    if grammar == "device_oom":
        if message is None and exception and not serving_oom.speaks(after):
            message = Message(device_oom.family_of(after), unread=True)
        if message is None or not _meant(before, exception, message):
            return None
    if message is None:
        return None
    words = (before + after).strip()
    warned = grammar == "device_oom" and _WARNING.search(before) is not None
    seen = Seen(message, page, offset, (source, offset), prefix, exception, words, warned, before if "\n" in before else "")
    seen.evidence.append(page.witness(offset - _width(exception, before)))
    return seen


def _joined(text: str, page: Page, index: int, prefix: Prefix, goes_on: Callable[[str, str], bool]) -> str:
    for count, line in enumerate(page.following(index, prefix)):
        if count == JOINED or not goes_on(text, line):
            break
        text += "\n" + line
    return text[:LONGEST]


def _first_only(text: str) -> str:
    """Without a second message that another rank wrote into the same line."""
    second = re.search(r"(?:CUDA|HIP|NPU|XPU) out of memory\. Tried", text[12:])
    return text[: second.start() + 12] if second else text


def _meant(before: str, exception: str, message: Message) -> bool:
    """Whether the words are a message and not talk about one."""
    if exception or message.figures:
        return not re.search(r"\braise\s+\w+\($", before.rstrip("\"'f"))
    opening = before.strip()
    return (not opening or opening[-1] in ":=\"'(") and not re.search(_QUOTED, opening)


def _width(exception: str, before: str) -> int:
    """How many bytes before the message its exception class begins, where that stands in the same line."""
    return len(before[before.rfind(exception) :].encode()) if exception else 0


# -- from a message in its place to an event


def placed(one: Seen) -> Seen:
    """The message with its traceback; a shortage below a pin_memory frame is one of pinned host memory."""
    if one.message.family in host_oom.KILLS and one.message.weight != 4:
        return one  # written by a kernel or a launcher: the traceback above belongs to something else
    one.trace = traceback.above(one.page, one.index, one.prefix, one.same_line)
    if one.trace.places:
        inner = one.page.starts[one.trace.places[-1]] + one.page.excerpt.offset
        one.evidence.append(one.page.witness(inner))
    if one.message.family == "cuda_driver" and any(
        "pin_memory" in f"{frame.file} {frame.function} {frame.statement}" for frame in one.trace.frames
    ):
        one.message.family = "pinned_host"
    return one


def event(one: Seen) -> Event:
    """The event that a message is."""
    message, prefix, trace = one.message, one.prefix, one.trace
    figures = {name: size for name, size in message.figures.items() if name in Event.__dataclass_fields__}
    return Event(
        family=message.family,
        status=message.status,
        exception=one.exception or one.words[:120],
        fatal=not one.warned and not progress.goes_on_after(one.page.excerpt.raw, one.offset - one.page.excerpt.offset),
        attempt=one.attempt,
        rank=prefix.rank,
        local_rank=prefix.local_rank,
        ranks=(prefix.rank,) if prefix.rank is not None else (),
        host=prefix.host or trace.host or None,
        pid=message.pid or prefix.pid or trace.pid,
        gpu=message.gpu,
        role=role(f"{prefix.actor} {trace.actor} {message.said}") or _role_of_frames(trace.frames),
        phase=_phase(one),
        other_processes=message.processes,
        frames=trace.frames,
        evidence=tuple(one.evidence),
        **figures,  # type: ignore[arg-type]
    )


def _role_of_frames(frames: Sequence[Frame]) -> str | None:
    """The rollout engine, where the innermost frame outside torch is the engine's own code."""
    own = next((frame.file for frame in reversed(frames) if "/torch/" not in frame.file), "")
    return "engine" if re.search(r"(?:^|/)(?:vllm|sglang)/", own) else None


def _phase(one: Seen) -> str:
    shown = phase.of_frames(one.trace.frames) or one.message.phase or phase.of_words(one.message.said)
    return shown or phase.of_lines(one.bytes_before()) or "unknown"


def role(name: str) -> str | None:
    """The role that a process's name shows."""
    return next((role for role, says in _roles() if says.search(name)), None) if name.strip() else None


@cache
def _roles() -> list[tuple[str, re.Pattern[str]]]:
    return [(entry["role"], re.compile(entry["says"])) for entry in shipped.table("roles")]
