"""Before a run: which unknown fact makes the estimate wide, and what each answer would make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnose.facts import Fact, FactBook, Value, declared
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits.sentences import called, joined, value_of
from diagnose.plan.pricing import fit
from diagnose.plan.pricing.context import Job
from diagnose.units import Size, Version, show

#: An estimate whose ends lie further apart than this share of it is wide.
WIDE = 0.1

#: An answer is asked for where every possible one takes at least this share of the width away.
NARROWS = 0.25

#: Answers that are told, and facts that are tried.
TOLD, TRIED = 3, 40

#: A release older and one newer than any, for facts that are releases.
RELEASES = (Version("0"), Version("999"))


class Watched(FactBook):
    """A book that notes which facts were asked for and not known."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.missed: dict[str, None] = {}
        super().__init__(facts)

    def value(self, name: str) -> Value:
        found = super().value(name)
        if found is None:
            self.missed[name] = None
        return found


def wide(job: Job) -> Iterator[tuple[str, Text]]:
    """The facts that would narrow the estimate of the role that sits worst, the one that narrows it most first."""
    ledger = fit.foremost(job.ledgers)
    need = ledger.peak.total if ledger is not None and ledger.peak is not None and ledger.complete else None
    if ledger is None or need is None or need.high - need.low <= WIDE * need.bytes:
        return
    found: list[tuple[int, str, Text]] = []
    for name in unanswered(job)[:TRIED]:
        after = [(value, peak) for value in answers(name) if (peak := peak_of(job, ledger.role, name, value)) is not None]
        left = max((peak.high - peak.low for _, peak in after), default=need.high)
        if left <= (1 - NARROWS) * (need.high - need.low):
            found.append((left, name, said(name, need, after)))
    yield from ((name, why) for _, name, why in sorted(found, key=lambda each: each[0]))


def unanswered(job: Job) -> list[str]:
    """The facts that the ledger asks for and nobody has told, those it names itself first."""
    from diagnose.plan.questions.open_questions import askable

    book = Watched(list(job.book))
    ledgers = job.reprice(book)
    named = [name for ledger in ledgers for name in ledger.unknown]
    return [name for name in dict.fromkeys([*named, *book.missed]) if askable(name, job)]


def answers(name: str) -> list[Value]:
    """The values that a fact may have, where they can be listed."""
    entry = declared(name)
    if entry is None:
        return []
    if entry.kind == "switch":
        return [True, False]
    return [*RELEASES] if entry.kind == "version" else [*entry.words] if entry.kind == "word" else []


def peak_of(job: Job, role: str, name: str, value: Value) -> Size | None:
    """The peak of the role once the fact is known to be this."""
    ledgers = job.reprice(job.book.changed({name: value}))
    return next((ledger.peak.total for ledger in ledgers if ledger.role == role and ledger.peak is not None), None)


def said(name: str, need: Size, after: Sequence[tuple[Value, Size]]) -> Text:
    """The width, and what the answers make of it, the smallest first; releases are not told one by one."""
    ends = [need, *(peak for _, peak in after)]
    why = phrase("plan.ask_width", fact=called(name), low=show(min(peak.low for peak in ends)), high=show(max(peak.high for peak in ends)))
    if isinstance(after[0][0], Version):
        return why
    outcomes: dict[str, Value] = {}
    for value, peak in sorted(after, key=lambda each: each[1].bytes):
        outcomes.setdefault(show(peak.bytes), value)
    chosen = list(outcomes.items())
    chosen = chosen if len(chosen) <= TOLD else [chosen[0], chosen[len(chosen) // 2], chosen[-1]]
    told = [phrase("plan.ask_width_answer", value=value_of(value), size=size) for size, value in chosen]
    parts = [part for at, answer in enumerate(told) for part in ([phrase("plan.ask_width_next")] if at else [same("")]) + [answer]]
    return joined(why, phrase("plan.ask_width_answers", answers=joined(*parts)))
