"""Index of the rules in the manual, and the addresses of its pages."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from diagnose import rule_files
from diagnose.decide.known_bad_releases import rules_of
from diagnose.decide.rule_loader import documents, rule_of
from diagnose.errors import UserError
from diagnose.phrases import Lang
from diagnose.plan.remedies.remedy_rules import parse_rule

Room = Literal["causes", "remedies"]

#: Folder of rules/ -> the field of a rule that holds its word of the vocabulary.
WORD_FIELD: Mapping[Room, str] = {"causes": "cause", "remedies": "remedy"}
#: Folder of the manual in the repository; the `url` of cause and remedy rules begins with it.
HOME = "docs/generated"
LANGS: tuple[Lang, ...] = ("en", "zh")


@dataclass(slots=True)
class Entry:
    """A rule as its file writes it. `ours`: shipped with oomdoctor, not from the user's folders."""

    room: Room
    raw: Mapping[str, Any]
    source: str  # the file, from the root of the repository or as the user named it
    ours: bool = True

    @property
    def id(self) -> str:
        return str(self.raw["id"])

    @property
    def word(self) -> str:
        return str(self.raw[WORD_FIELD[self.room]])


@dataclass(slots=True)
class RuleIndex:
    """All rules that are not retired, sorted by folder and word, shipped ones first."""

    entries: tuple[Entry, ...]

    def words(self, room: Room) -> list[str]:
        return list(dict.fromkeys(entry.word for entry in self.entries if entry.room == room))

    def for_word(self, room: Room, word: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.room == room and entry.word == word]

    def matching(self, name: str) -> list[Entry]:
        """The rule with this id, else all rules of this word."""
        return [entry for entry in self.entries if entry.id == name] or [entry for entry in self.entries if entry.word == name]

    def names(self) -> set[str]:
        return {name for entry in self.entries for name in (entry.id, entry.word)}

    def cause_rule(self, rule: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.room == "causes" and entry.id == rule), None)

    def causes_with_remedy(self, remedy: str) -> list[str]:
        """The words of the causes that list a remedy."""
        return list(dict.fromkeys(entry.word for entry in self.entries if remedy in entry.raw.get("remedies", ())))


def load_index(folders: Sequence[Path] = ()) -> RuleIndex:
    """Index the shipped rules and those of the user's folders, which replace shipped ones of the same id.

    Invalid rules are skipped: `oomdoctor rules check` reports them.
    """
    entries = {(entry.room, entry.id): entry for entry in _shipped_entries()}
    for room in WORD_FIELD:
        for folder in folders:
            for source, raw in documents(folder, room):
                if _is_valid(room, raw):
                    entries[room, str(raw["id"])] = Entry(room, raw, source, ours=False)
    active = [entry for entry in entries.values() if entry.raw.get("status") != "retired"]
    return RuleIndex(tuple(sorted(active, key=lambda entry: (entry.room, entry.word, not entry.ours, entry.id))))


def _is_valid(room: Room, raw: Mapping[str, object]) -> bool:
    try:
        rule_of(raw) if room == "causes" else parse_rule(raw)
    except (UserError, KeyError, TypeError, ValueError, AttributeError):
        return False
    return True


def _shipped_entries() -> Iterator[Entry]:
    for room in WORD_FIELD:
        for name, raw in rule_files.table(room).items():
            yield Entry(room, raw, f"rules/{room}/{name}.yaml")
    for name, table in rule_files.table("versions").items():
        for raw in rules_of({name: table}):
            yield Entry("causes", raw, f"rules/versions/{name}.yaml")


@dataclass(slots=True)
class PageAddress:
    """The address of a page, and relative links from it. Paths are inside the manual, without the folder of the language."""

    lang: Lang
    path: str

    @property
    def file(self) -> str:
        return self.path if self.lang == "en" else f"{self.lang}/{self.path}"

    def link_to(self, path: str, anchor: str = "") -> str:
        """Relative link to another page in the same language."""
        relative = posixpath.relpath(path, posixpath.dirname(self.path) or ".")
        return f"{relative}#{anchor}" if anchor else relative

    def translated(self) -> str:
        """Relative link to this page in the other language."""
        other = PageAddress("en" if self.lang == "zh" else "zh", self.path)
        return posixpath.relpath(other.file, posixpath.dirname(self.file) or ".")

    def repository_link(self, path: str) -> str:
        """Relative link to a file of the repository."""
        return posixpath.relpath(path, posixpath.dirname(f"{HOME}/{self.file}"))


def rule_page(room: Room, word: str) -> str:
    return f"{room}/{word}.md"


def fact_page(name: str) -> str:
    """The page that lists a knob or fact."""
    return "knobs.md" if name in rule_files.table("knobs") else "facts.md"
