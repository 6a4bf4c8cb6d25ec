"""Excerpts as lines: colours, progress bars and prefixes undone where a line is looked at, its place kept."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from diagnose import shipped
from diagnose.facts import Witness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.scan import Excerpt

REACH = 4096  # bytes of one line that are looked at, on either side of what is sought
SHOWN = 500  # characters of a line that a witness shows

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|(?:\^\[|#033|\\u001b|\\x1b)\[[0-9;]*m")
#: One state of a progress bar, as tqdm ends it; what a process writes next follows on the same line.
BAR = re.compile(r"\d{1,12}/(?:\d{1,12}|\?) \[[^\]\n]{0,200}\]")
#: torch 2.3 streams the device index as one raw byte: GPU 0 is a NUL, GPU 10 ends the line, GPU 13 is a carriage return.
_RAW_DEVICE = re.compile(rb"GPU ([\x00-\x1f])((?:\([^)\n]*\) |\[[^\]\n]*\]: )?) has a total capac")


class Prefix(NamedTuple):
    """What stood before a line: which process wrote it."""

    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    actor: str = ""
    host: str = ""


class Line(NamedTuple):
    """A line without colours and prefixes; `text` keeps its indentation."""

    number: int
    prefix: Prefix
    text: str


class Page:
    """An excerpt cut at line ends. Lines are cleaned when asked for and counted from the input's first."""

    def __init__(self, source: str, excerpt: Excerpt) -> None:
        self.source = source
        self.excerpt = excerpt
        raw = excerpt.raw
        self.starts = [0]
        at = raw.find(b"\n")
        while at >= 0:
            self.starts.append(at + 1)
            at = raw.find(b"\n", at + 1)
        self._cleaned: dict[int, Line] = {}

    def __len__(self) -> int:
        return len(self.starts)

    def index(self, offset: int) -> int:
        """The line (counted from the page's first) of an offset in the input."""
        return bisect_right(self.starts, offset - self.excerpt.offset) - 1

    def number(self, index: int) -> int:
        """The number of that line in the input, from 1."""
        return self.excerpt.line + index

    def bounds(self, index: int) -> tuple[int, int]:
        """Where a line starts and ends in the excerpt's bytes, its line end left out."""
        end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else len(self.excerpt.raw)
        return self.starts[index], end

    def line(self, index: int) -> Line:
        """A line, cleaned; of several states of a progress bar only the last."""
        held = self._cleaned.get(index)
        if held is None:
            start, end = self.bounds(index)
            prefix, text = clean(_decoded(self.excerpt.raw[max(start, end - REACH) : end]))
            if prefix == Prefix() and end - start > REACH:
                prefix = clean(_decoded(self.excerpt.raw[start : start + 200]))[0]
            held = self._cleaned[index] = Line(self.number(index), prefix, text)
        return held

    def around(self, offset: int) -> tuple[Prefix, str, str]:
        """The process that wrote an offset's line, the cleaned text of that line before it, and the text from it on.

        The text on either side ends where a progress bar was redrawn; a raw device index is written as digits.
        """
        at = offset - self.excerpt.offset
        start, _ = self.bounds(self.index(offset))
        raw = self.excerpt.raw
        left = max(start, at - REACH)
        redrawn = raw.rfind(b"\r", left, at)
        prefix, before = clean(unescaped(_decoded(raw[max(left, redrawn + 1) : at])))
        if redrawn >= 0 and prefix == Prefix():
            prefix = clean(_decoded(raw[start : start + 200]))[0]
        after = _RAW_DEVICE.sub(lambda found: b"GPU %d has a total capac" % found[1][0], raw[at : at + REACH])
        ends = [end for end in (after.find(b"\n"), after.find(b"\r")) if end >= 0]
        return prefix, before, unescaped(_COLOUR.sub("", _decoded(after[: min(ends, default=len(after))])))

    def following(self, index: int, prefix: Prefix, reach: int = 40) -> Iterator[str]:
        """The lines that the same process wrote after a line; those of others are passed over."""
        for after in range(index + 1, min(index + 1 + reach, len(self))):
            line = self.line(after)
            if same_stream(line.prefix, prefix):
                yield line.text

    def witness(self, offset: int) -> Witness:
        """The place of an offset: its line, its column, and the line as it stands (of a long line the part that holds the offset)."""
        index = self.index(offset)
        start, end = self.bounds(index)
        at = offset - self.excerpt.offset
        into = self.excerpt.into if index == 0 else 0
        column = into + len(_decoded(self.excerpt.raw[start:at])) + 1
        redrawn = self.excerpt.raw.rfind(b"\r", start, at) + 1
        shown = start if at - start < SHOWN // 2 else max(start, redrawn, at - SHOWN // 2)
        text = _decoded(self.excerpt.raw[shown : min(end, shown + 4 * SHOWN)])[:SHOWN].rstrip("\r")
        return Witness(self.source, self.number(index), column, text.strip("\ufffd") if shown != start else text)


def clean(text: str) -> tuple[Prefix, str]:
    """A line's prefix and the line without it; the last state of a progress bar and what follows that."""
    states = [part for part in _COLOUR.sub("", text).split("\r") if part.strip()] or [""]
    prefix, payload = _peel(states[-1])
    if len(states) > 1 and prefix == Prefix():
        prefix = _peel(states[0][:200])[0]
    bars = list(BAR.finditer(payload)) if "/" in payload and "[" in payload else []
    if bars and payload[bars[-1].end() :].strip():
        inner, payload = _peel(payload[bars[-1].end() :])
        prefix = inner if inner != Prefix() else prefix
    return prefix, payload


def _peel(text: str) -> tuple[Prefix, str]:
    found: dict[str, str] = {}
    if text.startswith("{") and text.rstrip().endswith("}"):
        text = _from_json(text)
    for _ in range(6):
        match = next((match for match in (pattern.match(text) for pattern in _prefixes(_bracket(text))) if match and match.end()), None)
        if match is None:
            break
        found.update({name: value for name, value in match.groupdict().items() if value})
        text = text[match.end() :]
    if not found:
        return Prefix(), text
    number = {name: int(found[name]) if name in found else None for name in ("rank", "local_rank", "pid")}
    return Prefix(number["rank"], number["local_rank"], number["pid"], found.get("actor", ""), found.get("host", "")), text


def _from_json(text: str) -> str:
    """The message of a line that a container runtime or a logger wrote as JSON."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for key in ("log", "message", "msg", "event"):
        if isinstance(data, dict) and isinstance(data.get(key), str):
            return str(data[key]).rstrip("\n")
    return text


def unescaped(text: str) -> str:
    r"""The text of a message that was printed inside a string: `\n` is a line end there, `&gt;` a sign."""
    if "\\n" in text:
        text = text.replace("\\\\n", "\n").replace("\\n", "\n").replace('\\"', '"')
    return text.replace("&gt;", ">").replace("&amp;", "&").replace("\u00a0", " ") if "&" in text or "\u00a0" in text else text


def same_stream(one: Prefix, other: Prefix) -> bool:
    """Whether two lines come from one process, as far as their prefixes tell."""
    return (one.rank, one.local_rank, one.actor) == (other.rank, other.local_rank, other.actor) and (
        not one.pid or not other.pid or one.pid == other.pid
    )


def _bracket(text: str) -> str:
    """The bracket that a text begins with, if any: most prefixes begin with one, and most lines do not."""
    return text[0] if text.startswith(("[", "(")) else ""


@cache
def _prefixes(bracket: str) -> list[re.Pattern[str]]:
    """The prefixes that a text beginning with this bracket, or with none, can have."""
    return [re.compile(entry["pattern"]) for entry in shipped.table("prefixes") if entry.get("first", bracket) == bracket]


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
