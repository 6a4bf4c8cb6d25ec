"""Prices a change of knobs: recomputes the ledger of the failed role on the changed facts, once per set of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Literal, TypeAlias

from diagnose.budget.model.ledger import LITTLE, Ledger, Moment
from diagnose.facts import FactBook, Value
from diagnose.plan.pricing.fit import fits, sits, worse
from diagnose.plan.pricing.saving import Saving, difference, pick
from diagnose.plan.remedies.remedy import Fits
from diagnose.units import Size

Changes: TypeAlias = "Mapping[str, Value]"
Reprice: TypeAlias = "Callable[[FactBook], tuple[Ledger, ...]]"

#: How far the ledger is believed. full: it is complete and the message does not contradict it; short: it explains much less
#: than was allocated; over: it needs more than was allocated, so the files are not what ran; least: terms are missing, and those
#: that are known are more than the card holds; none: terms are missing.
Trust = Literal["full", "short", "over", "least", "none"]

#: Under a ledger that explains too little, a remedy is said to fit only where it leaves this share of the card free.
WIDE = 0.5

#: Where the ledger lacks less than this part of the failed request, it has the request as a term, and what it lacks is its inaccuracy.
INACCURACY = 1 / 8

#: No row is longer than this many tokens.
LONGEST = 2**18

#: Where the ledger falls short, remedies are priced at the length in effect and at these multiples of it.
LENGTHS = (1, 4, 8)

#: The moments of a round in which the engine works; a colocated engine leaves the trainer less then.
ROLLOUT = ("generate", "weight_sync")


@dataclass(eq=False)
class Bench:
    """Prices changes of one job. The job itself is fixed, so that everything derived from it alone is computed once."""

    book: FactBook
    ledgers: tuple[Ledger, ...]
    reprice: Reprice
    _done: dict[frozenset[tuple[str, Value]], Ledger | None] = field(default_factory=dict)
    _supposed: list[dict[str, Value]] | None = None

    @cached_property
    def before(self) -> Ledger | None:
        return pick(self.ledgers, self.book.word("log.role"))

    @cached_property
    def peak(self) -> Size | None:
        """The job's need as configured, in bytes."""
        return self.need(self.before)

    @cached_property
    def usable(self) -> Size | None:
        """The memory that torch can use at the moment that needs most."""
        return self.room(self.before)

    @property
    def shares_card(self) -> bool:
        """Whether a rollout engine shares the trainer's card; the usable memory then differs between rollout and training."""
        return self.book.word("rollout.placement") == "colocated"

    @property
    def partial(self) -> bool:
        """Whether the job failed in the rollout phase on a shared card: nothing is known then of how far the training phase can grow."""
        return self.shares_card and self.before is not None and self.before.failing in ROLLOUT

    def moments(self, ledger: Ledger) -> list[Moment]:
        """The moments of a ledger that can be judged: on a shared card only those of the failed phase, and those with a limit of their
        own."""
        every = [*ledger.moments, *([ledger.whole] if ledger.whole else [])]
        failing = self.before.failing if self.before else None
        if failing is None or not self.shares_card:
            return every
        return [moment for moment in every if moment.room is not None or (moment.name in ROLLOUT) == self.partial]

    def largest(self, ledger: Ledger | None) -> Moment | None:
        """The moment that exceeds its limit most, or comes nearest to it. The failing moment includes the refused request."""
        if ledger is None:
            return None
        usable = ledger.usable or ledger.capacity or Size.exactly(0)
        return max(self.moments(ledger), key=lambda moment: self._held(ledger, moment).bytes - (moment.room or usable).bytes, default=None)

    def room(self, ledger: Ledger | None) -> Size | None:
        largest = self.largest(ledger)
        return (largest.room if largest else None) or (ledger.usable or ledger.capacity if ledger else None)

    def need(self, ledger: Ledger | None) -> Size | None:
        """The bytes of the moment that `largest` selects."""
        largest = self.largest(ledger)
        return None if ledger is None or largest is None else self._held(ledger, largest)

    def _held(self, ledger: Ledger, moment: Moment) -> Size:
        if moment.name != ledger.failing or not self._refused:
            return moment.total
        requested = self.book.size("log.requested")
        if requested is not None and self._refused < INACCURACY * requested.bytes:  # no change takes that off
            return moment.total + Size.exactly(self._refused)
        group, before = self._refused_group
        return moment.total + Size.exactly(self._refused).times(min(1.0, moment.of(group).bytes / before) if before > 0 else 1)

    @cached_property
    def _failed(self) -> Moment | None:
        """The moment of the failure, had the request succeeded."""
        return (self.before.whole or self.before.moment(self.before.failing)) if self.before else None

    @cached_property
    def _refused(self) -> int:
        """The bytes of the failed request that the ledger's moment does not hold yet."""
        requested, observed, was = self.book.size("log.requested"), self.before.observed if self.before else None, self._failed
        if requested is None or was is None or observed is None:
            return 0
        return max(0, min(requested.bytes, observed.bytes + requested.bytes - was.total.bytes))

    @cached_property
    def _refused_group(self) -> tuple[str, int]:
        """The group of terms with which the failed request grows and shrinks, and the group's bytes when it failed; 0 if unknown."""
        group = self.book.word("attribution.group") or ""
        return group, self._failed.of(group).bytes if self._failed else 0

    @cached_property
    def trust(self) -> Trust:
        if self.before is None or not self.before.moments:
            return "none"
        verdict = self.book.word("ledger.verdict")
        if verdict == "above":
            return "over"
        if not self.before.complete:
            return "least" if sits(self.before) == "no" else "none"
        if self.explains_little:
            return "none"
        return "short" if verdict == "below" or self.fits_on_paper else "full"

    @property
    def explains_little(self) -> bool:
        """Whether the ledger has little of what was measured at the failure, and no longer rows or other attention explain the
        rest: it then speaks of another job, and prices nothing."""
        observed, was = self.before.observed if self.before else None, self._failed
        return observed is not None and was is not None and was.total.high < observed.low * LITTLE and not self.explanations()

    @property
    def fits_on_paper(self) -> bool:
        """Whether the card ran out although the ledger fits, and the message prints no figure to check the ledger by."""
        failed = self.book.word("log.family") is not None and self.book.switch("log.on_card") is True
        return failed and self.before is not None and self.before.observed is None and fits(self.peak, self.usable) == "yes"

    @cached_property
    def shortage(self) -> Size | None:
        """By how many bytes the peak exceeds the usable memory less the margin; zero if it fits."""
        if self.peak is None or self.usable is None:
            return None
        return Size.exactly(max(0, self.peak.bytes - round(0.94 * self.usable.bytes)))

    def after(self, changes: Changes) -> Ledger | None:
        """The ledger of the failed role after the changes."""
        key = frozenset(changes.items())
        if not key:
            return self.before
        if key not in self._done:
            before = self.before
            ledgers = self.reprice(self.book.changed(changes))
            self._done[key] = pick(ledgers, before.role if before else None)
        return self._done[key]

    def saving(self, changes: Changes) -> Saving | None:
        """What the changes take off the peak or, if that is nothing, off another moment; None if no ledger can tell."""
        base = self.assumed()
        before, after = self.after(base), self.after({**base, **changes})
        need, then_need = self.need(before), self.need(after)
        if before is None or after is None or need is None or then_need is None:
            return None
        room, then_room = self.room(before), self.room(after)
        wider = then_room.bytes - room.bytes if room and then_room else 0  # another moment is the tightest one now, with another room
        gone = difference(need, then_need) + Size.exactly(wider)
        if self.trust == "short" and gone.bytes <= self.noticeable:
            best = max(
                (self._supposing(explanation, changes) for explanation in self.explanations()),
                key=lambda candidate: candidate.bytes.bytes,
                default=None,
            )
            if best and best.bytes.bytes > max(0, gone.bytes):
                return best
        if gone.bytes > self.noticeable:
            return Saving(gone)
        best = max(self._elsewhere(before, after), key=lambda candidate: candidate.bytes.bytes, default=Saving(gone))
        return best if best.bytes.bytes > max(0, gone.bytes) else Saving(gone)

    def untouched(self, changes: Changes) -> bool:
        """Whether the changes leave every moment as it was: the ledger then has no term for them, and does not prove them useless."""
        before, after = self.before, self.after(changes)
        if before is None or after is None:
            return False
        return before.moments == after.moments and (before.usable, before.whole) == (after.usable, after.whole)

    def _elsewhere(self, before: Ledger, after: Ledger) -> list[Saving]:
        """What the changes take off each moment, and off the failing moment with the request that was refused."""
        pairs = [(moment, after.moment(moment.name)) for moment in before.moments]
        pairs += [(before.whole, after.whole)] if before.whole else []
        return [
            Saving(difference(moment.total, moment_after.total), moment.name) for moment, moment_after in pairs if moment_after is not None
        ]

    @cached_property
    def noticeable(self) -> int:
        """The smallest saving that counts, in bytes: 2 % of the shortage; without a shortage 5 % of the need, or 1 % if usable memory is
        unknown or the ledger falls short of the measurement."""
        shortage, need = self.shortage, self.peak
        if self.trust == "full" and shortage is not None and shortage.bytes > 0:
            return shortage.bytes // 50
        observed = self.before.observed if self.before else None
        if self.trust == "short" and observed is not None:
            return max(need.bytes if need else 0, observed.bytes) // 100
        return need.bytes // (20 if self.usable else 100) if need else 0

    def assumed(self) -> dict[str, Value]:
        """Settings presumed where the configs need more than was allocated and so cannot be what ran: 16-bit precision and ZeRO-3,
        unless stated otherwise. Savings are computed under them, or they would come out too large."""
        if self.trust != "over":
            return {}
        half = "bf16" if self.book.switch("hardware.bf16") else "fp16"
        usual: dict[str, Value] = {"train.precision": half, "zero.stage": 3}
        return {knob: value for knob, value in usual.items() if not self.stated(knob)}

    def stated(self, name: str) -> bool:
        """Whether a log, a file, the report or the user states the value; a default or an inference may be wrong."""
        fact = self.book.fact(name)
        return fact is not None and fact.value is not None and fact.origin in ("given", "log", "config", "said")

    def _supposing(self, explanation: Changes, changes: Changes) -> Saving:
        before, after = self.need(self.after(explanation)), self.need(self.after({**explanation, **changes}))
        if before is None or after is None:
            return Saving(Size.exactly(0))
        gone = difference(before, after)
        observed, requested = (self.before.observed if self.before else None), self.book.size("log.requested")
        upper = (
            observed.high + requested.high if observed and requested else gone.high
        )  # what came later under the supposition, nobody has seen
        return Saving(Size(0, min(gone.high, upper), min(gone.bytes, upper)), supposed=tuple(explanation.items()))

    def fits(self, changes: Changes) -> Fits:
        """Whether every moment fits after the changes, the failing one including its request. All moments are checked, because a smaller
        one with a wide range may reach higher than the largest."""
        after = self.after(changes)
        need = self.need(after)
        if self.trust == "least" and after is not None and not after.complete:
            return sits(after)
        if after is None or need is None or not after.complete or self.trust in ("over", "least", "none"):
            return "unknown"
        if self.trust == "short":
            return self._fits_however(changes)
        room = after.usable or after.capacity or Size.exactly(0)
        return reduce(worse, [fits(self._held(after, moment), moment.room or room) for moment in self.moments(after)])

    def _fits_however(self, changes: Changes) -> Fits:
        """The verdict where the ledger falls short of the measurement: likely if the changes leave ample room under every explanation of
        the gap, else unknown."""
        if self.usable is None or not self.explanations():
            return "unknown"
        for explanation in self.explanations():
            # A supposed length stands for what was really in the batch; a change of the limit does not undo it.
            after = self.after({**explanation, **changes, "train.max_seq_len": explanation["train.max_seq_len"]})
            need, room = self.need(after), self.room(after) or self.usable
            if need is None or need.bytes > WIDE * room.bytes:
                return "unknown"
        return "likely"

    def by_length(self, changes: Changes) -> list[tuple[int, Size, Size]]:
        """For a ledger that falls short: (row length, need, saving) at the configured length and at longer ones. Empty if neither need
        nor saving grows with the length, or the changes set the length."""
        now = self.book.count("train.max_seq_len")
        if self.trust != "short" or now is None or "train.max_seq_len" in changes:
            return []
        rows = []
        for length in (now * times for times in LENGTHS):
            at: dict[str, Value] = {"train.max_seq_len": length}
            before, after = self.need(self.after(at)), self.need(self.after({**at, **changes}))
            if before is None or after is None:
                return []
            rows.append((length, before, difference(before, after)))
        grows = rows[-1][1].bytes > rows[0][1].bytes and rows[-1][2].bytes > max(rows[0][2].bytes, self.noticeable)
        return rows if grows and all(saved.bytes > 0 for _, _, saved in rows) else []

    def explanations(self) -> list[dict[str, Value]]:
        """Values of uncertain settings (row length, eager attention) under which the ledger would match the measurement."""
        if self._supposed is None:
            self._supposed = []
            for attention in (None,) if self.stated("model.attention") else (None, "eager"):
                base: dict[str, Value] = {} if attention is None else {"model.attention": attention}
                length = self._length_that_explains(base)
                if length is not None:
                    self._supposed.append({**base, "train.max_seq_len": length})
        return self._supposed

    def _length_that_explains(self, base: dict[str, Value]) -> int | None:
        """The row length at which the failing moment reaches what was allocated, by bisection; None if no length up to LONGEST does."""
        target = self.before.observed or self.usable if self.before else None
        if target is None:
            return None
        low, high, middle = 256, LONGEST, LONGEST  # where the log says how long the rows were, no limit changes anything
        for _ in range(13):
            ledger = self.after({**base, "train.max_seq_len": middle})
            moment = (ledger.moment(ledger.failing) or ledger.peak) if ledger else None
            if moment is None or (middle == LONGEST and moment.total.bytes < target.bytes):
                return None
            low, high = (middle, high) if moment.total.bytes < target.bytes else (low, middle)
            middle = round((low * high) ** 0.5)  # even steps in proportion: 12 of them come within 0.2 %
        return high if high < LONGEST else None
