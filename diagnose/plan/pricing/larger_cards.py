"""Sentences about new hardware: the class of card that holds the job, or the number of cards."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose.catalogue import sizes_sold
from diagnose.facts import Value
from diagnose.phrases import Text, phrase
from diagnose.plan.pricing.candidate_values import CAPACITY, WORLD
from diagnose.plan.pricing.context import Job
from diagnose.units import show


def told(changes: Mapping[str, Value], job: Job) -> Text | None:
    """Which class of card (GB as sold) holds the job, with need and usable memory; or that even this class does not."""
    after, gb = job.bench.after(changes), sold_as(changes)
    need, room = job.bench.need(after), job.bench.room(after)
    if need is None or room is None or gb is None:
        return None
    holds = job.bench.fits(changes) in ("yes", "likely")
    return phrase("plan.larger_card" if holds else "plan.no_card", gb=gb, need=show(need.bytes), usable=show(room.bytes))


def titled(title: Text, changes: Mapping[str, Value]) -> Text:
    """The remedy's title with the class of card or the number of cards."""
    gb, cards = sold_as(changes), changes.get(WORLD)
    if gb is not None:
        return phrase("plan.card_of", title=title, gb=gb)
    return phrase("plan.cards_of", title=title, cards=cards) if isinstance(cards, int) else title


def sold_as(changes: Mapping[str, Value]) -> int | None:
    """The marketed size in GB of cards with this capacity."""
    return next((gb for gb, size in sizes_sold() if size == changes.get(CAPACITY)), None)
