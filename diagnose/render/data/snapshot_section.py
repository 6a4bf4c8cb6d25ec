"""The section of a memory snapshot; every size is exact, in bytes.

Annotations are evaluated here (no `from __future__ import annotations`), see `part`.
"""

from typing import Literal

from diagnose.render.data.part import Frame, Part, Size, at


class Site(Part):
    """Memory that one place allocated; `group` is what its frames tell of it."""

    where: Frame | None
    group: str
    bytes: int
    count: int


class Segment(Part):
    """What torch got from the driver in one piece, where some of it is free."""

    total: int
    free: int
    largest: int
    stream: int
    large: bool
    private: bool
    expandable: bool


class Pool(Part):
    """What one stream has of one pool."""

    stream: int
    large: bool
    private: bool
    reserved: int
    allocated: int
    free: int
    largest: int


class Failed(Part):
    """The failed request and what its own pool had free; `elsewhere`: a pool that it could not use and that had enough in one piece."""

    requested: Size = at("size")
    device_free: int | None
    stream: int
    frames: list[Frame]
    pool_free: int
    pool_largest: int
    elsewhere: Pool | None
    freed_since: int | None


class History(Part):
    """How much was allocated over the recorded events."""

    events: int = at("count")
    points: list[int]
    lowest: int
    highest: int
    last: int
    latest: list[Site]


class Judged(Part):
    """What the exact size says of the tensor that the log alone would name."""

    verdict: Literal["confirmed", "refuted", "named", "open"]
    tensor: str | None


class Group(Part):
    """Memory in use of one kind."""

    group: str
    bytes: int


class Snapshot(Part):
    """One card of a memory snapshot. `fragmentation`: free in pieces smaller than the failed request."""

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
