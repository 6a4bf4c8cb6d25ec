"""Parses the values of `triage --fail-on` (conditions on a run's figures) and `--since` (times)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

from diagnose.cluster.cluster_errors import cluster_error

if TYPE_CHECKING:
    from diagnose.cluster.store.result_store import Store

#: The figures of a run, as SQL over the jobs that it found.
FIGURES = {
    "jobs": "count(*)",
    "failed": "count(*) filter (status in ('oom', 'suspected'))",
    "oom": "count(*) filter (status = 'oom')",
    "suspected": "count(*) filter (status = 'suspected')",
    "lookalike": "count(*) filter (status = 'lookalike')",
    "unread": "count(*) filter (status = 'unread')",
    "groups": "count(distinct fingerprint)",
    "gpu-hours": "coalesce(sum(gpu_seconds) filter (status in ('oom', 'suspected')), 0) / 3600",
}
#: What is counted otherwise: failures as a share of all jobs in percent, and groups that no earlier run had.
OTHERS = ("share", "new-groups")
#: Figures that may be given as a share of all jobs (`oom>5%`).
SHARES = ("failed", "oom", "suspected", "lookalike", "unread", "share")

SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
}
CONDITION = re.compile(r"\s*([A-Za-z_-]{1,20})\s*(>=|<=|==|>|<|=)\s*(\d{1,15}(?:\.\d{1,6})?)\s*(%?)\s*")

DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(slots=True)
class Condition:
    """A condition FIGURE SIGN NUMBER as written; `of_all`: the number is a percentage of all jobs."""

    text: str
    figure: str
    sign: str
    number: float
    of_all: bool = False

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Whether a run's figures meet it."""
        value = figures[self.figure]
        if self.of_all and self.figure != "share":
            value = 100 * value / figures["jobs"] if figures["jobs"] else 0.0
        return SIGNS[self.sign](value, self.number)


def parse_condition(text: str) -> Condition:
    """Parse a condition such as `oom>10`, `share>=5%`, `new-groups>0`. Raises UserError."""
    names = (*FIGURES, *OTHERS)
    match = CONDITION.fullmatch(text)
    if match is None:
        raise cluster_error("bad_condition", hint="conditions", text=repr(text[:80]), known=", ".join(names))
    name, sign, number, percent = match[1].lower().replace("_", "-"), match[2], float(match[3]), bool(match[4])
    if name not in names:
        near = get_close_matches(name, names, 1)
        raise cluster_error(
            "no_such_figure", hint="nearest_figure" if near else "figures", name=name, near="".join(near), known=", ".join(names)
        )
    if percent and name not in SHARES:
        raise cluster_error("no_share", hint="shares", name=name, known=", ".join(SHARES))
    return Condition(text.strip(), name, sign, number, percent)


def run_figures(store: Store, run: int) -> dict[str, float]:
    """The figures of a run over all jobs that it found, unchanged ones included."""
    [row] = store.query(f"select {', '.join(FIGURES.values())} from jobs where last_run = ?", [run])
    values = dict(zip(FIGURES, map(float, row), strict=True))
    [(new,)] = store.query("select count(*) from groups where first_run = ?", [run])
    return {**values, "share": 100 * values["failed"] / values["jobs"] if values["jobs"] else 0.0, "new-groups": float(new)}


def parse_since(text: str, now: float) -> float:
    """Parse a time to seconds since 1970: a duration before now (90m, 12h, 7d, 2w) or a date (2026-11-20, 2026-11-20T08:00, local time
    without a zone). Raises UserError."""
    match = DURATION.fullmatch(text.strip().lower())
    if match:
        return now - float(match[1]) * SECONDS[match[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise cluster_error("bad_since", hint="sinces", text=repr(text[:80])) from error
