"""How much a run of the tests draws: `make test` a sample, `make test-all` (SWEEP=1) everything."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: Set by `make test-all`: every example and every value.
SWEEP = os.environ.get("SWEEP", "") not in ("", "0")


def examples(number: int) -> int:
    """Examples of a property test: all of them in a sweep, else a fifth, but not fewer than six."""
    return number if SWEEP else min(number, max(6, number // 5))


def sample(values: Sequence[T], number: int) -> list[T]:
    """All values in a sweep, else so many of them, evenly spread."""
    if SWEEP or len(values) <= number:
        return list(values)
    return [values[place * len(values) // number] for place in range(number)]


def share(number: int) -> int:
    """The size of an input made to cost time: all of it in a sweep, else an eighth, where what grows with the square still costs enough."""
    return number if SWEEP else number // 8
