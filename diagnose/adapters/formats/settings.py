"""All that was read from the configs of one job, and the documents that edits are made in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from diagnose.errors import user_error
from diagnose.facts import Fact, Input, Notice
from diagnose.record import record

#: A config above this many bytes is read no further, and said so.
LARGEST = 10 * 2**20

#: command: a line that the log echoes; dump: settings that the log prints whole (read only: nobody edits a log).
Form = Literal["yaml", "json", "toml", "shell", "python", "command", "dump"]


@record
class ConfigSource:
    """A config as given: its label, its bytes, the kind that was forced (None: detect), and the folder in which files that it
    names may be looked up (only on the local command line; None: nothing is opened because a text names it). `called`: the file
    that it is a copy of, where a page says so."""

    name: str
    data: bytes
    forced_kind: str | None = None
    folder: Path | None = None
    called: str = ""

    @classmethod
    def file(cls, path: Path, forced_kind: str | None = None) -> ConfigSource:
        """Raises UserError where the file cannot be read."""
        try:
            with path.open("rb") as file:
                return cls(str(path), file.read(LARGEST + 1), forced_kind, path.parent)
        except FileNotFoundError as error:
            raise user_error("no_such_file", where=str(path), hint="check_the_path") from error
        except IsADirectoryError as error:
            raise user_error("is_a_folder", where=str(path), hint="name_the_config") from error
        except OSError as error:
            raise user_error("unreadable", where=str(path), why=error.strerror or str(error)) from error


@record
class Entry:
    """One key of a document. `key` is the path as the framework spells it (zero_optimization.stage, --zero_stage);
    `start:end` are the character offsets of the value as written (start == end: a flag without a value). `knobs` are the
    knobs that it sets, empty where none. `used` is where a command uses the value, when it is written in a variable."""

    key: str
    written: str
    start: int
    end: int
    line: int
    column: int
    knobs: tuple[str, ...] = ()
    used: tuple[int, int] | None = None


@record
class Document:
    """A config as given. `framework` is the stem of a file of rules/frameworks. One that stands inside another file (written by a
    script, say) begins at `shift` of the file's own text, `outer`; lines and columns are the file's. `entry`: the program or class that
    is given these settings."""

    name: str
    framework: str
    form: Form
    text: str
    entries: tuple[Entry, ...]
    outer: str = ""
    shift: int = 0
    entry: str = ""


@record
class Settings:
    inputs: tuple[Input, ...] = ()
    facts: tuple[Fact, ...] = ()
    documents: tuple[Document, ...] = ()
    notices: tuple[Notice, ...] = ()
