"""What the adapters hand on: a part of the configuration with the keys of one framework, and the facts that it translates to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.settings import Entry, Form
from diagnose.adapters.schema.table_types import Table
from diagnose.facts import Fact, Notice, Origin, Witness

#: Characters of a line of the log that a witness shows.
MAX_SHOWN = 500


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """The leaves of one framework in one config or command, and how to cite them.

    `origin` is log for a command that the log echoes; `witness` is then cited for every key. `whole`: no other file of this
    framework is missing, so that an absent key has its default.
    """

    name: str
    table: Table
    form: Form
    text: str
    leaves: tuple[Leaf, ...]
    origin: Origin = "config"
    witness: Witness | None = None
    entry: str = ""
    entry_at: tuple[int, int] = (1, 1)
    whole: bool = True
    about: str = ""  # the entry point, if another part of the job names it
    asks: bool = False  # a script whose settings come from a command-line parser
    elsewhere: Mapping[str, Witness] | None = None  # places of values that the command line gives
    own_keys: bool = True  # every key is meant for this framework (false for a script with its own arguments)
    lines: tuple[Witness, ...] = ()  # of settings printed in a log: the place of each line
    merged: Mapping[str, Leaf] | None = None  # the merged configuration, if the framework merges files and overrides
    outer: str = ""  # of a here-document: the script's text and the offset in it
    shift: int = 0

    def witness_of(self, leaf: Leaf, note: str = "") -> Witness:
        """The place of a leaf; for `device` and `enabled` that of their block, which is more telling."""
        if self.witness is not None:
            return self.witness
        if self.elsewhere and leaf.key in self.elsewhere:
            return self.elsewhere[leaf.key]
        if self.lines:
            return self._in_log(leaf)
        block, _, last = leaf.key.rpartition(".")
        shown = next((candidate for candidate in self.leaves if candidate.key == block), leaf) if last in ("device", "enabled") else leaf
        return Witness(self.name, shown.line, shown.column, note, shown.key)

    def _in_log(self, leaf: Leaf) -> Witness:
        """The place in the log with its line; of a long line, the part with the key."""
        place = self.lines[min(leaf.line, len(self.lines)) - 1]
        column = place.column + leaf.column - 1
        if leaf.column < MAX_SHOWN // 2:
            return Witness(place.source, place.line, column, place.text, leaf.key)
        line = self.text.split("\n", leaf.line)[leaf.line - 1]
        return Witness(place.source, place.line, column, line[leaf.column - 1 :][:MAX_SHOWN], leaf.key)


@dataclass(slots=True, eq=False)
class Translation:
    """The result for one part. `settled`: knobs that it sets, even to an unknown value."""

    facts: list[Fact] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    winning: list[Fact] = field(default_factory=list)  # of keys that take precedence over every part
