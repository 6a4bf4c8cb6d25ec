"""Estimates over how many cards a job would fit, where the number of processes is unknown."""

from __future__ import annotations

from diagnose.facts import Value
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.fit import sits

#: Cards that one node commonly has, the fewest first.
OF_A_NODE = (2, 4, 8)

#: Facts that count the processes or the cards of a run; none of them: nobody says.
COUNTS = ("parallel.world", "run.cuda_devices", "hardware.count", "actor.gpus")


def is_counted(job: Job) -> bool:
    """Whether any fact states the number of processes or cards."""
    return any(job.book.count(name) is not None for name in COUNTS)


def cards_that_do(job: Job) -> int | None:
    """The smallest number of cards in a node over which the job fits, with the configured sharding or with ZeRO-3; None if the number is
    known or does not matter."""
    book = job.book
    if not job.trains or book.switch("log.on_card") is not True or is_counted(job):
        return None
    divided = (book.count("zero.stage") or 0) >= 1 or book.word("fsdp.sharding") not in (None, "none", "no_shard")
    scheme: dict[str, Value] = {} if divided else {"zero.stage": 3}
    fitting = (cards for cards in OF_A_NODE if sits(job.bench.after({**scheme, "parallel.world": cards})) in ("yes", "likely"))
    return next(fitting, None)
