"""What the planner knows of one failed job: its facts, its causes by remedy, its documents, and the bench that prices changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from diagnose import vocabulary
from diagnose.adapters.formats.settings import Document
from diagnose.budget.model.ledger import Ledger
from diagnose.decide.comparison import holds
from diagnose.decide.expression import Comparison
from diagnose.decide.verdict import Judgement, Verdict
from diagnose.facts import FactBook, Value
from diagnose.plan.pricing.pricer import Bench, Reprice
from diagnose.plan.pricing.saving import Saving
from diagnose.plan.rules import remedy_rules
from diagnose.plan.rules.remedy import Edit, Fits, Remedy
from diagnose.plan.rules.remedy_rules import Rule
from diagnose.ternary import Truth

#: Changed knobs to edits of the given documents; None where a framework has no key for one of them.
Editor: TypeAlias = "Callable[[Sequence[Document], FactBook, Mapping[str, Value]], tuple[Edit, ...] | None]"


@dataclass(slots=True)
class Call:
    """A cause that calls for a remedy: its place among the causes, the remedy's place in its list, and the sum of its places
    in the lists of all leading causes that are as sure as the first, of which there are `among`."""

    cause: Verdict
    rank: int
    listed: int
    standing: int
    among: int = 1


@dataclass(slots=True)
class Offer:
    """A remedy weighed for this job, with what the ranking and the search for a plan need of it."""

    remedy: Remedy
    rule: Rule
    changes: dict[str, Value]
    saving: Saving | None
    call: Call | None
    spare: bool = False  # worth a line only as a step of the plan
    blind: bool = False  # it needs several cards, or room on one, of which nobody says that they are there
    presumed: bool = False  # nobody says whether the conditions of its rule hold
    later: bool = False  # no help where it failed, but at what comes after: a step of a plan beside others
    aside: bool = False  # most of what it saves is not of the kind that its cause is about

    @property
    def id(self) -> str:
        return self.remedy.id

    @property
    def fits(self) -> Fits:
        return self.remedy.fits

    @property
    def bytes(self) -> int:
        """What it takes off the peak; nothing where it acts on another moment or is not known."""
        return self.saving.bytes.bytes if self.saving and not self.saving.moment else 0

    @property
    def by_ledger(self) -> bool:
        """Whether two ledgers price it: knobs that a rule turns, or settings that a key put right brings into effect."""
        return self.rule.ledger or (self.id in vocabulary.having("puts_right") and self.saving is not None)

    @property
    def leads(self) -> bool:
        """Whether a cause that is more than also true calls for it."""
        return self.call is not None and not self.call.cause.also_true


@dataclass
class Job:
    """Facts, ledgers, judgement and documents of the job under the planner's hands."""

    book: FactBook
    ledgers: tuple[Ledger, ...]
    judgement: Judgement
    documents: Sequence[Document]
    reprice: Reprice
    edit: Editor
    rules: tuple[Rule, ...] = field(default_factory=remedy_rules.rules)
    _edits: dict[tuple[tuple[str, Value], ...], tuple[Edit, ...] | None] = field(default_factory=dict)

    def edits(self, changes: Mapping[str, Value]) -> tuple[Edit, ...] | None:
        """The edits that give the knobs these values, worked out once; None where a knob has no key here."""
        key = tuple(changes.items())
        if key not in self._edits:
            self._edits[key] = self.edit(self.documents, self.book, changes)
        return self._edits[key]

    @cached_property
    def bench(self) -> Bench:
        return Bench(self.book, self.ledgers, self.reprice)

    @cached_property
    def calls(self) -> dict[str, Call]:
        """For each remedy word the best-placed cause that calls for it; a cause that is also true never comes before another."""
        by_word: dict[str, Call] = {}
        causes = sorted(self.judgement.causes, key=lambda cause: cause.also_true)
        first = [cause for cause in causes if (cause.also_true, cause.outcome) == (causes[0].also_true, causes[0].outcome)]
        for rank, cause in enumerate(causes):
            for listed, word in enumerate(cause.remedies):
                places = [
                    verdict_of_rule.remedies.index(word) if word in verdict_of_rule.remedies else len(verdict_of_rule.remedies)
                    for verdict_of_rule in first
                ]
                by_word.setdefault(word, Call(cause, rank, listed, sum(places), len(first)))
        return by_word

    @property
    def on_host(self) -> bool:
        """Whether it is known that host memory ran out, not the card's."""
        return self.book.switch("log.on_card") is False

    @property
    def trains(self) -> bool:
        """Whether anything is trained, as far as is known: a run may only evaluate, predict or generate."""
        return self.book.switch("train.enabled") is not False

    def aside(self, word: str, changes: Mapping[str, Value], saving: Saving | None) -> bool:
        """Whether less than half of a saving is of the kind of term that this cause is about: a fused loss, where activations fill
        the card. A cause that is about no kind of term has nothing to compare."""
        before, changed_ledger = self.bench.largest(self.bench.before), self.bench.after(changes)
        after = self.bench.largest(changed_ledger)
        if saving is None or saving.moment or before is None or after is None or before.of(word).bytes <= 0:
            return False
        return 2 * (before.of(word).bytes - after.of(word).bytes) < saving.bytes.bytes

    def true(self, conditions: Sequence[Comparison]) -> Truth:
        truth: Truth = True
        for condition in conditions:
            outcome = holds(condition, self.book.value)
            if outcome is False:  # one firm no settles it, whatever else is unknown
                return False
            truth = truth and outcome
        return truth

    @cached_property
    def largest(self) -> tuple[str, float]:
        """The group that takes most of the peak, and its share."""
        peak = self.bench.largest(self.bench.before)
        if peak is None or peak.total.bytes <= 0:
            return "overhead", 0.0
        sizes: dict[str, int] = {}
        for term in peak.terms:
            sizes[term.group] = sizes.get(term.group, 0) + term.size.bytes
        group = max(sizes, key=lambda name: sizes[name])
        return group, sizes[group] / peak.total.bytes
