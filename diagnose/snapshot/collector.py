"""Collects a snapshot while it is unpickled: blocks as columns of numbers, a digest of each device's history, every stack once.

The keys are those of torch/csrc/cuda/memory_snapshot.cpp and Module.cpp; releases before 2.1 have the requested size and the frames of a
block in `history`, and no block addresses.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any

from diagnose.records import NamedTuple
from diagnose.snapshot.pickle_reader import CONSUMED
from diagnose.snapshot.shapes import Memo, RawConsumer, decode_value
from diagnose.snapshot.snapshot_limits import DEVICES, FRAME_TEXT, FRAMES, TAIL, UnreadableSnapshot
from diagnose.snapshot.stack_frames import Frame, Stack

#: No card has more bytes, and no address is higher.
_LARGEST = 2**63 - 1

INACTIVE, ALLOCATED, PENDING = range(3)
_STATES = {"active_allocated": ALLOCATED, "active_pending_free": PENDING, "active_awaiting_free": PENDING, "inactive": INACTIVE}

#: Points kept of the curve of a device's allocations.
_POINTS = 256
LISTED = 1 << 20  # bytes from which an allocation is listed by itself
_FAILURES = 8  # latest failures kept of a device
_TRACES = 64  # devices of one process
_CACHED = 4096  # decoded values that are cached
#: Memory of a block, a segment, a frame, a stack and each of its frames; bytes.
_BLOCK, _SEGMENT, _FRAME, _STACK, _STACK_FRAME = 21, 240, 240, 320, 8


class Segment(NamedTuple):
    """A piece of memory that the allocator got from the driver; its blocks are those numbered `first` up to `last`, exclusive."""

    device: int
    total: int
    stream: int
    large: bool
    pool: tuple[int, int]
    expandable: bool
    first: int
    last: int


class OomEntry(NamedTuple):
    """An `oom` entry of a device's trace: the rounded request, the driver's free memory, the bytes allocated less those freed since the
    trace began (`net`), and how many entries came before it (`entry`).

    `frames`: for `Collector.stack`, which is asked for the last failure only."""

    size: int
    free: int | None
    stream: int
    frames: Any
    net: int
    entry: int


class Trace:
    """One device's history: the curve of its allocated bytes, its failures, its latest large allocations."""

    def __init__(self) -> None:
        self.count = self.net = 0
        self.points: list[int] = []
        self.stride = 1
        self.failures: deque[OomEntry] = deque(maxlen=_FAILURES)
        self.tail: deque[tuple[int, int, Any]] = deque(maxlen=TAIL)

    def add(self, action: str, size: int, frames: Any) -> None:
        """Add an entry; `segment_*` entries are ignored, since the segments themselves are in the snapshot."""
        if action == "alloc":
            self.net += size
            if size >= LISTED:
                self.tail.append((self.count, size, frames))
        elif action == "free_completed":
            self.net -= size
        if not self.count % self.stride:
            self.points.append(self.net)
            if len(self.points) == 2 * _POINTS:
                del self.points[1::2]
                self.stride *= 2
        self.count += 1


class Collector:
    """Compact contents of a snapshot; the unpickler's `DictConsumer`."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.sizes: array[int] = array("Q")
        self.requested: array[int] = array("Q")
        self.states = bytearray()
        self.stack_numbers: array[int] = array("I")
        self.stacks: dict[Stack, int] = {(): 0}
        self.traces: dict[int, tuple[Any, Trace]] = {}
        self._frames: dict[Frame, Frame] = {}
        self._stack_numbers: dict[int, tuple[Any, int]] = {}
        self._current_list: Any = self
        self._trace = Trace()
        self._blocks_in_segments = 0
        self._frame_count = 0  # frames in the file
        self._frames_in_stacks = 0

    def kept(self) -> tuple[int, int]:
        """The number of dicts consumed, and the bytes of memory that are kept of them."""
        count = len(self.segments) + len(self.sizes) + self._frame_count + sum(trace.count for _, trace in self.traces.values())
        stacks = _STACK * len(self._stack_numbers) + _STACK_FRAME * self._frames_in_stacks
        return count, _BLOCK * len(self.sizes) + _SEGMENT * len(self.segments) + _FRAME * len(self._frames) + stacks

    # -- dicts, each once it is complete

    def consume(self, value: dict[str, Any], parent: Any) -> Any:
        """Replace frames by shared `Frame`s; store blocks, segments and history entries."""
        if "action" in value:
            self._add_entry(_text(value["action"]), value, parent)
        elif "state" in value and "size" in value:
            first_entry = _first_entry(value.get("history"))
            requested = value.get("requested_size", first_entry.get("real_size", value["size"]))
            self._add_block(value["size"], requested, _text(value["state"]), value.get("frames", first_entry.get("frames")))
        elif "total_size" in value and "blocks" in value:
            self._add_segment(value)
        elif "filename" in value and "name" in value:
            frame = Frame(_text(value["filename"])[-FRAME_TEXT:], _natural_number(value.get("line", 0)), _text(value["name"])[:FRAME_TEXT])
            self._frame_count += 1
            return self._frames.setdefault(frame, frame)
        elif "time_us" not in value:  # annotations, as many as there are profiler ranges
            return value
        return CONSUMED

    def raw_consumer(self, keys: tuple[str, ...], memo: Memo) -> RawConsumer | None:
        """The same for undecoded values of blocks and of history entries other than failures."""
        columns = {key: index for index, key in enumerate(keys)}
        size, frames = columns.get("size"), columns.get("frames")
        if size is None:
            return None
        if "action" in columns and "device_free" not in columns:
            return self._entry_consumer(columns["action"], size, frames, memo)
        state, requested = columns.get("state"), columns.get("requested_size")
        if state is None or requested is None or frames is None:
            return None
        requested_column, frames_column = requested, frames

        def consume_block(raw: tuple[bytes, ...], _: Any) -> None:
            self._add_block(
                decode_value(raw[size], memo),
                decode_value(raw[requested_column], memo),
                _text(decode_value(raw[state], memo)),
                decode_value(raw[frames_column], memo),
            )

        return consume_block

    def _entry_consumer(self, action: int, size: int, frames: int | None, memo: Memo) -> RawConsumer:
        words: dict[bytes, str] = {}
        sizes: dict[bytes, int] = {}  # few distinct sizes occur

        def consume_entry(raw: tuple[bytes, ...], parent: Any) -> None:
            if parent is not self._current_list:
                self._switch_trace(parent)
            trace, size_bytes = self._trace, raw[size]
            word = words.get(raw[action])
            if word is None:
                word = _text(decode_value(raw[action], memo))
                if len(words) < _CACHED:
                    words[raw[action]] = word
            byte_count = sizes.get(size_bytes)
            if byte_count is None:
                byte_count = _natural_number(decode_value(size_bytes, memo))
                if len(sizes) < _CACHED:
                    sizes[size_bytes] = byte_count
            trace.add(word, byte_count, None if frames is None else (memo, raw[frames]))

        return consume_entry

    def _add_entry(self, action: str, entry: dict[str, Any], parent: Any) -> None:
        if parent is not self._current_list:
            self._switch_trace(parent)
        size, trace = _natural_number(entry.get("size", 0)), self._trace
        if action == "oom":
            free = entry.get("device_free")
            free_bytes = None if free is None else _natural_number(free)
            stream = _int_or_zero(entry.get("stream", 0))
            trace.failures.append(OomEntry(size, free_bytes, stream, entry.get("frames"), trace.net, trace.count))
        trace.add(action, size, entry.get("frames"))

    def _switch_trace(self, trace_list: Any) -> None:
        """Go on with the trace of another device."""
        if len(self.traces) > _TRACES:
            raise UnreadableSnapshot("too_much")
        self._current_list = trace_list
        self._trace = self.traces.setdefault(id(trace_list), (trace_list, Trace()))[1]

    def _add_block(self, size: Any, requested: Any, state: str, frames: Any) -> None:
        self.sizes.append(_natural_number(size))
        self.requested.append(_natural_number(requested))
        self.states.append(_STATES.get(state, INACTIVE if state.startswith("inactive") else ALLOCATED))
        self.stack_numbers.append(self._stack_number(frames))

    def _add_segment(self, segment: dict[str, Any]) -> None:
        pool = segment.get("segment_pool_id")
        pool_id = (_int_or_zero(pool[0]), _int_or_zero(pool[1])) if isinstance(pool, (tuple, list)) and len(pool) == 2 else (0, 0)
        first, self._blocks_in_segments = self._blocks_in_segments, len(self.sizes)
        large, expandable = segment.get("segment_type") != "small", segment.get("is_expandable") is True
        device, total, stream = (
            _int_or_zero(segment.get("device", 0)),
            _natural_number(segment["total_size"]),
            _int_or_zero(segment.get("stream", 0)),
        )
        if not 0 <= device < DEVICES:
            raise UnreadableSnapshot("odd_number")
        self.segments.append(Segment(device, total, stream, large, pool_id, expandable, first, self._blocks_in_segments))

    # -- tracebacks

    def _stack_number(self, frames: Any) -> int:
        """The number of a stack; a list of frames that the pickle shares between blocks is converted once."""
        if not frames:
            return 0
        cached = self._stack_numbers.get(id(frames))
        if cached is None or cached[0] is not frames:
            stack = self.stack(frames)
            self._frames_in_stacks += len(stack)
            cached = self._stack_numbers[id(frames)] = frames, self.stacks.setdefault(stack, len(self.stacks))
        return cached[1]

    def stack(self, frames: Any) -> Stack:
        """The stack of an entry, from its list of frames or the memo reference to it that `Trace.tail` holds."""
        if isinstance(frames, tuple) and len(frames) == 2 and isinstance(frames[0], Memo):
            try:
                frames = decode_value(frames[1], frames[0])
            except KeyError:  # it refers to nothing
                return ()
        return tuple(frame for frame in frames[:FRAMES] if isinstance(frame, Frame)) if isinstance(frames, list) else ()


def _first_entry(history: Any) -> dict[str, Any]:
    """The first `history` entry of a block in snapshots before torch 2.1."""
    entry = history[0] if isinstance(history, list) and history else None
    return entry if isinstance(entry, dict) else {}


def _natural_number(value: Any) -> int:
    """A value as an integer of at least 0. Raises UnreadableSnapshot if it is none."""
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise UnreadableSnapshot("odd_number")
    return value


def _text(value: Any) -> str:
    """A value that is a text; `str` of tuples in tuples would take exponential time. Raises UnreadableSnapshot if it is none."""
    if type(value) is not str:
        raise UnreadableSnapshot("odd_text")
    return value


def _int_or_zero(value: Any) -> int:
    return value if type(value) is int and abs(value) <= _LARGEST else 0
