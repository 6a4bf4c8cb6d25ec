"""What the adapters hand on: a part of the configuration with the keys of one framework, and the facts that it translates to."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.settings import Entry, Form
from diagnose.adapters.schema.spellings import Table
from diagnose.facts import Fact, Notice, Origin, Witness
from diagnose.record import field, record

#: Characters of a line of the log that a witness shows.
MAX_SHOWN = 500


@record
class Part:
    """One config, or one command of a script: leaves of one framework and how to speak of them.

    `origin` is log for a command that the log echoes; `witness` then stands for every key. `whole` says that nothing else
    of this framework's configuration is missing, so that a key which is absent has its default.
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
    about: str = ""  # the entry point, where another part of the job names it
    asks: bool = False  # a script whose settings a parser of the command line fills
    elsewhere: Mapping[str, Witness] | None = None  # keys whose values the command line gives, and where
    own_keys: bool = True  # every key is meant for this framework (not a script with arguments of its own)
    lines: tuple[Witness, ...] = ()  # of settings that a log prints: where each line of the text stands in it
    merged: Mapping[str, Leaf] | None = None  # what files and overrides say together, where the framework merges them
    outer: str = ""  # of a config that a script writes: the script's text, and where it begins in it
    shift: int = 0

    def witness_of(self, leaf: Leaf, note: str = "") -> Witness:
        """Where the leaf stands. `device` and `enabled` say nothing by themselves: their block's line does."""
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
        """The place in the log, with the line as it stands there; of a long line the part that holds the key."""
        place = self.lines[min(leaf.line, len(self.lines)) - 1]
        column = place.column + leaf.column - 1
        if leaf.column < MAX_SHOWN // 2:
            return Witness(place.source, place.line, column, place.text, leaf.key)
        line = self.text.split("\n", leaf.line)[leaf.line - 1]
        return Witness(place.source, place.line, column, line[leaf.column - 1 :][:MAX_SHOWN], leaf.key)


@record(frozen=False)
class Translation:
    """What one part says. `settled` are the knobs that a key of it sets, even to something unknown."""

    facts: list[Fact] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    winning: list[Fact] = field(default_factory=list)  # of keys that win over the other parts' as well
