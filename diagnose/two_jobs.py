"""A job that worked beside one that failed: what differs, and which difference explains the failure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from diagnose import vocabulary
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Fact, FactBook, Value, declared
from diagnose.phrases import Text, phrase
from diagnose.plan.choose.advice import job_of
from diagnose.plan.edits.sentences import fact_name, source_text, value_text
from diagnose.plan.pricing.candidate_values import CAPACITY, goes_the_way
from diagnose.plan.pricing.context import Job
from diagnose.plan.remedies.remedy import Fits
from diagnose.units import Size, show

#: What a difference does: it explains the failure alone, takes part in it, may do so, or nothing is known of it.
Role = Literal["explains", "adds", "may", "open"]

#: Facts besides settings that two runs of one job may differ in, by name or beginning.
COMPARED = ("hardware.gpu", CAPACITY, "hardware.count", "host.ram", "model.id", "model.path", "parallel.world", "data.", "version.")
#: Measured memory, shown beside the differences.
MEASURED = ("log.memory_highest", "log.memory_last", "log.allocated", "log.usable")
_ORDER: tuple[Role, ...] = ("explains", "adds", "may", "open")


@dataclass(slots=True, frozen=True)
class Difference:
    """A fact that two jobs have in different values. `saves`: what the value of the job that worked takes off the other one's peak."""

    name: str
    there: Fact | None
    here: Fact | None
    role: Role = "open"
    saves: Size | None = None
    fits: Fits = "unknown"


@dataclass(slots=True, frozen=True)
class Comparison:
    """Two jobs and their differences, those that explain the failure first; and what was measured of both."""

    good: Diagnosis
    bad: Diagnosis
    differences: tuple[Difference, ...]
    measured: tuple[Difference, ...]

    @property
    def lines(self) -> list[Text]:
        """The comparison as sentences: what explains the failure, then each difference."""
        return list(_sentences(self))

    def to_dict(self, lang: Literal["en", "zh"] = "en") -> dict[str, object]:
        """The comparison as JSON can hold it."""
        return {
            "summary": self.lines[0].to(lang),
            "differences": [_row(difference, lang) for difference in self.differences],
            "measured": [_row(difference, lang) for difference in self.measured],
        }


def compare(good: Diagnosis, bad: Diagnosis) -> Comparison:
    """What differs between a job that worked and one that failed."""
    there, here = FactBook(good.facts), FactBook(bad.facts)
    job = job_of(here, bad.ledgers, bad.judgement, bad.documents)
    judged = [_judged(difference, job) for difference in _differences(there, here)]
    ordered = sorted(judged, key=lambda each: (_ORDER.index(each.role), -(each.saves.bytes if each.saves else 0), each.name))
    measured = [Difference(name, there.fact(name), here.fact(name)) for name in MEASURED if name in there and name in here]
    return Comparison(good, bad, tuple(ordered), tuple(measured))


def _differences(there: FactBook, here: FactBook) -> Iterator[Difference]:
    """Facts that somebody states of one of the two and that are not the same in both. What one of them does not say is no difference."""
    for name in dict.fromkeys(fact.name for book in (there, here) for fact in book):
        entry = declared(name)
        if not name.startswith(COMPARED) and not (entry is not None and entry.is_knob):
            continue
        one, other = there.fact(name), here.fact(name)
        if one is None or other is None or one.value is None or other.value is None or _same(one.value, other.value):
            continue
        if any(fact.origin not in ("default", "guessed") for fact in (one, other)):
            yield Difference(name, one, other)


def _same(one: Value, other: Value) -> bool:
    """Whether two values are one: sizes where their ranges meet."""
    if isinstance(one, Size) and isinstance(other, Size):
        return one.low <= other.high and other.low <= one.high
    return one == other


def _judged(difference: Difference, job: Job) -> Difference:
    """The difference with what it does to the job that failed: priced by its ledger where that is trusted, else by the direction in which
    remedies turn the setting, or by a cause that names the release."""
    if difference.there is None:
        return difference
    changes = {difference.name: difference.there.value}
    bench = job.bench
    saving = bench.saving(changes) if bench.trust in ("full", "short") else None
    if saving is not None and not saving.moment and saving.bytes.bytes > bench.noticeable:
        fits = bench.fits(changes)
        role: Role = "explains" if fits in ("yes", "likely") else "may" if fits == "unknown" else "adds"
        return replace(difference, role=role, saves=saving.bytes, fits=fits)
    if _names_release(difference.name, job):
        return replace(difference, role="explains")
    if difference.name == CAPACITY:
        return _by_capacity(difference, job)
    if saving is not None and bench.trust == "full" and not bench.untouched(changes):
        return difference  # the ledger knows the setting, and it takes nothing off
    return replace(difference, role="may") if _relieves(difference, job) else difference


def _names_release(name: str, job: Job) -> bool:
    """Whether a cause that is known to be a bad release rests on this one."""
    bad = vocabulary.bad_release()
    return name.startswith("version.") and any(cause.cause == bad and name in cause.deciding for cause in job.judgement.causes)


def _by_capacity(difference: Difference, job: Job) -> Difference:
    """A smaller card explains a failure whose use and request would have fitted on the larger one."""
    there = difference.there.value if difference.there else None
    filled, asked = job.book.size("log.filled"), job.book.size("log.requested")
    larger = (
        isinstance(there, Size)
        and difference.here is not None
        and isinstance(difference.here.value, Size)
        and there.bytes > difference.here.value.bytes
    )
    if not larger or not isinstance(there, Size):
        return difference
    fitted = filled is not None and asked is not None and (filled + asked).high < there.low
    return replace(difference, role="explains" if fitted else "may")


def _relieves(difference: Difference, job: Job) -> bool:
    """Whether a remedy moves the setting from the value of the job that failed towards that of the one that worked."""
    there, here = (fact.value if fact is not None else None for fact in (difference.there, difference.here))
    for rule in job.rules:
        if rule.turns != difference.name or rule.effort == "hardware":
            continue
        if rule.to.goes:
            if goes_the_way(there, here, rule.to):
                return True
        elif any(value_text(there).en == text for text in rule.to.values):
            return True
    return False


def _sentences(comparison: Comparison) -> Iterator[Text]:
    differences = comparison.differences
    best = differences[0] if differences else None
    if comparison.good.exit_status == 0 and comparison.good.verdict.status in ("oom", "suspected"):
        yield phrase("compare.both_failed")
    if best is None:
        yield phrase("compare.nothing")
    elif best.role in ("explains", "adds", "may"):
        yield _told(best, f"compare.{best.role}")
        differences = differences[1:]
    else:
        yield phrase("compare.open")
    for difference in differences:
        yield _told(difference)
    for difference in comparison.measured:
        yield _told(difference)


def _told(difference: Difference, key: str = "compare.line") -> Text:
    """A difference in one line: both values, where each stands, and what it takes off."""
    saves = phrase("compare.saves", saves=show(difference.saves.bytes)) if difference.saves is not None else Text("", "")
    return phrase(
        key,
        what=fact_name(difference.name),
        there=_value(difference.there),
        here=_value(difference.here),
        place=source_text(difference.here) if difference.here is not None else Text("", ""),
        saves=saves,
    )


def _value(fact: Fact | None) -> Text:
    return value_text(fact.value) if fact is not None else Text("?", "?")


def _row(difference: Difference, lang: Literal["en", "zh"]) -> dict[str, object]:
    return {
        "name": difference.name,
        "there": _value(difference.there).to(lang),
        "here": _value(difference.here).to(lang),
        "role": difference.role,
        "saves": difference.saves.bytes if difference.saves is not None else None,
        "fits": difference.fits,
    }
