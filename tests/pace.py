"""A limit of processor time that a slow or busy machine does not break: it is held against a peer that runs in the same moment."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import cases

#: Processor seconds of one run of the peer on the machine on which the limits were set, at rest.
PEER = 0.06


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done inside takes at most so many processor seconds of the machine on which the limits were set.

    The peer is run only where that is exceeded. What hangs or grows with the square is beyond any such limit by far.
    """
    start = time.process_time()
    with cases.advice_at_once():
        yield
    spent = time.process_time() - start
    if spent > seconds:
        slower = max(1.0, max(_peer() for _ in range(3)) / PEER)
        assert spent <= seconds * slower, f"{spent:.1f} s of {seconds * slower:.1f}; this machine takes {slower:.1f} times as long"


def _peer() -> float:
    """Processor seconds of the kind of work that reading a log is: patterns over text, and what they find counted."""
    text = "\n".join(f"step {number}: loss {number / 7:.3f}, memory {number % 80}.{number % 97} GiB" for number in range(20_000))
    start = time.process_time()
    counted: dict[str, int] = {}
    for _ in range(2):
        for found in re.finditer(r"(?i)\b(?:memory|reserved)\s+(\d+(?:\.\d+)?) GiB", text):
            counted[found[1]] = counted.get(found[1], 0) + 1
    return time.process_time() - start
