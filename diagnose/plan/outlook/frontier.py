"""Before a run: how the job fits its card, and the ways of running it with a larger batch or longer rows (a Pareto frontier).

A way is the job with some levers applied. The search tries each lever that raises the limit by itself and, for each price class, the
fewest levers that reach nearly as far as all of the class together. Ways that another dominates (as far at no higher price) are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from diagnose.budget.model.ledger import Ledger
from diagnose.budget.terms.engine_budget import holding
from diagnose.catalogue import sizes_sold
from diagnose.facts import FactBook
from diagnose.plan.choose.ranking import RESULTS, SPEED
from diagnose.plan.edits.editability import edits_of
from diagnose.plan.edits.setting_conflicts import contradictions
from diagnose.plan.edits.verified_edits import verified_ways
from diagnose.plan.outlook.memory_levers import Lever, combine, levers, merged_changes, revertible_levers
from diagnose.plan.pricing import fit
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.growth import FITTING, Track, uncounted
from diagnose.plan.remedies.outlook_values import Outlook, Reach, Seat, Way

#: How many ledgers one search may compute: some tenths of a millisecond each.
MOST_LEDGERS = 400

#: Ways that are shown.
MOST_WAYS = 8

#: A way may reach this share less than all levers of its price together if it does with a lever less.
SLACK = 0.05

#: Price classes from cheap to dear: the worst effect on results and on speed that a lever may have.
PRICES = (("keep", "slower"), ("keep", "much_slower"), ("may_change", "much_slower"), ("change", "much_slower"))


def outlook(job: Job) -> Outlook:
    """How each role fits its card, and the frontier; no frontier for settings that contradict each other."""
    ledgers = job.ledgers
    worst = fit.foremost(ledgers)
    conflicts = contradictions(job.book)
    capacity, usable = (worst.capacity, worst.usable) if worst else (None, None)
    return Outlook(
        card=job.book.word("hardware.gpu"),
        capacity=capacity,
        usable=usable,
        reserved=capacity - usable if capacity and usable else None,
        kept=fit.MARGIN,
        seats=tuple(measure_seat(ledger, job.book) for ledger in ledgers),
        ways=verified_ways(tuple(find_ways(job)), job.documents, job.book) if ledgers and not conflicts else (),
        uncounted=uncounted(ledgers) if capacity else (),
        contradictions=conflicts,
    )


def measure_seat(ledger: Ledger, book: FactBook) -> Seat:
    """How one role fits its card at its peak."""
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
        holds=holding(book, peak) if ledger.role == "engine" and ledger.complete else None,
    )


def find_ways(job: Job) -> list[Way]:
    """The rows of the table of `check`: the job as configured, then it without each costly setting that it could do without, then with each
    remedy that lets it go further, cheapest first. Empty where neither a need nor a limit can be computed."""
    track = Track(job)
    base = measure_way(track, [])
    if base.need is None and base.batch is None and base.length is None:
        return []
    switches = levers(job)
    candidates = [base]
    combination: list[Lever] = []
    for results, speed in PRICES:
        affordable = [lever for lever in switches if costs_at_most(lever, results, speed)]
        untried = [lever for lever in affordable if (lever.remedy,) not in [way.remedies for way in candidates]]
        candidates += [
            measure_way(track, [lever], base) for lever in untried if track.asked < MOST_LEDGERS and gets_further(track, base, [lever])
        ]
        combined = combine(affordable, job, combination)
        if len(combined) > max(len(combination), 1) and track.asked < MOST_LEDGERS:
            goal = measure_way(track, combined, base)
            combination = drop_needless(track, combined, goal)
            candidates.append(goal if len(combination) == len(combined) else measure_way(track, combination, goal))
        if any(way.fits in FITTING and way.speed != "much_slower" for way in candidates):
            break  # a way at this price fits, so dearer ones are of no interest
    reverted_ways = [
        measure_way(track, [lever], base)
        for lever in revertible_levers(job)
        if track.asked < MOST_LEDGERS and track.fits(lever.changes) in FITTING
    ]
    return [completed_way(way, track) for way in (base, *reverted_ways, *undominated_ways(candidates))]


def costs_at_most(lever: Lever, results: str, speed: str) -> bool:
    """Whether the lever's effects on results and speed are at most these."""
    return RESULTS.index(lever.results) <= RESULTS.index(results) and SPEED.index(lever.speed) <= SPEED.index(speed)


def gets_further(track: Track, base: Way, combination: Sequence[Lever]) -> bool:
    """Whether the levers make a batch or length fit that `base` does not; without a card, whether they lower the need."""
    changes = merged_changes(combination)
    blocked = [reach for reach in (base.batch, base.length) if reach is not None and not reach.limit]
    if base.batch is None and base.length is None:
        need = track.need(changes)
        return need is not None and base.need is not None and need.bytes < (1 - SLACK) * base.need.bytes
    return any(track.stand_at(changes, reach.knob, reach.likely + reach.least).fits in FITTING for reach in blocked)


def drop_needless(track: Track, combination: Sequence[Lever], goal: Way) -> list[Lever]:
    """The levers without those that nearly reaching `goal` (the way with all of them) does not need; the dearest is tried first."""
    needed = list(combination)
    for lever in reversed(combination):
        fewer = [candidate for candidate in needed if candidate is not lever]
        if is_nearly_as_good(track, goal, fewer):
            needed = fewer
    return needed


def is_nearly_as_good(track: Track, goal: Way, combination: Sequence[Lever]) -> bool:
    """Whether the levers reach nearly as far as `goal`."""
    changes = merged_changes(combination)
    if goal.batch is None and goal.length is None:
        need = track.need(changes)
        return need is not None and goal.need is not None and need.bytes <= (1 + SLACK) * goal.need.bytes
    for reach in (goal.batch, goal.length):
        target = nearly_reach(reach) if reach else 0
        if reach is not None and target and track.stand_at(changes, reach.knob, target).fits not in FITTING:
            return False
    return True


def nearly_reach(reach: Reach) -> int:
    """The likely reach less SLACK, in whole steps."""
    return max(int(reach.likely * (1 - SLACK)) // reach.least, 1) * reach.least if reach.likely else 0


def measure_way(track: Track, combination: Sequence[Lever], hint: Way | None = None) -> Way:
    """What the levers cost, what the job then needs, and how far it likely reaches. The search starts at `hint`, a way of similar reach."""
    changes = merged_changes(combination)
    job = track.job
    enabled = [lever.remedy for lever in combination if not lever.reverts]
    disabled = [lever.remedy for lever in combination if lever.reverts]
    hosts = [lever.host for lever in combination if lever.host is not None]
    has_card = any(ledger.usable for ledger in job.ledgers)
    return Way(
        remedies=tuple(enabled),
        without=tuple(disabled),
        dials=tuple((lever.remedy, lever.to) for lever in combination if lever.to is not None),
        knobs=tuple(changes.items()),
        results=max((lever.results for lever in combination), key=RESULTS.index, default="keep"),
        speed=slowest_speed(combination),
        need=track.need(changes),
        fits=track.fits(changes),
        batch=track.batch(changes, hint.batch if hint else None) if has_card else None,
        length=track.length(changes, hint.length if hint else None) if has_card else None,
        card=None if has_card else smallest_card(track, combination),
        host_memory=max(hosts, key=lambda size: size.bytes) if hosts else None,
    )


def completed_way(way: Way, track: Track) -> Way:
    """A way with how far it surely reaches and its edits, which only ways that are shown need."""
    changes = dict(way.knobs)
    batch, length = (reach and track.surely(changes, reach) for reach in (way.batch, way.length))
    return replace(way, batch=batch, length=length, edits=edits_of(changes, track.job) or () if changes else ())


def slowest_speed(combination: Sequence[Lever]) -> str:
    """The effect of all levers on speed: the slowest of them, `faster` only if none slows down."""
    words = [lever.speed for lever in combination]
    slowdowns = [word for word in words if word in ("slower", "much_slower")]
    return max(slowdowns, key=SPEED.index) if slowdowns else "faster" if "faster" in words else "same"


def smallest_card(track: Track, combination: Sequence[Lever]) -> int | None:
    """The smallest class of cards that holds the job, in GB as sold; None where none does or too little is known."""
    classes = sizes_sold()
    low, high = 0, len(classes)
    while low < high:  # a bisection: a larger card holds whatever a smaller one holds
        middle = (low + high) // 2
        fits = track.fits({**merged_changes(combination), "hardware.capacity": classes[middle][1]}) in FITTING
        low, high = (low, middle) if fits else (middle + 1, high)
    return classes[low][0] if low < len(classes) else None


# -- which ways are shown


def undominated_ways(candidates: Sequence[Way]) -> list[Way]:
    """The ways that go further than the first and that no other dominates, the cheapest first."""
    base, *others = list(dict.fromkeys(candidates))
    better = [way for way in others if goes_beyond(way, base)]
    undominated = [way for way in better if not any(dominates(other, way) for other in better if other is not way)]
    return sorted(undominated, key=price_rank)[: MOST_WAYS - 1]


def price_rank(way: Way) -> tuple[int, int, int]:
    """Sort key, the cheapest first: the effect on results, then on speed, then the number of remedies."""
    return RESULTS.index(way.results), SPEED.index(way.speed), len(way.remedies)


def reach_figures(way: Way) -> tuple[float, float, float]:
    """The figures that ways are compared by, larger is better: batch, length and, where neither is known, the negative need."""
    batch, length = (reach.likely if reach else 0 for reach in (way.batch, way.length))
    has_reach = way.batch is not None or way.length is not None
    return batch, length, 0.0 if has_reach or way.need is None else -float(way.need.bytes)


def goes_beyond(way: Way, other: Way) -> bool:
    """Whether the way is better than the other in any figure."""
    return any(figure > other_figure for figure, other_figure in zip(reach_figures(way), reach_figures(other), strict=True))


def dominates(other: Way, way: Way) -> bool:
    """Whether `other` reaches at least as far as `way` at no higher price; of two equal ways the first by name dominates."""
    prices, other_prices = price_rank(way), price_rank(other)
    if goes_beyond(way, other) or any(other_price > own_price for other_price, own_price in zip(other_prices, prices, strict=True)):
        return False
    return (reach_figures(other), other_prices) != (reach_figures(way), prices) or other.remedies < way.remedies
