"""The sections of the report: inputs, failure, ledgers, causes, advice. Compatibility: keys are only ever added, at the end.

Annotations are evaluated here (no `from __future__ import annotations`), see `part`.
"""

from collections.abc import Sequence
from typing import Literal, Self

from diagnose.budget.model import ledger
from diagnose.diagnosis import Diagnosis
from diagnose.facts import declared
from diagnose.plan.pricing import fit
from diagnose.plan.remedies.remedy import Fits
from diagnose.render.data.check_section import Check
from diagnose.render.data.part import Edit, Frame, Part, Size, Value, With, Witness, at, itself
from diagnose.render.data.snapshot_section import Snapshot
from diagnose.version import __version__

SCHEMA = "oomdoctor.report/1"

# -- what was read


class Tool(Part):
    name: str = at(lambda _: "oomdoctor")
    version: str = at(lambda _: __version__)


class Given(Part):
    """An input file or text, and its recognised kind."""

    name: str
    kind: str
    bytes: int
    lines: int
    encoding: str
    notes: list[str]


class Verdict(Part):
    """The answer in one line."""

    status: Literal["oom", "suspected", "lookalike", "none"]
    family: str | None
    phase: str | None
    headline: str
    event: int | None = at(doc="Index in `events` of the first fatal failure, the root.")


class OtherProcess(Part):
    pid: int
    in_use: Size | None


class Event(Part):
    """A failure as printed, or a consequence of one; sizes are null if the message prints none."""

    family: str
    exception: str
    fatal: bool
    attempt: int
    rank: int | None
    local_rank: int | None
    ranks: list[int] = at(doc="The ranks whose equal failures are folded into this one.")
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
    consequence_of: int | None = at(doc="Index in `events` of the failure that caused this one.")
    count: int
    members: list[Self] = at(doc="The other equal failures that are folded into this one.")
    evidence: list[Witness]
    role: str | None
    reason: str | None = at(lambda event: event.reason or None, "Why it is no failure of memory, or no proof of one.")


class Fact(Part):
    """A fact about the run; the value is null if it is known to be unknown."""

    name: str
    value: Value
    unit: str | None = at(lambda fact: _unit(fact.name), "bytes for a size; null for what is counted or named.")
    witness: Witness | None


def _unit(name: str) -> str | None:
    entry = declared(name)
    return "bytes" if entry is not None and entry.kind == "size" else None


class Notice(Part):
    """A remark that is no fact about the run."""

    level: Literal["info", "warning", "error"]
    code: str
    message: str
    witness: Witness | None


# -- what was counted


class Attribution(Part):
    """A tensor of this run whose block has the size of the failed request."""

    event: int
    tensor: str
    formula: str
    numbers: str
    bytes: int = at(doc="Before the allocator rounds.")
    block_bytes: int = at(doc="After the allocator has rounded.")
    exact: bool = at(doc="No coincidence: `chance` is below 2 %, and neither phase nor traceback contradicts.")
    coincidence: int = at(doc="How many other candidates of this run print alike.")
    agrees: bool = at(doc="Traceback and phase fit.")
    witness: Witness | None = at(doc="The line that prints the request.")
    at_least: bool = at(doc="The formula is a lower bound.")
    chance: float = at(doc="Probability that a request of unrelated size matches one of the tensors that the same evidence allows.")
    shown: bool = at(doc="A frame of the traceback makes it.")
    lowered_by: dict[str, float] = at(doc="Knobs with their power in the bytes: 2 where half the value leaves a quarter.")
    avoided_by: list[str] = at(doc="Knobs with a value that does without such a tensor.")


def _attributions(diagnosis: Diagnosis) -> list[With]:
    evidence = [event.evidence[0] if event.evidence else None for event in diagnosis.events]
    return [With(claim, witness=evidence[claim.event] if claim.event < len(evidence) else None) for claim in diagnosis.attributions]


class Term(Part):
    """A number of bytes with its name and formula."""

    name: str
    size: Size
    share: float | None = at(doc="Of the sum of the terms beside it.")
    symbols: str = at(doc="The formula in letters.")
    numbers: str = at(doc="The formula in figures.")
    source: str = at(doc="Where the formula is from.")
    key: str
    group: str


def _terms(terms: Sequence[ledger.Term]) -> list[With]:
    whole = sum(term.size.bytes for term in terms)
    return [With(term, share=round(term.size.bytes / whole, 4) if whole > 0 else None) for term in terms]


class Moment(Part):
    """All memory that is allocated at one point of the run."""

    name: str
    total: Size
    terms: list[Term] = at(lambda moment: _terms(moment.terms))


class Host(Part):
    """Host memory of one node: what stays allocated, and the moments that need more."""

    total: Size
    terms: list[Term] = at(lambda host: _terms(host.terms))
    moments: list[Moment]


class Budget(Part):
    """What one role needs on each of its cards."""

    role: str
    gpus: int
    capacity: Size | None
    usable: Size | None
    moments: list[Moment]
    peak_moment: str | None = at(lambda budget: budget.peak.name if budget.peak else None)
    observed: Size | None = at(doc="What the message says was allocated.")
    unexplained: Size | None = at(doc="`observed` less the failing moment's total.")
    host: Host
    failing_moment: str | None = at("failing")
    fits: Fits = at(fit.sits)
    unknown: list[str] = at(doc="The facts without which terms are missing or wide.")
    complete: bool
    beside: list[Term] = at(lambda budget: _terms(budget.beside), "What processes of other roles keep on the card meanwhile.")


# -- what is advised


class Cause(Part):
    id: str = at("cause")
    rule: str
    certainty: Literal["certain", "likely", "possible"]
    also_true: bool
    accounts_for: Size | None
    title: str
    explanation: str
    evidence: list[Witness]
    url: str | None = at(lambda ruling: ruling.url or None)
    share: float | None
    assumes: str | None = at(doc="What it takes for granted; null where it takes nothing.")


class Undecided(Part):
    """A cause that could not be judged, and the fact that would settle it."""

    rule: str
    fact: str | None
    how: str


class Price(Part):
    results: str
    speed: str
    effort: str
    host_memory: Size | None


class Remedy(Part):
    id: str
    rule: str
    title: str
    why: str
    saves: Size | None = at(doc="The difference that it makes to the peak; null where no estimate can be made.")
    fits: Fits
    price: Price
    edits: list[Edit]
    env: list[str]
    command: str | None
    references: list[str]
    url: str | None = at(lambda remedy: remedy.url or None)
    peak: Size | None = at(doc="The peak after it.")


class Rejected(Part):
    """Common advice that does not apply here or would do harm."""

    id: str
    rule: str
    reason: str


class Rung(Part):
    """How far a knob may be raised once the plan is applied."""

    knob: str
    from_: Value = at("frm")
    to: Value
    predicted_peak: Size


class Plan(Part):
    steps: list[str] = at(doc="Ids of remedies.")
    edits: list[Edit]
    env: list[str]
    predicted_peak: Size | None
    margin: Size | None
    fits: Fits
    ladder: list[Rung]
    note: str | None


class Question(Part):
    """The unknown fact whose answer would help most."""

    fact: str
    why: str
    how: str
    set: str = at(doc="The option that answers it.")


class Report(Part):
    """The report on one job, equal to `Diagnosis.to_dict()`."""

    schema_: Literal["oomdoctor.report/1"] = at(lambda _: SCHEMA)
    tool: Tool = at(itself)
    inputs: list[Given]
    verdict: Verdict
    events: list[Event] = at(doc="In the order in which they happened.")
    facts: list[Fact]
    attributions: list[Attribution] = at(_attributions, "Best first.")
    budgets: list[Budget] = at("ledgers", "One per role and group of cards.")
    causes: list[Cause] = at("judgement.causes", "Best first.")
    undecided: list[Undecided] = at("outcome.unsettled")
    remedies: list[Remedy] = at("outcome.remedies", "Best first.")
    rejected: list[Rejected] = at("outcome.rejected")
    plan: Plan | None = at("outcome.plan")
    questions: list[Question] = at("outcome.questions", "Most useful first.")
    notices: list[Notice]
    snapshot: Snapshot | None = at(default=None, doc="Only where a memory snapshot was given.")
    check: Check | None = at(
        lambda diagnosis: diagnosis.outlook and With(diagnosis.outlook, fits=diagnosis.fits), "Only of `check`.", default=None
    )
    job: str = at(doc="The REPORT-ID of `oomdoctor worked` and `failed`: equal in every answer on this job.", default="")
