"""Which remedies are worth a line: those that save something, or that people advise; and whether it is known that they apply."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose import vocabulary
from diagnose.facts import Value
from diagnose.plan.pricing.context import Job, Offer
from diagnose.plan.pricing.spread import COUNTS, is_counted
from diagnose.plan.remedies.remedy_rules import Rule

#: Off a need that no card is known for, less than this share is not worth a line that nobody asked for.
GOOD_PART = 0.1


def helps(offer: Offer) -> bool:
    """Whether a remedy that nobody calls for and that is not enough by itself can be a step of a plan."""
    return offer.rule.ledger and offer.bytes > 0 and offer.fits != "unknown"


def splits_unknown(offer: Offer, job: Job) -> bool:
    return splits(offer.changes, job)


def several(job: Job) -> bool:
    """Whether something says that the job has more than one card: its size, or a rank or card of a higher number than the first."""
    counted = any((job.book.count(name) or 0) > 1 for name in COUNTS)
    return counted or any((job.book.count(name) or 0) > 0 for name in ("log.rank", "log.gpu"))


def splits(changes: Mapping[str, Value], job: Job) -> bool:
    """Whether they divide the work over cards, where nobody says that there is more than one."""
    return not is_counted(job) and any(name.startswith("parallel.") for name in changes)


def needs_uncounted_cards(rule: Rule, job: Job) -> bool:
    """Whether it splits an engine over cards that nobody has counted: its price presumes cards that may not be there."""
    return rule.turns == "rollout.tensor_parallel" and not several(job) and not is_counted(job)


def unasked(offer: Offer, job: Job) -> bool:
    """Whether a remedy that no cause calls for is worth its line: advice people give that saves something, or one that fits. Where the
    configuration is probably not what ran, nobody pays with other results or new hardware for what its ledger says."""
    dear = offer.remedy.price.results == "change" or offer.rule.effort == "hardware"
    if not offer.rule.ledger or (dear and job.bench.trust == "over"):
        return False
    if offer.rule.effort == "hardware" and not offer.rule.popular:
        return False  # new hardware is said where a cause calls for it, or nothing less is enough
    if offer.saving is None:
        return bool(offer.changes) and not dear  # looked at as promising above
    if offer.saving.moment and job.bench.usable is None and not much_of_an_unknown_card(offer, job):
        return False  # little, at a moment that need not be the one that failed
    promises = offer.saving.bytes.bytes > 0 or offer.rule.alone is not None
    return promises and (offer.rule.popular or offer.fits in ("yes", "likely") or much_of_an_unknown_card(offer, job))


def much_of_an_unknown_card(offer: Offer, job: Job) -> bool:
    """Whether it takes a good part off the need, where no card says how much has to go."""
    need = job.bench.peak
    return job.bench.usable is None and need is not None and offer.bytes > need.bytes * GOOD_PART


def considered(rule: Rule, job: Job) -> bool:
    """Whether a remedy that no cause calls for is looked at: advice people give, or a knob that the ledger can price."""
    if (rule.relieves == "host") != job.on_host and rule.relieves != "both":
        return False
    return rule.popular or (rule.ledger and job.bench.trust in ("full", "short"))


def promising(changes: Mapping[str, Value], job: Job) -> bool:
    """Whether, of what an incomplete ledger holds, the changes would take a good part: enough to name them, not to price them."""
    saving, held = job.bench.saving(changes), job.bench.peak
    return saving is not None and held is not None and not saving.moment and saving.bytes.bytes > max(2**30, held.bytes // 10)


def is_anybodys_script(job: Job) -> bool:
    """Whether nobody knows which program it is, and nothing shows that it is built on the usual libraries."""
    if job.book.word("train.framework") is not None or job.regime not in vocabulary.having("own_scripts"):
        return False
    signs = [job.book.fact(name) for name in vocabulary.having("usual_libraries")]
    return not any(sign is not None and sign.value not in (None, "none") and sign.origin != "default" for sign in signs)
