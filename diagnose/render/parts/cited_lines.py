"""Excerpts of the inputs: cited lines, and the line of a notice with a caret below."""

from __future__ import annotations

from collections.abc import Iterator

from diagnose.adapters.formats.config_value import split_lines
from diagnose.adapters.formats.settings import Document
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice, Witness
from diagnose.parse.model.event import Event
from diagnose.records import NamedTuple
from diagnose.render.parts.strings import harmless
from diagnose.render.parts.wrapping import cells, clip

#: Lines shown around a cited line of a config; lines of one input in all.
CONTEXT, MAX_LINES = 3, 400

#: Characters of a line.
MAX_WIDTH = 400


class Line(NamedTuple):
    """A line of an input with its 1-based number; `cited` if failure or causes refer to it."""

    number: int
    text: str
    cited: bool


def excerpts(diagnosis: Diagnosis) -> dict[str, list[Line]]:
    """The cited lines of every input in order; for configs with CONTEXT lines around them."""
    cited: dict[str, dict[int, str]] = {}
    for witness in witnesses(diagnosis):
        if witness.line:
            lines_of_source = cited.setdefault(witness.source, {})
            if not lines_of_source.get(witness.line):
                lines_of_source[witness.line] = "" if witness.key else witness.text
    texts = {document.name: lines_of(document) for document in diagnosis.documents if document.form not in ("command", "dump")}
    proof = {(witness.source, witness.line) for witness in evidence(diagnosis)}
    return {
        name: excerpt_lines(name, lines_of_source, texts.get(name), proof)
        for name, lines_of_source in cited.items()
        if any(lines_of_source.values()) or name in texts
    }


def excerpt_lines(name: str, cited: dict[int, str], whole: list[str] | None, proof: set[tuple[str, int]]) -> list[Line]:
    """The cited lines, with their neighbours if the whole text is available."""
    if whole is None:
        return [Line(number, shorten(content), (name, number) in proof) for number, content in sorted(cited.items()) if content][:MAX_LINES]
    near = sorted({at for number in cited for at in range(number - CONTEXT, number + CONTEXT + 1) if 1 <= at <= len(whole)})
    return [Line(at, shorten(whole[at - 1]), (name, at) in proof) for at in near][:MAX_LINES]


def shorten(text: str) -> str:
    plain = harmless(text).replace("\n", " ").rstrip()
    return plain if len(plain) <= MAX_WIDTH else plain[: MAX_WIDTH - 1] + "…"


def evidence(diagnosis: Diagnosis) -> Iterator[Witness]:
    """The places that the root failure and the causes rest on."""
    for cause in diagnosis.judgement.causes:
        yield from cause.evidence
    if diagnosis.root is not None:
        yield from diagnosis.root.evidence


def witnesses(diagnosis: Diagnosis) -> Iterator[Witness]:
    """Every place that the answer cites."""
    yield from evidence(diagnosis)
    for event in diagnosis.events:
        yield from event_witnesses(event)
    for fact in diagnosis.facts:
        yield fact.witness
    for notice in diagnosis.notices:
        if notice.witness is not None:
            yield notice.witness
    changed = {(edit.target, edit.key) for remedy in diagnosis.outcome.remedies for edit in remedy.edits}
    for document in diagnosis.documents:
        for entry in document.entries:
            if (document.name, entry.key) in changed:
                yield Witness(document.name, entry.line, entry.column, key=entry.key)


def event_witnesses(event: Event) -> Iterator[Witness]:
    yield from event.evidence
    for member in event.members:
        yield from event_witnesses(member)


# -- the line that a notice is about


def caret_lines(notice: Notice, diagnosis: Diagnosis, width: int) -> list[str]:
    """The numbered line of a notice with a caret below; empty if the line is not available."""
    place = notice.witness
    if place is None or not place.line or not notice.code.startswith("config."):
        return []
    text = place.text if place.text and not place.key else line_of(diagnosis, place.source, place.line)
    if not text.strip():
        return []
    number = f"{place.line:>5} | "
    column = place.column or column_of(diagnosis, place.source, place.line, place.key)
    excerpt, at = window(printable(text), column, width - cells(number))
    caret = " " * (len(number) - 2) + "| " + " " * at + "^" if column else ""
    return [number + excerpt, *([caret] if caret else [])]


def printable(text: str) -> str:
    """The line with unprintable characters replaced one by one, so that columns stay valid."""
    return "".join(harmless(sign).replace("\n", " ") or " " for sign in text.rstrip("\r\n"))


def window(text: str, column: int, room: int) -> tuple[str, int]:
    """The part of a line around a column that fits, its 1-based column, and the caret's position in display cells."""
    if cells(text) <= room or not column:
        return clip(text, room), cells(text[: max(column - 1, 0)])
    start = max(column - 1 - room // 3, 0)
    lead = "…" if start else ""
    return clip(lead + text[start:], room), cells(lead + text[start : column - 1])


def line_of(diagnosis: Diagnosis, name: str, line: int) -> str:
    """A line of a given config; empty if the text is not available."""
    lines = next((lines_of(document) for document in diagnosis.documents if document.name == name), [])
    return lines[line - 1] if len(lines) >= line else ""


def lines_of(document: Document) -> list[str]:
    """The lines of a config's file, as its language counts them."""
    return split_lines(document.outer) if document.outer else split_lines(document.text, document.form)


def column_of(diagnosis: Diagnosis, name: str, line: int, key: str) -> int:
    """The column of a key's last component in its line; 0 if it is not found."""
    text = line_of(diagnosis, name, line)
    return text.find(key.rpartition(".")[2]) + 1 if key else 0
