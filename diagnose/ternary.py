"""Yes, no, unknown, and how they combine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Truth: TypeAlias = "bool | None"  # None: we do not know


def all_of(parts: Iterable[Truth]) -> Truth:
    seen = list(parts)
    if False in seen:
        return False  # one firm no settles it, whatever else is unknown
    return None if None in seen else True


def any_of(parts: Iterable[Truth]) -> Truth:
    seen = list(parts)
    if True in seen:
        return True
    return None if None in seen else False


def not_(part: Truth) -> Truth:
    return None if part is None else not part
