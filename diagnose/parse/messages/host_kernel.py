"""The kernel's report above the line that names the killed process: the limit that was hit, the node's memory, the process table.

Figures in kB are KiB. The process table counts pages, whose size it does not print: the killed process stands in it in pages and in the
line below in KiB, which gives the page size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.event import OtherProcess
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.lines import lines_above
from diagnose.records import NamedTuple
from diagnose.units import IMPOSSIBLE, Size, first_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.parse.model.message import Message
    from diagnose.parse.text.lines import Page

REACH = 1200  # lines of one report: its table has a row per process
LARGEST = 10  # processes of the table that are named

_TOLD = ("memory: usage", "oom-kill:", "invoked oom-killer", "pages RAM", "pages reserved", "killed as a result of limit", "mem avail:")
_ENDS = lazy_compile(r"invoked oom-killer|Kill(?:ed)? process \d|mem avail:")
_ROW = lazy_compile(r"\[ {0,9}(\d{1,10})\] {1,9}\d{1,10} {1,9}\d{1,10} {1,12}(\d{1,15}) {1,12}(\d{1,15}) (?:.{0,80} (\S{1,40})$)?")
_TOTAL = lazy_compile(r"total-vm:(\d{1,20})kB")


class _Row(NamedTuple):
    """A process of the table: address space and resident memory, in pages."""

    pid: int
    total: int
    resident: int
    name: str = ""


def complete(message: Message, page: Page, index: int) -> Sequence[int]:
    """Add what the report says above its last line. Returns the indexes of the lines used."""
    lines, rows = _report(page, index)
    kernel, group = (statement_specs("host_oom")[kind].family for kind in ("kernel", "cgroup"))
    used = []
    pages: dict[str, int] = {}
    for at, text in lines:
        for statement in grammar_statements.parse_statements("host_oom", grammar_statements.collapse_blanks(text)):
            numbers = [number or 0 for number in first_numbers(statement.words[0] if statement.words else "", 2)]
            match statement.kind:
                case "usage":
                    message.family = group
                    message.figures.setdefault("capacity", Size.printed(str(numbers[1]), "KiB"))
                    used.append(at)
                case "constraint" if statement.words[0].endswith("MEMCG") and f"pid={message.pid}" in statement.words:
                    message.family = group
                    used.append(at)
                case "limit":
                    message.family = group
                case "pages_ram" | "pages_reserved":
                    pages.setdefault(statement.kind, numbers[0])
                case "available":
                    message.figures.setdefault("capacity", Size.printed(str(numbers[1]), "MiB"))
                    used.append(at)
    if message.family == group:
        message.facts.pop("host.limited", None)
    size = _page_size(message, rows, page.line(index).text)
    if size is None:
        return used
    message.processes = tuple(
        OtherProcess(row.pid, Size.exactly(row.resident * size), row.pid == message.pid, row.name)
        for row in sorted(rows, key=lambda row: -row.resident)[:LARGEST]
        if 0 < row.resident * size <= IMPOSSIBLE
    )
    if message.family == kernel and "pages_ram" in pages:
        usable = (pages["pages_ram"] - pages.get("pages_reserved", 0)) * size
        message.figures.setdefault("capacity", Size.exactly(usable) if 0 < usable <= IMPOSSIBLE else None)
    return used


def _report(page: Page, index: int) -> tuple[list[tuple[int, str]], list[_Row]]:
    """The lines of the report that ends at a line, nearest first, and its process table."""
    lines: list[tuple[int, str]] = []
    rows: list[_Row] = []
    for at, text in lines_above(page, index, REACH):
        row = _ROW.search(text[:200])
        if row is not None:
            rows.append(_Row(int(row[1]), int(row[2]), int(row[3]), row[4] or ""))
            continue
        if any(word in text for word in _TOLD):
            lines.append((at, text[:1000]))
        if _ENDS.search(text[:400]) and not ("sacrifice child" in text and at == index - 1):
            break
    return lines, rows


def _page_size(message: Message, rows: Sequence[_Row], line: str) -> int | None:
    """Bytes of a page, from the killed process's address space in pages and in KiB; None where it cannot be told."""
    total = _TOTAL.search(line)
    own = next((row for row in rows if row.pid == message.pid), None)
    if total is None or own is None or not own.total or int(total[1]) % own.total:
        return None
    size = int(total[1]) // own.total * 1024
    return size if size in (4096, 16384, 65536) else None
