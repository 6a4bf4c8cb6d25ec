"""Diagnosis: the finished value; nothing after it may compute."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypeAlias

from diagnose.adapters.formats.settings import Document
from diagnose.budget.model.ledger import Attribution, Ledger
from diagnose.decide.verdict import Judgement
from diagnose.facts import Fact, Input, Notice
from diagnose.parse.model.event import Event
from diagnose.phrases import Lang, Text
from diagnose.plan.pricing import fit
from diagnose.plan.remedies.remedy import Fits, Outcome
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from diagnose.plan.remedies.outlook_values import Outlook
    from diagnose.snapshot.measure import Snapshot

#: What a report is made of.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Verdict(NamedTuple):
    """The one-line answer. `event` indexes the root failure."""

    status: str
    family: str | None
    phase: str | None
    headline: Text
    event: int | None


@dataclass(slots=True, repr=False)
class Diagnosis:
    """What one job died of. Texts are in both languages; `to_dict(lang)` is the report of the contract."""

    verdict: Verdict
    inputs: tuple[Input, ...] = ()
    events: tuple[Event, ...] = ()
    facts: tuple[Fact, ...] = ()
    attributions: tuple[Attribution, ...] = ()
    ledgers: tuple[Ledger, ...] = ()
    judgement: Judgement = field(default_factory=lambda: Judgement((), (), ()))
    outcome: Outcome = field(default_factory=Outcome)
    notices: tuple[Notice, ...] = ()
    documents: tuple[Document, ...] = ()  # for --patch; not part of the report
    patch: str | None = None  # the plan as a diff, once the documents that it is made from are masked
    asked: Literal["explain", "check"] = "explain"
    snapshot: Snapshot | None = None  # of `explain`, where one was given
    job: str = ""  # names the job in notes of what helped
    outlook: Outlook | None = None  # of `check`: how it sits on its card, and how far it can go

    @property
    def root(self) -> Event | None:
        """The failure that the verdict is about."""
        index = self.verdict.event
        return None if index is None else self.events[index]

    @property
    def fits(self) -> Fits:
        """Whether the job as configured fits, going by the worst of its ledgers."""
        verdict = reduce(fit.worse, map(fit.sits, self.ledgers)) if self.ledgers else "unknown"
        return "unknown" if self.outlook is not None and self.outlook.contradictions else verdict

    @property
    def exit_status(self) -> int:
        """What the command that asked returns: `explain` 0 a failure of memory, 1 none; `check` 0 fits, 1 does not, 4 cannot tell."""
        if self.asked == "explain":
            return 0 if self.verdict.status in ("oom", "suspected") else 1
        return {"yes": 0, "likely": 0, "unlikely": 1, "no": 1, "unknown": 4}[self.fits]

    def to_dict(self, lang: Lang = "en") -> dict[str, Json]:
        """The report of the contract, its keys in the contract's order."""
        report: dict[str, Json] = _renderers().report(self, lang)
        return report

    def to_markdown(self, lang: Lang = "en", *, redact: bool = True, verbose: bool = False) -> str:
        """What one pastes into a chat; secrets and names masked unless `redact` is False."""
        text: str = _renderers().markdown(self, lang, redact=redact, verbose=verbose)
        return text


def _renderers() -> ModuleType:
    """The module that renders a Diagnosis. It is imported by name because it is built on this class."""
    return import_module("diagnose.render.formats")
