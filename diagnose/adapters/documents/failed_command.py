"""Of several commands the one that failed, where the log tells: by the program that its traceback runs through, or by its echo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diagnose.adapters.documents.started_programs import Started
from diagnose.parse.model.reading import Reading

#: Echoed commands that a script's are compared with: the last ones.
MOST = 16
#: Folders of installed packages: their train.py is nobody's script.
_INSTALLED = ("site-packages/", "dist-packages/")


def those_that_failed(programs: Sequence[Started], reading: Reading) -> list[Started]:
    """The launches without those of trainers that the log shows not to be the one that failed; all, where it tells nothing."""
    trainers = [start for start in programs if start.trains and _program(start).endswith(".py")]
    if len(trainers) < 2:
        return list(programs)
    echoed = [start for start in trainers if start.origin == "log"]
    scripts = _passed(reading)
    in_traceback = {_program(start) for start in trainers} & scripts
    excluded = [start for start in trainers if in_traceback and _program(start) not in in_traceback]
    last = _last(echoed, reading)
    if not in_traceback and any(_program(start) == last for start in trainers if start.origin != "log"):
        excluded = [start for start in trainers if start.origin != "log" and _program(start) != last]
    remaining = _without(trainers, excluded)
    excluded += _unlike(remaining, [start for start in remaining if start.origin == "log"])
    return _without(programs, excluded)


def _without(programs: Iterable[Started], excluded: Iterable[Started]) -> list[Started]:
    ids = {id(start) for start in excluded}
    return [start for start in programs if id(start) not in ids]


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
    earlier = [start for start in echoed if start.witness is not None and (not end or start.witness.line <= end)]
    return _program(earlier[-1]) if earlier else ""


def _unlike(trainers: Sequence[Started], echoed: Sequence[Started]) -> list[Started]:
    """Of a script's commands that start the echoed program those whose options contradict the echo more than others do."""
    programs = {_program(echo) for echo in echoed}
    candidates = [start for start in trainers if start.origin != "log" and _program(start) in programs]
    echoes = echoed[-MOST:]
    counts = [
        min((_contradictions(start, echo) for echo in echoes if _program(echo) == _program(start)), default=0) for start in candidates
    ]
    return [start for start, count in zip(candidates, counts, strict=True) if count > min(counts)]


def _contradictions(start: Started, echo: Started) -> int:
    """Options that both give, with certainty, and differently."""
    echoed = {flag.name: flag.value for flag in echo.launch.flags if flag.sure}
    return sum(flag.sure and flag.name in echoed and flag.value != echoed[flag.name] for flag in start.launch.flags)
