"""The rules that the manual is about, and where its pages stand."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from diagnose import rule_files
from diagnose.errors import UserError
from diagnose.phrases import Lang
from diagnose.record import record

Room = Literal["causes", "remedies"]

#: Room of rules/ -> the field that names the word of the vocabulary.
WORD: Mapping[Room, str] = {"causes": "cause", "remedies": "remedy"}
#: Where the manual lies in the repository; Rule.url of judge/load.py and plan/load.py begins with it.
HOME = "docs/generated"
LANGS: tuple[Lang, ...] = ("en", "zh")


@record
class Entry:
    """One rule, as its file writes it."""

    room: Room
    raw: Mapping[str, Any]
    source: str  # the file, from the root of the repository or as the user named it
    ours: bool = True

    @property
    def id(self) -> str:
        return str(self.raw["id"])

    @property
    def word(self) -> str:
        return str(self.raw[WORD[self.room]])


@record
class Shelf:
    """Every rule that is not retired, ours first, those of one word side by side."""

    entries: tuple[Entry, ...]

    def words(self, room: Room) -> list[str]:
        return list(dict.fromkeys(entry.word for entry in self.entries if entry.room == room))

    def of(self, room: Room, word: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.room == room and entry.word == word]

    def called(self, name: str) -> list[Entry]:
        """The rule of that id; or else every rule that speaks for that word."""
        return [entry for entry in self.entries if entry.id == name] or [entry for entry in self.entries if entry.word == name]

    def names(self) -> set[str]:
        return {name for entry in self.entries for name in (entry.id, entry.word)}

    def cause(self, rule: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.room == "causes" and entry.id == rule), None)

    def helped(self, remedy: str) -> list[str]:
        """The causes that name a remedy."""
        return list(dict.fromkeys(entry.word for entry in self.entries if remedy in entry.raw.get("remedies", ())))


def shelf(folders: Sequence[Path] = ()) -> Shelf:
    """Our rules, and those of the user's folders, which take the place of ours where they have the same id.

    What cannot be read is left to `oomdoctor rules check`.
    """
    from diagnose.decide.rule_loader import documents

    found = {(entry.room, entry.id): entry for entry in _shipped()}
    for room in WORD:
        for folder in folders:
            for where, raw in documents(folder, room):
                if _readable(room, raw):
                    found[room, str(raw["id"])] = Entry(room, raw, where, ours=False)
    kept = [entry for entry in found.values() if entry.raw.get("status") != "retired"]
    return Shelf(tuple(sorted(kept, key=lambda entry: (entry.room, entry.word, not entry.ours, entry.id))))


def _readable(room: Room, raw: Mapping[str, Any]) -> bool:
    from diagnose.decide.rule_loader import rule_of
    from diagnose.plan.rules.remedy_rules import read

    try:
        rule_of(raw) if room == "causes" else read(raw)
    except (UserError, KeyError, TypeError, ValueError, AttributeError):
        return False
    return True


def _shipped() -> Iterator[Entry]:
    from diagnose.decide.known_bad_releases import rules_of

    for room in WORD:
        for name, raw in rule_files.table(room).items():
            yield Entry(room, raw, f"rules/{room}/{name}.yaml")
    for name, table in rule_files.table("versions").items():
        for raw in rules_of({name: table}):
            yield Entry("causes", raw, f"rules/versions/{name}.yaml")


@record
class Seat:
    """Where a page stands, and what others are called from there. Paths are those inside the manual, without the language."""

    lang: Lang
    path: str

    @property
    def file(self) -> str:
        return self.path if self.lang == "en" else f"{self.lang}/{self.path}"

    def to(self, path: str, anchor: str = "") -> str:
        """The address of another page in the same language."""
        place = posixpath.relpath(path, posixpath.dirname(self.path) or ".")
        return f"{place}#{anchor}" if anchor else place

    def translated(self) -> str:
        """The address of this page in the other language."""
        other = Seat("en" if self.lang == "zh" else "zh", self.path)
        return posixpath.relpath(other.file, posixpath.dirname(self.file) or ".")

    def outside(self, path: str) -> str:
        """The address of a file of the repository."""
        return posixpath.relpath(path, posixpath.dirname(f"{HOME}/{self.file}"))


def page_of(room: Room, word: str) -> str:
    return f"{room}/{word}.md"


def page_of_name(name: str) -> str:
    """The dictionary in which a knob or fact stands."""
    return "knobs.md" if name in rule_files.table("knobs") else "facts.md"
