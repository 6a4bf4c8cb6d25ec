"""What the planner proposes: remedies with prices and edits, rejected advice, the plan, questions."""

from __future__ import annotations

from typing import Literal

from diagnose.facts import Value
from diagnose.phrases import Text
from diagnose.record import record
from diagnose.units import Size

Fits = Literal["yes", "likely", "unlikely", "no", "unknown"]


@record
class Edit:
    """One change of one key. `target` is a given file's name or, where none was given, what to edit (Text-free: a file or "command line").

    `frm` is the old value as written (None: the key is absent), `to` the new one as it is written there (None: remove the key; empty: it is
    an option that has no value). `renamed` is the new key where the edit renames it.
    """

    target: str
    key: str
    frm: str | None
    to: str | None
    renamed: str | None = None


@record
class Price:
    """Results, speed and effort in the words of the vocabulary; host memory that it takes on the node."""

    results: str
    speed: str
    effort: str
    host_memory: Size | None = None
    told: Text | None = None  # results and speed in other words, where nothing is trained


@record
class Remedy:
    """A remedy for this job. `saves` is the difference of the peaks of two ledgers (None: not estimable);
    `peak` the peak after it. `knobs` are the changes it makes, as the ledger was re-run with them. `beyond`: it saves more than the card
    that ran out has, as the estimate is of longer rows, or more of them, than were there."""

    id: str
    rule: str
    title: Text
    why: Text
    saves: Size | None
    peak: Size | None
    fits: Fits
    price: Price
    edits: tuple[Edit, ...]
    env: tuple[str, ...]
    command: Text | None
    references: tuple[str, ...]
    url: str
    knobs: tuple[tuple[str, Value], ...] = ()
    beyond: bool = False


@record
class Rejected:
    id: str
    rule: str
    reason: Text
    idle: bool = False  # the reason is only that there is nothing of the kind: no setting for it, no release known to be bad
    outright: bool = False  # nor is it done by hand


@record
class Rung:
    """One step of the ladder: once it runs, raise this knob so far."""

    knob: str
    frm: Value
    to: Value
    predicted_peak: Size


@record
class Plan:
    steps: tuple[str, ...]  # remedy ids
    edits: tuple[Edit, ...]
    env: tuple[str, ...]
    predicted_peak: Size | None
    margin: Size | None
    fits: Fits
    ladder: tuple[Rung, ...] = ()
    note: Text | None = None  # what is to be said of it as a whole: that nothing less is enough, or that nothing is


@record
class Question:
    """What the engine would most like to know. `set` is the option that answers it, such as --set data.longest_sample=N."""

    fact: str
    why: Text
    how: Text
    set: str


@record
class Unsettled:
    """A cause that could not be judged, the fact that would settle it, and how to learn that."""

    rule: str
    title: Text
    fact: str
    how: Text


@record
class Outcome:
    """All that planning yields, remedies best first."""

    remedies: tuple[Remedy, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    plan: Plan | None = None
    questions: tuple[Question, ...] = ()
    unsettled: tuple[Unsettled, ...] = ()
    faults: tuple[Text, ...] = ()  # what is wrong with remedy rules, not with the job
