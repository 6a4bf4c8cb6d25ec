"""Logs whose newest line stands first, as web consoles show them: turned round before they are read, with the numbers of their lines."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from diagnose.scan import log_scan
from diagnose.scan.source import Source

if TYPE_CHECKING:
    from diagnose.scan.log_scan import Scanned

_STAMP = re.compile(rb"[\[(\"]?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
_NEXT_FRAME = re.compile(rb"[^\n]*\bFile \"")
#: Share of neighbours that may be out of order: several processes write at once.
_DISORDER = 0.05


def turned_round(scanned: Scanned) -> Scanned | None:
    """The same log, oldest line first, if its newest stands first; None if it does not."""
    lines = scanned.excerpts[0].raw.removesuffix(b"\n").split(b"\n")
    entries = _entries(lines)
    if entries is None:
        return None
    order = [number for entry in reversed(entries) for number in entry]
    text = b"\n".join(lines[number] for number in order) + b"\n"
    again = log_scan.scan(Source(scanned.input.name, data=text))
    if len(again.excerpts) != 1:
        return None
    excerpt = replace(again.excerpts[0], numbers=tuple(number + 1 for number in order))
    facts = scanned.input._replace(notes=(*scanned.input.notes, "newest-first"))
    return replace(again, input=facts, excerpts=(excerpt,), label=scanned.label)


def _entries(lines: list[bytes]) -> list[list[int]] | None:
    """The numbers of the lines of each entry, a line with a time and those without one behind it; single lines if a traceback stands on
    its head. None if the log is in its own order."""
    stamps = [(match[0].lstrip(b'[("'), at) for at, line in enumerate(lines) if (match := _STAMP.match(line.lstrip()[:40]))]
    times = [time for time, _ in stamps]
    is_falling = bool(times) and times[0] > times[-1]
    if is_falling and sum(a < b for a, b in pairwise(times)) > _DISORDER * len(times):
        return None
    heads = [at for at, line in enumerate(lines) if b"Traceback (most recent call last)" in line]
    stands_on_head = bool(heads) and all(
        any(_NEXT_FRAME.match(line) for line in lines[max(0, at - 2) : at]) and not any(map(_NEXT_FRAME.match, lines[at + 1 : at + 2]))
        for at in heads
    )
    if stands_on_head:
        return [[at] for at in range(len(lines))]
    if not is_falling:
        return None
    starts = [0, *(at for _, at in stamps if at), len(lines)]
    return [list(range(first, last)) for first, last in pairwise(starts)]
