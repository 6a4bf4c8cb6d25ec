"""In which order remedies are listed: no weights, every step is one comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from diagnose import rule_files, vocabulary
from diagnose.facts import Value
from diagnose.plan.choose.tensor_relief import is_asked_by_tensor
from diagnose.plan.pricing.context import Offer
from diagnose.plan.pricing.fit import ORDER
from diagnose.plan.remedies.remedy import Rejected

RESULTS = ("keep", "may_change", "change")
SPEED = ("faster", "same", "slower", "much_slower")
EFFORT = ("flag", "key", "file", "code", "hardware")
#: The place of what does without the tensor that failed and stands in no cause's list: before all that stand there.
AVOIDED = -1


def ranked(offers: Iterable[Offer], *, doubted: bool = False, tried: Collection[Value] = (), helped: Collection[Value] = ()) -> list[Offer]:
    """Best first, one for each word of the vocabulary: a rule that is known to apply before one that may, what names the line to change
    or speaks of such programs before what speaks of all, then what lowers the tensor that failed, and what names the change before what
    only says what to do.
    `doubted`: the ledger is of a configuration that is probably not what ran. `tried`: what did not help by the report's own words, which
    comes last. `helped`: what did, which comes first."""
    best: dict[str, Offer] = {}
    for offer in sorted(
        offers,
        key=lambda offer: (
            offer.presumed,
            not (told(offer) or offer.rule.tasks),  # says where, or in the words of what such programs do
            not offer.relief,
            not offer.changes,
            place(offer, doubted),
        ),
    ):
        best.setdefault(offer.id, offer)
    return sorted(best.values(), key=lambda offer: (offer.id not in helped, offer.id in tried, place(offer, doubted)))


def told(offer: Offer) -> bool:
    """Whether it can be said what to write where."""
    return bool(offer.remedy.edits or offer.remedy.env)


def is_last_resort(offer: Offer) -> bool:
    """Whether it takes new hardware or another model."""
    return offer.remedy.price.effort == "hardware" or offer.id in vocabulary.having("last_resort")


def place(offer: Offer, doubted: bool = False) -> tuple[int | str, ...]:
    """What leading causes call for comes first, new hardware and another model last. What fits is compared by whether it changes results,
    by how surely it fits, and by what it may do to them; then, where several causes lead, by its places in their lists (what answers
    two of them goes before what answers one); then what takes away what the cause is about, then by how much it slows training down,
    and by its place in the list. What does not fit (or is not known to) goes by the place of its cause, so that a free remedy for a
    lesser trouble never leads; of one cause's, what eases another moment than the fullest goes last, so does what needs a card that
    nobody names, and where the ledger is doubted, what leaves the results as they are goes first. Where the tensor that failed is
    known, what lowers it goes before what leaves it as it is; what avoids it goes before what the causes list."""
    price = offer.remedy.price
    cure = offer.fits in ("yes", "likely")
    lowers = bool(offer.relief) and not cure
    group = 2 if is_last_resort(offer) else 0 if offer.leads or lowers else 1
    cause = 0 if lowers else offer.call.rank if offer.call else 99
    listed = offer.call.listed if offer.call else 99
    fit, results, speed = ORDER.index(offer.fits), RESULTS.index(price.results), SPEED.index(price.speed)
    standing = offer.call.standing if offer.call else 99
    joint, slows = standing if offer.call and offer.call.among > 1 else 0, max(speed - SPEED.index("same"), 0)
    elsewhere = offer.fits != "unknown" and bool(offer.saving and offer.saving.moment)  # else nobody knows which moment failed
    own = (
        (price.results == "change", fit, results, offer.relief == 0, joint, offer.aside, slows, standing, speed, cause)
        if cure
        else (
            offer.relief == 0,
            offer.falls_short,
            cause,
            elsewhere,
            doubted and price.results == "change",
            fit,
            offer.blind,
            AVOIDED if offer.relief == 1 and is_asked_by_tensor(offer) else listed,
            results,
            speed,
        )
    )
    return (group, not cure, *own, -offer.bytes, EFFORT.index(price.effort), offer.rule.id)


def rejections(refused: Iterable[Rejected], offers: Iterable[Offer]) -> list[Rejected]:
    """One reason for each remedy that is not on offer, in the order of the vocabulary: what everybody tries first comes first."""
    offered = {offer.id for offer in offers}
    first: dict[str, Rejected] = {}
    for each in refused:
        if each.id not in offered:
            first.setdefault(each.id, each)
    order = [word for words in rule_files.table("vocabulary")["remedy"].values() for word in words]
    return sorted(first.values(), key=lambda each: order.index(each.id) if each.id in order else len(order))
