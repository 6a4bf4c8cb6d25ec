"""One failure told twice in different words: an allocator's own log and the exception that follows it, a warning with the figures that
the exception lacks, a message cut short. And what libraries say after a fault of the device, which is no word on memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.parse.messages.host_oom import KILLS
from diagnose.parse.messages.lookalike import FAULTS
from diagnose.parse.text.lines import Prefix
from diagnose.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from diagnose.parse.events.log_events import Seen
    from diagnose.parse.model.event import Event
    from diagnose.units import Size

NEAR = 200  # lines within which it is told again
BACK = 8  # messages that are looked back at

#: Two frameworks, one allocator: its log alone does not always say whose it is.
_ONE_ALLOCATOR = frozenset({"jax", "tf"})
#: Kills and collectives: diagnose/parse/events/folding.py knows which of their words are of one failure.
_JUDGED_ELSEWHERE = KILLS | {"nccl"}
#: Libraries whose handles fail to be made once the device has stopped.
_LIBRARIES = frozenset({"cublas", "cudnn", "cusolver", "nccl"})


def joined(all_seen: Iterable[Seen], merge: Callable[[Seen, Seen], None]) -> list[Seen]:
    """The messages, those that tell of a failure again in other words merged into the first that told it."""
    kept: list[Seen] = []
    for one in all_seen:
        first = next((other for other in reversed(kept[-BACK:]) if _retells(other, one)), None)
        if first is None:
            kept.append(one)
            continue
        if first.message.family != one.message.family:
            first.message.family = one.message.family = max((first, one), key=lambda told: told.message.weight).message.family
        first.message.gpu = one.message.gpu = one.message.gpu if first.message.gpu is None else first.message.gpu
        merge(first, one)
    return kept


def _retells(first: Seen, one: Seen) -> bool:
    near = first.page is one.page and one.index - first.index < NEAR and first.attempt == one.attempt
    if not near or "lookalike" in (first.message.status, one.message.status):
        return False
    if first.prefix != one.prefix and Prefix() not in (first.prefix, one.prefix):
        return False
    if one.message.retells:
        return first.message.family.startswith("torch_") or first.message.family == "cuda_driver"
    families = {first.message.family, one.message.family}
    if families <= _ONE_ALLOCATOR:
        return _agree(first.message.figures.get("requested"), one.message.figures.get("requested"))
    own_tracebacks = first.trace.frames and one.trace.frames and first.trace.places != one.trace.places
    if len(families) > 1 or first.message.family in _JUDGED_ELSEWHERE or own_tracebacks:
        return False
    if None not in (first.message.gpu, one.message.gpu) and first.message.gpu != one.message.gpu:
        return False
    ours, theirs = first.message.figures, one.message.figures
    if ours.keys() == theirs.keys() or not (ours.keys() <= theirs.keys() or theirs.keys() <= ours.keys()):
        return False
    return all(_agree(ours[name], theirs[name]) for name in ours.keys() & theirs.keys())


def _agree(one: Size | None, other: Size | None) -> bool:
    """Whether two prints can be of one size; what is not printed contradicts nothing."""
    return one is None or other is None or (one.low <= other.high and other.low <= one.high)


def after_a_fault(event: Event, before: Sequence[Event]) -> Event:
    """An event that only follows from an earlier fault of the device, as the consequence that it is: no failure of memory."""
    if event.family not in _LIBRARIES or event.requested is not None or event.status not in ("oom", "suspected"):
        return event
    faulty = any(other.reason in FAULTS and other.attempt == event.attempt for other in before)
    return replace(event, status="none", reason="") if faulty else event
