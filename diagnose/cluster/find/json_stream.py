"""Streams JSON values of a file too large for memory: JSON lines, an array, or the list in an object such as `{"items": [...]}`."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from diagnose.cluster.cluster_errors import finding_error
from diagnose.errors import UserError

#: Characters that are read at once, and that one line or value may have.
CHUNK, MAX_VALUE = 1 << 20, 16 << 20
#: The start of the list of values: [ or {"apiVersion": "v1", "metadata": {}, "items": [
_LIST_START = re.compile(
    r'\s*\{\s*(?:"\w{1,40}"\s*:\s*(?:"[^"]{0,200}"|\{[^{}]{0,500}\}|-?\d{1,20})\s*,\s*){0,12}"(?:items|jobs)"\s*:\s*\[|\s*\['
)
_SEPARATOR = re.compile(r"[\s,]*")


def read_values(opened: BinaryIO, where: str) -> Iterator[tuple[int, Any]]:
    """Each value with the number of its line; None for one of many lines that is no JSON. Raises UserError where an array or object is
    no JSON, or ends within a value."""
    text = codecs.getreader("utf-8-sig")(opened, "replace")
    head = text.read(CHUNK) or ""
    line = head.partition("\n")[0]
    if len(line) < len(head) and _parse_line(line) is not None and not _LIST_START.match(line):
        yield from _read_json_lines(head, text)
    else:
        yield from _read_document(head, text, where)


def _parse_line(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _read_json_lines(head: str, text: io.TextIOBase | codecs.StreamReader) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(read_lines(head, text), 1):
        if line.strip():
            yield number, _parse_line(line) if len(line) < MAX_VALUE else None


def read_lines(head: str, text: io.TextIOBase | codecs.StreamReader) -> Iterator[str]:
    """The lines of a text whose beginning `head` was read already; a line longer than MAX_VALUE is cut."""
    buffer, skipping = head, False
    while True:
        *complete, buffer = buffer.split("\n")
        for line in complete:
            if not skipping:
                yield line
            skipping = False
        if len(buffer) >= MAX_VALUE:
            if not skipping:
                yield buffer
            buffer, skipping = "", True
        part = text.read(CHUNK)
        if not part:
            break
        buffer += part
    if buffer and not skipping:
        yield buffer


def _read_document(buffer: str, text: codecs.StreamReader, where: str) -> Iterator[tuple[int, object]]:
    decoder = json.JSONDecoder()
    head = _LIST_START.match(buffer)
    line = 1 + (head[0].count("\n") if head else 0)
    buffer = buffer[head.end() :] if head else buffer
    more = True
    while True:
        gap = _SEPARATOR.match(buffer)
        skipped = gap.end() if gap else 0
        line += buffer.count("\n", 0, skipped)
        buffer = buffer[skipped:]
        if head and buffer.startswith("]"):
            return
        try:
            value, end = decoder.raw_decode(buffer)
        except (ValueError, RecursionError):
            end = 0
        if end:
            yield line, value
            line += buffer.count("\n", 0, end)
            buffer = buffer[end:]
            continue
        part = text.read(CHUNK) if more and len(buffer) < MAX_VALUE else ""
        more = bool(part)
        if not more and not buffer and not head:
            return
        if not more:
            raise _bad_record(where, line)
        buffer += part


def _bad_record(where: str, line: int) -> UserError:
    return finding_error("bad_record", where, "see_inputs", why=f"line {line}")
