"""Whether the memory that a log prints over and over grows all the way, or only until it is warm."""

from __future__ import annotations

import re

#: What trainers print of the card's memory with every log line.
_PRINTED = re.compile(
    rb"'memory/max_(?:active|allocated|mem_active|mem_allocated)[^']{0,24}': ?'?([\d.]{1,12})"
    rb"|GPU memory usage while training: ([\d.]{1,12}) ?GB"
    rb"|'(?:max_)?memory(?:\(GiB\)|_allocated)': ?'?([\d.]{1,12})"
)
#: DeepSpeed's line; during set-up it is printed between steps of the set-up, later between steps of training.
_SEEN = re.compile(rb"\bMA ([\d.]{1,12}) GB\s+Max_MA")
_TRAINS = re.compile(rb"'loss'|it/s|s/it|\bstep=\d")
#: Fewer prints than this show no trend.
_FEWEST = 5
#: Growth that each third of the prints must show over the one before: less is noise, or a plateau.
_GROWTH = 1.03


def of_lines(raw: bytes) -> bool | None:
    """True: it grows to the end; False: it does not; None: the log prints too little to tell."""
    printed = [float(next(filter(None, match.groups()))) for match in _PRINTED.finditer(raw) if _is_number(match)][-600:]
    if len(printed) < _FEWEST:
        printed = _between_steps(raw)[-600:]
    if len(printed) < _FEWEST:
        return None
    from statistics import fmean  # few logs come this far, and it costs a millisecond

    third = len(printed) // 3
    early, middle, late = fmean(printed[:third]), fmean(printed[third:-third]), fmean(printed[-third:])
    return middle >= early * _GROWTH and late >= middle * _GROWTH


def _between_steps(raw: bytes) -> list[float]:
    """DeepSpeed's figures that have a step of training before them, since the figure before."""
    found, before = [], 0
    for match in _SEEN.finditer(raw):
        if _is_number(match) and _TRAINS.search(raw, before, match.start()):
            found.append(float(match[1]))
        before = match.end()
    return found


def _is_number(match: re.Match[bytes]) -> bool:
    found: bytes = next(filter(None, match.groups()))
    return found.count(b".") <= 1 and found != b"."
