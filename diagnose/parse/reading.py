"""All that was read from the logs of one job."""

from __future__ import annotations

from diagnose.facts import Fact, Input, Notice, Witness
from diagnose.parse.event import Event
from diagnose.record import record


@record
class Command:
    """A launch command that the log echoes (`set -x`, a shell prompt, a launcher's own echo): its text and its line."""

    text: str
    witness: Witness


@record
class Reading:
    """`events` in the order they happened; `root` is the index of the first fatal failure (of the first, where none was fatal)."""

    inputs: tuple[Input, ...] = ()
    events: tuple[Event, ...] = ()
    facts: tuple[Fact, ...] = ()
    commands: tuple[Command, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def root(self) -> int | None:
        causes = [i for i, event in enumerate(self.events) if event.consequence_of is None]
        return next((i for i in causes if self.events[i].fatal), causes[0] if causes else None)
