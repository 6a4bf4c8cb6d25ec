"""What a memory snapshot shows; every size is exact, in bytes."""

from __future__ import annotations

from typing import Literal

from diagnose.typed.parts import Part, Size


class Place(Part):
    file: str
    line: int
    function: str


class Site(Part):
    """Memory that one place allocated; `group` is what its frames tell of it."""

    where: Place | None
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

    requested: Size
    device_free: int | None
    stream: int
    frames: list[Place]
    pool_free: int
    pool_largest: int
    elsewhere: Pool | None
    freed_since: int | None


class History(Part):
    """How much was allocated over the recorded events."""

    events: int
    points: list[int]
    lowest: int
    highest: int
    last: int
    latest: list[Site]


class Judged(Part):
    """What the exact size says of the tensor that the log alone would name."""

    verdict: Literal["confirmed", "refuted", "named", "open"]
    tensor: str | None


class Snapshot(Part):
    """One card of a memory snapshot. `fragmentation`: free in pieces smaller than the failed request."""

    name: str
    device: int
    devices: list[int]
    reserved: int
    allocated: int
    tensors: int
    pending: int
    free: int
    pieces: int
    largest: int
    fragmentation: int | None
    expandable_segments: bool | None
    settings: str
    groups: list[dict[str, str | int]]
    sites: list[Site]
    segments: list[Segment]
    pools: list[Pool]
    failure: Failed | None
    history: History | None
    attribution: Judged | None
