"""What was read: inputs, the verdict, events, facts."""

from __future__ import annotations

from typing import Literal

from diagnose.typed.parts import Part, Size, Value, Witness


class Tool(Part):
    name: str
    version: str


class Given(Part):
    name: str
    kind: str
    bytes: int
    lines: int
    encoding: str
    notes: list[str]


class Verdict(Part):
    status: Literal["oom", "suspected", "lookalike", "none"]
    family: str | None
    phase: str | None
    headline: str
    event: int | None


class OtherProcess(Part):
    pid: int
    in_use: Size | None


class Frame(Part):
    file: str
    line: int
    function: str


class Event(Part):
    family: str
    exception: str
    fatal: bool
    attempt: int
    rank: int | None
    local_rank: int | None
    ranks: list[int]
    host: str | None
    pid: int | None
    gpu: int | None
    step: int | None
    phase: str
    requested: Size | None
    capacity: Size | None
    free: Size | None
    allowed: Size | None
    process_in_use: Size | None
    allocated: Size | None
    reserved_unallocated: Size | None
    reserved_total: Size | None
    private_pools: Size | None
    mps_allocated: Size | None
    other_allocations: Size | None
    max_allowed: Size | None
    current_active: Size | None
    other_processes: list[OtherProcess]
    frames: list[Frame]
    consequence_of: int | None
    count: int
    members: list[Event]
    evidence: list[Witness]
    role: str | None
    reason: str | None


class Fact(Part):
    name: str
    value: Value
    unit: str | None
    witness: Witness | None


class Notice(Part):
    level: Literal["info", "warning", "error"]
    code: str
    message: str
    witness: Witness | None
