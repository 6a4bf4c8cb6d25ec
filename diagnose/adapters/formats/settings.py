"""The configs of one job: the sources as given, the documents that edits are made in, and the facts read from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from diagnose.adapters.formats.config_value import Places, name_of
from diagnose.errors import user_error
from diagnose.facts import Fact, Input, Notice
from diagnose.records import NamedTuple
from diagnose.scan.source import open_path, read_up_to

#: Bytes that are read of a config; a larger one is refused with a notice.
MAX_READ_BYTES = 10 * 2**20

#: command: a line that the log echoes; dump: settings that the log prints whole (read only: nobody edits a log).
Form = Literal["yaml", "json", "toml", "shell", "python", "command", "dump"]


class ConfigSource(NamedTuple):
    """A config as given.

    `forced_kind` is the kind that the user names (None: detect). `folder` is where files named in the config may be looked up,
    set only on the local command line (None: no file is opened because a text names it). `called` is the name of the file that
    this is a copy of, where a pasted page gives one.
    """

    name: str
    data: bytes
    forced_kind: str | None = None
    folder: Path | None = None
    called: str = ""

    @classmethod
    def file(cls, path: Path, forced_kind: str | None = None) -> ConfigSource:
        """The config in a file. Raises UserError where it cannot be read."""
        try:
            with open_path(path, str(path)) as file:
                return cls(str(path), read_up_to(file, MAX_READ_BYTES + 1), forced_kind, path.parent)
        except FileNotFoundError as error:
            raise user_error("no_such_file", where=str(path), hint="check_the_path") from error
        except IsADirectoryError as error:
            raise user_error("is_a_folder", where=str(path), hint="name_the_config") from error
        except OSError as error:
            raise user_error("unreadable", where=str(path), why=error.strerror or str(error)) from error


class Entry(NamedTuple):
    """One key of a document, as an edit needs it.

    `key` is the path as the framework spells it (zero_optimization.stage, --zero_stage), `start:end` the offsets of the value as
    written (start == end: a flag without a value). `knobs` are the knobs that it sets, empty where none. `used` is where a
    command uses the value, if it is written in a variable.
    """

    key: str
    written: str
    start: int
    end: int
    line: int
    column: int
    knobs: tuple[str, ...] = ()
    used: tuple[int, int] | None = None

    @property
    def is_bare_flag(self) -> bool:
        """Whether it is a command-line flag without a value."""
        return self.start == self.end and self.key.startswith("-")


@dataclass(slots=True)
class Document:
    """A config that edits may be made in.

    `framework` is the stem of a file of rules/frameworks, `entry` the program or class that gets these settings; `takes`: of a command
    whose script is at hand the options that it declares, and whether each is a bare switch (None: unknown). A document inside
    another file, such as a here-document of a script, begins at offset `shift` of that file's text, `outer`; its lines and
    columns are those of the file.
    """

    name: str
    framework: str
    form: Form
    text: str
    entries: tuple[Entry, ...]
    outer: str = ""
    shift: int = 0
    entry: str = ""
    takes: Mapping[str, bool] | None = None
    _index: EntryIndex | None = field(default=None, init=False, repr=False, compare=False)
    _places: Places | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def index(self) -> EntryIndex:
        """What its entries are looked up by; made once, since edits ask for each key of files with thousands."""
        if self._index is None:
            self._index = EntryIndex(self.entries)
        return self._index

    @property
    def places(self) -> Places:
        """Lines and columns of the file that the document stands in; made once."""
        if self._places is None:
            self._places = Places(self.outer) if self.outer else Places(self.text, self.form)
        return self._places


class EntryIndex:
    """Answers about the entries of a document, each found for all of them at once."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self._entries = entries

    @cached_property
    def words(self) -> dict[str, str]:
        """The word that each key has, unquoted, by the key's bare name; a flag without a value has `true`."""
        return {name_of(entry.key): "true" if entry.is_bare_flag else entry.written.strip("\"'") for entry in self._entries}

    @cached_property
    def first(self) -> dict[str, Entry]:
        """The first entry of each key."""
        return {entry.key: entry for entry in reversed(self._entries)}

    @cached_property
    def blocks(self) -> frozenset[str]:
        """The keys that hold other entries."""
        paths = {entry.key.rpartition(".")[0] for entry in self._entries}
        waiting = [*paths]
        for path in waiting:
            outer = path.rpartition(".")[0]
            if outer not in paths:
                paths.add(outer)
                waiting.append(outer)
        return frozenset(paths)

    @cached_property
    def strangers(self) -> frozenset[tuple[str, int]]:
        """The keys, each with the start of its value, whose value stands inside that of a key that is no part of their path, as what a
        YAML alias brings."""
        found, around = set[tuple[str, int]](), list[Entry]()
        for entry in sorted(self._entries, key=lambda entry: (entry.start, -entry.end)):
            around = [outer for outer in around if outer.end > entry.start]
            if any(outer.start < entry.start and not entry.key.startswith(f"{outer.key}.") for outer in around):
                found.add((entry.key, entry.start))
            around.append(entry)
        return frozenset(found)


class Settings(NamedTuple):
    """All that was read from the configs of one job."""

    inputs: tuple[Input, ...] = ()
    facts: tuple[Fact, ...] = ()
    documents: tuple[Document, ...] = ()
    notices: tuple[Notice, ...] = ()
