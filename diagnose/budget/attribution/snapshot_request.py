"""What a memory snapshot knows better than the message: the bytes of the failed request before the allocator made a block of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.budget.model.allocator import Allocator, allocators, prints_as
from diagnose.facts import Notice, Witness
from diagnose.phrases import phrase, same
from diagnose.record import replace
from diagnose.units import show

if TYPE_CHECKING:
    from diagnose.budget.attribution.tensor_candidate import Query
    from diagnose.budget.model.ledger import Attribution, Ledger
    from diagnose.facts import FactBook
    from diagnose.parse.model.event import Event
    from diagnose.phrases import Text
    from diagnose.snapshot.measure import Snapshot
    from diagnose.units import Size

REQUEST = "snapshot.request"


def told(book: FactBook, requested: Size, kind: Allocator) -> Size | None:
    """The bytes that the failed tensor may have as a snapshot says; None where it says none, or another allocator would print it."""
    size = book.size(REQUEST)
    return size if size is not None and size.high > 0 and prints_as(size.high, requested, kind) else None


def another(snapshot: Snapshot, book: FactBook, event: Event | None) -> list[Notice]:
    """A notice where the snapshot shows another failed request than the log: one that no allocator of this run prints alike."""
    if snapshot.failure is None or event is None or event.requested is None or not event.family.startswith("torch"):
        return []
    size, printed = snapshot.failure.size.high, event.requested
    if any(prints_as(size, printed, kind) for kind in allocators(book, event)):
        return []
    message = phrase("snapshot.other_failure", snapshot=same(show(size)), log=same(str(printed)))
    return [Notice("warning", "other_snapshot", message, Witness(snapshot.name, text=f"GPU {snapshot.device}"))]


def narrowed(query: Query, book: FactBook) -> Query:
    """The query with the ends that a snapshot leaves it."""
    size = told(book, query.requested, query.kind)
    return query if size is None else replace(query, low=size.low, high=size.high)


def compared(
    book: FactBook, ledgers: tuple[Ledger, ...], event: Event, index: int, named: tuple[Attribution, ...]
) -> tuple[str, Text | None]:
    """What the exact size makes of the attribution that the log alone would give, and the tensor that this is about:
    `confirmed`, `refuted`, `named` where the log alone named none, `open` where nothing known has that size, else nothing."""
    from diagnose.budget.attribution.request_tensor import attribute

    without_snapshot = attribute(book.changed({REQUEST: None}), ledgers, event, index)
    first = without_snapshot[0] if without_snapshot else None
    if first is not None and not any(attribution.key == first.key for attribution in named):
        return "refuted", first.tensor
    if not named:
        return ("open" if book.shape("model.shape") is not None else ""), None  # without a model no tensor is known at all
    return ("named" if first is None else "confirmed"), next(
        (attribution.tensor for attribution in named if first and attribution.key == first.key), named[0].tensor
    )
