"""Messages as templates with slots: printed with figures, read by the whole reader, compared with what was printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st

from diagnose.parse import log_reader
from diagnose.parse.model.event import Event
from diagnose.parse.model.reading import Reading
from diagnose.scan import log_scan
from diagnose.scan.source import Source
from diagnose.units import torch_prints

FIGURES = (
    *("requested", "capacity", "free", "allowed", "process_in_use", "allocated", "reserved_unallocated", "reserved_total"),
    *("private_pools", "current_active", "mps_allocated", "other_allocations", "max_allowed"),
)
_SLOT = re.compile(r"\{(\w+):(\w+)\}")


def scaled(units: tuple[str, ...], digits: int) -> Callable[[int], str]:
    """A printer that divides by 1024 until less than 1024 is left, as most programs do."""

    def prints(count: int) -> str:
        value, unit = float(count), 0
        while value >= 1024 and unit < len(units) - 1:
            value, unit = value / 1024, unit + 1
        return f"{count}{units[0]}" if unit == 0 else f"{value:.{digits}f}{units[unit]}"

    return prints


#: How each kind of slot is printed.
PRINTERS: dict[str, Callable[[int], str]] = {
    "size": torch_prints,
    "mps": lambda count: torch_prints(count).replace("iB", "B"),
    "bytes": str,
    "commas": lambda count: f"{count:,}",
    "glued": scaled(("B", "KiB", "MiB", "GiB"), 2),
    "letter": scaled(("B", "K", "M", "G"), 2),
    "paddle": scaled(("B", "KB", "MB", "GB"), 6),
    "kb": lambda count: str(round(count / 2**10)),
    "mb": lambda count: str(round(count / 2**20)),
    "gb": lambda count: f"{count / 2**30:.2f}",
    "mib": lambda count: f"{count / 2**20:.2f} MiB",
}


class Wording(NamedTuple):
    """One message: what it is, and its text with slots {figure:printer}. `gpu`: the card that the text names."""

    name: str
    text: str
    family: str
    status: str = "oom"
    reason: str = ""
    gpu: int | None = None
    fatal: bool = True
    facts: dict[str, object] = {}

    @property
    def slots(self) -> list[tuple[str, str]]:
        return _SLOT.findall(self.text)

    def printed(self, exact: dict[str, int]) -> str:
        return _SLOT.sub(lambda slot: PRINTERS[slot[2]](exact[slot[1]]), self.text)


def figures(wording: Wording) -> st.SearchStrategy[dict[str, int]]:
    """Any figures, of cards as they are: a request of many times the card would be an overflow."""
    return st.fixed_dictionaries({name: st.integers(12 << 30 if name == "capacity" else 1, 190 << 30) for name, _ in wording.slots})


def reading(text: str | bytes) -> Reading:
    return log_reader.read_logs([log_scan.scan(Source.text(text, "job.log"))])


def check(wording: Wording, exact: dict[str, int]) -> None:
    """Every figure comes back with its true value inside the interval; what the text does not print stays unknown."""
    event = only(reading(f"step 12 loss 1.25\n{wording.printed(exact)}\nbye\n"))
    assert (event.family, event.status, event.reason, event.fatal) == (wording.family, wording.status, wording.reason, wording.fatal)
    assert event.gpu == wording.gpu
    for name in FIGURES:
        size = getattr(event, name)
        if name in exact:
            assert size is not None and exact[name] in size, (name, str(size), exact[name])
            assert size.high - size.low <= max(255, size.bytes // 50), name
        else:
            assert size is None, name


def only(read: Reading) -> Event:
    causes = [event for event in read.events if event.consequence_of is None]
    assert len(causes) == 1, [(event.family, event.status, event.exception) for event in read.events]
    return causes[0]
