"""Messages with their context: which process printed them, with which traceback, in which phase."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from diagnose import families, rule_files
from diagnose.parse.events.attempts import ONLY, Attempt
from diagnose.parse.frames import partial_traceback, phases, tracebacks
from diagnose.parse.messages.printed_tensors import shapes_beside
from diagnose.parse.model.event import Event
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements, lazy_re, mixed_lines, wrapped_messages
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.line_cleaning import clean
from diagnose.parse.text.lines import Prefix, same_stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.facts import Witness
    from diagnose.parse.frames.tracebacks import Traceback
    from diagnose.parse.model.event import Frame
    from diagnose.parse.text.lines import Page
    from diagnose.scan.excerpts import Excerpt, Hit

#: The grammars whose messages are failures; each has a module of its name in parse/messages, loaded where a log has such a message.
READERS = frozenset(f"{kind}_oom" for kind in ("device", "runtime", "xla", "host", "scheduler", "launcher", "ray", "serving")) | {
    "lookalike"
}
ABOVE = 3  # lines before one in which its sentence may have begun
CONTEXT = 400  # characters of its line before it

#: A line of source or a sentence about memory that only quotes a message.
_QUOTED = (
    r"(?i)\b(?:raise\s+\w+|print|warn|log\w*\.\w+|in str|in e)\b[^:]*\($|[\"'`]$.*"
    r"|\b(?:if|when|avoid|prevent|get|got|cause[sd]?|an?|your)\s+$"
)
#: What a line of source has before the words of a message that it raises, prints or asks for.
_HEADING = lazy_compile(r"[> ]{0,6}(?:#{1,6} |\*\*[^*\n]{1,300}\*\*\s{0,9}$)")
#: What stands in a title before the words of a message: words of a person, and no sign of a program's line.
_TITLE = lazy_compile(
    r"(?!.*(?:\d:\d\d|\b(?:INFO|WARN(?:ING)?|ERROR|FATAL|error|warning)\b|Error|Exception))[\w ,.'\"()，。、：！-]*\w{2}[ ,(，：]{0,3}$"
)
#: What stands in a sentence before the words of a message that it quotes.
_SENTENCE = lazy_compile(
    r"(?!.*(?:\d:\d\d|\b(?:INFO|WARN(?:ING)?|ERROR|FATAL)\b|[\w/\\]\.\w+:))[^\n]{0,300}\w[^\w\n`]{0,3} ?(?:`{1,3}|[\"“«'])"
    r"(?:\w+(?:Error|Exception): )?$"
)
#: A line of an exception that a program printed, as a title quotes it.
_WHOLE = lazy_compile(
    r"[> ]{0,6}(?:#{1,6} {1,4})?(?:\[[A-Za-z][\w /-]{1,24}\]\s?:?\s?){0,2}[\"'`*]{0,3}[\w.]{1,80}(?:Error|Exception): "
    r"(?:[\w:]{1,24} ){0,4}out of memory[.!\"'`*]{0,4}\s{0,9}",
    re.IGNORECASE,
)
_SOURCE = lazy_compile(
    r"(?:\braise\s+[\w.]{1,80}\(|\b(?:print|warn\w{0,8}|log\w{0,8}\.\w{1,12})\(|==\s*|\b(?:if|in|not|or|and)\s+)[rfb]?[\"'`][^\"'`]{0,80}$"
)
_OF_LIBRARIES = lazy_compile(r"/(?:torch|transformers|flash_attn|flashinfer|xformers|triton)/")  # run by trainers and engines alike
_WARNING = lazy_compile(r"Warning|\bWARN|\bretry|reduc(?:e|ing) batch", re.IGNORECASE)
#: Where an allocator prints a size with its unit and the number of a device, something else stands: words put together, not a message.
_BROKEN = lazy_compile(
    r"Tried to allocate \d{1,80}(?!\d)(?:\.\d{1,80}(?!\d)|(?!\.\d))"
    r"(?:(?! ?(?:[KMGT]i?B|bytes)\b)\.?\s{0,8}[^\s.]| ?[KMGT]iB\. GPU [A-Za-z])"
)
#: How Ray's driver says that other workers printed the same line; the numbers in it are those of one of them.
_REPEATED = lazy_compile(r"\[repeated (\d{1,6})x across cluster\]")
_HEAD = b"Traceback (most recent call last)"
_GAVE_UP = "No executable batch size found"


@dataclass(slots=True, eq=False, repr=False)
class PlacedMessage:
    """A message and its place in the logs. `order` sorts it among the messages of the job."""

    message: Message
    page: Page
    offset: int
    order: tuple[int, int]
    prefix: Prefix = field(default_factory=Prefix)
    exception: str = ""
    words: str = ""
    warned: bool = False
    same_line: str = ""  # what stands before it in its own line, where that holds a traceback
    trace: Traceback = field(default_factory=lambda: tracebacks.Traceback())
    evidence: list[Witness] = field(default_factory=list)
    torn: bool = False  # another process wrote into it: what is left of it has no figures
    attempt: Attempt = ONLY
    survived: bool = False  # the job went on after it
    repeated: int = 0  # as how many other lines of other processes this line stands
    by_launcher: bool = False  # a launcher, too, saw its process die

    @property
    def index(self) -> int:
        return self.page.index(self.offset)

    @property
    def fatal(self) -> bool:
        return self.message.fatal and not self.warned and not self.survived

    @property
    def is_heading(self) -> bool:
        """Whether it stands in a heading of a page, where somebody quotes it, or within the words of a title above a blank line."""
        if _HEADING.match(self.line_start) is not None:
            return True
        if self.offset > CONTEXT or self.index:
            return False
        is_title = not self.page.excerpt.offset and len(self.page) > 2 and not self.page.line(1).text.strip()
        return is_title and _TITLE.match(self.page.excerpt.raw[: min(self.offset, CONTEXT)].decode("utf-8", "replace")) is not None

    @property
    def is_quoted(self) -> bool:
        """Whether it stands between the marks in which a sentence quotes it."""
        start = self.offset - self.page.excerpt.offset - self.page.bounds(self.index)[0]
        raw = self.page.excerpt.raw[self.page.bounds(self.index)[0] :][: min(start, CONTEXT)]
        return _SENTENCE.match(raw.decode("utf-8", "replace")) is not None

    @property
    def is_whole_line(self) -> bool:
        """Whether nothing stands in its line but the class of the exception and its words; marks of a heading and tags count as nothing."""
        return bool(self.exception) and _WHOLE.fullmatch(self.page.line(self.index).text) is not None

    @property
    def gave_up(self) -> bool:
        """Whether a search for a batch size that fits ended here: the message repeats a failure that was caught before."""
        return _GAVE_UP in self.words

    @property
    def pid(self) -> int | None:
        """Id of the failed process: the message's own, else of Ray's task that the driver reports, else of the process that printed it."""
        return self.message.pid or self.trace.pid or (None if "RayTaskError" in self.exception else self.prefix.pid)

    @property
    def line_start(self) -> str:
        """The raw start of its line, prefixes included."""
        start, end = self.page.bounds(self.index)
        raw, at = self.page.excerpt.raw, self.offset - self.page.excerpt.offset
        start = max(start, raw.rfind(b"\r", start, at) + 1)
        return raw[start : min(end, start + CONTEXT)].decode("utf-8", "replace")

    def span_before(self, reach: int = 64 << 10) -> tuple[Excerpt, int, int]:
        """What this attempt printed before the message, at most `reach` bytes, as far as the page reaches: the excerpt, start, end."""
        excerpt = self.page.excerpt
        at = self.offset - excerpt.offset
        return excerpt, max(0, at - reach, self.attempt.start - excerpt.offset), at

    def bytes_before(self, reach: int = 64 << 10) -> bytes:
        """The bytes of `span_before`."""
        excerpt, start, end = self.span_before(reach)
        return excerpt.raw[start:end]


def read_messages(pages: Sequence[Page], hits: Sequence[Hit], source: int) -> Iterator[PlacedMessage]:
    """The messages at the hits of one input, in order."""
    at, last_line, last = 0, (-1, ""), -1
    torn: list[PlacedMessage] = []
    whole: set[str] = set()
    for hit in hits:
        while at < len(pages) - 1 and hit.offset not in pages[at].excerpt:
            at += 1
        if hit.offset not in pages[at].excerpt:
            continue
        if hit.grammar != "device_oom" and last_line == (hit.line, hit.grammar):
            continue  # two words of one sentence
        placed = _read(hit.grammar, pages[at], hit.offset, source)
        if placed is None or placed.offset == last:
            continue  # the second is what a literal inside a message leads to
        last_line, last = (hit.line, hit.grammar), placed.offset
        if placed.torn:
            torn.append(placed)
        else:
            whole.add(placed.message.family)
            yield placed
    yield from (torn_message for torn_message in torn if torn_message.message.family not in whole)


def _read(grammar: str, page: Page, offset: int, source: int) -> PlacedMessage | None:
    place = wrapped_messages.message_place(page, offset)
    if place is not None and grammar == "host_oom" and place.before.endswith("OutOf"):
        place = wrapped_messages.place_behind_class(page, offset)  # the MemoryError of torch.OutOfMemoryError
        grammar = "device_oom"
    if place is None:
        return None
    reader = import_module(f"diagnose.parse.messages.{grammar}")
    offset, index, prefix, line_start, line_rest = place
    text = line_rest if grammar == "device_oom" else clean(line_start[-CONTEXT:] + line_rest)[1]
    begun, text = text, wrapped_messages.join_wrapped(text, page, index, prefix, reader)
    if hasattr(reader, "prepend_lines"):
        text = reader.prepend_lines(text, _lines_above(page, page.index(offset), prefix))
    own = mixed_lines.own_text(line_start, text) if grammar == "device_oom" else text
    message: Message | None = reader.read(text.partition(".")[0] if own is None else own)
    if message is None and page.cut_off:
        message = reader.read(wrapped_messages.join_wrapped(begun, page, index, prefix, reader, to_the_end=True))
        message = replace(message, figures={}) if message is not None else None  # its last figure may lack digits
    exception = mixed_lines.deduplicate_exception(grammar_statements.exception_before(line_start)) or (
        grammar_statements.exception_leading(line_start) if grammar == "serving_oom" else ""
    )
    if grammar == "device_oom":
        if message is None and exception and not reader.speaks_for_an_engine(line_rest):
            message = Message(reader.family_of(line_rest), unread=True)
        if (
            message is None
            or not _is_message(line_start, exception, message)
            or (not exception and len(message.figures) < 2 and _BROKEN.search(line_rest))
        ):
            return None
    if message is None or (grammar in ("runtime_oom", "xla_oom", "lookalike") and _SOURCE.search(line_start[-CONTEXT:])):
        return None
    if line_start.rstrip().endswith(_ANNOUNCED):  # a program tells of an exception whose traceback it prints below
        message = replace(message, guess=True)
    words = (line_start + line_rest).strip()
    warned = grammar == "device_oom" and _WARNING.search(line_start) is not None
    placed = PlacedMessage(
        message,
        page,
        offset,
        (source, offset),
        prefix,
        exception,
        words,
        warned,
        line_start if "\n" in line_start or 'File "' in line_start else "",
    )
    placed.torn = own is None
    placed.evidence.append(page.witness(offset - _exception_width(page, offset, exception)))
    if hasattr(reader, "complete"):  # what other lines of the same report say, None: that it is no message
        lines = reader.complete(message, page, placed.index)
        if lines is None:
            return None
        placed.evidence += [page.witness(page.excerpt.offset + page.starts[at]) for at in lines]
    repeated = _REPEATED.search(line_rest)
    placed.repeated = int(repeated[1]) if repeated else 0
    placed.by_launcher = families.of(message.family).kill and message.status == "suspected"
    return placed


def _lines_above(page: Page, index: int, prefix: Prefix) -> list[str]:
    """The few lines before a line that the same process wrote."""
    lines = (page.line(number) for number in range(max(0, index - ABOVE), index))
    return [line.text for line in lines if same_stream(line.prefix, prefix)]


def _is_message(line_start: str, exception: str, message: Message) -> bool:
    """Whether the words are a printed message, not prose or source code that quotes one."""
    if exception or message.figures:
        return not re.search(r"\braise\s+\w+\($", line_start.rstrip("\"'f"))
    opening = line_start.rstrip(" *").strip()  # a report of ComfyUI has its fields in bold
    return (not opening or opening[-1] in ":=\"'(" or opening.endswith(_ANNOUNCED)) and not re.search(_QUOTED, opening)


def _exception_width(page: Page, offset: int, exception: str) -> int:
    """Bytes between the exception class and the message, if both are in one line."""
    at = offset - page.excerpt.offset
    start = page.excerpt.raw.rfind(exception.encode(), page.bounds(page.index(offset))[0], at) if exception else -1
    return at - start if start >= 0 else 0


# -- from a message in its place to an event


def locate_all(messages: Sequence[PlacedMessage]) -> None:
    """Read the traceback of each message."""
    most = tracebacks.lines_for_each(len(messages))
    count: Counter[Page] = Counter()
    last: dict[tuple[Page, Prefix], PlacedMessage] = {}
    for placed in messages:
        page, earlier = placed.page, last.get((placed.page, placed.prefix))
        count[page] += 1
        if earlier is not None and bisect_left(page.excerpt.spots.places(_HEAD), earlier.offset - page.excerpt.offset) >= count[page]:
            earlier = None  # a traceback begun above it is still to end: processes without a label write into each other's
        _locate(placed, most, -1 if earlier is None else earlier.index)
        last[page, placed.prefix] = placed


def _locate(placed: PlacedMessage, most: int, earlier: int) -> None:
    """Read at most so many lines of a message's traceback. A shortage below a pin_memory frame is one of pinned host memory."""
    if families.of(placed.message.family).kill and not placed.message.raised:
        return  # written by a kernel or a launcher: the traceback above belongs to something else
    placed.trace = tracebacks.traceback_above(placed.page, placed.index, placed.prefix, placed.same_line, most, earlier)
    if not placed.trace.frames:
        placed.trace = partial_traceback.frames_listed_below(placed.page, placed.index, placed.prefix)
    family = families.of(placed.message.family)
    if not placed.trace.frames and (family.allocator or family.shared) and not _source_line(placed):  # XLA prints its words first
        placed.trace = partial_traceback.cut_off_frames(placed.page, placed.index)
    if placed.trace.places:
        inner = placed.page.starts[placed.trace.places[-1]] + placed.page.excerpt.offset
        placed.evidence.append(placed.page.witness(inner))
    pinning = families.of(placed.message.family).pinning
    frames = (f"{frame.file} {frame.function} {frame.statement}" for frame in placed.trace.frames)
    if pinning and _PINS.search("\n".join((placed.words, *frames))):
        placed.message.family = pinning


#: What pins memory of the host. A copy to it that nobody waits for goes to pinned memory (torch _to_copy); that it goes there may be said
#: in the frame outside.
_PINS = lazy_re.lazy_compile(
    r"""pin_memory|cudaHost|CachingHostAllocator|\.to\(["']cpu["'],[^()\n]{0,60}non_blocking ?= ?True"""
    r"""|["']cpu["'][^\n]{0,80}\n[^\n]{0,400}\.to\([^()\n]{0,60}non_blocking ?= ?True"""
)

#: "Exception during processing !!! ...": behind this the words of an exception are a message.
_ANNOUNCED = "!!!"

OWN_LINES = 800  # bytes
FIGURES = frozenset(each.name for each in fields(Event))


def to_event(placed: PlacedMessage) -> Event:
    """The event that a message is."""
    message, prefix, trace = placed.message, placed.prefix, placed.trace
    figures = {name: size for name, size in message.figures.items() if name in FIGURES}
    rank = prefix.rank if message.rank is None else message.rank
    if rank is None and message.tasks:
        rank = message.tasks[0]
    event = Event(
        family=message.family,
        status=message.status,
        exception=placed.exception or placed.words[:120],
        reason=message.reason,
        fatal=placed.fatal,
        attempt=placed.attempt.number,
        rank=rank,
        local_rank=prefix.local_rank if message.local_rank is None else message.local_rank,
        ranks=(rank,) if rank is not None else (),
        host=message.host or prefix.host or trace.host or None,
        pid=placed.pid or prefix.pid,
        gpu=message.gpu,
        role=role_of_name(f"{prefix.actor} {trace.actor} {trace.method} {message.said}") or _role_of_frames(trace.frames),
        phase=_phase(placed),
        other_processes=message.processes,
        frames=trace.frames,
        source_line=_source_line(placed),
        lines=_own_lines(placed),
        printed=shapes_beside(placed.page, placed.offset, message.figures.get("requested")),
        evidence=tuple(placed.evidence),
        **figures,  # type: ignore[arg-type]
    )
    if message.rank is not None or len(message.tasks) < 2:
        return event
    others = tuple(replace(event, rank=task, ranks=(task,)) for task in message.tasks[1:])  # a scheduler names them in one line
    return replace(event, ranks=message.tasks, count=len(message.tasks), members=others)


def _role_of_frames(frames: Sequence[Frame]) -> str | None:
    """The role whose code fails: the rollout engine, if the innermost frame outside libraries is an engine's; else the role whose code
    runs; "" if unknown."""
    own = next((frame.file for frame in reversed(frames) if not _OF_LIBRARIES.search(frame.file)), "")
    if re.search(r"(?:^|/)(?:vllm|vllm_ascend|sglang|lmdeploy|text_generation_server)/", own):
        return "engine"
    for rule in rule_files.table("roles"):
        parts = [(rule[part], part) for part in ("file", "function") if part in rule]
        if parts and any(all(lazy_re.matches_pattern(pattern, getattr(frame, part)) for pattern, part in parts) for frame in frames):
            return str(rule["role"])
    return None


def _own_lines(placed: PlacedMessage) -> str:
    """The line of a request and the few below it; of torch, whose words name no buffer, what stands before them."""
    if placed.message.figures.get("requested") is None:
        return ""
    start = placed.page.starts[placed.index]
    end = placed.offset - placed.page.excerpt.offset if families.of(placed.message.family).allocator else start + OWN_LINES
    return placed.page.excerpt.raw[max(start, end - OWN_LINES) : end].decode("utf-8", "replace")


def _source_line(placed: PlacedMessage) -> str:
    """The line of source above a message that has no frames; "" where none may be its own."""
    if placed.trace.frames or families.of(placed.message.family).kill:
        return ""
    return partial_traceback.code_in(partial_traceback.source_line_above(placed.page, placed.index, placed.prefix))


def _phase(placed: PlacedMessage) -> str:
    phase = phases.phase_of_frames(placed.trace.frames) or placed.message.phase or phases.phase_of_call(placed.message.said)
    if not phase and not placed.trace.frames and not families.of(placed.message.family).kill:
        above = partial_traceback.source_line_above(placed.page, placed.index, placed.prefix)
        phase = phases.phase_of_source(above) or phases.phase_of_source(_torn_in(placed))
    return phase or phases.not_over(phases.phase_of_lines(*placed.span_before()), placed.trace.frames) or "unknown"


def role_of_name(name: str) -> str | None:
    """The role that the name of a process or actor shows; None if none."""
    return next((role for role, says in _roles() if says.search(name)), None) if name.strip() else None


@cache
def _roles() -> list[tuple[str, re.Pattern[str]]]:
    return [(entry["role"], re.compile(entry["says"])) for entry in rule_files.table("roles") if "says" in entry]


def _torn_in(placed: PlacedMessage) -> str:
    """The end of another process's line of source that stands between an exception and its message: `OutOfMemoryError: loss.backward()CUDA
    out of memory`. Processes of one job fail at the same place."""
    start, at = placed.page.starts[placed.index], placed.offset - placed.page.excerpt.offset
    before = placed.page.excerpt.raw[max(start, at - OWN_LINES) : at].decode("utf-8", "replace").rstrip()
    return before.rpartition(": ")[2] if before.endswith(")") else ""
