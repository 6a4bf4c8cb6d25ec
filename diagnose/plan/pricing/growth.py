"""One job under changed knobs: whether all of it fits, what it needs, and how far its batch and its rows can grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Literal

from diagnose.budget.model.ledger import Ledger
from diagnose.budget.model.software_table import table
from diagnose.facts import Value
from diagnose.plan.pricing import fit
from diagnose.plan.pricing.candidate_values import LENGTH, MICRO, MOST_ROWS
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.pricer import LONGEST, Changes
from diagnose.plan.pricing.reach import Past, furthest, holds
from diagnose.plan.rules.outlook import Reach
from diagnose.plan.rules.remedy import Fits
from diagnose.units import Size

BUDGET, COMPLETION, PROMPT = "train.token_budget", "rollout.completion_len", "rollout.prompt_len"

#: Lengths are looked at in steps of so many tokens.
STEP = 128

#: The verdicts on which `check` says that a job fits.
FITTING = ("yes", "likely")


@dataclass(slots=True)
class Stand:
    """How the roles that can be judged stand: the worst verdict, and by how many bytes each moment is past what is `sure` and what is
    `likely` to fit (negative: what is left)."""

    fits: Fits
    sure: tuple[float, ...] = (0.0,)
    likely: tuple[float, ...] = (0.0,)


@dataclass
class Track:
    """Every ledger of the job under any change of its knobs, each drawn up once. `_along`: how the job stands at each value of a knob that
    was asked about, so that no search begins from nothing."""

    job: Job
    _done: dict[frozenset[tuple[str, Value]], tuple[Ledger, ...]] = field(default_factory=dict)
    _stood: dict[frozenset[tuple[str, Value]], Stand] = field(default_factory=dict)
    _along: dict[tuple[frozenset[tuple[str, Value]], str], dict[int, Stand]] = field(default_factory=dict)

    def ledgers(self, changes: Changes) -> tuple[Ledger, ...]:
        if not changes:
            return self.job.ledgers
        key = frozenset(changes.items())
        if key not in self._done:
            self._done[key] = self.job.reprice(self.job.book.changed(changes))
        return self._done[key]

    @property
    def asked(self) -> int:
        """How many ledgers were drawn up."""
        return len(self._done)

    def stand(self, changes: Changes) -> Stand:
        key = frozenset(changes.items())
        if key not in self._stood:
            self._stood[key] = _stand(self.ledgers(changes))
        return self._stood[key]

    def fits(self, changes: Changes) -> Fits:
        """The worst verdict of the roles that are known well enough to be judged; unknown where none is."""
        return self.stand(changes).fits

    def need(self, changes: Changes) -> Size | None:
        """What the largest moment of the role that sits worst holds."""
        priced = [ledger for ledger in counted(self.ledgers(changes)) if ledger.peak is not None and ledger.complete]
        worst = max(priced, key=fit.fullness, default=None)
        return worst.peak.total if worst is not None and worst.peak is not None else None

    # -- the two measures

    @cached_property
    def rows(self) -> tuple[str, int, int]:
        """The knob that says how much goes through one forward pass, its step, and where the search ends."""
        return (BUDGET, STEP, LONGEST) if self.job.book.count(BUDGET) else (MICRO, 1, MOST_ROWS)

    @cached_property
    def tokens(self) -> str:
        """The knob that says how long a row is: of rollouts the completion."""
        book = self.job.book
        completes = (
            book.word("train.stage") in table()["rollouts"] and book.count(PROMPT) is not None and book.count(COMPLETION) is not None
        )
        return COMPLETION if completes else LENGTH

    @cached_property
    def longest(self) -> int:
        """The tokens that the model has positions for; 0 where that is not known."""
        shape = self.job.book.shape("model.shape")
        positions = (shape.positions or shape.max_len) if shape else 0
        return max(positions - (self.job.book.count(PROMPT) or 0), 0) if self.tokens == COMPLETION else positions

    def batch(self, changes: Changes, near: Reach | None = None) -> Reach | None:
        """How many rows (tokens, where a budget of tokens rules) one forward pass can likely have; None where that cannot be judged.
        `near` is the reach of a job like this one."""
        knob, step, maximum = self.rows
        return self._likely(changes, knob, step, maximum, near, bounded=False)

    def length(self, changes: Changes, near: Reach | None = None) -> Reach | None:
        """How long the rows can likely be; None where that cannot be judged, or where a budget of tokens rules."""
        if self.rows[0] == BUDGET:
            return None
        return self._likely(changes, self.tokens, STEP, self.longest or LONGEST, near, bounded=bool(self.longest))

    def surely(self, changes: Changes, reach: Reach) -> Reach:
        """The same with how far it surely goes."""
        sure = self._largest(changes, reach.knob, reach.least, reach.likely, reach.likely, lambda stand: stand.sure)
        return replace(reach, sure=sure)

    def at(self, changes: Changes, knob: str, value: int) -> Changes:
        """The job with this knob at this value; a budget of tokens is filled with rows."""
        if knob != BUDGET:
            as_configured = knob not in changes and value == self.job.book.count(knob)
            return changes if as_configured else {**changes, knob: value}
        filled = {**changes, knob: value}
        row = self.job.book.count(self.tokens)
        if row:
            row += (self.job.book.count(PROMPT) or 0) if self.tokens == COMPLETION else 0
            filled[MICRO] = -(-value // row)
        return filled

    def stand_at(self, changes: Changes, knob: str, value: int) -> Stand:
        """How the job stands with this knob at this value."""
        stands = self._along.setdefault((frozenset(changes.items()), knob), {})
        if value not in stands:
            stands[value] = self.stand(self.at(changes, knob, value))
        return stands[value]

    def _likely(self, changes: Changes, knob: str, step: int, top: int, near: Reach | None, *, bounded: bool) -> Reach | None:
        """How far the knob can likely be raised; `sure` stays 0, because only ways that are shown are asked for it."""
        now = self.job.book.count(knob)
        top = max(top, now or 0)
        if self.stand_at(changes, knob, now or step).fits == "unknown":
            return None
        start = near.likely + step if near else 2 * (now or step)
        likely = self._largest(changes, knob, step, start, top, lambda stand: stand.likely)
        limit: Literal["", "model", "search"] = "" if likely + step <= top else "model" if bounded else "search"
        return Reach(knob, now, 0, likely, step, limit)

    def _largest(self, changes: Changes, knob: str, step: int, start: int, top: int, past: Callable[[Stand], Past]) -> int:
        """The largest multiple of the step at which nothing is too much, or the value that is configured, whatever it is."""

        def over(n: int) -> Past:
            return past(self.stand_at(changes, knob, n * step))

        now, stands = self.job.book.count(knob), self._along.get((frozenset(changes.items()), knob), {})
        tried = {value // step: past(stand) for value, stand in stands.items() if value % step == 0}
        largest = furthest(over, start // step, top // step, tried) * step
        return now if now is not None and largest < now <= top and holds(past(self.stand_at(changes, knob, now))) else largest


def _stand(ledgers: Sequence[Ledger]) -> Stand:
    """Roles that are not complete count only where what is known of them is too much already."""
    judged = [(ledger, verdict) for ledger in counted(ledgers) if (verdict := fit.sits(ledger)) != "unknown"]
    if not judged:
        return Stand("unknown")
    high, middle = zip(*[ends for ledger, _ in judged for ends in fit.beyond(ledger)], strict=True)
    return Stand(reduce(fit.worse, [verdict for _, verdict in judged]), high, middle)


def counted(ledgers: Sequence[Ledger]) -> Sequence[Ledger]:
    """The roles that the batch matters to: an engine takes its share of a card whatever it is given."""
    return [ledger for ledger in ledgers if ledger.role != "engine"] or ledgers


def uncounted(ledgers: Sequence[Ledger]) -> tuple[str, ...]:
    """The roles that are too little known to be judged."""
    return tuple(ledger.role for ledger in counted(ledgers) if fit.sits(ledger) == "unknown")
