"""Which failure came first: the order of lines, unless time stamps or a launcher's summary say otherwise.

Lines stand in the order in which they were collected, which for one file is close to the order in which they were written. A time
stamp overrules it where its own precision leaves no doubt. torchrun's summary has times of one second, of when it noticed: it
decides between logs that have no order, and within one log only where it saw the one failure more than a second before the other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.facts import Fact
from diagnose.parse.text.lazy_re import later
from diagnose.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from diagnose.parse.events.log_events import Seen
    from diagnose.parse.text.lines import Page

REACH = 200  # characters of a line in which its time stamp is sought
_CLOCK = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<part>\d{1,9}))?"
_STAMPS = {
    "date": later(rf"(?P<day>\d{{4}}[-/]\d\d[-/]\d\d)[T _]{_CLOCK}"),
    "glog": later(rf"\b[IWEF](?P<day>\d{{4}}) {_CLOCK}"),
    "short": later(rf"\b(?:ERROR|WARNING|INFO|CRITICAL) (?P<day>\d\d-\d\d) {_CLOCK}"),
    "syslog": later(rf"^(?P<day>[A-Z][a-z]{{2}} [ \d]\d) {_CLOCK}"),
}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ROOT = later(rb"Root Cause \(first observed failure\):(?:(?!Root Cause)[\s\S]){0,400}?rank\s*: (\d{1,6})")
_TABLE = later(r"time {1,8}: {0,2}\d{4}-\d\d-\d\d_(\d\d):(\d\d):(\d\d)\s{1,80}host {1,8}:[^\n]{0,200}\s{1,80}rank {1,8}: {0,2}(\d{1,6})")


class Stamp(NamedTuple):
    """When a line was written: day (as a number that grows), seconds of the day, and how exactly. Each kind has a clock of its own."""

    kind: str
    day: int
    seconds: float
    within: float

    def precedes(self, other: Stamp) -> bool:
        """Whether this is earlier beyond the precision of both."""
        if self.kind != other.kind:
            return False
        if self.day != other.day:
            return self.day < other.day
        return self.seconds + self.within <= other.seconds


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


def in_order(failures: Sequence[Seen], named: int | None, pages: Sequence[Page], one_log: bool) -> list[Seen]:
    """The failures as they happened. `named`: the rank that the launcher's summary names as the first."""
    noticed = dict(_noticed(pages)) if named is not None else {}
    held = [(one, stamp(one.line_start)) for one in failures]
    placed: list[tuple[Seen, Stamp | None]] = []
    for one, when in held:
        at = len(placed)
        while (
            at and placed[at - 1][0].attempt.number == one.attempt.number and _before(one, when, *placed[at - 1], noticed, named, one_log)
        ):
            at -= 1
        placed.insert(at, (one, when))
    return [one for one, _ in placed]


def _before(
    one: Seen, when: Stamp | None, other: Seen, then: Stamp | None, noticed: dict[int, int], named: int | None, one_log: bool
) -> bool:
    """Whether a failure that stands behind another came before it."""
    if when is not None and then is not None and when.kind == then.kind and when.precedes(then) is not then.precedes(when):
        return when.precedes(then)
    ranks = (one.prefix.rank, other.prefix.rank)
    if named is None or ranks[0] != named or ranks[1] == named:
        return False
    if not one_log and one.page.source != other.page.source:
        return True
    first, second = noticed.get(named), noticed.get(ranks[1] if ranks[1] is not None else -1)
    return first is not None and second is not None and second - first > 1


def _noticed(pages: Sequence[Page]) -> Iterator[tuple[int, int]]:
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
