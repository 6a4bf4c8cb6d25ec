"""torch's own account of its allocator in a log: torch.cuda.memory_summary() and memory_stats()."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from diagnose.facts import Fact, Value
from diagnose.units import BINARY_ALIAS, IMPOSSIBLE, SCALE, Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.parse.text.lines import Page

_TITLE = b"PyTorch CUDA memory summary"
_STATS = b"allocated_bytes.all.current"
REACH = 8 << 10  # bytes that one table or dump takes
#: Rows of the table, and keys of the dump, by what they say now and at their peak.
_ROWS = {
    "Allocated memory": ("log.table_allocated", "log.table_allocated_peak"),
    "Requested memory": ("log.table_requested", ""),
    "GPU reserved memory": ("log.table_reserved", "log.table_reserved_peak"),
    "Non-releasable memory": ("log.table_inactive", ""),
}
_KEYS = {
    "allocated_bytes.all.current": "log.table_allocated",
    "allocated_bytes.all.peak": "log.table_allocated_peak",
    "requested_bytes.all.current": "log.table_requested",
    "reserved_bytes.all.current": "log.table_reserved",
    "reserved_bytes.all.peak": "log.table_reserved_peak",
    "inactive_split_bytes.all.current": "log.table_inactive",
    "num_alloc_retries": "log.table_retries",
    "num_ooms": "log.table_ooms",
}


@cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes], re.Pattern[bytes]]:
    cell = rb" {0,12}(\d{1,12}) {1,3}([KMGT]i?B|B) {0,3}\|"
    return (
        re.compile(rb"\| {0,4}(" + b"|".join(name.encode() for name in _ROWS) + rb") {0,20}\|" + cell + cell),
        re.compile(rb"CUDA OOMs: (\d{1,12}) {1,40}\| {1,40}cudaMalloc retries: (\d{1,12})"),
        re.compile(rb"['\"]?(" + b"|".join(re.escape(key.encode()) for key in _KEYS) + rb")['\"]?[:,=] ?(\d{1,18})\b"),
    )


def facts(pages: Sequence[Page]) -> Iterator[Fact]:
    """Facts from the last table or dump, which was printed nearest to the failure."""
    for page in reversed(pages):
        at, stats = page.excerpt.raw.rfind(_TITLE), page.excerpt.raw.rfind(_STATS)
        if at >= 0 or stats >= 0:
            yield from _table(page, at) if at > stats else _dump(page, stats)
            return


def floored_size(digits: str, unit: str) -> Size | None:
    """A figure of the table as a range: torch rounds down to whole units."""
    scale = SCALE[BINARY_ALIAS.get(unit, unit)]
    low = int(digits) * scale
    return None if low > IMPOSSIBLE else Size(low, low + scale - 1, low, f"{digits} {unit}")


def _table(page: Page, at: int) -> Iterator[Fact]:
    rows, counts, _ = _patterns()
    raw, end = page.excerpt.raw, at + REACH
    following = raw.find(_TITLE, at + 1, end)
    end = following if following >= 0 else end

    def fact(name: str, value: Value, place: int) -> Fact:
        return Fact(name, value, "log", page.witness(page.excerpt.offset + place))

    counted = counts.search(raw, at, end)
    if counted is not None:
        yield fact("log.table_ooms", int(counted[1]), counted.start())
        yield fact("log.table_retries", int(counted[2]), counted.start())
    for row in rows.finditer(raw, at, end):
        now, peak = _ROWS[row[1].decode()]
        for name, digits, unit in ((now, row[2], row[3]), (peak, row[4], row[5])):
            size = floored_size(digits.decode(), unit.decode())
            if name and size is not None:
                yield fact(name, size, row.start(1))


def _dump(page: Page, at: int) -> Iterator[Fact]:
    _, _, keys = _patterns()
    for entry in keys.finditer(page.excerpt.raw, max(0, at - REACH), at + REACH):
        name, count = _KEYS[entry[1].decode()], int(entry[2])
        value: Value = count if name in ("log.table_retries", "log.table_ooms") else Size.exactly(count) if count <= IMPOSSIBLE else None
        if value is not None:
            yield Fact(name, value, "log", page.witness(page.excerpt.offset + entry.start(1)))
