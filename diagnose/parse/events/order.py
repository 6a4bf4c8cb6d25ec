"""Which failure came first: in the order of lines, unless time stamps or a launcher's summary say otherwise.

Lines stand in the order in which they were collected, for one file nearly that in which they were written. Time stamps overrule it where
their precision leaves no doubt. torchrun's summary has, to the second, when it noticed each failure: it decides between logs without a
common order, and inside one log only if the failures are more than a second apart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.facts import Fact
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from diagnose.parse.events.log_events import PlacedMessage
    from diagnose.parse.text.lines import Page

REACH = 200  # characters of a line in which its time stamp is sought
_CLOCK = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<part>\d{1,9}))?"
_STAMPS = {
    "date": lazy_compile(rf"(?P<day>\d{{4}}[-/]\d\d[-/]\d\d)[T _]{_CLOCK}"),
    "glog": lazy_compile(rf"\b[IWEF](?P<day>\d{{4}}) {_CLOCK}"),
    "short": lazy_compile(rf"\b(?:ERROR|WARNING|INFO|CRITICAL) (?P<day>\d\d-\d\d) {_CLOCK}"),
    "syslog": lazy_compile(rf"^(?P<day>[A-Z][a-z]{{2}} [ \d]\d) {_CLOCK}"),
}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ROOT = lazy_compile(rb"Root Cause \(first observed failure\):(?:(?!Root Cause)[\s\S]){0,400}?rank\s*: (\d{1,6})")
_TABLE = lazy_compile(
    r"time {1,8}: {0,2}\d{4}-\d\d-\d\d_(\d\d):(\d\d):(\d\d)\s{1,80}host {1,8}:[^\n]{0,200}\s{1,80}rank {1,8}: {0,2}(\d{1,6})"
)


class Stamp(NamedTuple):
    """When a line was written: day (an increasing number), seconds of the day, precision in seconds. Stamps of different kinds come from
    different clocks."""

    kind: str
    day: int
    seconds: float
    within: float

    def precedes(self, later_stamp: Stamp) -> bool:
        """Whether this is earlier beyond the precision of both."""
        if self.kind != later_stamp.kind:
            return False
        if self.day != later_stamp.day:
            return self.day < later_stamp.day
        return self.seconds + self.within <= later_stamp.seconds


def stamp(line: str) -> Stamp | None:
    """The time stamp near the start of a line."""
    for kind, says in _STAMPS.items():
        match = says.search(line[:REACH])
        if match is None:
            continue
        part = match["part"] or ""
        seconds = int(match["h"]) * 3600 + int(match["m"]) * 60 + int(match["s"]) + (float(f"0.{part}") if part else 0)
        return Stamp(kind, _day(match["day"]), seconds, 10.0 ** -len(part))
    return None


def _day(text: str) -> int:
    if text[:3] in _MONTHS:
        return (_MONTHS.index(text[:3]) + 1) * 100 + int(text[4:])
    return int(re.sub(r"\D", "", text))


def sort_by_time(
    failures: Sequence[PlacedMessage], root_rank_named: int | None, pages: Sequence[Page], one_log: bool
) -> list[PlacedMessage]:
    """The failures in the order they happened. `named`: the rank that the launcher's summary calls the first."""
    noticed = dict(_launcher_times(pages)) if root_rank_named is not None else {}
    stamped = [(failure, stamp(failure.line_start)) for failure in failures]
    placed: list[tuple[PlacedMessage, Stamp | None]] = []
    for failure, when in stamped:
        at = len(placed)
        while (
            at
            and placed[at - 1][0].attempt.number == failure.attempt.number
            and _precedes(failure, when, *placed[at - 1], noticed, root_rank_named, one_log)
        ):
            at -= 1
        placed.insert(at, (failure, when))
    return [failure for failure, _ in placed]


def _precedes(
    failure: PlacedMessage,
    when: Stamp | None,
    earlier: PlacedMessage,
    earlier_when: Stamp | None,
    noticed: dict[int, int],
    named: int | None,
    one_log: bool,
) -> bool:
    """Whether a failure that stands behind another came before it."""
    if (
        when is not None
        and earlier_when is not None
        and when.kind == earlier_when.kind
        and when.precedes(earlier_when) is not earlier_when.precedes(when)
    ):
        return when.precedes(earlier_when)
    ranks = (failure.prefix.rank, earlier.prefix.rank)
    if named is None or ranks[0] != named or ranks[1] == named:
        return False
    if not one_log and failure.page.source != earlier.page.source:
        return True
    first, second = noticed.get(named), noticed.get(ranks[1] if ranks[1] is not None else -1)
    return first is not None and second is not None and second - first > 1


def _launcher_times(pages: Sequence[Page]) -> Iterator[tuple[int, int]]:
    """Rank and second of the day of every failure in torchrun's summary."""
    for page in pages:
        raw = page.excerpt.raw
        for at in page.excerpt.spots.places(b"Root Cause (first observed failure)")[:1]:
            for match in _TABLE.finditer(raw[max(0, at - (16 << 10)) : at + 1024].decode("utf-8", "replace")):
                yield int(match[4]), int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])


def root_rank(pages: Iterable[Page]) -> Iterator[Fact]:
    """The rank that torchrun names as the first to fail."""
    for page in pages:
        match = _ROOT.search(page.excerpt.raw) if page.excerpt.spots.has(b"Root Cause (first observed failure)") else None
        if match is not None:
            yield Fact("log.root_rank", int(match[1]), "log", page.witness(page.excerpt.offset + match.start(1)))
            return
