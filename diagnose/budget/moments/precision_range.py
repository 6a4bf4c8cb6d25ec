"""Widen the moments of a job to the range over all precisions that are still possible, and over all that a guessed setting may mean.

How weights are loaded decides more than their own bytes: fp32 weights under autocast keep copies, wider norms and a wider residual
stream. Where the precision is open, the moments are computed for each possibility and their terms span all of them. So they do where the
batch size of an unknown program may be that of all cards, and where a model's size is known from its name only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from diagnose.budget.model.formulas import Span
from diagnose.budget.model.ledger import Moment, Term, total
from diagnose.budget.model.role_setup import Setup, setup
from diagnose.facts import FactBook, Value
from diagnose.units import Size

#: Cards that a batch is taken to be divided among, where nothing says how many there are: those of one node.
NODE = 8


def span_readings(job: Setup, draw: Callable[[Setup], list[Moment]]) -> list[Moment]:
    """The moments of a job, each with the range over all precisions and guesses that are possible; the middle values stay those of the job
    itself."""
    likely = draw(job)
    readings = _possible_precisions(job)
    readings += [_changed(reading, guess) for guess in _possible_guesses(job.given) for reading in (readings or [job])]
    others = [draw(reading) for reading in readings]
    return [
        _widen_moment(moment, [reading for alternative in others for reading in alternative if reading.name == moment.name])
        for moment in likely
    ]


def span_guesses(job: Setup, moments: list[Moment], draw: Callable[[Setup], list[Moment]]) -> list[Moment]:
    """Moments of a job that were drawn again for its failure, with the range over all guesses that are possible."""
    others = [draw(_changed(job, guess)) for guess in _possible_guesses(job.given)]
    return [_widen_moment(moment, [other for drawn in others for other in drawn if other.name == moment.name]) for moment in moments]


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
            readings.append(_changed(job, {name: word for name, word in changes.items() if word}))
    return readings


def _changed(job: Setup, values: Mapping[str, Value]) -> Setup:
    """The job with other values; who is there is no matter of these."""
    reading = setup(job.given.changed(values), job.role)
    reading.cast.extend(job.cast)
    return reading


def _possible_guesses(book: FactBook) -> Iterator[dict[str, Value]]:
    """What else a guessed batch size, and a size in a model's name, may mean."""
    rows = book.count("train.micro_batch_size")
    if rows and book.switch("config.batch_shared"):
        parts = (book.count("parallel.world") or NODE) * (book.count("train.gradient_accumulation") or 1)
        if (fewest := max(1, rows // parts)) < rows:
            yield {"train.micro_batch_size": fewest}
    for name in ("model.least_params", "model.most_params"):
        if book.shape("model.shape") is None and book.count("model.total_params") is None and (bound := book.count(name)):
            yield {"model.likely_params": bound}


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
    return term if (low, high) == (size.low, size.high) else term._replace(size=Size.between(low, high, size.bytes))


def _optional_term(term: Term) -> Term:
    """The term with 0 as its lower bound."""
    return term._replace(size=Size.between(0, term.size.high, 0), symbols=f"0*({term.symbols})", numbers=f"0*({term.numbers})")
