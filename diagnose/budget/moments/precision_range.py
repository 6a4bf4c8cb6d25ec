"""Widen the moments of a job to the range over all precisions that are still possible.

How weights are loaded decides more than their own bytes: fp32 weights under autocast keep copies, wider norms and a wider residual
stream. Where the precision is open, the moments are computed for each possibility and their terms span all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from diagnose.budget.model.formulas import Span
from diagnose.budget.model.ledger import Moment, Term, total
from diagnose.budget.model.role_setup import Setup, setup
from diagnose.units import Size


def span_precisions(job: Setup, draw: Callable[[Setup], list[Moment]]) -> list[Moment]:
    """The moments of a job, each with the range over all possible precisions; the middle values stay those of the job itself."""
    likely = draw(job)
    others = [draw(reading) for reading in _possible_precisions(job)]
    return [
        _widen_moment(moment, [reading for alternative in others for reading in alternative if reading.name == moment.name])
        for moment in likely
    ]


def _possible_precisions(job: Setup) -> list[Setup]:
    """The job in every precision that it may have; empty where that is settled. bf16 and fp16 count as one."""
    if (job.role.apart and not job.role.trained) or not isinstance(job.precision.weight, Span):
        return []
    computed, loaded = job.book.word("train.precision"), job.book.word("train.load_dtype")
    readings = []
    for compute in (computed,) if computed else ("bf16", "fp32"):
        settled = loaded or compute == "fp32" or job.sharding.zero  # DeepSpeed loads in the precision that it computes in
        for load in (loaded,) if settled else ("bf16", "fp32"):
            changes = {"train.precision": compute, "train.load_dtype": load}
            reading = setup(job.given.changed({name: word for name, word in changes.items() if word}), job.role)
            reading.cast.extend(job.cast)  # who is there is no matter of precision
            readings.append(reading)
    return readings


def _widen_moment(moment: Moment, others: list[Moment]) -> Moment:
    """The moment with the range over all alternatives. Terms that only some of these have are included as optional where the others do not
    span the whole range."""
    if not others:
        return moment
    lowest, highest = (
        min([moment_reading.total.low for moment_reading in others]),
        max([moment_reading.total.high for moment_reading in others]),
    )
    terms_by_key = [_by_key(alternative) for alternative in others]
    terms = [
        _widen_term(term, [moment_reading[term.key].size for moment_reading in terms_by_key if term.key in moment_reading])
        for term in moment.terms
    ]
    if total([term.size for term in terms]).low > lowest:
        terms = [
            _resize(term, 0, term.size.high) if not all(term.key in moment_reading for moment_reading in terms_by_key) else term
            for term in terms
        ]
    if total([term.size for term in terms]).high < highest:
        own, fullest = _by_key(moment), max(others, key=lambda alternative: alternative.total.high)
        terms += [_optional_term(term) for term in fullest.terms if term.key not in own]
    return replace(moment, terms=tuple(terms))


def _by_key(moment: Moment) -> dict[str, Term]:
    """The terms of a moment by key; of equal keys the first."""
    return {term.key: term for term in reversed(moment.terms)}


def _widen_term(term: Term, readings: list[Size]) -> Term:
    """The term with the range of all sizes that may stand in its place."""
    size = term.size
    return _resize(term, min([size.low, *[reading.low for reading in readings]]), max([size.high, *[reading.high for reading in readings]]))


def _resize(term: Term, low: int, high: int) -> Term:
    """The term with these bounds."""
    size = term.size
    return term if (low, high) == (size.low, size.high) else replace(term, size=Size.between(low, high, size.bytes))


def _optional_term(term: Term) -> Term:
    """The term with 0 as its lower bound."""
    return replace(term, size=Size.between(0, term.size.high, 0), symbols=f"0*({term.symbols})", numbers=f"0*({term.numbers})")
