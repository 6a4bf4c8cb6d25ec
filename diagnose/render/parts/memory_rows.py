"""The failing moment as table rows, and sentences that compare it with the printed figures."""

from __future__ import annotations

from diagnose import families
from diagnose.budget.model.ledger import Ledger, Moment, total
from diagnose.budget.moments.host_memory import fullest_node
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.plan.pricing import fit
from diagnose.records import NamedTuple
from diagnose.render.parts import failure_text, words
from diagnose.render.parts.words import comma, moment, word
from diagnose.units import Size

#: Terms below this share are folded into one row.
SMALL = 0.01

#: An estimate this many times what was allocated is taken to be for rows at the length limit.
SHORT_ROWS = 2


class Row(NamedTuple):
    """A row of the table; `bar` its length relative to the longest, `folded` if it sums several terms."""

    name: str
    size: Size
    share: float
    bar: float
    folded: bool


def main_ledger(diagnosis: Diagnosis) -> Ledger | None:
    """The ledger of the role that failed, else of the role that fits worst."""
    failed = [ledger for ledger in diagnosis.ledgers if ledger.failing is not None]
    return failed[0] if failed else fit.foremost(diagnosis.ledgers)


def main_moment(ledger: Ledger | None) -> Moment | None:
    """The moment to show: the failing one, else the peak."""
    return None if ledger is None else ledger.moment(ledger.failing) or ledger.peak


def host_moment(diagnosis: Diagnosis) -> Moment:
    """Host memory that the roles on the fullest node keep allocated."""
    return Moment("init", fullest_node(diagnosis.ledgers))


def rows(current: Moment, lang: Lang, limit: int) -> list[Row]:
    """The terms of a moment, largest first; small ones beyond `most` are summed in one row."""
    ordered = sorted((term for term in current.terms if term.size.bytes > 0), key=lambda term: -term.size.bytes)
    whole = max(current.total.bytes, 1)
    unlimited = limit >= len(current.terms)
    visible = ordered if unlimited else [term for term in ordered[:limit] if term.size.bytes >= SMALL * whole]
    if len(ordered) == len(visible) + 1:
        visible = ordered  # a line for one that is left takes no more room than the one itself
    sizes = [(term.name.to(lang), term.size, False) for term in visible]
    if folded := ordered[len(visible) :]:
        sizes.append((word("smaller", lang, count=len(folded)), total([term.size for term in folded]), True))
    longest = max((size.bytes for _, size, _ in sizes), default=1)
    return [Row(name, size, size.bytes / whole, size.bytes / longest, folded) for name, size, folded in sizes]


def balance(ledger: Ledger, now: Moment, lang: Lang) -> str:
    """The sum of the moment compared with the measurement, and the unexplained rest."""
    parts = [f"{word('ledger_sum', lang)} {words.amount(now.total, lang)}"]
    if ledger.observed is not None:
        parts.append(word("observed", lang, size=words.amount(ledger.observed, lang)))
    if (difference := ledger.unexplained) is not None and now.name == ledger.failing:
        key = "agrees" if difference.low <= 0 <= difference.high else "unexplained" if difference.bytes > 0 else "overcounted"
        parts.append(word(key, lang, size=words.gib(abs(difference.bytes))))
    return comma(lang).join(parts)


def deviation_text(diagnosis: Diagnosis, lang: Lang) -> str:
    """The caveat for an estimate that deviates from the log; empty if they agree."""
    off, ledger = estimate_deviation(diagnosis), main_ledger(diagnosis)
    now = main_moment(ledger)
    if off == "below" and ledger is not None and now is not None and ledger.observed is not None:
        return word("ledger_below", lang, size=words.amount(now.total, lang), allocated=words.amount(ledger.observed, lang))
    return word(f"ledger_{off}", lang) if off in ("above", "at_limit", "lacks") else ""


def estimate_deviation(diagnosis: Diagnosis) -> str:
    """How the estimate deviates from the log: `below`, `above`, `at_limit`, `lacks`; empty if they agree."""
    return failure_text.measured_deviation(diagnosis) or length_deviation(diagnosis) or ("lacks" if lacks_terms(diagnosis) else "")


def explained(diagnosis: Diagnosis) -> float | None:
    """The share of what the message prints as allocated that the estimate explains; None where either is not known."""
    ledger = main_ledger(diagnosis)
    return None if ledger is None else ledger.explained


def lacks_terms(diagnosis: Diagnosis) -> bool:
    """Whether the estimate is certainly incomplete: it leaves room on a card that ran out, and no message prints what was allocated."""
    ledger, event = main_ledger(diagnosis), diagnosis.root
    now = main_moment(ledger)
    failed = diagnosis.verdict.status in ("oom", "suspected") and not failure_text.on_host(diagnosis)
    if ledger is None or now is None or event is None or not failed:
        return False
    if not ledger.complete or ledger.usable is None or ledger.observed is not None or families.of(event.family).engine:
        return False
    free, requested = (size.high if size is not None else 0 for size in (event.free, event.requested))
    return ledger.usable.low - now.total.high - max(free, requested) > failure_text.NEGLIGIBLE


#: Groups of terms that the length of rows moves.
OF_ROWS = ("activations", "logits")


def length_deviation(diagnosis: Diagnosis) -> str:
    """The reason if the estimate far exceeds what was allocated: `at_limit` if rows may be shorter than the limit, `above` if rows are
    packed to it; empty otherwise."""
    ledger = main_ledger(diagnosis)
    now, observed = main_moment(ledger), ledger.observed if ledger is not None else None
    if now is None or observed is None or any(fact.name == "ledger.verdict" for fact in diagnosis.facts):
        return ""
    if not any(now.of(group).bytes for group in OF_ROWS):  # a load that did not end
        return ""
    packed = any(fact.name == "train.packing" and fact.value is True for fact in diagnosis.facts)
    return "" if now.total.bytes <= SHORT_ROWS * observed.bytes else "above" if packed else "at_limit"


def printed_lines(diagnosis: Diagnosis, lang: Lang, tick: str = "") -> list[str]:
    """The card and the request as the message prints them."""
    event = diagnosis.root
    if event is None:
        return []
    lines = [
        failure_text.printed_memory(diagnosis, event, lang),
        inferred_card(diagnosis, lang),
        failure_text.request_text(diagnosis, lang, tick),
    ]
    return [line for line in lines if line]


def inferred_card(diagnosis: Diagnosis, lang: Lang) -> str:
    """The sentence that the card was inferred from its capacity; empty if something names it."""
    gpu = next((fact for fact in diagnosis.facts if fact.name == "hardware.gpu"), None)
    return word("card_inferred", lang, gpu=str(gpu.value)) if gpu is not None and gpu.origin == "derived" else ""


def later_failure(diagnosis: Diagnosis, lang: Lang) -> str:
    """That a later point of the step does not fit either; empty where it does. It decides what to do, so that it stands before the bar."""
    ledger = main_ledger(diagnosis)
    moment = main_moment(ledger)
    if ledger is None or moment is None or not ledger.failing or failure_text.on_host(diagnosis):
        return ""
    if estimate_deviation(diagnosis) in ("above", "at_limit") or others_hold_the_card(ledger, diagnosis):
        return ""  # it was not as the estimate takes it to be
    return peak_text(ledger, moment, lang) if peaks_later(ledger, moment) and overflows(ledger) else ""


def others_hold_the_card(ledger: Ledger, diagnosis: Diagnosis) -> bool:
    """Whether what can be used is what other processes left, and not what the job will have."""
    sizes = [fact.value for fact in diagnosis.facts if fact.name == "log.other_processes"]
    return ledger.usable is not None and any(isinstance(size, Size) and size.bytes > ledger.usable.bytes for size in sizes)


def peaks_later(ledger: Ledger, now: Moment) -> bool:
    """Whether the peak exceeds this moment."""
    return ledger.peak is not None and ledger.peak.name != now.name and ledger.peak.total.bytes > now.total.bytes


def overflows(ledger: Ledger) -> bool:
    """Whether the peak does not surely fit."""
    return fit.sits(ledger) in ("no", "unlikely")


def peak_text(ledger: Ledger, now: Moment, lang: Lang) -> str:
    """Whether a later moment needs more; empty for an incomplete ledger."""
    highest, room = ledger.peak, ledger.usable or ledger.capacity
    if highest is None or not ledger.complete:
        return ""
    if peaks_later(ledger, now):
        key = "peak_fails" if room and overflows(ledger) else "peak_later" if room else "peak_later_bare"
        size = words.amount(highest.total, lang)
        return word(key, lang, moment=moment(highest.name, lang), peak=size, usable=words.amount(room, lang) if room else "")
    return word("peak_here", lang, usable=words.amount(room, lang)) if room else ""


def missing_facts(ledger: Ledger, lang: Lang) -> str:
    """The unknown facts that make the ledger incomplete."""
    unknown = unknown_facts(ledger)
    return word("incomplete", lang, facts=comma(lang).join(words.meaning(name, lang) for name in unknown)) if unknown else ""


def unknown_facts(ledger: Ledger) -> list[str]:
    """The facts that an incomplete ledger lacks; of an inference engine none that only training has."""
    return [name for name in ledger.unknown if not ledger.complete and not (ledger.role == "engine" and name.startswith("train."))]


def other_roles(diagnosis: Diagnosis, leader: Ledger, lang: Lang) -> list[str]:
    """A line for each other role."""
    lines = []
    for ledger in diagnosis.ledgers:
        highest, room = ledger.peak, ledger.usable or ledger.capacity
        if ledger is leader or highest is None or not highest.total.bytes:
            continue
        over = "over_usable" if room and highest.total.high > room.high else "of_usable"
        usable = word(over, lang, usable=words.amount(room, lang)) if room else ""
        size, states = words.amount(highest.total, lang), highest.of("weights", "gradients", "optimizer_states")
        role, when = role_title(ledger, lang), moment(highest.name, lang)
        states_text = word("of_states", lang, size=words.amount(states, lang)) if highest.of("optimizer_states").bytes else ""
        lines.append(word("other_role", lang, role=role, peak=size, moment=when, usable=usable, states=states_text))
    return lines


def role_title(ledger: Ledger, lang: Lang) -> str:
    role = words.name_of("role", ledger.role, lang)
    return word("on_gpus_one", lang, role=role) if ledger.gpus == 1 else word("on_gpus", lang, role=role, gpus=ledger.gpus)
