"""Masks secrets and names before an answer leaves the machine: rules/redactions.yaml, consistent placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from diagnose import rule_files
from diagnose.adapters.formats.settings import Document
from diagnose.diagnosis import Diagnosis
from diagnose.parse.model.event import Event
from diagnose.render.parts import advice_text
from diagnose.render.parts.strings import map_texts


class Redaction(NamedTuple):
    """A pattern with its kind of placeholder; `signs`: every match contains one of these texts, in any case (a cheap test before the
    pattern runs)."""

    kind: str
    signs: tuple[str, ...]
    pattern: str


@cache
def redactions() -> tuple[Redaction, ...]:
    """Those of rules/redactions.yaml, in order."""
    return tuple(Redaction(entry["mask"], tuple(entry["has"]), entry["pattern"]) for entry in rule_files.table("redactions"))


class Masker:
    """Masks texts; the same secret gets the same placeholder in all of them. `names` are masked wherever they stand."""

    def __init__(self, names: Iterable[tuple[str, str]] = ()) -> None:
        self._placeholders: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._cache: dict[str, str] = {}  # memo: a report repeats most texts
        by_name = (Redaction(kind, (name.casefold(),), rf"(?<![\w-]){re.escape(name)}(?![\w-])") for kind, name in dict.fromkeys(names))
        self._redactions = (*redactions(), *by_name)
        self._signs = tuple(dict.fromkeys(sign for redaction in self._redactions for sign in redaction.signs))

    def __call__(self, text: str) -> str:
        if text not in self._cache:
            self._cache[text] = self._without_secrets(text)
        return self._cache[text]

    def _without_secrets(self, text: str) -> str:
        signs = self._signs_in(text)
        if not signs:  # most texts: a hundredth of the time that looking for the patterns takes
            return text
        for kind, required, pattern in self._redactions:
            if not signs.isdisjoint(required):
                masked = re.sub(pattern, lambda match, kind=kind: self._masked(kind, match), text)  # type: ignore[misc]
                if masked != text:
                    text, signs = masked, self._signs_in(masked)
        return text

    def _signs_in(self, text: str) -> set[str]:
        folded = text.casefold()
        return {sign for sign in self._signs if sign in folded}

    def _masked(self, kind: str, match: re.Match[str]) -> str:
        if "it" in match.re.groupindex and match["it"] is None:
            return match[0]  # what looks alike and is no secret
        group = "it" if "it" in match.re.groupindex else 0
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        lines = "\n" * match[group].count("\n")  # what stands below keeps its line
        return match[0][:start] + self._placeholder(kind, match[group]) + lines + match[0][end:]

    def _placeholder(self, kind: str, secret: str) -> str:
        if (kind, secret) not in self._placeholders:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._placeholders[kind, secret] = f"<{kind}-{self._counts[kind]}>"
        return self._placeholders[kind, secret]


def masker(diagnosis: Diagnosis) -> Masker:
    """A masker that also knows the hosts that the log names."""
    hosts = (event.host for event in with_members(diagnosis.events) if event.host)
    return Masker(("host", host) for host in hosts if len(host) > 2 and host != "localhost")


def with_members(events: tuple[Event, ...]) -> Iterator[Event]:
    for event in events:
        yield event
        yield from event.members


def mask_diagnosis(original: Diagnosis) -> Diagnosis:
    """The same diagnosis with every text masked; words and figures stay. Of the documents, whose offsets are then wrong, no patch
    can be made any more: so it is made before, and masked too."""
    if original.patch is not None:
        return original
    mask = masker(original)
    masked: Diagnosis = map_texts(original, mask)
    return replace(
        masked, documents=tuple(mask_document(config, mask) for config in original.documents), patch=mask(advice_text.patch(original))
    )


def mask_document(original: Document, mask: Masker) -> Document:
    """A config with its texts masked; keys, lines and what they set stay."""
    entries = tuple(replace(entry, key=mask(entry.key), written=mask(entry.written)) for entry in original.entries)
    return replace(original, name=mask(original.name), text=mask(original.text), outer=mask(original.outer), entries=entries)
