"""The lines that an answer cites, input by input, so that every place named can be looked up in the answer itself."""

from __future__ import annotations

from collections.abc import Iterator

from diagnose.diagnosis import Diagnosis
from diagnose.facts import Witness
from diagnose.parse.model.event import Event
from diagnose.record import NamedTuple
from diagnose.render.parts.strings import harmless

#: So many lines round a cited line of a config, and so many lines of one input in all.
CONTEXT, MAX_LINES = 3, 400

#: A line is cut here.
MAX_WIDTH = 400


class Line(NamedTuple):
    """A line of an input, by its 1-based number; `cited` where the failure or a cause rests on it."""

    number: int
    text: str
    cited: bool


def excerpts(diagnosis: Diagnosis) -> dict[str, list[Line]]:
    """Of every input that is cited the cited lines, in order; of a config those round them too."""
    cited: dict[str, dict[int, str]] = {}
    for witness in witnesses(diagnosis):
        if witness.line:
            lines_of_source = cited.setdefault(witness.source, {})
            if not lines_of_source.get(witness.line):
                lines_of_source[witness.line] = "" if witness.key else witness.text
    texts = {document.name: document.outer or document.text for document in diagnosis.documents if document.form not in ("command", "dump")}
    proof = {(witness.source, witness.line) for witness in evidence(diagnosis)}
    return {
        name: excerpt_lines(name, lines_of_source, texts.get(name), proof)
        for name, lines_of_source in cited.items()
        if any(lines_of_source.values()) or name in texts
    }


def excerpt_lines(name: str, cited: dict[int, str], text: str | None, proof: set[tuple[str, int]]) -> list[Line]:
    """The cited lines, with their neighbours where the whole text is at hand."""
    if text is None:
        return [Line(number, shorten(content), (name, number) in proof) for number, content in sorted(cited.items()) if content][:MAX_LINES]
    whole = text.split("\n")
    near = sorted({at for number in cited for at in range(number - CONTEXT, number + CONTEXT + 1) if 1 <= at <= len(whole)})
    return [Line(at, shorten(whole[at - 1]), (name, at) in proof) for at in near][:MAX_LINES]


def shorten(text: str) -> str:
    plain = harmless(text).replace("\n", " ").rstrip()
    return plain if len(plain) <= MAX_WIDTH else plain[: MAX_WIDTH - 1] + "…"


def evidence(diagnosis: Diagnosis) -> Iterator[Witness]:
    """What the causes and the root failure rest on."""
    for cause in diagnosis.judgement.causes:
        yield from cause.evidence
    if diagnosis.root is not None:
        yield from diagnosis.root.evidence


def witnesses(diagnosis: Diagnosis) -> Iterator[Witness]:
    """All that the answer points at."""
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
