"""Masks secrets and names before an answer leaves the machine: rules/redactions.yaml, consistent placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from diagnose import rule_files
from diagnose.adapters.formats.settings import Document
from diagnose.diagnosis import Diagnosis
from diagnose.parse.model.event import Event
from diagnose.record import NamedTuple, replace
from diagnose.render.parts import advice_text
from diagnose.render.parts.strings import changed


class Redaction(NamedTuple):
    """The kind of placeholder, the texts of which every match has one (whatever their case), and the pattern."""

    kind: str
    has: tuple[str, ...]
    pattern: str


@cache
def redactions() -> tuple[Redaction, ...]:
    """Those of rules/redactions.yaml, in order."""
    return tuple(Redaction(entry["mask"], tuple(entry["has"]), entry["pattern"]) for entry in rule_files.table("redactions"))


class Masker:
    """Masks texts; the same secret gets the same placeholder in all of them. `names` are masked wherever they stand."""

    def __init__(self, names: Iterable[tuple[str, str]] = ()) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._known: dict[str, str] = {}  # a report says most things several times
        named = (Redaction(kind, (name.casefold(),), rf"(?<![\w-]){re.escape(name)}(?![\w-])") for kind, name in dict.fromkeys(names))
        self._redactions = (*redactions(), *named)
        self._signs = tuple(dict.fromkeys(sign for each in self._redactions for sign in each.has))

    def __call__(self, text: str) -> str:
        if text not in self._known:
            self._known[text] = self._without_secrets(text)
        return self._known[text]

    def _without_secrets(self, text: str) -> str:
        signs = self._signs_in(text)
        if not signs:  # most texts: a hundredth of the time that looking for the patterns takes
            return text
        for kind, has, pattern in self._redactions:
            if not signs.isdisjoint(has):
                masked = re.sub(pattern, lambda found, kind=kind: self._masked(kind, found), text)  # type: ignore[misc]
                if masked != text:
                    text, signs = masked, self._signs_in(masked)
        return text

    def _signs_in(self, text: str) -> set[str]:
        folded = text.casefold()
        return {sign for sign in self._signs if sign in folded}

    def _masked(self, kind: str, found: re.Match[str]) -> str:
        if "it" in found.re.groupindex and found["it"] is None:
            return found[0]  # what looks alike and is no secret
        group = "it" if "it" in found.re.groupindex else 0
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        lines = "\n" * found[group].count("\n")  # what stands below keeps its line
        return found[0][:start] + self._placeholder(kind, found[group]) + lines + found[0][end:]

    def _placeholder(self, kind: str, secret: str) -> str:
        if (kind, secret) not in self._given:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._given[kind, secret] = f"<{kind}-{self._counts[kind]}>"
        return self._given[kind, secret]


def masker(diagnosis: Diagnosis) -> Masker:
    """A masker that also knows the hosts that the log names."""
    hosts = (event.host for event in everyone(diagnosis.events) if event.host)
    return Masker(("host", host) for host in hosts if len(host) > 2 and host != "localhost")


def everyone(events: tuple[Event, ...]) -> Iterator[Event]:
    for event in events:
        yield event
        yield from event.members


def diagnosis(of: Diagnosis) -> Diagnosis:
    """The same diagnosis with every text masked; words and figures stay. Of the documents, whose offsets are then wrong, no patch
    can be made any more: so it is made before, and masked too."""
    if of.patch is not None:
        return of
    mask = masker(of)
    masked: Diagnosis = changed(of, mask)
    return replace(masked, documents=tuple(document(each, mask) for each in of.documents), patch=mask(advice_text.patch(of)))


def document(of: Document, mask: Masker) -> Document:
    """A config with its texts masked; keys, lines and what they set stay."""
    entries = tuple(replace(entry, key=mask(entry.key), written=mask(entry.written)) for entry in of.entries)
    return replace(of, name=mask(of.name), text=mask(of.text), outer=mask(of.outer), entries=entries)
