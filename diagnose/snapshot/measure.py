"""Summary of a memory snapshot for the card that failed: sums, fragmentation, allocation sites, history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

from diagnose.phrases import Text
from diagnose.records import NamedTuple
from diagnose.snapshot.collector import ALLOCATED, INACTIVE, LISTED, PENDING, Collector, OomEntry, Segment, Trace
from diagnose.snapshot.snapshot_limits import POOLS, BoundedReader, UnreadableSnapshot
from diagnose.snapshot.stack_frames import NO_FRAMES, Frame, Stack, code_frame, memory_group, user_frames
from diagnose.units import Size

#: Allocation sites, fragmented segments and latest allocations that are listed, and frames of the failed request.
SITES, SEGMENTS, LATEST, FRAMES = 12, 12, 5, 16

#: Chains of frames that a flame graph is made of, and frames of each.
CHAINS, DEPTH = 300, 24

#: Largest request served by the pool of small blocks (kSmallSize), and the unit that requests are rounded up to (kMinBlockSize); bytes.
SMALL, GRAIN = 1 << 20, 512


@dataclass(slots=True)
class Site:
    """Memory in use that one line of code allocated: bytes and number of its blocks, and their group."""

    where: Frame | None
    group: str
    bytes: int
    count: int


class Held(NamedTuple):
    """Bytes in use of one kind that one chain of the user's frames allocated, the outermost frame first."""

    frames: Stack
    group: str
    bytes: int


@dataclass(slots=True)
class Fragment:
    """A segment that is partly free; `largest` is its largest free block."""

    total: int
    free: int
    largest: int
    stream: int
    large: bool
    private: bool
    expandable: bool


@dataclass(slots=True)
class Pool:
    """The memory of one stream in one pool; a block never serves another stream or pool."""

    stream: int
    large: bool
    private: bool
    reserved: int
    allocated: int
    free: int
    largest: int


@dataclass(slots=True)
class Failure:
    """The failed request: `size` of the tensor (the range that rounding allows), and the free memory around it.

    `pool_free`, `pool_largest`: free bytes and largest free block in its own pool. `elsewhere`: the pool of another stream or kind with
    the largest free block that would have sufficed. `freed_since`: bytes freed between the failure and the snapshot."""

    size: Size
    device_free: int | None
    stream: int
    frames: tuple[Frame, ...]
    where: Frame | None
    pool_free: int
    pool_largest: int
    elsewhere: Pool | None
    freed_since: int | None


@dataclass(slots=True)
class History:
    """Allocated bytes over the recorded history, and the latest large allocations before the failure or the end."""

    count: int
    points: tuple[int, ...]
    lowest: int
    highest: int
    last: int
    latest: tuple[Site, ...]


@dataclass(slots=True)
class Snapshot:
    """Summary of one card; sizes in bytes. `allocated`: blocks in use, `requested`: the tensors in them."""

    name: str
    bytes: int
    device: int
    devices: tuple[int, ...]
    reserved: int
    allocated: int
    requested: int
    pending: int
    free: int
    pieces: int
    largest: int
    unusable: int | None  # free blocks smaller than the request; None: no request is known
    expandable: bool | None
    settings: str
    divisions: tuple[int, ...]
    groups: tuple[tuple[str, int], ...]
    sites: tuple[Site, ...]
    fragments: tuple[Fragment, ...]
    pools: tuple[Pool, ...]
    failure: Failure | None
    history: History | None
    stacks: tuple[Held, ...] = ()  # what is in use by the user's frames, the most first
    verdict: str = ""  # confirmed, refuted, named or open: the attribution of the request checked against its exact size
    tensor: Text | None = None  # the tensor that the verdict is about


@dataclass(slots=True)
class _Tally:
    """Sums over the blocks of one card: bytes by state, requested bytes of those in use, free blocks, blocks in use by stack."""

    states: Counter[int]
    requested: int
    pieces: int
    unusable: int
    by_stack: Counter[int]
    counts_by_stack: Counter[int]
    pools: dict[tuple[int, bool, tuple[int, int]], Pool]
    fragments: list[Fragment]


def summarize(collector: Collector, traces: list[Trace], settings: dict[str, object], name: str, reader: BoundedReader) -> Snapshot:
    """Summarize the card that failed last, else the one with the most reserved memory.

    Raises UnreadableSnapshot if it takes longer than `reader` allows."""
    devices = sorted({segment.device for segment in collector.segments} | {index for index, trace in enumerate(traces) if trace.count})
    reserved = Counter[int]()
    for segment in collector.segments:
        reserved[segment.device] += segment.total
    device = max(
        devices,
        key=lambda index: (index < len(traces) and bool(traces[index].failures), reserved[index], -index),
        default=0,
    )
    trace = traces[device] if device < len(traces) else Trace()
    segments = [segment for segment in collector.segments if segment.device == device]
    failed = trace.failures[-1] if trace.failures else None

    tally = _tally(collector, segments, 0 if failed is None else failed.size, reader)
    states, pools = tally.states, list(tally.pools.values())
    divisions = _parse_divisions(settings.get("roundup_power2_divisions"))
    groups, sites, stacks = _sites(collector, tally, reader)
    expandable = settings.get("expandable_segments")
    settings_text = settings.get("PYTORCH_CUDA_ALLOC_CONF") or settings.get("PYTORCH_ALLOC_CONF") or ""
    return Snapshot(
        name=name,
        bytes=reader.bytes_read,
        device=device,
        devices=tuple(devices),
        reserved=reserved[device],
        allocated=states[ALLOCATED],
        requested=tally.requested,
        pending=states[PENDING],
        free=states[INACTIVE],
        pieces=tally.pieces,
        largest=max((pool.largest for pool in pools), default=0),
        unusable=None if failed is None else tally.unusable,
        expandable=expandable if isinstance(expandable, bool) else True if any(segment.expandable for segment in segments) else None,
        settings=settings_text[:500] if isinstance(settings_text, str) else "",
        divisions=divisions,
        groups=groups,
        sites=sites,
        stacks=stacks,
        fragments=tuple(nlargest(SEGMENTS, tally.fragments, key=lambda fragment: fragment.free)),
        pools=tuple(sorted(pools, key=lambda pool: -pool.reserved)),
        failure=None if failed is None else _failure(failed, collector.stack(failed.frames), pools, trace, divisions),
        history=_history(collector, trace, tally.requested, failed) if trace.count else None,
    )


def _tally(collector: Collector, segments: list[Segment], request: int, reader: BoundedReader) -> _Tally:
    """`unusable` counts the free blocks smaller than `request`. Raises UnreadableSnapshot for more pools than a process has."""
    tally = _Tally(Counter(), 0, 0, 0, Counter(), Counter(), {}, [])
    sizes, block_states = collector.sizes, collector.states
    for segment in segments:
        reader.check_time()
        used = free = largest = 0
        for block in range(segment.first, segment.last):
            size, state = sizes[block], block_states[block]
            tally.states[state] += size
            if state == ALLOCATED:
                used += size
                tally.requested += collector.requested[block]
                tally.by_stack[collector.stack_numbers[block]] += size
                tally.counts_by_stack[collector.stack_numbers[block]] += 1
            elif state == INACTIVE:
                free += size
                largest = max(largest, size)
                tally.pieces += 1
                if size < request:
                    tally.unusable += size
        private = segment.pool != (0, 0)
        pool = tally.pools.setdefault(
            (segment.stream, segment.large, segment.pool), Pool(segment.stream, segment.large, private, 0, 0, 0, 0)
        )
        if len(tally.pools) > POOLS:
            raise UnreadableSnapshot("too_much")
        pool.reserved += segment.total
        pool.allocated += used
        pool.free += free
        pool.largest = max(pool.largest, largest)
        if free >= LISTED:
            tally.fragments.append(Fragment(segment.total, free, largest, segment.stream, segment.large, private, segment.expandable))
            if len(tally.fragments) == 2 * POOLS:
                tally.fragments = nlargest(SEGMENTS, tally.fragments, key=lambda fragment: fragment.free)
    return tally


def _failure(entry: OomEntry, stack: Stack, pools: list[Pool], trace: Trace, divisions: tuple[int, ...]) -> Failure:
    """The failed request, and the free memory of its own and of other pools."""
    large = entry.size > SMALL
    own_pools = [pool for pool in pools if pool.stream == entry.stream and pool.large == large and not pool.private]
    other_pools = [pool for pool in pools if pool not in own_pools and pool.large == large and pool.largest >= entry.size]
    return Failure(
        size=tensor_size(entry.size, divisions),
        device_free=entry.free,
        stream=entry.stream,
        frames=stack[:FRAMES],
        where=code_frame(stack),
        pool_free=sum(pool.free for pool in own_pools),
        pool_largest=max((pool.largest for pool in own_pools), default=0),
        elsewhere=max(other_pools, key=lambda pool: pool.largest, default=None),
        freed_since=max(0, entry.net - trace.net),
    )


def tensor_size(request: int, divisions: tuple[int, ...]) -> Size:
    """The possible sizes of a tensor whose request was rounded up to `request` bytes: to a multiple of 512, or to a division of a power
    of two, which is at most half of it."""
    least = request - GRAIN + 1 if not any(step > 1 for step in divisions) else request // 2 + 1
    return Size.between(max(1, min(least, request)), request, request)


def _parse_divisions(setting: object) -> tuple[int, ...]:
    """The allocator setting roundup_power2_divisions, one value per power of two."""
    values = list(setting.values())[:64] if isinstance(setting, dict) else []
    return tuple(value for value in values if type(value) is int)


def _sites(
    collector: Collector, tally: _Tally, reader: BoundedReader
) -> tuple[tuple[tuple[str, int], ...], tuple[Site, ...], tuple[Held, ...]]:
    """Memory in use by group, the code lines that hold the most, and the chains of frames that led there."""
    stacks = list(collector.stacks)
    groups: Counter[str] = Counter()
    sites: Counter[tuple[Frame | None, str]] = Counter()
    counts: Counter[tuple[Frame | None, str]] = Counter()
    chains: Counter[tuple[Stack, str]] = Counter()
    for index, size in tally.by_stack.items():
        reader.check_time()
        group = memory_group(stacks[index])
        site = code_frame(stacks[index]), group
        groups[group] += size
        sites[site] += size
        chains[user_frames(stacks[index])[:DEPTH], group] += size
        counts[site] += tally.counts_by_stack[index]
    largest = sorted((site for site in sites if site[1] != NO_FRAMES), key=lambda site: -sites[site])[:SITES]
    held = tuple(Held(*chain, size) for chain, size in chains.most_common(CHAINS))
    return tuple(groups.most_common()), tuple(Site(*site, sites[site], counts[site]) for site in largest), held


def _history(collector: Collector, trace: Trace, requested: int, failure: OomEntry | None) -> History:
    """The curve of the trace, shifted so that it ends at the bytes in use now: a trace may begin after the first allocations."""
    start = requested - trace.net
    points = tuple(start + point for point in trace.points)
    last = start + (trace.net if failure is None else failure.net)
    end = trace.count if failure is None else failure.entry
    return History(
        count=trace.count,
        points=points,
        lowest=min((*points, last)),
        highest=max((*points, last)),
        last=last,
        latest=tuple(_latest(collector, trace, end)),
    )


def _latest(collector: Collector, trace: Trace, end: int) -> Iterator[Site]:
    """The last allocations of at least a MiB before the entry `end`, latest first."""
    remaining = LATEST
    for number, size, frames in reversed(trace.tail):
        if remaining and number < end:
            stack: Stack = collector.stack(frames)
            yield Site(code_frame(stack), memory_group(stack), size, 1)
            remaining -= 1
