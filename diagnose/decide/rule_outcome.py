"""Evaluate one rule on a book of facts: fires, likely, unknown or quiet, and the line that decided it."""

from __future__ import annotations

from collections.abc import Iterable

from diagnose.decide import verdict_wording
from diagnose.decide.comparison import Lookup, holds, unknown_in, value
from diagnose.decide.expression import Comparison, Node, names
from diagnose.decide.rule_loader import Rule
from diagnose.decide.verdict import Outcome, Verdict
from diagnose.facts import FactBook, Value, Witness, typed
from diagnose.phrases import Text, same
from diagnose.records import NamedTuple
from diagnose.ternary import Truth, all_of, any_of, not_
from diagnose.units import Size

#: Presumed of a size where the range around it leaves a comparison open: that its estimate is right, or the most that it may be.
ESTIMATE, MOST = "as_estimated", "at_most"

#: Only a rule that speaks has something to explain.
NOTHING = same("")


class _Line(NamedTuple):
    """A line of `when`, its truth, and which part of `when` it is in."""

    comparison: Comparison
    part: str  # all, any, none
    said: Truth

    @property
    def counts(self) -> Truth:
        """Whether the line supports the rule; a line of `none` does if it is false."""
        return not_(self.said) if self.part == "none" else self.said

    def __str__(self) -> str:
        return f"not ({self.comparison})" if self.part == "none" else str(self.comparison)


def decide(rule: Rule, book: FactBook) -> Verdict:
    """The verdict of one rule. Its presumptions are used only for facts that the book lacks."""
    decided_lines: list[_Line] = []
    for part, comparisons, refuses in (("all", rule.all, False), ("any", rule.any, "never"), ("none", rule.none, True)):
        for comparison in comparisons:
            said = holds(comparison, book.value)
            if said is refuses:  # most rules say no at once
                return _verdict(rule, "quiet", str(_Line(comparison, part, said)))
            decided_lines.append(_Line(comparison, part, said))
    truth = _together(decided_lines)
    if truth is False:
        return _verdict(rule, "quiet", str(_refusing(decided_lines)))
    if truth is True:
        unproved = book.switch("log.proved") is False  # that memory ran out is then itself a presumption
        return _speaking(rule, "likely" if unproved or _rests_on_words(decided_lines, book) else "fires", decided_lines, book, {})
    presumed = _presumed(rule, book)
    if not presumed:
        return _undecided(rule, decided_lines, book.value)
    lookup = _with(book, presumed)
    assumed = [_again(line, lookup) if not presumed.keys().isdisjoint(line.comparison.names) else line for line in decided_lines]
    if _together(assumed) is True:
        return _speaking(rule, "likely", assumed, book, presumed)
    return _undecided(rule, assumed, lookup)


def _rests_on_words(lines: list[_Line], book: FactBook) -> bool:
    """Whether the rule speaks because of what a person said of the failure, which proves nothing."""
    names = (name for line in lines if line.part != "none" and line.said is True for name in line.comparison.names)
    facts = (book.fact(name) for name in names if name.startswith(("log.", "report.")))
    return any(fact is not None and fact.origin == "said" for fact in facts)


def _presumed(rule: Rule, book: FactBook) -> dict[str, Value]:
    """Values that the rule presumes here: for unknown facts, and for sizes known only as a range their estimate or maximum."""
    values: dict[str, Value] = {}
    for name, text in rule.presume.items():
        size = book.size(name)
        if text in (ESTIMATE, MOST):
            if size is not None and not size.exact:
                values[name] = Size.exactly(size.bytes if text == ESTIMATE else size.high)
        elif _silent(book, name):
            values[name] = typed(name, text)
    return values


def _silent(book: FactBook, name: str) -> bool:
    return book.value(name) in (None, "unknown")


def _with(book: FactBook, presumed: dict[str, Value]) -> Lookup:
    return lambda name: presumed[name] if name in presumed else book.value(name)


def _again(line: _Line, lookup: Lookup) -> _Line:
    return _Line(line.comparison, line.part, holds(line.comparison, lookup))


def _together(lines: list[_Line]) -> Truth:
    alternatives = [line.said for line in lines if line.part == "any"]
    return all_of([*(line.counts for line in lines if line.part != "any"), *([any_of(alternatives)] if alternatives else [])])


def _refusing(lines: list[_Line]) -> _Line:
    """The line that makes the rule quiet; of alternatives that are all false, the first."""
    firm = [line for line in lines if line.part != "any" and line.counts is False]
    return firm[0] if firm else next(line for line in lines if line.part == "any")


def _speaking(rule: Rule, outcome: Outcome, lines: list[_Line], book: FactBook, presumed: dict[str, Value]) -> Verdict:
    lookup = _with(book, presumed)
    true_lines = [line for line in lines if line.counts is True]
    accounted = _within(_bytes(rule.accounts_for, lookup), book)
    fact_names = [name for line in true_lines for name in line.comparison.names] + (
        [*names(rule.accounts_for)] if rule.accounts_for else []
    )
    return _verdict(
        rule,
        outcome,
        ", ".join(map(str, true_lines)),
        explanation=verdict_wording.filled(rule.evidence, lookup),
        assumes=verdict_wording.assumption(rule, lookup, presumed),
        put_right=verdict_wording.filled(rule.put_right, lookup) if rule.put_right else None,
        accounts_for=accounted,
        share=_share(accounted, book),
        evidence=_witnesses(fact_names, book),
        missing=next(iter(presumed), None),
        exact=any("attribution.exact" in line.comparison.names for line in true_lines) and "attribution.exact" not in presumed,
        told=sum(line.comparison.count if line.part == "none" else 1 for line in true_lines),  # of `in` one value holds, or none of all
    )


def _undecided(rule: Rule, lines: list[_Line], lookup: Lookup) -> Verdict:
    unsettled = [line for line in lines if line.counts is None]
    # Where an alternative is open, a line of `all` that is open too comes first: it must hold in any case.
    first = unsettled[0] if unsettled else lines[0]
    lacks = dict.fromkeys(name for line in unsettled if (name := unknown_in(line.comparison, lookup)) is not None)
    return _verdict(
        rule,
        "unknown",
        str(first),
        missing=unknown_in(first.comparison, lookup),
        open=sum(line.comparison.count for line in unsettled),
        lacks=tuple(lacks),
    )


def _bytes(node: Node | None, lookup: Lookup) -> Size | None:
    operand = None if node is None else value(node, lookup)
    return operand if isinstance(operand, Size) and operand.high > 0 else None


def _within(accounted: Size | None, book: FactBook) -> Size | None:
    """The bytes that a cause accounts for, at most the card's capacity: where the job was running on a card and the message has figures, an
    estimate above that is an upper bound. (While loading, what is still to come may be more than any card has.)"""
    capacity = book.size("hardware.capacity") or book.size("log.capacity")
    loads = book.word("log.phase") in (None, "model_load", "init", "dataset")
    if accounted is None or capacity is None or book.size("log.allocated") is None or loads or book.switch("log.on_card") is False:
        return accounted
    return accounted if accounted.low <= capacity.high else Size(0, capacity.high, capacity.high)


def _share(accounted: Size | None, book: FactBook) -> float | None:
    """The bytes as a share of the card; None for host memory, an unknown card, and below half a percent."""
    capacity = book.size("log.capacity") or book.size("hardware.capacity")
    if accounted is None or capacity is None or capacity.bytes == 0 or book.switch("log.on_card") is False:
        return None
    share = accounted.bytes / capacity.bytes
    return share if share >= 0.005 else None


def _witnesses(fact_names: Iterable[str], book: FactBook) -> tuple[Witness, ...]:
    """The places that facts are known from, without repeats, in the order in which the rule reads them."""
    facts = [book.fact(name) for name in dict.fromkeys(fact_names)]
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
    assumes: Text | None = None,
    put_right: Text | None = None,
    open: int = 0,
    lacks: tuple[str, ...] = (),
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
        assumes=assumes,
        put_right=put_right,
        open=open,
        lacks=lacks,
        rules_out=rule.rules_out,
    )
