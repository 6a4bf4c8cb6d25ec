"""Before a run: which unknown facts make the estimate of the peak wide, and how wide each answer would leave it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnose.facts import Fact, FactBook, Value, declared
from diagnose.phrases import Text, phrase, same
from diagnose.plan.edits.sentences import asked, join_texts, value_text
from diagnose.plan.pricing import fit
from diagnose.plan.pricing.context import Job
from diagnose.plan.questions.askable_facts import is_askable
from diagnose.units import Size, Version, show

#: An estimate is wide if high - low exceeds this share of it.
WIDE = 0.1

#: A fact is asked for if every possible answer takes at least this share of the width away.
NARROWING = 0.25

#: How many outcomes a question lists, and how many facts are tried.
MOST_OUTCOMES, MOST_FACTS = 3, 40

#: The possible values of a version: older and newer than any release.
RELEASES = (Version("0"), Version("999"))


class MissRecorder(FactBook):
    """A FactBook that records which unknown facts are read."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.misses: dict[str, None] = {}
        super().__init__(facts)

    def value(self, name: str) -> Value:
        value = super().value(name)
        if value is None:
            self.misses[name] = None
        return value


def narrowing_facts(job: Job) -> Iterator[tuple[str, Text]]:
    """Facts that would narrow the estimate of the role that fits worst, each with its reason; the one that narrows it most first."""
    ledger = fit.foremost(job.ledgers)
    need = ledger.peak.total if ledger is not None and ledger.peak is not None and ledger.complete else None
    if ledger is None or need is None or need.high - need.low <= WIDE * need.bytes:
        return
    candidates: list[tuple[int, str, Text]] = []
    for name in unknown_inputs(job)[:MOST_FACTS]:
        outcomes = [(value, peak) for value in possible_values(name) if (peak := peak_with(job, ledger.role, name, value)) is not None]
        width = max((peak.high - peak.low for _, peak in outcomes), default=need.high)
        if width <= (1 - NARROWING) * (need.high - need.low):
            candidates.append((width, name, width_text(name, need, outcomes)))
    yield from ((name, why) for _, name, why in sorted(candidates, key=lambda candidate: candidate[0]))


def unknown_inputs(job: Job) -> list[str]:
    """Unknown facts that the ledgers read and a user can state; those that a ledger reports as unknown first."""
    book = MissRecorder(list(job.book))
    ledgers = job.reprice(book)
    reported = [name for ledger in ledgers for name in ledger.unknown]
    return [name for name in dict.fromkeys([*reported, *book.misses]) if is_askable(name, job)]


def possible_values(name: str) -> list[Value]:
    """The values of a fact that can be enumerated; for a version its extremes; else none."""
    entry = declared(name)
    if entry is None:
        return []
    if entry.kind == "switch":
        return [True, False]
    return [*RELEASES] if entry.kind == "version" else [*entry.words] if entry.kind == "word" else []


def peak_with(job: Job, role: str, name: str, value: Value) -> Size | None:
    """The role's peak if the fact had this value."""
    ledgers = job.reprice(job.book.changed({name: value}))
    return next((ledger.peak.total for ledger in ledgers if ledger.role == role and ledger.peak is not None), None)


def width_text(name: str, need: Size, outcomes: Sequence[tuple[Value, Size]]) -> Text:
    """The range of the estimate and the peak for each answer, the smallest first; answers that are releases are not listed."""
    ends = [need, *(peak for _, peak in outcomes)]
    why = phrase("plan.ask_width", fact=asked(name), low=show(min(peak.low for peak in ends)), high=show(max(peak.high for peak in ends)))
    if isinstance(outcomes[0][0], Version):
        return why
    value_by_size: dict[str, Value] = {}
    for value, peak in sorted(outcomes, key=lambda outcome: outcome[1].bytes):
        value_by_size.setdefault(show(peak.bytes), value)
    listed = list(value_by_size.items())
    listed = listed if len(listed) <= MOST_OUTCOMES else [listed[0], listed[len(listed) // 2], listed[-1]]
    answers = [phrase("plan.ask_width_answer", value=value_text(value), size=size) for size, value in listed]
    parts = [part for index, answer in enumerate(answers) for part in ([phrase("plan.ask_width_next")] if index else [same("")]) + [answer]]
    return join_texts(why, phrase("plan.ask_width_answers", answers=join_texts(*parts)))
