"""Where the memory went: the failing moment as rows, and the sentences that compare it with what was printed."""

from __future__ import annotations

from diagnose import families
from diagnose.budget.model.ledger import Ledger, Moment, total
from diagnose.budget.moments.host_memory import fullest_node
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.plan.pricing import fit
from diagnose.record import NamedTuple
from diagnose.render.parts import failure_text, words
from diagnose.render.parts.words import comma, moment, word
from diagnose.units import Size

#: The share below which a term is folded with its like.
SMALL = 0.01

#: An estimate for rows at the limit is said to be one where it is so many times what was allocated.
SHORT_ROWS = 2


class Row(NamedTuple):
    """A line of the table; `bar` is its length against the longest, `folded` whether it stands for several."""

    name: str
    size: Size
    share: float
    bar: float
    folded: bool


def leading(diagnosis: Diagnosis) -> Ledger | None:
    """The ledger of the role that failed; without a failure of the one that sits worst on its card."""
    failed = [ledger for ledger in diagnosis.ledgers if ledger.failing is not None]
    return failed[0] if failed else fit.foremost(diagnosis.ledgers)


def told_of(ledger: Ledger | None) -> Moment | None:
    """The moment of a ledger that is told of: the one that failed, else the largest."""
    return None if ledger is None else ledger.moment(ledger.failing) or ledger.peak


def kept_on_host(diagnosis: Diagnosis) -> Moment:
    """What the roles of the fullest node keep in its host memory."""
    return Moment("init", fullest_node(diagnosis.ledgers))


def rows(now: Moment, lang: Lang, most: int) -> list[Row]:
    """The terms of a moment, largest first; beyond `most`, and where they are small, folded into one."""
    ordered = sorted((term for term in now.terms if term.size.bytes > 0), key=lambda term: -term.size.bytes)
    whole = max(now.total.bytes, 1)
    every = most >= len(now.terms)
    shown = ordered if every else [term for term in ordered[:most] if term.size.bytes >= SMALL * whole]
    if len(ordered) == len(shown) + 1:
        shown = ordered  # a line for one that is left takes no more room than the one itself
    sizes = [(term.name.to(lang), term.size, False) for term in shown]
    if folded := ordered[len(shown) :]:
        sizes.append((word("smaller", lang, count=len(folded)), total([term.size for term in folded]), True))
    longest = max((size.bytes for _, size, _ in sizes), default=1)
    return [Row(name, size, size.bytes / whole, size.bytes / longest, folded) for name, size, folded in sizes]


def balance(ledger: Ledger, now: Moment, lang: Lang) -> str:
    """The sum against what the log measured, and what is left over."""
    parts = [f"{word('ledger_sum', lang)} {words.amount(now.total, lang)}"]
    if ledger.observed is not None:
        parts.append(word("observed", lang, size=words.amount(ledger.observed, lang)))
    if (left := ledger.unexplained) is not None and now.name == ledger.failing:
        key = "agrees" if left.low <= 0 <= left.high else "unexplained" if left.bytes > 0 else "overcounted"
        parts.append(word(key, lang, size=words.gib(abs(left.bytes))))
    return comma(lang).join(parts)


def doubt(diagnosis: Diagnosis, lang: Lang) -> str:
    """What it means where ledger and log contradict each other, or are of rows of other lengths; empty where they agree."""
    off = astray(diagnosis)
    return word(f"ledger_{off}", lang) if off else ""


def astray(diagnosis: Diagnosis) -> str:
    """How the estimate differs from what the log says: `below`, `above`, `at_limit`, `lacks`; empty where they agree."""
    return failure_text.contradicted(diagnosis) or beyond(diagnosis) or ("lacks" if lacking(diagnosis) else "")


def lacking(diagnosis: Diagnosis) -> bool:
    """Whether the estimate surely lacks something: it leaves room on a card that ran out, and no message says what was allocated."""
    ledger, event = leading(diagnosis), diagnosis.root
    now = told_of(ledger)
    if ledger is None or now is None or event is None or diagnosis.verdict.status != "oom" or failure_text.on_host(diagnosis):
        return False
    if not ledger.complete or ledger.usable is None or ledger.observed is not None or families.of(event.family).engine:
        return False
    free, asked = (size.high if size is not None else 0 for size in (event.free, event.requested))
    return ledger.usable.low - now.total.high - max(free, asked) > failure_text.NEGLIGIBLE


def beyond(diagnosis: Diagnosis) -> str:
    """Of an estimate of much more than was allocated that nothing judges: `at_limit` where rows shorter than the limit explain it,
    `above` where rows are packed as long as that."""
    ledger = leading(diagnosis)
    now, seen = told_of(ledger), ledger.observed if ledger is not None else None
    if now is None or seen is None or any(fact.name == "ledger.verdict" for fact in diagnosis.facts):
        return ""
    packed = any(fact.name == "train.packing" and fact.value is True for fact in diagnosis.facts)
    return "" if now.total.bytes <= SHORT_ROWS * seen.bytes else "above" if packed else "at_limit"


def printed(diagnosis: Diagnosis, lang: Lang, tick: str = "") -> list[str]:
    """The card as the message prints it, and what the request was."""
    event = diagnosis.root
    if event is None:
        return []
    said = [failure_text.the_card(diagnosis, event, lang), inferred(diagnosis, lang), failure_text.request(diagnosis, lang, tick)]
    return [line for line in said if line]


def inferred(diagnosis: Diagnosis, lang: Lang) -> str:
    """Says so where nothing names the card and its capacity gave it away."""
    told = next((fact for fact in diagnosis.facts if fact.name == "hardware.gpu"), None)
    return word("card_inferred", lang, gpu=str(told.value)) if told is not None and told.origin == "derived" else ""


def comes_later(ledger: Ledger, now: Moment) -> bool:
    """Whether another moment needs more than this one."""
    return ledger.peak is not None and ledger.peak.name != now.name and ledger.peak.total.bytes > now.total.bytes


def overflows(ledger: Ledger) -> bool:
    """Whether the largest moment does not surely fit."""
    return fit.sits(ledger) in ("no", "unlikely")


def peak(ledger: Ledger, now: Moment, lang: Lang) -> str:
    """Whether the worst is still to come; empty where the ledger cannot say."""
    highest, room = ledger.peak, ledger.usable or ledger.capacity
    if highest is None or not ledger.complete:
        return ""
    if comes_later(ledger, now):
        key = "peak_later" if room else "peak_later_bare"
        size = words.amount(highest.total, lang)
        return word(key, lang, moment=moment(highest.name, lang), peak=size, usable=words.amount(room, lang) if room else "")
    return word("peak_here", lang, usable=words.amount(room, lang)) if room else ""


def gaps(ledger: Ledger, lang: Lang) -> str:
    """What is not known without which terms are missing."""
    if ledger.complete or not ledger.unknown:
        return ""
    return word("incomplete", lang, facts=comma(lang).join(words.meaning(name, lang) for name in ledger.unknown))


def others(diagnosis: Diagnosis, leader: Ledger, lang: Lang) -> list[str]:
    """The other roles, one line each."""
    lines = []
    for ledger in diagnosis.ledgers:
        highest, room = ledger.peak, ledger.usable or ledger.capacity
        if ledger is leader or highest is None or not highest.total.bytes:
            continue
        usable = word("of_usable", lang, usable=words.amount(room, lang)) if room else ""
        size, states = words.amount(highest.total, lang), highest.of("weights", "gradients", "optimizer_states")
        role, when = on_gpus(ledger, lang), moment(highest.name, lang)
        held = word("of_states", lang, size=words.amount(states, lang)) if highest.of("optimizer_states").bytes else ""
        lines.append(word("other_role", lang, role=role, peak=size, moment=when, usable=usable, states=held))
    return lines


def on_gpus(ledger: Ledger, lang: Lang) -> str:
    role = words.name_of("role", ledger.role, lang)
    return word("on_gpus_one", lang, role=role) if ledger.gpus == 1 else word("on_gpus", lang, role=role, gpus=ledger.gpus)
