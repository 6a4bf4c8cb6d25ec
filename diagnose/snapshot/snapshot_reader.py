"""Read a memory snapshot of `torch.cuda.memory._dump_snapshot`, without executing it and in bounded memory, and the facts in it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, BinaryIO

from diagnose.errors import UserError
from diagnose.facts import Fact, Witness
from diagnose.packed.unpack_limits import Allowance
from diagnose.packed.unpacking import contents
from diagnose.snapshot.collector import Collector, Trace
from diagnose.snapshot.measure import Snapshot, summarize
from diagnose.snapshot.pickle_reader import load
from diagnose.snapshot.snapshot_limits import DEVICES, PATIENCE, BoundedReader, UnreadableSnapshot, snapshot_error
from diagnose.snapshot.stack_frames import NO_FRAMES, UNSORTED, Frame
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.facts import Value
    from diagnose.scan.source import Source


#: Errors with advice of their own; the others advise to dump the snapshot again.
_HINTS = {**dict.fromkeys(("too_large", "too_slow", "too_much"), "fewer_entries"), "reaches": "do_not_trust"}


def read(source: Source, patience: float = PATIENCE) -> Snapshot:
    """Read a snapshot file, compressed or not. Raises UserError if it is no snapshot, holds other than plain values, or is damaged."""
    for piece in contents(source, Allowance()):
        if isinstance(piece, UserError):
            raise piece
        file = piece.open()
        try:
            return _read(file, source.name, patience)
        except OSError as error:
            raise source.unreadable(error) from error
        finally:
            piece.close(file)
    raise snapshot_error("no_snapshot", source.name)


def _read(file: BinaryIO, name: str, patience: float) -> Snapshot:
    reader, collector = BoundedReader(file, patience), Collector()
    gc_was_enabled = gc.isenabled()
    gc.disable()  # plain values form no cycles, and each collection would visit all of them
    try:
        value = load(reader, collector)
        traces, settings = _traces_and_settings(value, collector)
        if not collector.segments and not collector.traces:
            raise UnreadableSnapshot("no_snapshot")
        return summarize(collector, traces, settings, name, reader)
    except UnreadableSnapshot as error:
        key = str(error.values.pop("what", error.key))
        raise snapshot_error(key, name, _HINTS.get(error.key, "dump_again"), **error.values) from error
    finally:
        if gc_was_enabled:
            gc.enable()


def _traces_and_settings(value: Any, collector: Collector) -> tuple[list[Trace], dict[str, object]]:
    """The traces by device number, and the allocator's settings."""
    if not isinstance(value, dict):
        return [], {}  # torch.cuda.memory_snapshot() is the list of segments alone
    lists, settings = value.get("device_traces"), value.get("allocator_settings")
    traces = [collector.traces.get(id(trace_list), (None, Trace()))[1] for trace_list in lists[:DEVICES]] if isinstance(lists, list) else []
    return traces, settings if isinstance(settings, dict) else {}


def facts(snapshot: Snapshot, request: bool = True) -> Iterator[Fact]:
    """The snapshot as facts of origin `log`, since the process itself wrote it; without `request` nothing about the failed request."""
    failure = snapshot.failure
    values: dict[str, Value] = {
        "snapshot.reserved": Size.exactly(snapshot.reserved),
        "snapshot.allocated": Size.exactly(snapshot.allocated),
        "snapshot.tensors": Size.exactly(snapshot.requested),
        "snapshot.free": Size.exactly(snapshot.free),
        "snapshot.largest_free_block": Size.exactly(snapshot.largest),
        "snapshot.pending": Size.exactly(snapshot.pending),
        "snapshot.device": snapshot.device,
    }
    if failure is not None and request:
        values["snapshot.request"] = failure.size
        if failure.device_free is not None:
            values["snapshot.device_free"] = Size.exactly(failure.device_free)
        values["snapshot.pool_largest"] = Size.exactly(failure.pool_largest)
        if failure.elsewhere is not None:
            values["snapshot.elsewhere"] = Size.exactly(failure.elsewhere.largest)
        if failure.freed_since is not None:
            values["snapshot.freed_since"] = Size.exactly(failure.freed_since)
        if failure.where is not None:
            values["snapshot.request_frame"] = _frame_text(failure.where)
    if snapshot.unusable is not None and request:
        values["snapshot.fragmentation"] = Size.exactly(snapshot.unusable)
    largest_groups = [(group, size) for group, size in snapshot.groups if group not in (UNSORTED, NO_FRAMES)]
    if largest_groups:
        values["snapshot.largest_group"], values["snapshot.largest_group_bytes"] = largest_groups[0][0], Size.exactly(largest_groups[0][1])
    if snapshot.sites and snapshot.sites[0].where is not None:
        values["snapshot.top_frame"] = _frame_text(snapshot.sites[0].where)
        values["snapshot.top_frame_bytes"] = Size.exactly(snapshot.sites[0].bytes)
    if snapshot.expandable is not None:
        values["alloc.expandable_segments"] = snapshot.expandable
    for name, value in values.items():
        yield Fact(name, value, "log", Witness(snapshot.name, text=f"GPU {snapshot.device}"))


def _frame_text(frame: Frame) -> str:
    return f"{frame.file}:{frame.line} {frame.function}"
