"""The log against the ledger: memory that the log prints at a known moment confirms the ledger or contradicts it.

A contradiction is put to the settings that would explain it (rules/ledger.yaml, suppositions): each is tried as if it were not in effect,
and the one that alone makes every printed figure agree is named. Where none or several do, nothing is named.
"""

from __future__ import annotations

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.budget.model.software_table import table
from diagnose.budget.moments.in_process_roles import FREED
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.units import Size

#: How a figure that the log prints meets the ledger, by the fact that says so.
VERDICTS = ("ledger.load_verdict", "ledger.init_verdict", "ledger.step_verdict", "ledger.peak_verdict")

#: The moments of a training step.
OF_A_STEP = ("forward_end", "loss_call", "reference_forward", "loss_backward", "layer_backward", "optimizer_step")

#: Two figures meet where they are no further apart than this share: libraries and small buffers that no formula counts. Of what depends
#: on the batch the estimate knows less.
NEAR, ROUGHLY = 0.1, 0.2


def comparison_facts(book: FactBook, ledger: Ledger) -> list[Fact]:
    """Facts on whether printed figures agree with the ledger, and which setting would explain it if not."""
    words = {verdict: word for verdict in VERDICTS if (word := _verdict(book, ledger, verdict))}
    verdicts = [_fact(verdict, word, f"estimate against {_printed_figure(book, verdict)[0]}") for verdict, word in words.items()]
    if "below" not in words.values() or not ledger.complete:
        return verdicts
    return [*verdicts, *_explaining_setting(book, tuple(words))]


def _printed_figure(book: FactBook, verdict: str) -> tuple[str, Size | None]:
    """(fact, size) that a verdict is about: memory after loading, after initialisation, between two steps, or the highest of all steps."""
    if verdict == "ledger.load_verdict":
        name = "log.allocated_after_load"
    elif verdict == "ledger.init_verdict":
        name = "log.allocated_after_init"
    else:
        between = verdict == "ledger.step_verdict"
        name = "log.memory_last" if between else "log.memory_highest"
        if book.word("log.memory_measure") != ("allocated" if between else "peak_allocated") or (book.count("log.memory_prints") or 0) < 2:
            return name, None
    return name, book.size(name)


def _verdict(book: FactBook, ledger: Ledger, verdict: str, *, closely: bool = False) -> str | None:
    """agrees, below (the ledger explains less than was printed), above; None where either side is missing. `closely`: use the narrower
    tolerance also for the peak."""
    _, printed = _printed_figure(book, verdict)
    moment = _ledger_sum(ledger, verdict)
    if printed is None or moment is None or not moment.terms or not printed.bytes:
        return None
    if verdict != "ledger.peak_verdict":
        return compare(moment, printed)
    word = compare(moment, printed, NEAR if closely else ROUGHLY)
    return None if word == "above" and "data.tokens_in_batch" not in book else word  # lengths are upper bounds


def _ledger_sum(ledger: Ledger, verdict: str) -> Moment | None:
    """The ledger's moment that a printed figure belongs to."""
    if verdict == "ledger.load_verdict":
        return ledger.moment("load")
    if verdict == "ledger.init_verdict":
        return ledger.moment("init")
    if verdict == "ledger.peak_verdict":
        steps = [moment for moment in ledger.moments if moment.name in OF_A_STEP]
        return max(steps, key=lambda moment: moment.total.bytes, default=None)
    stepped = ledger.moment("optimizer_step")
    if stepped is None:
        return None
    stays = [term for term in stepped.terms if not term.key.startswith(("step_", "gathered_")) and term.key not in FREED]
    return Moment("optimizer_step", tuple(stays))


def compare(moment: Moment, printed: Size, near: float = NEAR) -> str:
    """agrees, below or above: a moment's sum against a printed figure, within the share `near`."""
    whole = moment.total
    if whole.high < (1 - near) * printed.low:
        return "below"
    return "above" if whole.low > (1 + near) * printed.high else "agrees"


def _explaining_setting(book: FactBook, verdicts: tuple[str, ...]) -> list[Fact]:
    """The one setting without which every figure agrees; of several the only one that agrees closely."""
    explaining = [entry for entry in table()["suppositions"] if _asks_for(book, entry) and _agrees(book.changed(_changes(entry)), verdicts)]
    if len(explaining) > 1:
        explaining = [entry for entry in explaining if _agrees(book.changed(_changes(entry)), verdicts, closely=True)]
    if len(explaining) != 1:
        return []
    reason = "the only setting without which ledger and log agree"
    return [_fact("ledger.contradicts", explaining[0]["knob"], reason)]


def _asks_for(book: FactBook, entry: dict[str, Value]) -> bool:
    """Whether the job uses the setting."""
    value, excluded = book.value(str(entry["knob"])), entry.get("without")
    if excluded and book.word(str(excluded)) not in (None, "none"):
        return False
    return value is not None and value not in (False, 0, "none", "disabled", "full", entry.get("instead"))


def _changes(entry: dict[str, Value]) -> dict[str, Value]:
    return {str(entry["knob"]): entry.get("instead")}


def _agrees(book: FactBook, verdicts: tuple[str, ...], *, closely: bool = False) -> bool:
    alternative = ledgers(book)
    return bool(alternative) and all(_verdict(book, alternative[0], verdict, closely=closely) == "agrees" for verdict in verdicts)


def _fact(name: str, value: Value, formula: str) -> Fact:
    return Fact(name, value, "derived", Witness("derived", text=formula))
