"""Three-valued logic (Kleene): true, false, unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Truth: TypeAlias = "bool | None"  # None: unknown


def all_of(parts: Iterable[Truth]) -> Truth:
    values = list(parts)
    if False in values:
        return False  # whatever is unknown
    return None if None in values else True


def any_of(parts: Iterable[Truth]) -> Truth:
    values = list(parts)
    if True in values:
        return True
    return None if None in values else False


def not_(part: Truth) -> Truth:
    return None if part is None else not part
