"""How much a snapshot may ask for, and how its faults are said."""

from __future__ import annotations

from diagnose.errors import UserError
from diagnose.phrases import phrase

LARGEST = 8 << 30  # bytes of pickle that are read of one snapshot
PATIENCE = 600.0  # seconds that reading may take
TEXT = 1 << 20  # bytes of one text
DIGITS = 16  # bytes of one whole number
STACK = 16_000_000  # values that wait at once: torch's own pickler puts a whole trace there before it closes the list
MEMO = 2_000_000  # values that may be referred to again
HELD = 8_000_000  # what is kept of containers and texts, in pieces of about 64 bytes
DEPTH = 64  # containers that are open inside one another: a snapshot has nine
BLOCKS = 8_000_000  # blocks of all segments together
SEGMENTS = 2_000_000
TAIL = 4_096  # larger allocations of a device's history that are kept one by one, up to its end


class Refused(Exception):
    """Why a pickle is not read further: a key of rules/phrases/snapshot.yaml and what it is filled with."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key, values)
        self.key, self.values = key, values


def trouble(key: str, where: str, hint: str = "dump_again", **values: object) -> UserError:
    """A complaint whose sentences are in rules/phrases/snapshot.yaml."""
    return UserError(phrase(f"snapshot.{key}", **values), where, phrase(f"snapshot.{hint}"))
