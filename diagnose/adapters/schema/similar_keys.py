"""The real key that a misspelt one resembles: one slip of the pen away, or the same letters parted otherwise."""

from __future__ import annotations

from collections.abc import Iterable

#: Below this many letters one slip makes another word (lr, tp, seed): of so short a key nothing is said unless it is surely unknown.
SHORTEST = 5


class Likeness:
    """Real keys by their length, so that a key is compared with few of them. Building it costs a look at each."""

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
        """The real key that `name` is a slip of; empty where there is none."""
        same = self._plain.get(_letters(name), "")
        if same:
            return same
        near = (real for size in (0, -1, 1) for real in self._lengths.get(len(name) + size, ()) if is_one_slip(name, real))
        return next(near, "")

    def unless_short(self, name: str) -> str:
        """The same of a key that may well be the user's own: nothing of short ones, nor of a block that real keys lie in."""
        if name in self._blocks or len(_last_name(name)) < SHORTEST:
            return ""
        near = self.of(name)
        return near if len(_last_name(near)) >= SHORTEST else ""


def _last_name(name: str) -> str:
    return name.rpartition(".")[2]


def _letters(name: str) -> str:
    """The letters of a key: perDeviceTrainBatchSize is per_device_train_batch_size, by whatever it is parted."""
    return name.replace("_", "").replace("-", "").lower()


def is_one_slip(first: str, second: str) -> bool:
    """Does a letter too many, too few, another or two exchanged part the two? Numbers do not count: beta2 is no slip of beta1."""
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
