"""One rule and a book of facts: fires, likely, unknown or quiet, and the line that settled it."""

from __future__ import annotations

from collections.abc import Iterable

from diagnose.facts import FactBook, Value, Witness, typed
from diagnose.judge import wording
from diagnose.judge.compare import Lookup, holds, unknown_in, value
from diagnose.judge.express import Comparison, Node, names
from diagnose.judge.load import Rule
from diagnose.judge.verdict import Outcome, Verdict
from diagnose.phrases import Text, same
from diagnose.record import record
from diagnose.truth import Truth, all_of, any_of, not_
from diagnose.units import Size

#: Presumed of a size: that its estimate is right, where the range around it leaves a comparison open.
ESTIMATE = "as_estimated"

#: Only a rule that speaks has something to explain.
NOTHING = same("")


@record
class _Line:
    """A line of `when`, what it said, and what the rule makes of that."""

    comparison: Comparison
    part: str  # all, any, none
    said: Truth

    @property
    def counts(self) -> Truth:
        """What this line does for the rule: a line of `none` counts by not holding."""
        return not_(self.said) if self.part == "none" else self.said

    def __str__(self) -> str:
        return f"not ({self.comparison})" if self.part == "none" else str(self.comparison)


def decide(rule: Rule, book: FactBook) -> Verdict:
    """The verdict of one rule. What a rule presumes is used only where the book does not know."""
    known = _read(rule, book.value)
    truth = _together(known)
    if truth is False:
        return _verdict(rule, "quiet", str(_refusing(known)))
    if truth is True:
        unproved = book.switch("log.proved") is False  # that memory ran out is then itself a presumption
        return _speaking(rule, "likely" if unproved else "fires", known, book, {})
    presumed = _presumed(rule, book)
    assumed = _read(rule, _with(book, presumed))
    if presumed and _together(assumed) is True:
        return _speaking(rule, "likely", assumed, book, presumed)
    return _undecided(rule, assumed, _with(book, presumed))


def _presumed(rule: Rule, book: FactBook) -> dict[str, Value]:
    """What the rule takes for granted here: values of what is unknown, and the estimate where a fact is only a range."""
    values: dict[str, Value] = {}
    for name, text in rule.presume.items():
        held = book.size(name)
        if text == ESTIMATE:
            if held is not None and not held.exact:
                values[name] = Size.exactly(held.bytes)
        elif _silent(book, name):
            values[name] = typed(name, text)
    return values


def _silent(book: FactBook, name: str) -> bool:
    return book.value(name) in (None, "unknown")


def _with(book: FactBook, presumed: dict[str, Value]) -> Lookup:
    return lambda name: presumed[name] if name in presumed else book.value(name)


def _read(rule: Rule, lookup: Lookup) -> list[_Line]:
    parts = (("all", rule.all), ("any", rule.any), ("none", rule.none))
    return [_Line(comparison, part, holds(comparison, lookup)) for part, comparisons in parts for comparison in comparisons]


def _together(lines: list[_Line]) -> Truth:
    alternatives = [line.said for line in lines if line.part == "any"]
    return all_of([*(line.counts for line in lines if line.part != "any"), *([any_of(alternatives)] if alternatives else [])])


def _refusing(lines: list[_Line]) -> _Line:
    """The line that says no; of several alternatives that all fail, the first."""
    firm = [line for line in lines if line.part != "any" and line.counts is False]
    return firm[0] if firm else next(line for line in lines if line.part == "any")


def _speaking(rule: Rule, outcome: Outcome, lines: list[_Line], book: FactBook, presumed: dict[str, Value]) -> Verdict:
    lookup = _with(book, presumed)
    told = [line for line in lines if line.counts is True]
    accounted = _bytes(rule.accounts_for, lookup)
    read = [name for line in told for name in names(line.comparison)] + ([*names(rule.accounts_for)] if rule.accounts_for else [])
    return _verdict(
        rule,
        outcome,
        ", ".join(map(str, told)),
        explanation=wording.explanation(rule, lookup, presumed),
        accounts_for=accounted,
        share=_share(accounted, book),
        evidence=_witnesses(read, book),
        missing=next(iter(presumed), None),
        exact=any("attribution.exact" in names(line.comparison) for line in told) and "attribution.exact" not in presumed,
        told=len(told),
    )


def _undecided(rule: Rule, lines: list[_Line], lookup: Lookup) -> Verdict:
    unsettled = [line for line in lines if line.counts is None]
    # Where an alternative is open, a line of `all` that is open too comes first: it must hold in any case.
    first = unsettled[0] if unsettled else lines[0]
    return _verdict(rule, "unknown", str(first), missing=unknown_in(first.comparison, lookup), open=len(unsettled))


def _bytes(node: Node | None, lookup: Lookup) -> Size | None:
    found = None if node is None else value(node, lookup)
    return found if isinstance(found, Size) else None


def _share(accounted: Size | None, book: FactBook) -> float | None:
    """How much of the card that is; what the host lacks is no part of a card."""
    capacity = book.size("log.capacity") or book.size("hardware.capacity")
    if accounted is None or capacity is None or capacity.bytes == 0 or book.switch("log.on_card") is False:
        return None
    return accounted.bytes / capacity.bytes


def _witnesses(read: Iterable[str], book: FactBook) -> tuple[Witness, ...]:
    """Where the facts are known from, each place once, in the order the rule reads them."""
    facts = [book.fact(name) for name in dict.fromkeys(read)]
    return tuple(dict.fromkeys(fact.witness for fact in facts if fact is not None and fact.value is not None))


def _verdict(
    rule: Rule,
    outcome: Outcome,
    deciding: str,
    *,
    missing: str | None = None,
    explanation: Text = NOTHING,
    accounts_for: Size | None = None,
    evidence: tuple[Witness, ...] = (),
    exact: bool = False,
    told: int = 0,
    share: float | None = None,
    open: int = 0,
) -> Verdict:
    return Verdict(
        rule=rule.id,
        cause=rule.cause,
        outcome=outcome,
        deciding=deciding,
        missing=missing,
        title=rule.title,
        explanation=explanation,
        accounts_for=accounts_for,
        also_true=False,
        evidence=evidence,
        remedies=rule.remedies,
        url=rule.url,
        exact=exact,
        told=told,
        share=share,
        open=open,
    )
