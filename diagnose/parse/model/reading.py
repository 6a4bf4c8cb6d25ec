"""All that was read from the logs of one job."""

from __future__ import annotations

from typing import Literal

from diagnose.facts import Fact, Input, Notice, Witness
from diagnose.parse.model.event import Event
from diagnose.records import NamedTuple

Form = Literal["values", "rows", "yaml", "overrides"]


class Command(NamedTuple):
    """A launch command that the log echoes (`set -x`, a shell prompt, a launcher's own echo): its text and its line."""

    text: str
    witness: Witness


class Dump(NamedTuple):
    """Settings that a program printed whole: its text without prefixes, and the place of the first character of each of its lines.

    `form`: values (JSON, a dict or a call as Python prints them), rows (a key, dots, a value), yaml, overrides (a list of
    key=value). `framework` is the stem of a file of rules/frameworks, empty where only the keys tell. `effective` is false for
    what was set up on the machine, which the run need not have used.
    """

    form: Form
    framework: str
    text: str
    lines: tuple[Witness, ...]
    effective: bool = True


class Reading(NamedTuple):
    """`events` in the order they happened; `root` is the index of the first fatal failure (of the first, where none was fatal).

    `since`: the first attempt of the launch that is diagnosed; what failed before it is the history of a file with several runs.
    """

    inputs: tuple[Input, ...] = ()
    events: tuple[Event, ...] = ()
    facts: tuple[Fact, ...] = ()
    commands: tuple[Command, ...] = ()
    dumps: tuple[Dump, ...] = ()
    notices: tuple[Notice, ...] = ()
    since: int = 1

    @property
    def root(self) -> int | None:
        causes = [i for i, event in enumerate(self.events) if event.consequence_of is None]
        fatal = [i for i in causes if self.events[i].fatal]
        latest = [i for i in fatal if self.events[i].attempt >= self.since]
        return next(iter(latest or fatal or causes), None)
