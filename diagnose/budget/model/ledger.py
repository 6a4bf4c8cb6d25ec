"""The ledger: named terms of bytes at named moments, for one role on one group of cards."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from diagnose.phrases import Text
from diagnose.records import NamedTuple
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping


#: A ledger that has less than this share of what was measured at the failure speaks of another job: no price is shown that rests on it.
LITTLE = 0.5


def total(sizes: list[Size]) -> Size:
    """Their sum, in one pass: a plan adds up thousands of sizes."""
    low = high = middle = 0
    for size in sizes:
        low, high, middle = low + size.low, high + size.high, middle + size.bytes
    return Size(low, high, middle)


class Term(NamedTuple):
    """A named number of bytes with the formula that made it.

    `group` is the cause of the vocabulary that the term belongs to (weights, optimizer_states, gradients, activations,
    attention_scores, logits, comm_buffers, extra_models, mm_inputs, kv_cache, rollout_engine), "samples" for rollout
    samples, "overhead" for the rest. `symbols` and `numbers` are the formula in letters and in figures: `numbers`
    evaluates to `size.bytes`. `source` names where the formula is from.
    """

    key: str  # phrase key under rules/phrases/ledger.yaml, stable across languages
    name: Text
    group: str
    size: Size
    symbols: str
    numbers: str
    source: str = ""


@dataclass
class Moment:
    """All terms alive at one instant. `name` is one of `moments` in rules/vocabulary.yaml."""

    name: str
    terms: tuple[Term, ...]
    #: What torch could have at this instant, where that is not the ledger's usable: a rollout engine that sleeps then.
    room: Size | None = None

    @cached_property
    def total(self) -> Size:
        return total([term.size for term in self.terms])

    def only(self, *keys: str) -> Size:
        """Bytes of the terms with these keys."""
        return total([term.size for term in self.terms if term.key in keys])

    def of(self, *groups: str) -> Size:
        """Bytes of the terms in these groups."""
        return total([term.size for term in self.terms if term.group in groups])


class Host(NamedTuple):
    """Host memory of one node that a role takes. `terms` stay there while it trains; `moments` take more; `ram`: what the node has, if
    known; `node`: the first node of the role, from 0."""

    terms: tuple[Term, ...] = ()
    moments: tuple[Moment, ...] = ()
    ram: Size | None = None
    node: int = 0

    @property
    def total(self) -> Size:
        """Bytes that stay there while the role trains."""
        return total([term.size for term in self.terms])

    def at(self, name: str) -> Size:
        """Bytes at a moment: what stays, where the moment takes nothing more."""
        return next((moment.total for moment in self.moments if moment.name == name), self.total)


@dataclass(slots=True)
class Ledger:
    """What one role needs on each of its cards.

    `failing` is the moment at which the log says it died (None without a log), `peak` the one that is nearest to its limit. The failing
    moment stands in `moments` as it was when the request failed; `whole` is the same moment had the request succeeded. `observed` is what
    the message says was allocated; `unexplained` = observed - failing total. `unknown` names the facts without which terms are missing or
    wide; a ledger with missing resident terms has `complete` False and must not be used for "fits". `beside` is what processes of other
    roles keep on the card while this one works: it is taken off `usable`, unless a message says how much was free.
    """

    role: str
    gpus: int
    moments: tuple[Moment, ...]
    capacity: Size | None = None
    usable: Size | None = None
    failing: str | None = None
    observed: Size | None = None
    host: Host = field(default_factory=Host)
    unknown: tuple[str, ...] = ()
    complete: bool = True
    whole: Moment | None = None
    beside: tuple[Term, ...] = ()

    @property
    def peak(self) -> Moment | None:
        """The moment that leaves the least of its room, or exceeds it the most."""
        room = self.usable.bytes if self.usable else 0
        every = self.moments if self.whole is None else (*self.moments, self.whole)
        return max(every, key=lambda moment: moment.total.bytes - (moment.room.bytes if moment.room else room), default=None)

    def moment(self, name: str | None) -> Moment | None:
        return next((moment for moment in self.moments if moment.name == name), None)

    @property
    def unexplained(self) -> Size | None:
        failing = self.moment(self.failing)
        return None if failing is None or self.observed is None else self.observed - failing.total

    @property
    def explained(self) -> float | None:
        """The share of what was measured at the failure that the ledger has; None where either is not known."""
        failing = self.moment(self.failing)
        if failing is None or self.observed is None or not self.observed.bytes or not failing.total.bytes:
            return None
        return min(failing.total.bytes / self.observed.bytes, 1.0)


class Attribution(NamedTuple):
    """A tensor of this run whose block would print as the failed request. `event` is the index of that event."""

    event: int
    key: str  # phrase key of the tensor
    tensor: Text
    group: str  # as Term.group
    formula: str  # in symbols
    numbers: str
    bytes: int  # before the allocator rounds
    block_bytes: int  # after
    exact: bool  # no coincidence: `chance` is below 2 %, and nothing contradicts
    coincidence: int  # other tensors, and other products of this run's dimensions with small multiples, that print alike
    agrees: bool  # frame and phase fit
    chance: float = 1.0  # probability that a request of unrelated size prints as one of the tensors that the same evidence allows
    shown: bool = False  # a frame of the traceback makes it
    rows: int | None = None  # its first side, where the log prints a shape of four sides or more
    by_frame: bool = False  # the frame alone tells what it is: no formula prints as the request
    at_least: bool = False  # the formula is a lower bound (pickled samples)
    tokens: int | None = None  # tokens of the forward pass that the formula counts with
    solved: bool = False  # its length is what the request implies, so that by itself it proves nothing
    span: tuple[int, int] | None = None  # the tokens that print alike, where its length is solved and more than one does
    width: int | None = None  # bytes per element, where they follow the run's precision
    padded: bool = False  # `span` counts the tokens of packed sequences, each padded to the longest
    against: bool | None = None  # whether the settings give such a tensor elements of another width; None: they do not say
    lowered_by: Mapping[str, float] = {}  # knobs with their power in the bytes: 2 where half leaves a quarter
    avoided_by: tuple[str, ...] = ()  # knobs with a value that does without such a tensor
    kept_by_layers: bool = False  # every layer of the failed pass keeps one until backward
    phase: str = ""  # the only one in which there is such a tensor
    scoring: bool = False  # its rows are those of scoring finished rollouts, and no number of the training step matches

    @property
    def named(self) -> bool:
        """Whether this is the tensor and not just one that fits: the traceback shows it, or its size in its phase is no coincidence."""
        return self.shown or (self.agrees and (self.exact or self.at_least))
