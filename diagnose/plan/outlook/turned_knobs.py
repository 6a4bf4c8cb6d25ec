"""A job with some of its knobs turned: what it needs then, whether it fits, and the edits that turn them. For people who try things out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from diagnose import rule_files
from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.catalogue import card
from diagnose.facts import Value, require_declared
from diagnose.phrases import Text
from diagnose.plan.edits.editability import edits_of
from diagnose.plan.edits.key_releases import dated
from diagnose.plan.edits.setting_conflicts import contradictions
from diagnose.plan.patch.verification import EditCheck
from diagnose.plan.pricing import fit
from diagnose.plan.pricing.candidate_values import CAPACITY, as_printed
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.growth import Track
from diagnose.plan.remedies.remedy import Edit, Fits
from diagnose.records import NamedTuple
from diagnose.units import Size

#: The card is turned like a knob, though no key of a job says it.
CARD = "hardware.gpu"

#: Of so many changes at once it is looked at what each adds.
MOST_ASKED = 6

#: A map of what fits has at most so many rows and columns.
MAP_SIZE = 9


@dataclass(slots=True, frozen=True)
class State:
    """A job under one set of knobs: the ledger shown, its tightest moment with what is needed and usable there, and whether it fits."""

    ledgers: tuple[Ledger, ...]
    ledger: Ledger | None
    moment: Moment | None
    need: Size | None
    room: Size | None
    fits: Fits


@dataclass(slots=True, frozen=True)
class Turned:
    """A job before and after some changes of its knobs. `contradictions`: why the changed settings exclude each other; `idle`: knobs of
    several that move nothing beside the others."""

    changes: dict[str, Value]
    old: dict[str, Value]
    before: State
    after: State
    contradictions: tuple[Text, ...] = ()
    idle: tuple[str, ...] = ()


class Control(NamedTuple):
    """A knob that can be turned: its values, those of a slider in order. `value`: None where nothing says it."""

    knob: str
    kind: Literal["slider", "choice", "switch"]
    value: Value
    values: tuple[Value, ...]


class Written(NamedTuple):
    """Changes as edits of the job's documents; `unwritable`: knobs without a key. None: the edits could not be verified."""

    edits: tuple[Edit, ...] | None
    unwritable: tuple[str, ...]


class Cell(NamedTuple):
    """One field of the map: rows, length, what is needed, whether it fits, whether the job is there now."""

    rows: int
    length: int
    need: Size | None
    fits: Fits
    now: bool


class Workbench:
    """One job, any of whose knobs may be turned; each set of changes is computed once."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.track = Track(job)

    def whole(self, changes: Mapping[str, Value]) -> dict[str, Value]:
        """The changes with what follows from another card: its capacity, what the message would have printed there, and what it can do."""
        name = changes.get(CARD)
        chosen = card(name) if isinstance(name, str) else None
        if chosen is None or not chosen.capacities:
            return dict(changes)
        capacity = chosen.capacities[0]
        able: dict[str, Value] = {
            "hardware.compute_capability": chosen.capability, "hardware.bf16": chosen.bf16, "hardware.fa2": chosen.fa2,
        }  # fmt: skip
        return {**changes, CAPACITY: capacity, **able, **as_printed(capacity, self.job.bench)}

    @cached_property
    def failed(self) -> bool:
        return self.job.book.word("log.family") is not None

    def state(self, changes: Mapping[str, Value]) -> State:
        """The job under these changes. Of a failed job the role that failed is judged as its plan is: with the request that was refused."""
        changes = self.whole(changes)
        bench, ledgers = self.job.bench, self.track.ledgers(changes)
        if self.failed and bench.before is not None:
            ledger = bench.after(changes)
            return State(ledgers, ledger, bench.largest(ledger), bench.need(ledger), bench.room(ledger), bench.fits(changes))
        ledger = fit.foremost(ledgers)
        peak = ledger.peak if ledger else None
        room = (peak.room if peak else None) or (ledger.usable or ledger.capacity if ledger else None)
        return State(ledgers, ledger, peak, peak.total if peak else None, room, self.track.fits(changes))

    def turn(self, changes: Mapping[str, Value]) -> Turned:
        """The job before and after these changes."""
        book = self.job.book
        news = tuple(text for text in contradictions(book.changed(changes)) if text not in contradictions(book))
        old = {knob: book.value(knob) for knob in changes}
        return Turned(dict(changes), old, self.state({}), self.state(changes), news, tuple(self._idle(changes, old)))

    def _idle(self, changes: Mapping[str, Value], old: Mapping[str, Value]) -> Iterator[str]:
        for knob, value in changes.items() if 1 < len(changes) <= MOST_ASKED else ():
            others = {name: other for name, other in changes.items() if name != knob}
            if value != old[knob] and not self._moves(others, knob, value):
                yield knob

    # -- what can be turned

    def controls(self, changes: Mapping[str, Value]) -> list[Control]:
        """The knobs that make a difference to this job once `changes` are made, in the order of rules/turned_knobs.yaml."""
        return list(self._controls(changes))

    def _controls(self, changes: Mapping[str, Value]) -> Iterator[Control]:
        for row in rule_files.table("turned_knobs"):
            knob = row["knob"]
            now = changes.get(knob, self.job.book.value(knob))
            now = row.get("unset") if now is None else now
            values = values_of(row, now)
            if now is None and (kind_of(knob) == "slider" or knob == CARD):
                continue
            if knob in changes or any(self._moves(changes, knob, value) for value in values if value != now):
                yield Control(knob, kind_of(knob), now, values)

    def _moves(self, changes: Mapping[str, Value], knob: str, value: Value) -> bool:
        """Whether turning the knob to this value changes any sum of any moment."""
        return sums(self.track.ledgers(self.whole({**changes, knob: value}))) != sums(self.track.ledgers(self.whole(changes)))

    # -- what it takes to make the changes

    def written(self, changes: Mapping[str, Value]) -> Written:
        """The edits that make the changes; knobs that no key of the job's files turns are named."""
        changes = {knob: value for knob, value in changes.items() if knob != CARD}  # it stands in no file
        unwritable = tuple(knob for knob, value in changes.items() if edits_of({knob: value}, self.job) is None)
        kept = {knob: value for knob, value in changes.items() if knob not in unwritable}
        edits = edits_of(kept, self.job) if kept else ()
        check = EditCheck(self.job.documents)
        if edits is None or not (check.passes(edits) and check.has_values(edits, kept)):
            return Written(None, unwritable)
        return Written(dated(edits, self.job.documents, self.job.book), unwritable)

    # -- the map

    def frontier_map(self, changes: Mapping[str, Value]) -> list[list[Cell]]:
        """What fits by rows (or tokens) of a forward pass and length: a row of cells for each batch; empty where either is not known."""
        knob, _, _ = self.track.rows
        rows_now, length_now = (changes.get(name, self.job.book.value(name)) for name in (knob, self.track.tokens))
        if not isinstance(rows_now, int) or not isinstance(length_now, int) or rows_now < 1 or length_now < 1:
            return []
        lengths = [length for length in around(length_now) if not self.track.longest or length <= max(self.track.longest, length_now)]
        cells = [[self._cell(changes, knob, rows, length, (rows_now, length_now)) for length in lengths] for rows in around(rows_now)]
        columns = list(zip(*cells, strict=True))
        kept = [at for at, column in enumerate(columns) if column[0].length <= length_now or _needs(column) != _needs(columns[at - 1])]
        return [[row[at] for at in kept] for row in cells]

    def _cell(self, changes: Mapping[str, Value], knob: str, rows: int, length: int, now: tuple[int, int]) -> Cell:
        state = self.state(self.track.at({**changes, self.track.tokens: length}, knob, rows))
        return Cell(rows, length, state.need, state.fits, (rows, length) == now)


def _needs(cells: Sequence[Cell]) -> list[Size | None]:
    return [cell.need for cell in cells]


def kind_of(knob: str) -> Literal["slider", "choice", "switch"]:
    kind = require_declared(knob).kind
    return "switch" if kind == "switch" else "slider" if kind in ("count", "ratio") else "choice"


def values_of(row: Mapping[str, object], now: Value) -> tuple[Value, ...]:
    """The values of a row of rules/turned_knobs.yaml, the present one among them."""
    entry = require_declared(str(row["knob"]))
    values: list[Value]
    if entry.kind == "switch":
        return (False, True)
    if entry.kind in ("count", "ratio"):
        values = [*steps(row)]
        return tuple(sorted({*values, now}, key=float)) if isinstance(now, (int, float)) else tuple(values)  # type: ignore[arg-type]
    words = row.get("words") or entry.words
    values = [*words] if isinstance(words, Sequence) else []
    return tuple(values) if now is None or now in values else (now, *values)


def steps(row: Mapping[str, object]) -> list[int | float]:
    """From `low` to `high`: by doubling, or by `step`."""
    low, high, step = (row.get(name) for name in ("low", "high", "step"))
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        raise ValueError(f"{row['knob']}: a number needs low and high")
    if isinstance(step, (int, float)):
        return [
            round(low + number * step, 6) if isinstance(step, float) else low + number * step
            for number in range(int((high - low) / step + 1.5))
        ]
    values = [low]
    while values[-1] * 2 <= high:
        values.append(values[-1] * 2)
    return values


def around(now: int) -> list[int]:
    """Powers of two around a number, and the number itself, at most MAP_SIZE in all."""
    powers = [2**power for power in range(20)]
    near = sorted(powers, key=lambda power: max(power, now) / min(power, now))[: MAP_SIZE - 1]
    return sorted({now, *near})


def sums(ledgers: Sequence[Ledger]) -> list[tuple[str, int, int]]:
    """What can be seen of ledgers: the sum of each moment, and what torch can use."""
    return [
        (moment.name, moment.total.bytes, ledger.usable.bytes if ledger.usable else 0) for ledger in ledgers for moment in ledger.moments
    ]
