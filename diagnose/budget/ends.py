"""Ends that no single formula knows: what the moments would be for every precision that a job may have.

How weights are loaded decides more than their own bytes: fp32 weights under autocast keep copies, wider norms and a wider residual
stream. Where it is open, the moments are drawn up for each possibility, and their terms span them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from diagnose.budget.formula import Span
from diagnose.budget.ledger import Moment, Term, total
from diagnose.budget.setup import Setup, setup
from diagnose.record import replace
from diagnose.units import Size


def spanned(job: Setup, draw: Callable[[Setup], list[Moment]]) -> list[Moment]:
    """The moments of a job, as wide as the precisions it may have make them; the figures are those of the job itself."""
    found = draw(job)
    others = [draw(each) for each in _readings(job)]
    return [_widened(moment, [each for other in others for each in other if each.name == moment.name]) for moment in found]


def _readings(job: Setup) -> list[Setup]:
    """The job in every precision that it may have; none where that is settled. Two 16-bit types are one reading."""
    if (job.role.apart and not job.role.trained) or not isinstance(job.precision.weight, Span):
        return []
    computed, loaded = job.book.word("train.precision"), job.book.word("train.load_dtype")
    made = []
    for compute in (computed,) if computed else ("bf16", "fp32"):
        settled = loaded or compute == "fp32" or job.sharding.zero  # DeepSpeed loads in the precision that it computes in
        for load in (loaded,) if settled else ("bf16", "fp32"):
            changes = {"train.precision": compute, "train.load_dtype": load}
            made.append(setup(job.given.changed({name: word for name, word in changes.items() if word}), job.role))
    return made


def _widened(moment: Moment, others: list[Moment]) -> Moment:
    """A moment whose sum reaches from the least to the most of all. Terms that only some of them have are taken in where those that all
    of them have do not reach that far."""
    if not others:
        return moment
    least, most = (ends(getattr(each.total, name) for each in others) for ends, name in ((min, "low"), (max, "high")))
    terms = [_reaching(term, [_like(term, other) for other in others]) for term in moment.terms]
    if total([term.size for term in terms]).low > least:
        terms = [
            term if _everywhere(term, others) else replace(term, size=Size.between(0, term.size.high, term.size.bytes)) for term in terms
        ]
    fullest = max(others, key=lambda other: other.total.high)
    if total([term.size for term in terms]).high < most:
        terms += [_open(term) for term in fullest.terms if all(term.key != each.key for each in moment.terms)]
    return replace(moment, terms=tuple(terms))


def _like(term: Term, other: Moment) -> Term | None:
    return next((each for each in other.terms if each.key == term.key), None)


def _everywhere(term: Term, others: Iterable[Moment]) -> bool:
    return all(_like(term, other) is not None for other in others)


def _reaching(term: Term, like: list[Term | None]) -> Term:
    """A term with the ends of all that stand in its place."""
    sizes = [term.size, *(each.size for each in like if each is not None)]
    return replace(term, size=Size.between(min(size.low for size in sizes), max(size.high for size in sizes), term.size.bytes))


def _open(term: Term) -> Term:
    """A term that may exist: nothing at least, all of it at most."""
    return replace(term, size=Size.between(0, term.size.high, 0), symbols=f"0*({term.symbols})", numbers=f"0*({term.numbers})")
