"""What a log shows of memory besides the failure: its course over the run, tables of cards, tables of the allocator, model trees."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.parse.facts import memory_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from diagnose.facts import Fact
    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.model.event import Event
    from diagnose.parse.text.lines import Page


def facts(pages: Sequence[Page], looks: Sequence[Page], root: Event | None, placed: PlacedMessage | None) -> Iterator[Fact]:
    """Facts of the input in which the job failed first (of the first input where nothing failed). `looks` are those between the pages.

    A reader of tables is loaded only where a log holds the words of one.
    """
    if not pages:
        return
    source = pages[0].source if placed is None else placed.page.source
    end = None if placed is None else placed.offset
    mine = [page for page in pages if page.source == source]
    yield from memory_series.facts([*mine, *(page for page in looks if page.source == source)], end, None if root is None else root.rank)
    if _hold(pages, *_tables()):
        from diagnose.parse.facts import smi_tables

        yield from smi_tables.facts(pages, source, end, None if root is None else root.gpu)
    if _hold(mine, b"memory summary", b"allocated_bytes.all"):
        from diagnose.parse.facts import allocator_summary

        yield from allocator_summary.facts(mine)
    if _hold(pages, b"): ModuleList(", b": Embedding("):
        from diagnose.parse.facts import module_tree

        yield from module_tree.facts(pages)


@cache
def _tables() -> tuple[bytes, ...]:
    """Words of which every table of cards holds one."""
    rows = tuple(row["says"].encode() for row in rule_files.table("card_tables"))
    return (*rows, b"memory.used", b"memory.total", b"FB Memory Usage", b"GPU Memory |", b"Process name", b"MIG")


def _hold(pages: Iterable[Page], *words: bytes) -> bool:
    return any(page.excerpt.spots.any(words) for page in pages)
