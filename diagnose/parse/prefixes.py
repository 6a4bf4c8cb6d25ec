"""What stands before a line: peeled off, and what it tells about the process that wrote it (rules/prefixes.yaml)."""

from __future__ import annotations

import re
from functools import cache

from diagnose import shipped
from diagnose.parse import decoded
from diagnose.parse.pattern import later
from diagnose.record import NamedTuple

MOST = 8  # prefixes that are peeled off one after another: six that people stack, and two that count twice
HEAD = 200  # characters in which a prefix stands


class Prefix(NamedTuple):
    """What stood before a line: which process wrote it."""

    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    actor: str = ""
    host: str = ""


NOBODY = Prefix()


class Peeled(NamedTuple):
    """A line without its prefixes. `label`: the rank is a bare number, which may be a viewer's count of lines.

    `stream`: of a container runtime, that cuts long lines; `open`: this part is continued in the stream's next one.
    """

    prefix: Prefix
    text: str
    label: bool = False
    stream: str = ""
    open: bool = False


def peel(text: str) -> Peeled:
    """A line without what launchers, loggers and viewers put before it."""
    found: dict[str, str] = {}
    record: decoded.Record | None = None
    for _ in range(MOST):
        if text[:1] in ("{", "[", '"') and record is None and (record := decoded.record(text)) is not None:
            text = decoded.plain(decoded.uncoloured(record.text))
            found.update(record.said)
        match = _first(text)
        if match is None:
            break
        found.update({name: value for name, value in match.groupdict().items() if value})
        text = text[match.end() :]
    if '""' in text or "quoted" in found:
        text = decoded.undoubled(text, whole="quoted" in found)
    if not found and record is None:
        return Peeled(NOBODY, text)
    label = found.pop("label", None)
    if label is not None and "rank" not in found:
        found["rank"] = label
    number = {name: int(found[name]) if name in found else None for name in ("rank", "local_rank", "pid")}
    prefix = Prefix(number["rank"], number["local_rank"], number["pid"], found.get("actor", ""), found.get("host", ""))
    stream = found.get("stream", "") or (record.stream if record is not None else "")
    return Peeled(prefix, text, label is not None, stream, found.get("part") == "P" or (record is not None and record.open))


def same_stream(one: Prefix, other: Prefix) -> bool:
    """Whether two lines come from one process, as far as their prefixes tell."""
    return (one.rank, one.local_rank, one.actor) == (other.rank, other.local_rank, other.actor) and (
        not one.pid or not other.pid or one.pid == other.pid
    )


def _first(text: str) -> re.Match[str] | None:
    head = text[:HEAD]
    for literal, pattern in _candidates(text[:1]):
        if literal in head and (match := pattern.match(text)) is not None and match.end():
            return match
    return None


@cache
def _candidates(first: str) -> list[tuple[str, re.Pattern[str]]]:
    """The prefixes that a text with this first character can have: what its beginning must hold, and the pattern."""
    kind = "9" if first.isdigit() else "a" if first.islower() else "A" if first.isupper() else first
    table = shipped.table("prefixes")
    return [(entry.get("with", ""), _compiled(entry["pattern"])) for entry in table if {first, kind} & set(entry.get("first", first))]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return later(pattern)
