"""What is kept of a snapshot while it is read: blocks as columns of numbers, the end of each history, one copy of every traceback.

The keys are those of torch/csrc/cuda/memory_snapshot.cpp and Module.cpp; releases before 2.1 have the request and the frames of a
block in `history`, and its address nowhere.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any

from diagnose.record import NamedTuple
from diagnose.snapshot.pickle_reader import GONE
from diagnose.snapshot.shapes import Intake, Memo, value
from diagnose.snapshot.snapshot_limits import BLOCKS, SEGMENTS, TAIL, Refused

#: No card has more bytes, and no address is higher.
LARGEST = 2**63 - 1

INACTIVE, ALLOCATED, PENDING = range(3)
STATES = {"active_allocated": ALLOCATED, "active_pending_free": PENDING, "active_awaiting_free": PENDING, "inactive": INACTIVE}

#: Points of a device's history that are kept, at most.
POINTS = 256
SLIGHT = 1 << 20  # smaller allocations are not told one by one, in bytes
FAILURES = 8  # the last ones of a device
DEVICES = 64  # of one process
CACHED = 4096  # sizes whose bytes are remembered


class Place(NamedTuple):
    """A frame of a traceback, the innermost first in its list."""

    file: str
    line: int
    function: str


Stack = tuple[Place, ...]


class Segment(NamedTuple):
    """What the allocator got from the driver in one piece, and which blocks it consists of (`first` to `last`, the last excluded)."""

    device: int
    total: int
    stream: int
    large: bool
    pool: tuple[int, int]
    expandable: bool
    first: int
    last: int


class Failed(NamedTuple):
    """An `oom` entry: the request after rounding, what the driver had left, and how much was in use by the entries before it."""

    size: int
    free: int | None
    stream: int
    stack: Stack
    net: int
    at: int


class Trace:
    """One device's history: how the sum of its allocations went, its failures, its end."""

    def __init__(self) -> None:
        self.count = self.net = 0
        self.points: list[int] = []
        self.stride = 1
        self.failures: deque[Failed] = deque(maxlen=FAILURES)
        self.tail: deque[tuple[int, int, Any]] = deque(maxlen=TAIL)

    def step(self, action: str, size: int, frames: Any) -> None:
        """One entry more. What `segment_*` entries say is in the segments already."""
        if action == "alloc":
            self.net += size
            if size >= SLIGHT:
                self.tail.append((self.count, size, frames))
        elif action == "free_completed":
            self.net -= size
        if not self.count % self.stride:
            self.points.append(self.net)
            if len(self.points) == 2 * POINTS:
                del self.points[1::2]
                self.stride *= 2
        self.count += 1


class Taken:
    """Everything that a snapshot says, as small as it goes."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.sizes: array[int] = array("Q")
        self.requested: array[int] = array("Q")
        self.states = bytearray()
        self.stacks_of: array[int] = array("I")
        self.stacks: dict[Stack, int] = {(): 0}
        self.traces: dict[int, tuple[Any, Trace]] = {}
        self._places: dict[Place, Place] = {}
        self._known: dict[int, tuple[Any, int]] = {}
        self._list: Any = self
        self._trace = Trace()
        self._closed = 0

    # -- dicts, each once it is complete

    def take(self, made: dict[str, Any], within: Any) -> Any:
        """Frames become small and may be referred to again; blocks, segments and the entries of a history are taken in."""
        if "action" in made:
            self._entry(str(made["action"]), made, within)
        elif "state" in made and "size" in made:
            old = _first(made.get("history"))
            asked = made.get("requested_size", old.get("real_size", made["size"]))
            self._block(made["size"], asked, str(made["state"]), made.get("frames", old.get("frames")))
        elif "total_size" in made and "blocks" in made:
            self._segment(made)
        elif "filename" in made and "name" in made:
            place = Place(str(made["filename"]), _whole(made.get("line", 0)), str(made["name"]))
            return self._places.setdefault(place, place)
        elif "time_us" not in made:  # annotations, as many as there are profiler ranges
            return made
        return GONE

    def intake(self, keys: tuple[str, ...], memo: Memo) -> Intake | None:
        """The same from raw values: entries that say no failure, and blocks."""
        where = {key: index for index, key in enumerate(keys)}
        size, frames = where.get("size"), where.get("frames")
        if size is None:
            return None
        if "action" in where and "device_free" not in where:
            return self._entries(where["action"], size, frames, memo)
        state, asked = where.get("state"), where.get("requested_size")
        if state is None or asked is None or frames is None:
            return None
        requested, stack = asked, frames

        def block(raw: tuple[bytes, ...], _: Any) -> None:
            self._block(value(raw[size], memo), value(raw[requested], memo), str(value(raw[state], memo)), value(raw[stack], memo))

        return block

    def _entries(self, action: int, size: int, frames: int | None, memo: Memo) -> Intake:
        words: dict[bytes, str] = {}
        sizes: dict[bytes, int] = {}  # most sizes come again and again

        def entry(raw: tuple[bytes, ...], within: Any) -> None:
            if within is not self._list:
                self._turn(within)
            trace, written = self._trace, raw[size]
            said = words.get(raw[action])
            if said is None:
                said = words[raw[action]] = str(value(raw[action], memo))
            known = sizes.get(written)
            if known is None:
                known = _whole(value(written, memo))
                if len(sizes) < CACHED:
                    sizes[written] = known
            trace.step(said, known, None if frames is None else (memo, raw[frames]))

        return entry

    def _entry(self, action: str, made: dict[str, Any], within: Any) -> None:
        if within is not self._list:
            self._turn(within)
        size, trace = _whole(made.get("size", 0)), self._trace
        if action == "oom":
            free = made.get("device_free")
            stack = self.stack(made.get("frames"))
            trace.failures.append(
                Failed(size, None if free is None else _whole(free), _number(made.get("stream", 0)), stack, trace.net, trace.count)
            )
        trace.step(action, size, made.get("frames"))

    def _turn(self, within: Any) -> None:
        """The entries that follow belong to another device."""
        if len(self.traces) > DEVICES:
            raise Refused("too_much")
        self._list = within
        self._trace = self.traces.setdefault(id(within), (within, Trace()))[1]

    def _block(self, size: Any, requested: Any, state: str, frames: Any) -> None:
        if len(self.sizes) >= BLOCKS:
            raise Refused("too_much")
        self.sizes.append(_whole(size))
        self.requested.append(_whole(requested))
        self.states.append(STATES.get(state, INACTIVE if state.startswith("inactive") else ALLOCATED))
        self.stacks_of.append(self._index(frames))

    def _segment(self, made: dict[str, Any]) -> None:
        if len(self.segments) >= SEGMENTS:
            raise Refused("too_much")
        pool = made.get("segment_pool_id")
        pair = (_number(pool[0]), _number(pool[1])) if isinstance(pool, (tuple, list)) and len(pool) == 2 else (0, 0)
        first, self._closed = self._closed, len(self.sizes)
        large, expandable = made.get("segment_type") != "small", made.get("is_expandable") is True
        device, total, stream = _number(made.get("device", 0)), _whole(made["total_size"]), _number(made.get("stream", 0))
        self.segments.append(Segment(device, total, stream, large, pair, expandable, first, self._closed))

    # -- tracebacks

    def _index(self, frames: Any) -> int:
        """The number of a traceback; the list that a pickle shares between blocks is looked at once."""
        if not frames:
            return 0
        seen = self._known.get(id(frames))
        if seen is None or seen[0] is not frames:
            stack = self.stack(frames)
            seen = self._known[id(frames)] = frames, self.stacks.setdefault(stack, len(self.stacks))
        return seen[1]

    def stack(self, frames: Any) -> Stack:
        """The frames of an entry, from where a history keeps them."""
        if isinstance(frames, tuple) and len(frames) == 2 and isinstance(frames[0], Memo):
            frames = value(frames[1], frames[0])
        return tuple(place for place in frames if isinstance(place, Place)) if isinstance(frames, list) else ()


def _first(history: Any) -> dict[str, Any]:
    """What a block of an old snapshot says of the tensor that it was made for."""
    entry = history[0] if isinstance(history, list) and history else None
    return entry if isinstance(entry, dict) else {}


def _whole(number: Any) -> int:
    """A count of bytes. Raises Refused for what can be none."""
    if type(number) is not int or not 0 <= number <= LARGEST:
        raise Refused("odd_number")
    return number


def _number(number: Any) -> int:
    return number if type(number) is int and abs(number) <= LARGEST else 0
