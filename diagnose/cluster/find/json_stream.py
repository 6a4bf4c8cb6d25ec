"""JSON values one after the other, of a file that is never held as a whole: JSON lines, an array, or an object with a list in it."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from diagnose.cluster.find import object_stores
from diagnose.errors import UserError

#: Characters read at once, and what one line or value may take.
PART, LARGEST = 1 << 20, 16 << 20
#: The lists in an object that count: {"apiVersion": "v1", "metadata": {}, "items": [
_LIST = re.compile(
    r'\s*\{\s*(?:"\w{1,40}"\s*:\s*(?:"[^"]{0,200}"|\{[^{}]{0,500}\}|-?\d{1,20})\s*,\s*){0,12}"(?:items|jobs)"\s*:\s*\[|\s*\['
)
_BETWEEN = re.compile(r"[\s,]*")


def values(opened: BinaryIO, where: str) -> Iterator[tuple[int, Any]]:
    """Each value with the number of its line; None for a line of JSON lines that is none. Raises UserError where an array or object is
    no JSON, or ends within a value."""
    text = codecs.getreader("utf-8-sig")(opened, "replace")
    head = text.read(PART) or ""
    line = head.partition("\n")[0]
    if len(line) < len(head) and _loaded(line) is not None and not _LIST.match(line):
        yield from _lines(head, text)
    else:
        yield from _document(head, text, where)


def _loaded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _lines(head: str, text: io.TextIOBase | codecs.StreamReader) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines(head, text), 1):
        if line.strip():
            yield number, _loaded(line) if len(line) < LARGEST else None


def lines(head: str, text: io.TextIOBase | codecs.StreamReader) -> Iterator[str]:
    """The lines of a text whose beginning was read already; of one that is longer than any record its beginning."""
    kept, over = head, False
    while True:
        *whole, kept = kept.split("\n")
        for line in whole:
            if not over:
                yield line
            over = False
        if len(kept) >= LARGEST:
            if not over:
                yield kept
            kept, over = "", True
        part = text.read(PART)
        if not part:
            break
        kept += part
    if kept and not over:
        yield kept


def _document(buffer: str, text: codecs.StreamReader, where: str) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder()
    head = _LIST.match(buffer)
    line = 1 + (head[0].count("\n") if head else 0)
    buffer = buffer[head.end() :] if head else buffer
    more = True
    while True:
        gap = _BETWEEN.match(buffer)
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
        part = text.read(PART) if more and len(buffer) < LARGEST else ""
        more = bool(part)
        if not more and not buffer and not head:
            return
        if not more:
            raise bad(where, line)
        buffer += part


def bad(where: str, line: int) -> UserError:
    return object_stores.trouble("bad_record", where, "see_inputs", why=f"line {line}")
