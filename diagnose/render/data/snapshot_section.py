"""The section on a memory snapshot; all sizes are exact, in bytes.

Annotations are evaluated here (no `from __future__ import annotations`), see `part`.
"""

from typing import Literal

from diagnose.render.data.part import Frame, Part, Size, at


class Site(Part):
    """Memory allocated at one place of the code; `group`: the kind of memory by its stack frames."""

    where: Frame | None
    group: str
    bytes: int
    count: int


class Segment(Part):
    """A block that torch reserved from the driver and that is partly free."""

    total: int
    free: int
    largest: int
    stream: int
    large: bool
    private: bool
    expandable: bool


class Pool(Part):
    """The memory of one allocator pool on one stream."""

    stream: int
    large: bool
    private: bool
    reserved: int
    allocated: int
    free: int
    largest: int


class Failed(Part):
    """The failed request and the free memory of its pool; `elsewhere`: another pool, unusable for it, with a large enough free block."""

    requested: Size = at("size")
    device_free: int | None
    stream: int
    frames: list[Frame]
    pool_free: int
    pool_largest: int
    elsewhere: Pool | None
    freed_since: int | None


class History(Part):
    """Bytes allocated over the recorded events."""

    events: int = at("count")
    points: list[int]
    lowest: int
    highest: int
    last: int
    latest: list[Site]


class Judged(Part):
    """Whether the exact size confirms the tensor that the log suggests."""

    verdict: Literal["confirmed", "refuted", "named", "open"]
    tensor: str | None


class Group(Part):
    """Memory in use, by kind."""

    group: str
    bytes: int


class Snapshot(Part):
    """The memory snapshot of one card. `fragmentation`: free memory in blocks smaller than the failed request."""

    name: str
    device: int
    devices: list[int]
    reserved: int
    allocated: int
    tensors: int = at("requested")
    pending: int
    free: int
    pieces: int
    largest: int
    fragmentation: int | None = at("unusable")
    expandable_segments: bool | None = at("expandable")
    settings: str
    groups: list[Group] = at(lambda snapshot: [Group(group=name, bytes=size) for name, size in snapshot.groups])
    sites: list[Site]
    segments: list[Segment] = at("fragments")
    pools: list[Pool] = at(lambda snapshot: snapshot.pools[:64])
    failure: Failed | None
    history: History | None
    attribution: Judged | None = at(lambda snapshot: snapshot if snapshot.verdict else None)
