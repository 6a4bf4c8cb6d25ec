"""Selects, among several commands, the one that failed: by the script in the log's traceback, or by the echoed command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from diagnose.parse.model.reading import Reading

if TYPE_CHECKING:
    from diagnose.adapters.documents.framework_of_command import StartedProgram

#: Number of last echoed commands that are compared with those of a script.
MAX_ECHOES = 16
#: Folders of installed packages: a train.py in them is not the user's script.
_INSTALLED = ("site-packages/", "dist-packages/")


def failed_programs(programs: Sequence[StartedProgram], reading: Reading) -> list[StartedProgram]:
    """Drop the trainers that, by the log, did not fail; keep all if the log does not tell."""
    trainers = [start for start in programs if start.trains and _script_name(start).endswith(".py")]
    if len(trainers) < 2:
        return list(programs)
    echoed = [start for start in trainers if start.origin == "log"]
    scripts = _traceback_scripts(reading)
    in_traceback = {_script_name(start) for start in trainers} & scripts
    excluded = [start for start in trainers if in_traceback and _script_name(start) not in in_traceback]
    last = _last_echoed_script(echoed, reading)
    if not in_traceback and any(_script_name(start) == last for start in trainers if start.origin != "log"):
        excluded = [start for start in trainers if start.origin != "log" and _script_name(start) != last]
    remaining = _without(trainers, excluded)
    excluded += _contradicting_echo(remaining, [start for start in remaining if start.origin == "log"])
    return _without(programs, excluded)


def _without(programs: Iterable[StartedProgram], excluded: Iterable[StartedProgram]) -> list[StartedProgram]:
    ids = {id(start) for start in excluded}
    return [start for start in programs if id(start) not in ids]


def _script_name(start: StartedProgram) -> str:
    return start.launch.program.replace("\\", "/").rpartition("/")[2]


def _traceback_scripts(reading: Reading) -> set[str]:
    """File names of the user's scripts in the failure's traceback."""
    event = None if reading.root is None else reading.events[reading.root]
    files = [frame.file.replace("\\", "/") for frame in event.frames] if event is not None else []
    return {file.rpartition("/")[2] for file in files if not any(folder in file for folder in _INSTALLED)}


def _last_echoed_script(echoed: Sequence[StartedProgram], reading: Reading) -> str:
    """The script of the last command echoed before the failure."""
    event = None if reading.root is None else reading.events[reading.root]
    end = event.evidence[0].line if event is not None and event.evidence else 0
    earlier = [start for start in echoed if start.witness is not None and (not end or start.witness.line <= end)]
    return _script_name(earlier[-1]) if earlier else ""


def _contradicting_echo(trainers: Sequence[StartedProgram], echoed: Sequence[StartedProgram]) -> list[StartedProgram]:
    """Commands of the echoed script whose options contradict the echo more than the best match does."""
    programs = {_script_name(echo) for echo in echoed}
    candidates = [start for start in trainers if start.origin != "log" and _script_name(start) in programs]
    echoes = echoed[-MAX_ECHOES:]
    counts = [
        min((_contradictions(start, echo) for echo in echoes if _script_name(echo) == _script_name(start)), default=0)
        for start in candidates
    ]
    return [start for start, count in zip(candidates, counts, strict=True) if count > min(counts)]


def _contradictions(start: StartedProgram, echo: StartedProgram) -> int:
    """Number of options that both set, for certain, to different values."""
    echoed = {flag.name: flag.value for flag in echo.launch.flags if flag.sure}
    return sum(flag.sure and flag.name in echoed and flag.value != echoed[flag.name] for flag in start.launch.flags)
