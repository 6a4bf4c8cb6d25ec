"""What a page draws of time: the points of a step as a stacked area with the limit, and the failure as a column that crosses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnose import families
from diagnose.budget.model.ledger import Ledger
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.records import NamedTuple
from diagnose.render.parts import card_bar, failure_text, memory_rows, turned_view, words
from diagnose.render.parts.turned_view import Column
from diagnose.render.parts.words import word
from diagnose.units import Size

#: The chart in units of its view box, and half the width of the column of the failure.
WIDE, HIGH, HALF = 1000, 260, 9


class Block(NamedTuple):
    """A piece of the column of the failure, in units of the view box."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Tick(NamedTuple):
    """A point of the step: name, sum as text, whether it exceeds the limit, whether the job failed there."""

    name: str
    total: str
    over: bool
    failed: bool = False


class Area(NamedTuple):
    """The step as a stacked area in a view box of WIDE by HIGH: a path for each part, the limit and what was before as lines, and what the
    card held beside the estimate at the failure."""

    bands: list[tuple[str, str]]
    limit: str
    limit_text: str
    was: str
    ticks: list[Tick]
    label: str
    failure: list[Block]
    legend: list[tuple[str, str]]  # kind and name of each part


def draw(
    columns: Sequence[Column],
    lang: Lang,
    before: Sequence[Column] = (),
    failed: int | None = None,
    beside: Mapping[str, int] | None = None,
) -> Area | None:
    """The points of a step in their order; None for fewer than two that hold anything. `before`: the same points before some changes;
    `failed`: the number of the point where the job failed, with what lay on the card there `beside` the estimate, in bytes by kind."""
    if len(columns) < 2 or not any(column.total for column in columns):
        return None
    extra = dict(beside or {})
    crossing = columns[failed].total + sum(extra.values()) if failed is not None else 0
    top = max(*(max(column.total, column.room) for column in columns), *(column.total for column in before), crossing, 1) * 1.04
    xs = [WIDE * at / (len(columns) - 1) for at in range(len(columns))]
    kinds = [kind for kind in card_bar.SIGNS if any(kind in column.parts for column in columns)]
    floor, bands = [0] * len(columns), []
    for kind in kinds:
        roof = [low + column.parts.get(kind, 0) for low, column in zip(floor, columns, strict=True)]
        bands.append((kind, path(xs, roof, top) + path(xs[::-1], floor[::-1], top).replace("M", "L", 1) + "Z"))
        floor = roof
    limited = all(column.room for column in columns)
    same_steps = bool(before) and [column.name for column in before] == [column.name for column in columns]
    blocks = list(_column(columns[failed].total, extra, xs[failed], top)) if failed is not None else []
    return Area(
        bands,
        path(xs, [column.room for column in columns], top) if limited else "",
        word("limit", lang, size=words.gib(columns[0].room)) if limited else "",
        path(xs, [column.total for column in before], top) if same_steps else "",
        [
            Tick(column.name, words.gib(column.total), bool(column.room) and column.total > column.room, number == failed)
            for number, column in enumerate(columns)
        ],
        words.comma(lang).join(f"{column.name} {words.gib(column.total)}" for column in columns),
        blocks,
        [(kind, word(f"bar_{kind}", lang)) for kind in (*kinds, *(kind for kind in extra if extra[kind] > 0))],
    )


def _column(total: int, beside: Mapping[str, int], x: float, top: float) -> list[Block]:
    """What lies beside the estimate, piled on its sum at the failure."""
    left, blocks, low = min(max(x - HALF, 0), WIDE - 2 * HALF), [], total
    for kind, size in beside.items():
        if size > 0:
            blocks.append(Block(kind, left, HIGH - HIGH * (low + size) / top, 2 * HALF, HIGH * size / top))
            low += size
    return blocks


def path(xs: Sequence[float], values: Sequence[int], top: float) -> str:
    return "M" + "L".join(f"{x:.1f} {HIGH - HIGH * value / top:.1f}" for x, value in zip(xs, values, strict=True))


def timelines(diagnosis: Diagnosis, lang: Lang) -> list[tuple[str, Area, Ledger]]:
    """The step of each role that has one, with its title; none where nothing of a card failed or is asked about."""
    failed = diagnosis.verdict.status in ("oom", "suspected")
    if not (failed or diagnosis.asked == "check") or failure_text.on_host(diagnosis):
        return []
    drawn = []
    for ledger in diagnosis.ledgers:
        columns = turned_view.columns_of(ledger, lang)
        names = [moment.name for moment in ledger.moments if moment.terms]
        at = names.index(ledger.failing) if ledger.failing in names else None
        area = draw(columns, lang, failed=at, beside=_beside(diagnosis, ledger, columns[at].total) if at is not None else None)
        if area is not None:
            drawn.append((word("step_timeline", lang, who=memory_rows.role_title(ledger, lang)), area, ledger))
    return sorted(drawn, key=lambda one: one[2].failing is None)  # the role that failed first


def _beside(diagnosis: Diagnosis, ledger: Ledger, total: int) -> dict[str, int]:
    """What the message tells of beside the estimate: allocated but not explained, reserved but idle, requested and refused."""
    event = diagnosis.root
    if event is None or families.of(event.family).memory == "host":
        return {}
    idle = next((fact.value for fact in diagnosis.facts if fact.name == "log.reserved_unallocated"), event.reserved_unallocated)
    allocated = ledger.observed.bytes if ledger.observed is not None else 0
    return {
        "unexplained": max(allocated - total, 0) if ledger.observed is not None else 0,
        "unused": idle.bytes if isinstance(idle, Size) else 0,
        "request": event.requested.bytes if event.requested is not None else 0,
    }


def history(points: Sequence[int], limit: int) -> Area | None:
    """The curve of a snapshot's history against the card; None for fewer than two points."""
    if len(points) < 2 or max(points) <= 0:
        return None
    top = max(*points, limit, 1) * 1.04
    xs = [WIDE * at / (len(points) - 1) for at in range(len(points))]
    curve = path(xs, points, top) + f"L{WIDE} {HIGH}L0 {HIGH}Z"
    line = path([0, WIDE], [limit, limit], top) if limit else ""
    return Area([("allocated", curve)], line, words.gib(limit) if limit else "", "", [], words.gib(max(points)), [], [])
