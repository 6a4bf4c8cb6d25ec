"""From what was kept of a snapshot to what it shows of the failed card: sums, free pieces, places, history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from diagnose.phrases import Text
from diagnose.record import record
from diagnose.snapshot.collector import ALLOCATED, INACTIVE, PENDING, SLIGHT, Failed, Place, Segment, Stack, Taken, Trace
from diagnose.snapshot.origin import NO_FRAMES, group_of, place_of
from diagnose.units import Size

#: How many places, segments and last allocations are told, and frames of the failed request.
SITES, SEGMENTS, LATEST, FRAMES = 12, 12, 5, 16

#: Requests up to this size come from the pool of small blocks (kSmallSize), and what every request is rounded up to (kMinBlockSize).
SMALL, GRAIN = 1 << 20, 512


@record
class Site:
    """Memory in use that one place allocated: bytes of its blocks, how many, and of which group."""

    where: Place | None
    group: str
    bytes: int
    count: int


@record
class Fragment:
    """A segment with free memory in it."""

    total: int
    free: int
    largest: int
    stream: int
    large: bool
    private: bool
    expandable: bool


@record
class Pool:
    """What one stream has of one pool; a block never serves another stream or pool."""

    stream: int
    large: bool
    private: bool
    reserved: int
    allocated: int
    free: int
    largest: int


@record
class Failure:
    """The failed request: what the tensor needs (`size`, between the ends that rounding allows), and what stood in its way.

    `pool_free`, `pool_largest`: free in its own pool. `elsewhere`: the largest free piece that would do but belongs to another stream
    or pool, with that pool. `freed_since`: what was given back between the failure and the snapshot."""

    size: Size
    device_free: int | None
    stream: int
    frames: tuple[Place, ...]
    where: Place | None
    pool_free: int
    pool_largest: int
    elsewhere: Pool | None
    freed_since: int | None


@record
class History:
    """How much was allocated, from the first entry to the last, in bytes; the last allocations before the failure or the end."""

    count: int
    points: tuple[int, ...]
    lowest: int
    highest: int
    last: int
    latest: tuple[Site, ...]


@record
class Snapshot:
    """What a memory snapshot says of one card. `allocated` and `requested`: its blocks in use, and the tensors in them."""

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
    unusable: int | None  # free pieces that are smaller than the request; None: no request is known
    expandable: bool | None
    settings: str
    divisions: tuple[int, ...]
    groups: tuple[tuple[str, int], ...]
    sites: tuple[Site, ...]
    fragments: tuple[Fragment, ...]
    pools: tuple[Pool, ...]
    failure: Failure | None
    history: History | None
    verdict: str = ""  # confirmed, refuted, named or open: what the exact size says of the request's attribution
    tensor: Text | None = None  # which tensor that is about


def measured(taken: Taken, traces: list[Trace], settings: dict[str, object], name: str, count: int) -> Snapshot:
    """The snapshot of the card that failed last, else of the one with the most reserved."""
    devices = sorted({segment.device for segment in taken.segments} | {index for index, trace in enumerate(traces) if trace.count})
    reserved = Counter[int]()
    for segment in taken.segments:
        reserved[segment.device] += segment.total
    device = max(devices, key=lambda each: (each < len(traces) and bool(traces[each].failures), reserved[each], -each), default=0)
    trace = traces[device] if device < len(traces) else Trace()
    segments = [segment for segment in taken.segments if segment.device == device]
    failed = trace.failures[-1] if trace.failures else None

    fragments, pools = _free(taken, segments)
    states = Counter[int]()
    requested = 0
    for segment in segments:
        for at in range(segment.first, segment.last):
            states[taken.states[at]] += taken.sizes[at]
            if taken.states[at] == ALLOCATED:
                requested += taken.requested[at]
    free_sizes = [taken.sizes[at] for segment in segments for at in range(segment.first, segment.last) if taken.states[at] == INACTIVE]
    steps = _divisions(settings.get("roundup_power2_divisions"))
    groups, sites = _sites(taken, segments)
    expandable = settings.get("expandable_segments")
    conf = settings.get("PYTORCH_CUDA_ALLOC_CONF") or settings.get("PYTORCH_ALLOC_CONF") or ""
    return Snapshot(
        name=name,
        bytes=count,
        device=device,
        devices=tuple(devices),
        reserved=reserved[device],
        allocated=states[ALLOCATED],
        requested=requested,
        pending=states[PENDING],
        free=states[INACTIVE],
        pieces=len(free_sizes),
        largest=max(free_sizes, default=0),
        unusable=None if failed is None else sum(size for size in free_sizes if size < failed.size),
        expandable=expandable if isinstance(expandable, bool) else True if any(each.expandable for each in segments) else None,
        settings=conf[:500] if isinstance(conf, str) else "",
        divisions=steps,
        groups=groups,
        sites=sites,
        fragments=fragments,
        pools=tuple(sorted(pools, key=lambda pool: -pool.reserved)),
        failure=None if failed is None else _failure(failed, pools, trace, steps),
        history=_history(taken, trace, requested, failed) if trace.count else None,
    )


def _free(taken: Taken, segments: list[Segment]) -> tuple[tuple[Fragment, ...], list[Pool]]:
    """The segments with the most free memory in them, and the sums of each stream's pools."""
    pools: dict[tuple[int, bool, tuple[int, int]], list[int]] = {}
    fragments: list[Fragment] = []
    for segment in segments:
        sums = pools.setdefault((segment.stream, segment.large, segment.pool), [0, 0, 0, 0])
        pieces = [taken.sizes[at] for at in range(segment.first, segment.last) if taken.states[at] == INACTIVE]
        used = sum(taken.sizes[at] for at in range(segment.first, segment.last) if taken.states[at] == ALLOCATED)
        free, largest = sum(pieces), max(pieces, default=0)
        sums[0] += segment.total
        sums[1] += used
        sums[2] += free
        sums[3] = max(sums[3], largest)
        if free >= SLIGHT:
            private = segment.pool != (0, 0)
            fragments.append(Fragment(segment.total, free, largest, segment.stream, segment.large, private, segment.expandable))
    fragments.sort(key=lambda each: -each.free)
    made = [Pool(stream, large, pool != (0, 0), *sums) for (stream, large, pool), sums in pools.items()]
    return tuple(fragments[:SEGMENTS]), made


def _failure(failed: Failed, pools: list[Pool], trace: Trace, steps: tuple[int, ...]) -> Failure:
    """The request with what its own pool had, and what other pools had."""
    large = failed.size > SMALL
    own = [pool for pool in pools if pool.stream == failed.stream and pool.large == large and not pool.private]
    others = [pool for pool in pools if pool not in own and pool.large == large and pool.largest >= failed.size]
    return Failure(
        size=tensor_of(failed.size, steps),
        device_free=failed.free,
        stream=failed.stream,
        frames=failed.stack[:FRAMES],
        where=place_of(failed.stack),
        pool_free=sum(pool.free for pool in own),
        pool_largest=max((pool.largest for pool in own), default=0),
        elsewhere=max(others, key=lambda pool: pool.largest, default=None),
        freed_since=max(0, failed.net - trace.net),
    )


def tensor_of(rounded: int, steps: tuple[int, ...]) -> Size:
    """The bytes that a tensor may have whose request was rounded up to so many: to 512, or to a division of its power of two, which
    is half of it at most."""
    least = rounded - GRAIN + 1 if not any(step > 1 for step in steps) else rounded // 2 + 1
    return Size.between(max(1, min(least, rounded)), rounded, rounded)


def _divisions(told: object) -> tuple[int, ...]:
    """roundup_power2_divisions for each power of two, as the allocator holds them."""
    values = list(told.values())[:64] if isinstance(told, dict) else []
    return tuple(each for each in values if type(each) is int)


def _sites(taken: Taken, segments: list[Segment]) -> tuple[tuple[tuple[str, int], ...], tuple[Site, ...]]:
    """Memory in use by group, and the places that hold the most."""
    by_stack: Counter[int] = Counter()
    pieces: Counter[int] = Counter()
    for segment in segments:
        for at in range(segment.first, segment.last):
            if taken.states[at] == ALLOCATED:
                by_stack[taken.stacks_of[at]] += taken.sizes[at]
                pieces[taken.stacks_of[at]] += 1
    stacks = list(taken.stacks)
    groups: Counter[str] = Counter()
    sites: Counter[tuple[Place | None, str]] = Counter()
    counts: Counter[tuple[Place | None, str]] = Counter()
    for index, size in by_stack.items():
        group = group_of(stacks[index])
        site = place_of(stacks[index]), group
        groups[group] += size
        sites[site] += size
        counts[site] += pieces[index]
    largest = sorted((each for each in sites if each[1] != NO_FRAMES), key=lambda each: -sites[each])[:SITES]
    return tuple(groups.most_common()), tuple(Site(*each, sites[each], counts[each]) for each in largest)


def _history(taken: Taken, trace: Trace, requested: int, failed: Failed | None) -> History:
    """The sums of the trace, moved to where the blocks say that they ended."""
    start = requested - trace.net
    points = tuple(start + point for point in trace.points)
    last = start + (trace.net if failed is None else failed.net)
    until = trace.count if failed is None else failed.at
    return History(
        count=trace.count,
        points=points,
        lowest=min((*points, last)),
        highest=max((*points, last)),
        last=last,
        latest=tuple(_latest(taken, trace, until)),
    )


def _latest(taken: Taken, trace: Trace, until: int) -> Iterator[Site]:
    """The last allocations of a MiB and more before that entry, the latest first."""
    left = LATEST
    for number, size, frames in reversed(trace.tail):
        if left and number < until:
            stack: Stack = taken.stack(frames)
            yield Site(place_of(stack), group_of(stack), size, 1)
            left -= 1
