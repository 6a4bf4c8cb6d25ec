"""Spans of releases: the one syntax (`>=4.53 <4.56`) and the one evaluation for what holds in some releases of a library only."""

from __future__ import annotations

import re
from functools import lru_cache

from diagnose.records import NamedTuple
from diagnose.ternary import Truth
from diagnose.units import Version


class ReleaseSpan(NamedTuple):
    """The releases from `low` to `high`, both included, and below `before`, which is not; None: no bound.

    A release that is not known for sure is a span as well: the releases that are still possible.
    """

    low: Version | None = None
    high: Version | None = None
    before: Version | None = None

    @property
    def bounded(self) -> bool:
        """Whether it leaves any release out."""
        return self.low is not None or self.high is not None or self.before is not None

    def covers(self, possible: ReleaseSpan) -> Truth:
        """Whether the span holds all of the releases that are possible (yes), none (no) or some of them (unknown)."""
        first, last = possible.low, possible.high or possible.before
        if self.low is not None and last is not None and (last < self.low or (last == self.low and possible.high is None)):
            return False
        if first is not None and ((self.high is not None and self.high < first) or (self.before is not None and self.before <= first)):
            return False
        inside = self.low is None or (first is not None and self.low <= first)
        inside = inside and (self.high is None or (last is not None and last <= self.high))
        within = self.before is None or (last is not None and (last < self.before or (last == self.before and possible.high is None)))
        return True if inside and within else None

    def holds(self, release: Version | None) -> Truth:
        """Whether a release lies in the span; unknown for an unknown one."""
        return None if release is None else self.covers(ReleaseSpan(release, release))


#: Every release.
EVERY = ReleaseSpan()


@lru_cache(maxsize=1024)
def releases(text: str) -> ReleaseSpan:
    """The span that a table writes: bounds `>=`, `<=`, `<` parted by blanks; none: every release. Raises ValueError for anything else."""
    bounds: dict[str, Version] = {}
    for part in text.split():
        match = re.fullmatch(r"(>=|<=|<)(\d\S*)", part)
        if match is None or match[1] in bounds:
            raise ValueError(f"not a span of releases: {text}")
        bounds[match[1]] = Version(match[2])
    return ReleaseSpan(bounds.get(">="), bounds.get("<="), bounds.get("<"))


def from_data(since: object = None, until: object = None) -> ReleaseSpan:
    """The span of a table's `since` and `until`: the first and the last release that belong to it."""
    return ReleaseSpan(*(None if text is None else Version(str(text)) for text in (since, until)))
