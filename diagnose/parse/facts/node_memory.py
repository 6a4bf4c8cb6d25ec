"""The memory of a node: as DeepSpeed's lines tell it, and as `free` prints it, which people paste below a failure when they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.facts import Fact
from diagnose.parse.text.lazy_re import later
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.text.lines import Page

_USED = later(rb"CPU Virtual Memory:\s+used = (\d{1,9}(?:\.\d{1,4})?) GB, percent = (\d{1,3}(?:\.\d{1,4})?)%")
_TABLE = later(rb"\btotal +used +free +shared[^\n]{0,60}\n[^\n]{0,40}?\bMem: +(\d{1,12}(?:\.\d{1,2})?)(?:([KMGT])i?)? ")
#: What a node of a training job has: by it a bare number tells its unit, KiB unless `free` was given -m or -g.
_LEAST, _MOST = 16 << 30, 16 << 40


def before(placed: PlacedMessage) -> Iterator[Fact]:
    """What follows from the last of DeepSpeed's lines before a failure: what was used, and which share of the whole that is."""
    if not placed.page.excerpt.spots.has(b"CPU Virtual Memory:"):
        return
    raw = placed.bytes_before(1 << 20)
    used = list(_USED.finditer(raw))
    if not used or float(used[-1][2]) < 1:
        return
    used_bytes, percent = float(used[-1][1]) * 2**30, float(used[-1][2])
    total = Size.between(
        int(used_bytes / (percent + 0.05) * 100), int(used_bytes / (percent - 0.05) * 100), int(used_bytes / percent * 100)
    )
    yield Fact("host.ram", total, "log", placed.page.witness(placed.offset - len(raw) + used[-1].start()))


def pasted(pages: Iterable[Page]) -> Iterator[Fact]:
    """The total of the first table of `free`; nothing where its unit cannot be told."""
    for page in pages:
        table = _TABLE.search(page.excerpt.raw) if page.excerpt.spots.has(b"Mem:") else None
        size = _total(table[1].decode(), table[2].decode() if table[2] else "") if table else None
        if table is not None and size is not None:
            yield Fact("host.ram", size, "log", page.witness(page.excerpt.offset + table.start(1)))
            return


def _total(digits: str, unit: str) -> Size | None:
    """A printed total; of a bare number where only one unit makes a node of it."""
    sizes = [Size.printed(digits, name) for name in ([f"{unit}iB"] if unit else ["KiB", "MiB", "GiB"])]
    likely = [size for size in sizes if size is not None and (unit or _LEAST <= size.bytes <= _MOST)]
    return likely[0] if len(likely) == 1 else None
