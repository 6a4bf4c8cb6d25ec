"""Memory snapshots, as `torch.cuda.memory._dump_snapshot` writes them: read without trust and in bounded memory, and what they show."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from diagnose.errors import UserError
from diagnose.facts import Fact, Witness
from diagnose.packed.unpack_limits import Allowance
from diagnose.packed.unpacking import contents
from diagnose.snapshot.collector import Place, Taken, Trace
from diagnose.snapshot.measure import Failure, Fragment, History, Pool, Site, Snapshot, measured
from diagnose.snapshot.origin import NO_FRAMES, UNSORTED
from diagnose.snapshot.pickle_reader import load
from diagnose.snapshot.snapshot_limits import PATIENCE, Refused, trouble
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.facts import Value
    from diagnose.scan.source import Source

__all__ = ["Failure", "Fragment", "History", "Place", "Pool", "Site", "Snapshot", "facts", "read"]

#: Which advice goes with a fault; the others say to write it again.
_HINTS = {**dict.fromkeys(("too_large", "too_slow", "too_much"), "fewer_entries"), "reaches": "do_not_trust"}


def read(source: Source, patience: float = PATIENCE) -> Snapshot:
    """The snapshot in a file, compressed or not. Raises UserError where it is none, wants more than plain values, or is damaged."""
    for piece in contents(source, Allowance()):
        if isinstance(piece, UserError):
            raise piece
        opened = piece.open()
        try:
            return _read(opened, source.name, patience)
        except OSError as error:
            raise source.unreadable(error) from error
        finally:
            piece.close(opened)
    raise trouble("no_snapshot", source.name)


def _read(opened: BinaryIO, name: str, patience: float) -> Snapshot:
    counted = _Counted(opened)
    taken = Taken()
    collects = gc.isenabled()
    gc.disable()  # plain values, none of which the collector could free: it would look at all of them again and again
    try:
        whole = load(cast("BinaryIO", counted), taken, patience)
        traces, settings = _parts(whole, taken)
        if not taken.segments and not taken.traces:
            raise Refused("no_snapshot")
        return measured(taken, traces, settings, name, counted.count)
    except Refused as fault:
        key = str(fault.values.pop("what", fault.key))
        raise trouble(key, name, _HINTS.get(fault.key, "dump_again"), **fault.values) from fault
    finally:
        if collects:
            gc.enable()


def _parts(whole: Any, taken: Taken) -> tuple[list[Trace], dict[str, object]]:
    """The histories in the order of their devices, and the allocator's settings."""
    if not isinstance(whole, dict):
        return [], {}  # torch.cuda.memory_snapshot() is the list of segments alone
    lists, settings = whole.get("device_traces"), whole.get("allocator_settings")
    traces = [taken.traces.get(id(each), (None, Trace()))[1] for each in lists[:1024]] if isinstance(lists, list) else []
    return traces, settings if isinstance(settings, dict) else {}


class _Counted:
    """A file whose bytes are counted."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened
        self.count = 0

    def read(self, most: int) -> bytes:
        part = self._opened.read(most) or b""
        self.count += len(part)
        return part


def facts(of: Snapshot, request: bool = True) -> Iterator[Fact]:
    """What the snapshot says as facts; without `request` nothing of the request that failed. They are as good as what a log prints:
    the process itself wrote them."""
    failure = of.failure
    said: dict[str, Value] = {
        "snapshot.reserved": Size.exactly(of.reserved),
        "snapshot.allocated": Size.exactly(of.allocated),
        "snapshot.tensors": Size.exactly(of.requested),
        "snapshot.free": Size.exactly(of.free),
        "snapshot.largest_free_block": Size.exactly(of.largest),
        "snapshot.pending": Size.exactly(of.pending),
        "snapshot.device": of.device,
    }
    if failure is not None and request:
        said["snapshot.request"] = failure.size
        if failure.device_free is not None:
            said["snapshot.device_free"] = Size.exactly(failure.device_free)
        said["snapshot.pool_largest"] = Size.exactly(failure.pool_largest)
        if failure.elsewhere is not None:
            said["snapshot.elsewhere"] = Size.exactly(failure.elsewhere.largest)
        if failure.freed_since is not None:
            said["snapshot.freed_since"] = Size.exactly(failure.freed_since)
        if failure.where is not None:
            said["snapshot.request_frame"] = _named(failure.where)
    if of.unusable is not None and request:
        said["snapshot.fragmentation"] = Size.exactly(of.unusable)
    known = [(group, size) for group, size in of.groups if group not in (UNSORTED, NO_FRAMES)]
    if known:
        said["snapshot.largest_group"], said["snapshot.largest_group_bytes"] = known[0][0], Size.exactly(known[0][1])
    if of.sites and of.sites[0].where is not None:
        said["snapshot.top_frame"] = _named(of.sites[0].where)
        said["snapshot.top_frame_bytes"] = Size.exactly(of.sites[0].bytes)
    if of.expandable is not None:
        said["alloc.expandable_segments"] = of.expandable
    for name, value in said.items():
        yield Fact(name, value, "log", Witness(of.name, text=f"GPU {of.device}"))


def _named(place: Place) -> str:
    return f"{place.file}:{place.line} {place.function}"
