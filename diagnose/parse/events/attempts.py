"""Attempts: where a job was started again in one log, by its launcher, its scheduler or a person.

A start counts only after a failure: what several nodes or ranks print when they begin is one start. A launcher or scheduler restarts the
same job, so that the first of its attempts tells why it failed; a run that a person appended to the file is another job, and what came
before is history.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.scan.excerpts import Hit

#: Grammars of rules/messages.yaml whose hits are starts: of a launcher's own, and of a launch.
RESTART, LAUNCH, TRAINING = "restart", "launch", "training"
_NEVER = 1 << 62


class Attempt(NamedTuple):
    """One attempt in one input: its number, its start and end (offsets), the number of the launch that it belongs to."""

    number: int
    start: int
    end: int
    launch: int


#: The attempt of a log that nobody started again.
ONLY = Attempt(1, 0, _NEVER, 1)


class Attempts:
    """The attempts of one input, built up while failures are added in order."""

    def __init__(self, hits: Sequence[Hit], first: int | None = None) -> None:
        """`first`: the number of the attempt that the path of the input names."""
        self._starts = [(hit.offset, hit.grammar) for hit in hits if hit.grammar in (RESTART, LAUNCH, TRAINING)]
        self._offsets = [offset for offset, _ in self._starts]
        self._all = [Attempt(first or 1, 0, _NEVER, 1)]
        self._failed = -1

    def learn(self, offset: int) -> None:
        """Add a failure at this offset, behind all added before."""
        between = self._starts[bisect_right(self._offsets, self._failed) : bisect_right(self._offsets, offset)] if self._failed >= 0 else []
        if between:
            last, start = self._all[-1], between[0][0]
            launched = any(kind == LAUNCH for _, kind in between) or all(kind == TRAINING for _, kind in between)
            self._all[-1] = last._replace(end=start)
            self._all.append(Attempt(last.number + 1, start, _NEVER, last.launch + launched))
        self._failed = offset

    def at(self, offset: int) -> Attempt:
        """The attempt that an offset belongs to."""
        last = self._all[-1]
        return last if last.start <= offset else next(attempt for attempt in reversed(self._all) if attempt.start <= offset)

    def close(self) -> None:
        """End of the failures: an attempt started after the last one has none."""
        start = next((offset for offset in self._offsets if offset > self._failed), None) if self._failed >= 0 else None
        if start is not None:
            last = self._all[-1]
            self._all[-1] = last._replace(end=start)
            self._all.append(Attempt(last.number + 1, start, _NEVER, last.launch + 1))

    @property
    def last(self) -> Attempt:
        return self._all[-1]
