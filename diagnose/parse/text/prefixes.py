"""Prefixes that launchers, loggers and viewers put before a line: removed, and read for the process that wrote it (rules/prefixes.yaml)."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from diagnose import rule_files
from diagnose.parse.text import decoding
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple

MOST = 8  # prefixes that are peeled off one after another: six that people stack, and two that count twice
INDENT = 16  # characters in which the blanks before an indented line end
HEAD = 200  # characters in which a prefix stands
SHORT = 500  # characters of a line whose prefixes are remembered


class Prefix(NamedTuple):
    """The process that wrote a line, as far as its prefixes tell: None or "" where they do not."""

    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    actor: str = ""
    host: str = ""


NOBODY = Prefix()


class PeeledLine(NamedTuple):
    """A line without its prefixes. `label`: the rank is a bare number, which may be a viewer's line number instead.

    `stream`: output stream named by a container runtime, which cuts long lines; `open`: the line continues in that stream's next one.
    """

    prefix: Prefix
    text: str
    label: bool = False
    stream: str = ""
    open: bool = False


def peel(text: str) -> PeeledLine:
    """Remove the prefixes of a line."""
    if is_alike(text):
        return peel_alike(text, text.encode(errors="replace").translate(ZEROS))
    fields, text, record = _peel_prefixes(text)
    if not fields and record is None:
        return PeeledLine(NOBODY, text)
    prefix, label, stream, is_open = _interpret_names(tuple(fields.items()))
    if record is not None:
        stream, is_open = stream or record.stream, is_open or record.open
    return PeeledLine(prefix, text, label, stream, is_open)


def _peel_prefixes(text: str) -> tuple[dict[str, str], str, decoding.Record | None]:
    """(named values of a line's prefixes, text behind them, the record if the line is a JSON value)."""
    fields: dict[str, str] = {}
    record: decoding.Record | None = None
    text = text[_indentation(text) :]
    for _ in range(MOST):
        if text[:1] in ("{", "[", '"') and record is None and (record := decoding.parse_record(text)) is not None:
            text = decoding.to_plain_text(decoding.strip_colours(record.text))
            fields.update(record.said)
        match = _first(text)
        if match is None:
            break
        fields.update({name: value for name, value in match.groupdict().items() if value})
        text = text[match.end() :]
    if '""' in text or "quoted" in fields:
        text = decoding.undouble_quotes(text, whole="quoted" in fields)
    return fields, text, record


@lru_cache(maxsize=1024)
def _interpret_names(fields: tuple[tuple[str, str], ...]) -> tuple[Prefix, bool, str, bool]:
    """(process, label, stream, open) as the named values of prefixes say: see PeeledLine."""
    by_name = dict(fields)
    label = by_name.pop("label", None)
    if label is not None:
        by_name.setdefault("rank", label)
    number = {name: int(by_name[name]) if name in by_name else None for name in ("rank", "local_rank", "pid")}
    prefix = Prefix(number["rank"], number["local_rank"], number["pid"], by_name.get("actor", ""), by_name.get("host", ""))
    return prefix, label is not None, by_name.get("stream", ""), by_name.get("part") == "P"


# -- lines that differ in digits only: loggers write thousands of them

ZEROS = bytes.maketrans(b"123456789", b"000000000")
_VERSION = lazy_compile(r">\d ")


def is_alike(text: str) -> bool:
    """Whether a line's prefixes end at the same place whatever its digits are, so that its shape may be cached: short, no JSON, no row of a
    CSV file, not syslog (whose version digit matters). Depends on the shape alone."""
    if len(text) >= SHORT or (">" in text and _VERSION.search(text)):
        return False
    return '"' not in text or ('""' not in text and ',"' not in text and text.rstrip().rstrip(",")[-1:] not in ("}", "]", '"'))


def peel_alike(text: str, shape: bytes) -> PeeledLine:
    """`peel` for such a line; `shape`: its UTF-8 bytes with every digit as 0."""
    end, places = _places(shape)
    if not places:
        return PeeledLine(NOBODY, text[end:])
    prefix, label, stream, is_open = _interpret_names(tuple([(name, text[start:stop]) for name, start, stop in places]))
    return PeeledLine(prefix, text[end:], label, stream, is_open)


@lru_cache(maxsize=4096)
def _places(shape: bytes) -> tuple[int, tuple[tuple[str, int, int], ...]]:
    """(end of the prefixes of a shape, (name, start, end) of every value in them)."""
    text = shape.decode(errors="replace")
    at, places = _indentation(text), list[tuple[str, int, int]]()
    for _ in range(MOST):
        match = _first(text[at:])
        if match is None:
            break
        places += [(name, at + match.start(name), at + match.end(name)) for name, value in match.groupdict().items() if value]
        at += match.end()
    return at, tuple(places)


def same_stream(first: Prefix, second: Prefix) -> bool:
    """Whether two lines come from one process, as far as their prefixes tell."""
    return (first.rank, first.local_rank, first.actor) == (second.rank, second.local_rank, second.actor) and (
        not first.pid or not second.pid or first.pid == second.pid
    )


def _indentation(text: str) -> int:
    """The number of blanks at the start of a line before a prefix that a person indented together with its line."""
    if text[:1] not in (" ", "\t"):
        return 0
    head = text[:INDENT].lstrip(" \t")
    return len(text[:INDENT]) - len(head) if head and _first(text[len(text[:INDENT]) - len(head) :], indented=True) else 0


def _first(text: str, *, indented: bool = False) -> re.Match[str] | None:
    """The match of the prefix that a text begins with, if any; with `indented` only of those that may be indented."""
    head = text[:HEAD]
    for literal, pattern in _candidates(text[:1], indented):
        if literal in head and (match := pattern.match(text)) is not None and match.end():
            return match
    return None


@cache
def _candidates(first: str, indented: bool) -> list[tuple[str, re.Pattern[str]]]:
    """(literal that must occur, pattern) of each prefix that may begin with this character."""
    kind = "9" if first.isdigit() else "a" if first.islower() else "A" if first.isupper() else first
    entries = [entry for entry in rule_files.table("prefixes") if entry.get("indented", False) >= indented]
    return [(entry.get("with", ""), _compiled(entry["pattern"])) for entry in entries if {first, kind} & set(entry.get("first", first))]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return lazy_compile(pattern)
