"""The facts that a log's lines give."""

from __future__ import annotations

from diagnose.facts import FactBook, Value
from diagnose.parse import log_reader
from diagnose.parse.model.reading import Reading
from diagnose.scan import log_scan
from diagnose.scan.source import Source


def read(*lines: str) -> Reading:
    return log_reader.read_logs([log_scan.scan(Source.text("\n".join(lines), "job.log"))])


def book(*lines: str) -> FactBook:
    return FactBook(read(*lines).facts)


def plain(value: Value) -> object:
    return value if isinstance(value, (int, float, str, bool)) or value is None else str(value)
