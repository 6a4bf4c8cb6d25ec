"""Masks secrets and names before an answer leaves the machine: rules/redactions.yaml, consistent placeholders."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import accumulate

from diagnose import rule_files
from diagnose.adapters.formats.settings import Document
from diagnose.diagnosis import Diagnosis
from diagnose.parse.model.event import Event
from diagnose.records import NamedTuple
from diagnose.render.parts import advice_text, assigned_secrets
from diagnose.render.parts.strings import map_texts


class Redaction(NamedTuple):
    """A row of rules/redactions.yaml.

    `signs`: the first line of every match contains one of these texts, in lower case, or matches `near`, and the match ends within `lines`
    lines; the pattern runs only there, which takes a tenth of the time. Neither: it runs everywhere. Without a pattern, what
    assigned_secrets finds.
    """

    kind: str
    signs: tuple[str, ...]
    pattern: str
    near: str = ""
    lines: int = 2

    @property
    def is_for_any_text(self) -> bool:
        return not self.near and not self.signs

    def starts(self, folded: str) -> list[int]:
        """Where its signs stand in a text in lower case."""
        if self.near:
            return [match.start() for match in re.finditer(self.near, folded)]
        return [match.start() for sign in self.signs if sign in folded for match in re.finditer(re.escape(sign), folded)]

    def spans(self, folded: str) -> Iterable[tuple[int, int]]:
        """The parts of a text in lower case where its pattern may match."""
        if self.is_for_any_text:
            return [(0, len(folded))]
        return _lines_at(sorted(self.starts(folded)), folded, self.lines)

    def secrets(self, text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Where spans of a text hold what it masks."""
        if not self.pattern:
            yield from ((secret.start, secret.end) for secret in assigned_secrets.secrets(text))
            return
        for span in spans:
            yield from filter(None, map(_secret_of, re.compile(self.pattern).finditer(text, *span)))


@cache
def redactions() -> tuple[Redaction, ...]:
    """Those of rules/redactions.yaml, in order."""
    return tuple(
        Redaction(row["mask"], tuple(row.get("has", ())), row.get("pattern", ""), row.get("near", ""), row.get("lines", 2))
        for row in rule_files.table("redactions")
    )


class Masker:
    """Masks texts; the same secret gets the same placeholder in all of them. `names` are masked wherever they stand."""

    def __init__(self, names: Iterable[tuple[str, str]] = ()) -> None:
        self._placeholders: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._cache: dict[str, str] = {}  # memo: a report repeats most texts
        by_name = (
            Redaction(kind, (assigned_secrets.folded(name),), rf"(?<![\w-]){re.escape(name)}(?![\w-])")
            for kind, name in dict.fromkeys(names)
        )
        self._redactions = (*redactions(), *by_name)
        self._tries: dict[str, list[Redaction]] = {}

    def expect(self, texts: Iterable[str]) -> None:
        """Look through all texts of a report at once for what has to be tried on each of them, which is little: each of forty redactions on
        each of two thousand texts takes several times as long as the diagnosis."""
        self._tries = {text: [] for text in texts}
        listed = list(self._tries)
        begins = list(accumulate((len(text) + 1 for text in listed), initial=0))
        together = assigned_secrets.folded("\n".join(listed))
        for redaction in self._redactions:
            if redaction.is_for_any_text:
                found: Iterable[str] = listed
            else:
                found = [listed[number] for number in {bisect_right(begins, start) - 1 for start in redaction.starts(together)}]
            for text in found:
                self._tries[text].append(redaction)

    def __call__(self, text: str) -> str:
        if text not in self._cache:
            self._cache[text] = self._without_secrets(text)
        return self._cache[text]

    def value(self, name: str, written: str) -> str:
        """The value of a setting, masked as it is beside its name."""
        setting = f"{name.rpartition('.')[2]}="
        masked = self(setting + written)
        return masked[len(setting) :] if masked.startswith(setting) else self(written)

    def _without_secrets(self, text: str) -> str:
        expected, folded = self._tries.get(text), assigned_secrets.folded(text)
        if expected is not None and not any(any(redaction.secrets(text, redaction.spans(folded))) for redaction in expected):
            return text
        for redaction in self._redactions:
            masked = self._applied(redaction, text, redaction.spans(folded))
            if masked is not text:
                text, folded = masked, assigned_secrets.folded(masked)
        return text

    def _applied(self, redaction: Redaction, text: str, spans: Iterable[tuple[int, int]]) -> str:
        """The text with what a redaction finds in spans of it masked; the same text where it finds nothing."""
        found = list(redaction.secrets(text, spans))
        if not found:
            return text
        pieces, position = [], 0
        for start, end in found:
            secret = text[start:end]
            lines = "\n" * secret.count("\n")  # what stands below keeps its line
            pieces += [text[position:start], self._placeholder(redaction.kind, secret), lines]
            position = end
        return "".join(pieces) + text[position:]

    def distinct_secrets(self) -> Iterator[tuple[str, str]]:
        """What was masked so far and cannot be a word or a figure of something else: kind and text, line by line."""
        for kind, secret in self._placeholders:
            for line in secret.splitlines():
                if len(line) >= 8 and not line.isdigit() and (assigned_secrets.is_random(line) or "@" in line or "!" in line):
                    yield kind, line

    def _placeholder(self, kind: str, secret: str) -> str:
        if (kind, secret) not in self._placeholders:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._placeholders[kind, secret] = f"<{kind}-{self._counts[kind]}>"
        return self._placeholders[kind, secret]


def _lines_at(starts: list[int], text: str, count: int) -> Iterator[tuple[int, int]]:
    """Spans of whole lines: those of the places, in order, and the next ones up to `count`; where they meet, as one."""
    first = last = -1
    line_end = -1  # of the line that was looked at last
    for start in starts:
        if start < line_end:
            continue
        begin, end = text.rfind("\n", 0, start) + 1, start
        for number in range(count):
            end = text.find("\n", end + 1 if number else end)
            end = len(text) if end < 0 else end
            line_end = end if number == 0 else line_end
        if begin > last:
            if last >= 0:
                yield first, last
            first = begin
        last = max(last, end)
    if last >= 0:
        yield first, last


def _secret_of(match: re.Match[str]) -> tuple[int, int] | None:
    """Where the group `it` of a match stands, or all of it; None: the match is something that only looks like a secret."""
    if "it" not in match.re.groupindex:
        return match.span()
    return None if match["it"] is None else match.span("it")


def masker(diagnosis: Diagnosis) -> Masker:
    """A masker that also knows the hosts that the log names, and the secrets of the configs, wherever they stand without their names."""
    hosts = (("host", event.host) for event in with_members(diagnosis.events) if event.host)
    names = [(kind, host) for kind, host in hosts if len(host) > 2 and host != "localhost"]
    in_configs = Masker()
    for document in diagnosis.documents:
        in_configs(document.text)
    return Masker([*names, *in_configs.distinct_secrets()])


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
    mask.expect(_texts(original))
    masked: Diagnosis = map_texts(original, mask)
    return replace(
        masked, documents=tuple(mask_document(config, mask) for config in original.documents), patch=mask(advice_text.patch(original))
    )


def _texts(original: Diagnosis) -> list[str]:
    """Every text that is masked in it."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    map_texts(original, note)
    return texts


def mask_document(original: Document, mask: Masker) -> Document:
    """A config with its texts masked; keys, lines and what they set stay."""
    entries = tuple(entry._replace(key=mask(entry.key), written=mask.value(entry.key, entry.written)) for entry in original.entries)
    return replace(original, name=mask(original.name), text=mask(original.text), outer=mask(original.outer), entries=entries)
