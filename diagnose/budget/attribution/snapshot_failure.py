"""The failed request as a memory snapshot records it: replaces a missing log, and checks the attribution made from a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.budget.attribution.request_tensor import attribute
from diagnose.budget.attribution.tensor_candidate import SNAPSHOT_REQUEST
from diagnose.budget.model.block_rounding import allocators, block, prints_as
from diagnose.facts import Fact, Input, Notice, Witness
from diagnose.parse.facts import failure_facts
from diagnose.parse.frames import phases
from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.event import Event, Frame
from diagnose.parse.model.reading import Reading
from diagnose.phrases import phrase, same
from diagnose.units import Size, show, size_of, torch_prints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.budget.model.ledger import Attribution, Ledger
    from diagnose.facts import FactBook
    from diagnose.parse.model.event import Event
    from diagnose.phrases import Text
    from diagnose.snapshot.measure import Snapshot
    from diagnose.units import Size


def snapshot_reading(snapshot: Snapshot) -> Reading:
    """What a log with torch's message would say: the request as torch prints it, and the card at that entry of the history. Without an
    event where the snapshot holds no failed request."""
    source = Input(snapshot.name, "snapshot", snapshot.bytes, 0, "binary")
    root = snapshot_event(snapshot)
    return Reading((source,), () if root is None else (root,), () if root is None else tuple(snapshot_facts(root)))


def snapshot_event(snapshot: Snapshot) -> Event | None:
    failed = snapshot.failure
    if failed is None:
        return None
    allocated = snapshot.allocated + (failed.freed_since or 0)
    frames = tuple(Frame(place.file, place.line, place.function) for place in reversed(failed.frames))
    return Event(
        family=statement_specs("device_oom")["cuda"].family,
        gpu=snapshot.device,
        phase=phases.phase_of_frames(frames) or "unknown",
        requested=size_of(torch_prints(block(failed.size.high))),
        free=None if failed.device_free is None else Size.exactly(failed.device_free),
        allocated=Size.exactly(allocated),
        reserved_unallocated=Size.exactly(max(snapshot.reserved - allocated, 0)),
        frames=frames,
        evidence=(Witness(snapshot.name, text=f"GPU {snapshot.device}"),),
    )


def snapshot_facts(root: Event) -> Iterator[Fact]:
    yield from failure_facts.figures(root)
    yield from failure_facts.circumstances(root)


def different_failure_notices(snapshot: Snapshot, book: FactBook, event: Event | None) -> list[Notice]:
    """A warning where the snapshot's failed request cannot be the log's: no allocator of this run would print it so."""
    if snapshot.failure is None or event is None or event.requested is None or not event.family.startswith("torch"):
        return []
    size, printed = snapshot.failure.size.high, event.requested
    if any(prints_as(size, printed, kind) for kind in allocators(book, event)):
        return []
    message = phrase("snapshot.other_failure", snapshot=same(show(size)), log=same(str(printed)))
    return [Notice("warning", "other_snapshot", message, Witness(snapshot.name, text=f"GPU {snapshot.device}"))]


def compare_attribution(
    book: FactBook, ledgers: tuple[Ledger, ...], event: Event, index: int, named: tuple[Attribution, ...]
) -> tuple[str, Text | None]:
    """What the snapshot's exact size says of the attribution made from the log, and the tensor concerned.

    `confirmed` or `refuted`; `named` where the log alone named no tensor; `open` where no known tensor has that size; "" where the model is
    unknown, and with it every tensor.
    """
    named = tuple(attribution for attribution in named if not attribution.by_frame)  # a size says nothing of those
    without_snapshot = [
        attribution for attribution in attribute(book.changed({SNAPSHOT_REQUEST: None}), ledgers, event, index) if not attribution.by_frame
    ]
    first = without_snapshot[0] if without_snapshot else None
    if first is not None and not any(attribution.key == first.key for attribution in named):
        return "refuted", first.tensor
    if not named:
        return ("open" if book.shape("model.shape") is not None else ""), None  # without a model no tensor is known at all
    return ("named" if first is None else "confirmed"), next(
        (attribution.tensor for attribution in named if first and attribution.key == first.key), named[0].tensor
    )
