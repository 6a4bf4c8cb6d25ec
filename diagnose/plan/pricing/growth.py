"""How a job behaves under changed knobs: whether every role fits, what it needs, and how far batch and row length can grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Literal

from diagnose.budget.model.job_roles import is_planned
from diagnose.budget.model.ledger import Ledger
from diagnose.budget.model.software_table import table
from diagnose.facts import Value
from diagnose.plan.pricing import fit
from diagnose.plan.pricing.candidate_values import LENGTH, MICRO, MOST_ROWS
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.pricer import LONGEST, Changes
from diagnose.plan.pricing.reach import Past, furthest, holds
from diagnose.plan.remedies.outlook_values import Reach
from diagnose.plan.remedies.remedy import Fits
from diagnose.units import Size

BUDGET, COMPLETION, PROMPT = "train.token_budget", "rollout.completion_len", "rollout.prompt_len"
CONTEXT = "rollout.max_model_len"

#: Lengths are looked at in steps of so many tokens.
STEP = 128

#: The verdicts on which `check` says that a job fits.
FITTING = ("yes", "likely")


@dataclass(slots=True)
class Stand:
    """Whether a job fits, over all roles whose ledgers are complete enough to judge: the worst verdict, and for each moment the bytes by
    which it exceeds the limit for `sure` and for `likely` (negative: bytes to spare)."""

    fits: Fits
    sure: tuple[float, ...] = (0.0,)
    likely: tuple[float, ...] = (0.0,)


@dataclass
class Track:
    """Ledgers of the job under any changes of its knobs, each computed once. `_along` caches, for each knob that a search varied, the
    outcome at every value tried, so that the next search starts from them."""

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
        """How many sets of changes have been computed."""
        return len(self._done)

    def stand(self, changes: Changes) -> Stand:
        key = frozenset(changes.items())
        if key not in self._stood:
            self._stood[key] = _stand(self.ledgers(changes))
        return self._stood[key]

    def fits(self, changes: Changes) -> Fits:
        """The worst verdict of all roles that can be judged; unknown if none can."""
        return self.stand(changes).fits

    def need(self, changes: Changes) -> Size | None:
        """The peak of the role that fits worst."""
        priced = [ledger for ledger in counted(self.ledgers(changes)) if ledger.peak is not None and ledger.complete]
        worst = max(priced, key=fit.fullness, default=None)
        return worst.peak.total if worst is not None and worst.peak is not None else None

    # -- the two measures

    @cached_property
    def rows(self) -> tuple[str, int, int]:
        """The knob that sets the size of one forward pass (rows, or tokens under a token budget), its step, and the upper end of the
        search."""
        return (BUDGET, STEP, LONGEST) if self.job.book.count(BUDGET) else (MICRO, 1, MOST_ROWS)

    @cached_property
    def tokens(self) -> str:
        """The knob that sets the row length: in rollouts the completion, of an engine its longest context,
        else the length limit."""
        book = self.job.book
        if is_planned(book):
            return CONTEXT
        completes = (
            book.word("train.stage") in table()["rollouts"] and book.count(PROMPT) is not None and book.count(COMPLETION) is not None
        )
        return COMPLETION if completes else LENGTH

    @cached_property
    def longest(self) -> int:
        """The largest row length that the model has positions for, in tokens; 0 if unknown."""
        shape = self.job.book.shape("model.shape")
        positions = (shape.positions or shape.max_len) if shape else 0
        return max(positions - (self.job.book.count(PROMPT) or 0), 0) if self.tokens == COMPLETION else positions

    def batch(self, changes: Changes, near: Reach | None = None) -> Reach | None:
        """The largest forward pass that likely fits, in rows, or in tokens under a token budget; None if no role can be judged. `near`:
        the result for a similar job, where the search starts."""
        if is_planned(self.job.book):  # an engine runs as many as its cache holds
            return None
        knob, step, maximum = self.rows
        return self._likely(changes, knob, step, maximum, near, bounded=False)

    def length(self, changes: Changes, near: Reach | None = None) -> Reach | None:
        """The longest rows that likely fit; None if no role can be judged, or under a token budget."""
        if self.rows[0] == BUDGET:
            return None
        return self._likely(changes, self.tokens, STEP, self.longest or LONGEST, near, bounded=bool(self.longest))

    def surely(self, changes: Changes, reach: Reach) -> Reach:
        """The reach with its `sure` value filled in: the largest value that fits at the upper end of the estimate."""
        sure = self._largest(changes, reach.knob, reach.least, reach.likely, reach.likely, lambda stand: stand.sure)
        return replace(reach, sure=sure)

    def at(self, changes: Changes, knob: str, value: int) -> Changes:
        """The changes with this knob set to this value; a token budget is filled with rows of the configured length."""
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
        """The outcome with this knob at this value."""
        stands = self._along.setdefault((frozenset(changes.items()), knob), {})
        if value not in stands:
            stands[value] = self.stand(self.at(changes, knob, value))
        return stands[value]

    def _likely(self, changes: Changes, knob: str, step: int, top: int, near: Reach | None, *, bounded: bool) -> Reach | None:
        """How far the knob can be raised so that the job likely fits. `sure` stays 0: it costs a second search, which only reaches that
        are shown need."""
        now = self.job.book.count(knob)
        top = max(top, now or 0)
        if self.stand_at(changes, knob, now or step).fits == "unknown":
            return None
        start = near.likely + step if near else 2 * (now or step)
        likely = self._largest(changes, knob, step, start, top, lambda stand: stand.likely)
        limit: Literal["", "model", "search"] = "" if likely + step <= top else "model" if bounded else "search"
        return Reach(knob, now, 0, likely, step, limit)

    def _largest(self, changes: Changes, knob: str, step: int, start: int, top: int, past: Callable[[Stand], Past]) -> int:
        """The largest multiple of the step at which no moment exceeds its limit; at least the configured value, if that fits."""

        def over(n: int) -> Past:
            return past(self.stand_at(changes, knob, n * step))

        now, stands = self.job.book.count(knob), self._along.get((frozenset(changes.items()), knob), {})
        tried = {value // step: past(stand) for value, stand in stands.items() if value % step == 0}
        largest = furthest(over, start // step, top // step, tried) * step
        return now if now is not None and largest < now <= top and holds(past(self.stand_at(changes, knob, now))) else largest


def _stand(ledgers: Sequence[Ledger]) -> Stand:
    """The outcome over all roles that can be judged. A role with an incomplete ledger counts only if its known terms already exceed the
    card."""
    judged = [(ledger, verdict) for ledger in counted(ledgers) if (verdict := fit.sits(ledger)) != "unknown"]
    if not judged:
        return Stand("unknown")
    high, middle = zip(*[ends for ledger, _ in judged for ends in fit.beyond(ledger)], strict=True)
    return Stand(reduce(fit.worse, [verdict for _, verdict in judged]), high, middle)


def counted(ledgers: Sequence[Ledger]) -> Sequence[Ledger]:
    """The roles whose memory depends on the batch: all but an inference engine, which reserves its share of the card regardless."""
    return [ledger for ledger in ledgers if ledger.role != "engine"] or ledgers


def uncounted(ledgers: Sequence[Ledger]) -> tuple[str, ...]:
    """The names of roles whose ledgers are too incomplete to judge."""
    return tuple(ledger.role for ledger in counted(ledgers) if fit.sits(ledger) == "unknown")
