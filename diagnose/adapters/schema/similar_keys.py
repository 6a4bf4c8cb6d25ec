"""Finds the real key that a misspelt one resembles: one typing error away, or the same letters with other separators."""

from __future__ import annotations

from collections.abc import Iterable

#: Letters below which one typing error often gives another valid word (lr, tp, seed).
SHORTEST = 5


class Likeness:
    """Index of real keys by length, so that a key is compared with few of them."""

    __slots__ = ("_blocks", "_lengths", "_plain")

    def __init__(self, real: Iterable[str]) -> None:
        self._lengths: dict[int, list[str]] = {}
        self._plain: dict[str, str] = {}
        self._blocks: set[str] = set()
        for name in sorted(real):
            self._lengths.setdefault(len(name), []).append(name)
            self._plain.setdefault(_letters(name), name)
            self._blocks |= {name[:at] for at, letter in enumerate(name) if letter == "."}

    def of(self, name: str) -> str:
        """The real key that `name` misspells; empty if none."""
        same = self._plain.get(_letters(name), "")
        if same:
            return same
        near = (real for size in (0, -1, 1) for real in self._lengths.get(len(name) + size, ()) if is_one_slip(name, real))
        return next(near, "")

    def unless_short(self, name: str) -> str:
        """Like `of`, for a key that may be the user's own: empty for short keys and for blocks of real keys."""
        if name in self._blocks or len(_last_name(name)) < SHORTEST:
            return ""
        near = self.of(name)
        return near if len(_last_name(near)) >= SHORTEST else ""


def _last_name(name: str) -> str:
    return name.rpartition(".")[2]


def _letters(name: str) -> str:
    """The letters without separators: perDeviceTrainBatchSize equals per_device_train_batch_size."""
    return name.replace("_", "").replace("-", "").lower()


def is_one_slip(first: str, second: str) -> bool:
    """Whether one insertion, deletion, substitution or transposition separates the two; digits never do (beta1, beta2)."""
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    end = 0
    while end < min(len(first), len(second)) - start and first[-1 - end] == second[-1 - end]:
        end += 1
    a, b = first[start : len(first) - end], second[start : len(second) - end]
    if a.isdigit() or b.isdigit():
        return False
    return len(a) + len(b) == 1 or (len(a) == len(b) == 1) or (len(a) == 2 and a == b[::-1])
