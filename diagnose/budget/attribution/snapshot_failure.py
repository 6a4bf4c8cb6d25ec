"""The failure as a memory snapshot alone records it, where there is no log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.budget.model.allocator import block
from diagnose.facts import Fact, Input, Witness
from diagnose.parse.facts import failure_facts
from diagnose.parse.frames import phases
from diagnose.parse.messages.message_spec import sayings
from diagnose.parse.model.event import Event, Frame
from diagnose.parse.model.reading import Reading
from diagnose.units import Size, size_of, torch_prints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.snapshot.measure import Snapshot


def reading(snapshot: Snapshot) -> Reading:
    """What a log with torch's message would say: the request as torch prints it, the card as it was at that entry of the history.
    Without an event where the snapshot holds no failed request."""
    source = Input(snapshot.name, "snapshot", snapshot.bytes, 0, "binary")
    root = event(snapshot)
    return Reading((source,), () if root is None else (root,), () if root is None else tuple(facts(root)))


def event(snapshot: Snapshot) -> Event | None:
    failed = snapshot.failure
    if failed is None:
        return None
    allocated = snapshot.allocated + (failed.freed_since or 0)
    frames = tuple(Frame(place.file, place.line, place.function) for place in reversed(failed.frames))
    return Event(
        family=sayings("device_oom")["cuda"].family,
        gpu=snapshot.device,
        phase=phases.of_frames(frames) or "unknown",
        requested=size_of(torch_prints(block(failed.size.high))),
        free=None if failed.device_free is None else Size.exactly(failed.device_free),
        allocated=Size.exactly(allocated),
        reserved_unallocated=Size.exactly(max(snapshot.reserved - allocated, 0)),
        frames=frames,
        evidence=(Witness(snapshot.name, text=f"GPU {snapshot.device}"),),
    )


def facts(root: Event) -> Iterator[Fact]:
    yield from failure_facts.figures(root)
    yield from failure_facts.circumstances(root)
