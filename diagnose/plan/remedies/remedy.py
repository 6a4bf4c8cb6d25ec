"""Value types of what the planner proposes: remedies with prices and edits, rejected remedies, the plan, questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diagnose.budget.model.ledger import Moment
from diagnose.facts import Value
from diagnose.phrases import Text
from diagnose.records import NamedTuple
from diagnose.units import Size

Fits = Literal["yes", "likely", "unlikely", "no", "unknown"]


class Since(NamedTuple):
    """The release of a program from which on it surely has a key. `before`: the name that older releases have for it; `after`: the last
    release that surely lacks it, where the one in use lies between both."""

    program: str
    release: str
    before: str = ""
    after: str = ""


class Edit(NamedTuple):
    """One change of one key in a text.

    `target`: the name of a given file, or what to edit where none was given ("command line"). `frm`: the old value as written (None:
    the key is absent). `to`: the new value as it is to be written (None: remove the key; empty: an option without a value).
    `renamed`: the new key, if the edit renames it. `written`: how an added key is written where key and value alone do not say.
    `since`: what has the key, where a release without it may be in use.
    """

    target: str
    key: str
    frm: str | None
    to: str | None
    renamed: str | None = None
    written: str = ""
    since: Since | None = None


class Price(NamedTuple):
    """What a remedy costs: results, speed and effort in words of the vocabulary, and host memory on the node."""

    results: str
    speed: str
    effort: str
    host_memory: Size | None = None
    wording: Text | None = None  # said in place of results and speed where nothing is trained
    host_each: Literal["node", "card"] = "node"  # what has to have the host memory


@dataclass(slots=True, repr=False)
class Remedy:
    """A remedy for this job.

    `saves`: the difference of the peaks of two ledgers (None: not estimable). `peak`: the peak after it. `knobs`: its changes, as the
    ledger was computed with them. `beyond`: it saves more than the card has, because the estimate assumes more or longer rows than ran.
    """

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


class Rejected(NamedTuple):
    """A remedy that is not offered, and why."""

    id: str
    rule: str
    reason: Text
    idle: bool = False  # it is not refuted: there is no setting for it, no release known to be bad, or nobody knows whether it works here
    outright: bool = False  # doing it by hand is ruled out too
    little: bool = False  # it may help by the little that the reason says


class Rung(NamedTuple):
    """One step of the ladder: once the job runs, raise this knob to `to`."""

    knob: str
    frm: Value
    to: Value
    predicted_peak: Size


@dataclass(slots=True)
class Plan:
    """The remedies to apply together, their edits, and the peak that is expected then."""

    steps: tuple[str, ...]  # remedy ids
    edits: tuple[Edit, ...]
    env: tuple[str, ...]
    predicted_peak: Size | None
    margin: Size | None
    fits: Fits
    ladder: tuple[Rung, ...] = ()
    note: Text | None = None  # about the plan as a whole: that nothing less is enough, or that nothing is
    before: Moment | None = (
        None  # the point of the step that needs most as configured, and after the plan; None where the peak is not priced
    )
    after: Moment | None = None


class Question(NamedTuple):
    """A fact that the user is asked for. `set`: the option that answers, such as `--set data.longest_sample=N`."""

    fact: str
    why: Text
    how: Text
    set: str


class Unsettled(NamedTuple):
    """A cause that could not be judged, the fact that would settle it, and how to learn that fact."""

    rule: str
    title: Text
    fact: str
    how: Text


class Outcome(NamedTuple):
    """The result of planning; the best remedy first."""

    remedies: tuple[Remedy, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    plan: Plan | None = None
    questions: tuple[Question, ...] = ()
    unsettled: tuple[Unsettled, ...] = ()
    faults: tuple[Text, ...] = ()  # errors in remedy rules, not in the job
    usual: bool = False  # the first remedies are those that help most often in such failures: nothing that is known calls for others
    beside: bool = False  # no fact that could be asked for decides whether the first step is enough: the estimate says nothing of it
