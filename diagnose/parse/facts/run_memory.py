"""Memory facts of the run besides the failure: its course, tables of cards and of the allocator, printed models, the node's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.facts import Fact
from diagnose.parse.facts import memory_series
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from diagnose.facts import Fact
    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.model.event import Event
    from diagnose.parse.text.lines import Page


def facts(pages: Sequence[Page], looks: Sequence[Page], root: Event | None, placed: PlacedMessage | None) -> Iterator[Fact]:
    """Facts from the input in which the job failed first (without a failure, from the first input). `looks`: samples of the log between the
    pages."""
    if not pages:
        return
    source = pages[0].source if placed is None else placed.page.source
    end = None if placed is None else placed.offset
    mine = [page for page in pages if page.source == source]
    every = [*pages, *looks]
    of_failed, others = [page for page in every if page.source == source], [page for page in every if page.source != source]
    yield from memory_series.facts(of_failed, others, end, *((None, None) if root is None else (root.rank, root.gpu)))
    # readers of tables are imported only where a log holds the words of one
    if _contain(pages, *memory_series.card_table_words()):
        from diagnose.parse.facts import smi_tables

        yield from smi_tables.facts(pages, source, end, None if root is None else root.gpu)
    if _contain(mine, b"memory summary", b"allocated_bytes.all"):
        from diagnose.parse.facts import allocator_summary

        yield from allocator_summary.facts(mine)
    if _contain(pages, b"): ModuleList(", b": Embedding("):
        from diagnose.parse.facts import module_tree

        yield from module_tree.facts(pages)


def _contain(pages: Iterable[Page], *words: bytes) -> bool:
    return any(page.excerpt.spots.any(words) for page in pages)


_USED = lazy_compile(rb"CPU Virtual Memory:\s+used = (\d{1,9}(?:\.\d{1,4})?) GB, percent = (\d{1,3}(?:\.\d{1,4})?)%")
_FREE_TABLE = lazy_compile(rb"\btotal +used +free +shared[^\n]{0,60}\n[^\n]{0,40}?\bMem: +(\d{1,12}(?:\.\d{1,2})?)(?:([KMGT])i?)? ")
#: What a node of a training job has: by it a bare number tells its unit, KiB unless `free` was given -m or -g.
_LEAST, _MOST = 16 << 30, 16 << 40


def node_memory_before_failure(placed: PlacedMessage) -> Iterator[Fact]:
    """The node's total memory, from the amount and the percentage in use in DeepSpeed's last line before a failure."""
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


def node_memory_from_free(pages: Iterable[Page]) -> Iterator[Fact]:
    """The node's total by the first table of `free`; none where its unit is unclear."""
    for page in pages:
        table = _FREE_TABLE.search(page.excerpt.raw) if page.excerpt.spots.has(b"Mem:") else None
        size = _parse_total(table[1].decode(), table[2].decode() if table[2] else "") if table else None
        if table is not None and size is not None:
            yield Fact("host.ram", size, "log", page.witness(page.excerpt.offset + table.start(1)))
            return


def _parse_total(digits: str, unit: str) -> Size | None:
    """A printed total in bytes. A number without a unit counts only if exactly one unit makes it a plausible node."""
    sizes = [Size.printed(digits, name) for name in ([f"{unit}iB"] if unit else ["KiB", "MiB", "GiB"])]
    likely = [size for size in sizes if size is not None and (unit or _LEAST <= size.bytes <= _MOST)]
    return likely[0] if len(likely) == 1 else None
