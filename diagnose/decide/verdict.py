"""What the judge says of a rule: fires, likely, unknown or quiet, and why; `possible` where no rule does (hypotheses.named)."""

from __future__ import annotations

from typing import Literal

from diagnose.facts import Witness
from diagnose.phrases import Text
from diagnose.records import NamedTuple
from diagnose.units import Size

Outcome = Literal["fires", "likely", "possible", "unknown", "quiet"]
Certainty = Literal["certain", "likely", "possible"]


class Verdict(NamedTuple):
    """The outcome of one cause rule. `deciding`: the line of the rule that settled it; `missing`: the fact that would settle it (of a
    likely one the first that it presumes)."""

    rule: str
    cause: str
    outcome: Outcome
    deciding: str
    missing: str | None
    title: Text
    explanation: Text  # evidence with its figures; empty unless fires or likely
    accounts_for: Size | None
    also_true: bool
    evidence: tuple[Witness, ...]
    remedies: tuple[str, ...]  # words of the vocabulary, best first, as the rule lists them
    url: str
    exact: bool = False  # the rule fired on one tensor whose block prints as the request
    told: int = 0  # lines of the rule that hold
    share: float | None = None  # accounts_for as a part of the card; None: no card's memory, or the card is unknown
    assumes: Text | None = None  # what a likely one presumes
    put_right: Text | None = None  # which setting to put right, where a configuration is not in effect
    open: int = 0  # lines of the rule that are still unknown
    lacks: tuple[str, ...] = ()  # the facts that those lack, one of each line
    rules_out: str = ""  # the list of the vocabulary with the remedies that leave it as it is

    @property
    def certainty(self) -> Certainty:
        """The word for how sure it is."""
        return "certain" if self.outcome == "fires" else "possible" if self.outcome == "possible" else "likely"


class Judgement(NamedTuple):
    """All verdicts; `causes` are those that fire or are likely, merged by cause, best first."""

    causes: tuple[Verdict, ...]
    undecided: tuple[Verdict, ...]
    all: tuple[Verdict, ...]
    faults: tuple[Text, ...] = ()  # rules that crashed: a note about the rule, never about the patient

    @property
    def leading(self) -> Verdict | None:
        """The first cause that is more than a guess and not only true beside others; None without one."""
        named = (cause for cause in self.causes if not cause.also_true and cause.cause != "unknown" and cause.outcome != "possible")
        return next(named, None)
