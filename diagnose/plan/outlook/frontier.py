"""Before a run: how the job sits on its card, and the ways of running it that carry a larger batch or longer rows.

A way is the job with some switches set. Ways are found, not listed: each switch that goes past what held the job back, and, price
by price, the fewest switches that get as far as all of that price together. A way that another outdoes at no higher price is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.budget.model.ledger import Ledger
from diagnose.catalogue import sizes_sold
from diagnose.plan.choose.ranking import RESULTS, SPEED
from diagnose.plan.edits.editability import edits_of
from diagnose.plan.edits.setting_conflicts import contradictions
from diagnose.plan.outlook.memory_levers import Lever, levers, merged, reverted, together
from diagnose.plan.pricing import fit
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.growth import FITTING, Track, uncounted
from diagnose.plan.rules.outlook import Outlook, Reach, Seat, Way
from diagnose.record import replace

#: Ledgers that one frontier may draw up: some tenths of a millisecond each.
MOST_ASKED = 400

#: Ways that are shown.
MOST_WAYS = 8

#: What all of a price together reach may be missed by this share, where that takes a switch less.
SLACK = 0.05

#: Prices from cheap to dear: the results and the speed that a switch may cost.
PRICES = (("keep", "slower"), ("keep", "much_slower"), ("may_change", "much_slower"), ("change", "much_slower"))


def outlook(job: Job) -> Outlook:
    """How each role sits on its card, and the frontier."""
    ledgers = job.ledgers
    first = fit.foremost(ledgers)
    wrong = contradictions(job.book)
    capacity, usable = (first.capacity, first.usable) if first else (None, None)
    return Outlook(
        card=job.book.word("hardware.gpu"),
        capacity=capacity,
        usable=usable,
        reserved=capacity - usable if capacity and usable else None,
        kept=fit.MARGIN,
        seats=tuple(map(seat, ledgers)),
        ways=tuple(ways(job)) if ledgers and not wrong else (),
        uncounted=uncounted(ledgers) if capacity else (),
        contradictions=wrong,
    )


def seat(ledger: Ledger) -> Seat:
    """One role on its card, at its largest moment."""
    peak = ledger.peak
    room = (peak.room if peak else None) or ledger.usable
    margin = room - peak.total if peak and room else None
    return Seat(
        role=ledger.role,
        gpus=ledger.gpus,
        moment=peak.name if peak else None,
        need=peak.total if peak else None,
        usable=room,
        margin=margin,
        fits=fit.sits(ledger),
        complete=ledger.complete,
    )


def ways(job: Job) -> list[Way]:
    """The job as configured, costly remedies off that it could do without as configured, then every way that goes further, the cheapest
    first."""
    track = Track(job)
    base = way(track, [])
    if base.need is None and base.batch is None and base.length is None:
        return []
    switches = levers(job)
    found = [base]
    held: list[Lever] = []
    for results, speed in PRICES:
        within = [lever for lever in switches if at_most(lever, results, speed)]
        single = [lever for lever in within if (lever.remedy,) not in [one.remedies for one in found]]
        found += [way(track, [lever], base) for lever in single if track.asked < MOST_ASKED and helps(track, base, [lever])]
        every = together(within, job, held)
        if len(every) > max(len(held), 1) and track.asked < MOST_ASKED:
            goal = way(track, every, base)
            held = fewest(track, every, goal)
            found.append(goal if len(held) == len(every) else way(track, held, goal))
        if any(one.fits in FITTING and one.speed != "much_slower" for one in found):
            break  # what costs more is not asked for
    off = [way(track, [lever], base) for lever in reverted(job) if track.asked < MOST_ASKED and track.fits(lever.changes) in FITTING]
    return [told(one, track) for one in (base, *off, *best(found))]


def at_most(lever: Lever, results: str, speed: str) -> bool:
    return RESULTS.index(lever.results) <= RESULTS.index(results) and SPEED.index(lever.speed) <= SPEED.index(speed)


def helps(track: Track, base: Way, chosen: Sequence[Lever]) -> bool:
    """Whether the switches get past a point at which the way so far no longer fits; without a card, whether they lower the need."""
    changes = merged(chosen)
    blocked = [reach for reach in (base.batch, base.length) if reach is not None and not reach.limit]
    if base.batch is None and base.length is None:
        need = track.need(changes)
        return need is not None and base.need is not None and need.bytes < (1 - SLACK) * base.need.bytes
    return any(track.stand_at(changes, reach.knob, reach.likely + reach.least).fits in FITTING for reach in blocked)


def fewest(track: Track, chosen: Sequence[Lever], goal: Way) -> list[Lever]:
    """The switches without those that are not needed to get nearly as far as all (`goal`), the dearest tried first."""
    kept = list(chosen)
    for lever in reversed(chosen):
        rest = [other for other in kept if other is not lever]
        if enough(track, goal, rest):
            kept = rest
    return kept


def enough(track: Track, goal: Way, rest: Sequence[Lever]) -> bool:
    """Whether the rest of the switches get nearly as far as all of them."""
    changes = merged(rest)
    if goal.batch is None and goal.length is None:
        need = track.need(changes)
        return need is not None and goal.need is not None and need.bytes <= (1 + SLACK) * goal.need.bytes
    for reach in (goal.batch, goal.length):
        near = nearly(reach) if reach else 0
        if reach is not None and near and track.stand_at(changes, reach.knob, near).fits not in FITTING:
            return False
    return True


def nearly(reach: Reach) -> int:
    """The reach less the slack, in whole steps."""
    return max(int(reach.likely * (1 - SLACK)) // reach.least, 1) * reach.least if reach.likely else 0


def way(track: Track, chosen: Sequence[Lever], near: Way | None = None) -> Way:
    """What these switches cost, what the job then needs, and how far it can likely go; `near` is a way that goes about as far."""
    changes = merged(chosen)
    job = track.job
    on, off = [lever.remedy for lever in chosen if not lever.off], [lever.remedy for lever in chosen if lever.off]
    hosts = [lever.host for lever in chosen if lever.host is not None]
    carded = any(ledger.usable for ledger in job.ledgers)
    return Way(
        remedies=tuple(on),
        without=tuple(off),
        dials=tuple((lever.remedy, lever.to) for lever in chosen if lever.to is not None),
        knobs=tuple(changes.items()),
        results=max((lever.results for lever in chosen), key=RESULTS.index, default="keep"),
        speed=speed(chosen),
        need=track.need(changes),
        fits=track.fits(changes),
        batch=track.batch(changes, near.batch if near else None) if carded else None,
        length=track.length(changes, near.length if near else None) if carded else None,
        card=None if carded else smallest_card(track, chosen),
        host_memory=max(hosts, key=lambda size: size.bytes) if hosts else None,
    )


def told(one: Way, track: Track) -> Way:
    """A way that is shown: with how far it surely goes, and its edits."""
    changes = dict(one.knobs)
    batch, length = (reach and track.surely(changes, reach) for reach in (one.batch, one.length))
    return replace(one, batch=batch, length=length, edits=edits_of(changes, track.job) or () if changes else ())


def speed(chosen: Sequence[Lever]) -> str:
    """The slowest of them; faster only where nothing among them slows down."""
    words = [lever.speed for lever in chosen]
    slowed = [word for word in words if word in ("slower", "much_slower")]
    return max(slowed, key=SPEED.index) if slowed else "faster" if "faster" in words else "same"


def smallest_card(track: Track, chosen: Sequence[Lever]) -> int | None:
    """The smallest class of cards that holds the job, in GB as sold; None where none does or too little is known."""
    classes = sizes_sold()
    low, high = 0, len(classes)
    while low < high:  # a larger card holds whatever a smaller one holds
        middle = (low + high) // 2
        fitting = track.fits({**merged(chosen), "hardware.capacity": classes[middle][1]}) in FITTING
        low, high = (low, middle) if fitting else (middle + 1, high)
    return classes[low][0] if low < len(classes) else None


# -- which ways are worth a line


def best(found: Sequence[Way]) -> list[Way]:
    """The ways beside the first that go further than it and that no other outdoes, the cheapest first."""
    base, *others = list(dict.fromkeys(found))
    further = [one for one in others if beyond(one, base)]
    worth = [one for one in further if not any(outdoes(other, one) for other in further if other is not one)]
    return sorted(worth, key=price)[: MOST_WAYS - 1]


def price(one: Way) -> tuple[int, int, int]:
    return RESULTS.index(one.results), SPEED.index(one.speed), len(one.remedies)


def figures(one: Way) -> tuple[float, float, float]:
    """What is compared: batch, length, and (the smaller the better) the need."""
    batch, length = (reach.likely if reach else 0 for reach in (one.batch, one.length))
    measured = one.batch is not None or one.length is not None
    return batch, length, 0.0 if measured or one.need is None else -float(one.need.bytes)


def beyond(one: Way, other: Way) -> bool:
    return any(mine > its for mine, its in zip(figures(one), figures(other), strict=True))


def outdoes(other: Way, one: Way) -> bool:
    """Whether the other gets at least as far at no higher price; of equals the one with fewer switches stays."""
    if beyond(one, other) or any(dear > mine for dear, mine in zip(price(other), price(one), strict=True)):
        return False
    return (figures(other), price(other)) != (figures(one), price(one)) or other.remedies < one.remedies
