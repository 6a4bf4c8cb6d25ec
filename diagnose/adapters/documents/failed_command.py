"""Of several commands the one that failed, where the log tells: by the program that its traceback runs through, or by its echo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diagnose.adapters.documents.started_programs import Started
from diagnose.parse.model.reading import Reading

#: Echoed commands that a script's are compared with: the last ones.
MOST = 16
#: Folders of installed packages: their train.py is nobody's script.
_INSTALLED = ("site-packages/", "dist-packages/")


def those_that_failed(begun: Sequence[Started], reading: Reading) -> list[Started]:
    """The launches without those of trainers that the log shows not to be the one that failed; all, where it tells nothing."""
    trainers = [start for start in begun if start.trains and _program(start).endswith(".py")]
    if len(trainers) < 2:
        return list(begun)
    echoed = [start for start in trainers if start.origin == "log"]
    passed = _passed(reading)
    known = {_program(start) for start in trainers} & passed
    others = [start for start in trainers if known and _program(start) not in known]
    last = _last(echoed, reading)
    if not known and any(_program(start) == last for start in trainers if start.origin != "log"):
        others = [start for start in trainers if start.origin != "log" and _program(start) != last]
    left = _without(trainers, others)
    others += _unlike(left, [start for start in left if start.origin == "log"])
    return _without(begun, others)


def _without(begun: Iterable[Started], others: Iterable[Started]) -> list[Started]:
    gone = {id(start) for start in others}
    return [start for start in begun if id(start) not in gone]


def _program(start: Started) -> str:
    return start.launch.program.replace("\\", "/").rpartition("/")[2]


def _passed(reading: Reading) -> set[str]:
    """The scripts that the failure's traceback runs through."""
    event = None if reading.root is None else reading.events[reading.root]
    files = [frame.file.replace("\\", "/") for frame in event.frames] if event is not None else []
    return {file.rpartition("/")[2] for file in files if not any(folder in file for folder in _INSTALLED)}


def _last(echoed: Sequence[Started], reading: Reading) -> str:
    """The program of the last command that stands before the failure."""
    event = None if reading.root is None else reading.events[reading.root]
    end = event.evidence[0].line if event is not None and event.evidence else 0
    before = [start for start in echoed if start.witness is not None and (not end or start.witness.line <= end)]
    return _program(before[-1]) if before else ""


def _unlike(trainers: Sequence[Started], echoed: Sequence[Started]) -> list[Started]:
    """Of a script's commands that start the echoed program those whose options contradict the echo more than others do."""
    programs = {_program(one) for one in echoed}
    scripted = [start for start in trainers if start.origin != "log" and _program(start) in programs]
    echoes = echoed[-MOST:]
    counts = [min((_contradictions(start, one) for one in echoes if _program(one) == _program(start)), default=0) for start in scripted]
    return [start for start, count in zip(scripted, counts, strict=True) if count > min(counts)]


def _contradictions(start: Started, echo: Started) -> int:
    """Options that both give, with certainty, and differently."""
    said = {flag.name: flag.value for flag in echo.launch.flags if flag.sure}
    return sum(flag.sure and flag.name in said and flag.value != said[flag.name] for flag in start.launch.flags)
