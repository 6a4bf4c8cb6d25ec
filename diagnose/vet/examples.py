"""Checks a rule against its own examples: verdicts as expected, and every condition needed by some example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from diagnose.decide.competition import ANYTHING, EVERYTHING
from diagnose.decide.expression import Choices, Comparison, names
from diagnose.decide.known_bad_releases import rule_of_release
from diagnose.decide.rule_loader import Rule, rule_of
from diagnose.decide.rule_outcome import decide
from diagnose.errors import UserError
from diagnose.facts import Fact, FactBook, Witness, typed
from diagnose.phrases import phrase
from diagnose.vet.fault import Fault
from diagnose.vet.paper import Paper

VERDICTS = ("fires", "likely", "unknown", "quiet")
#: Every rule shows at least one of each.
NEEDED = ("fires", "quiet", "unknown")

Case = tuple[Mapping[str, str], str]


def check(paper: Paper) -> Iterator[Fault]:
    """Run the examples of one cause."""
    if paper.room == "remedies":
        return
    try:
        rule = rule_of(written(paper))
        examples = cases(paper)
        yield from promised(paper, rule, examples)
        yield from kinds(paper, examples)
        yield from earning(paper, rule, examples)
    except UserError:
        return  # the line that cannot be read is reported by its own check


def written(paper: Paper) -> Mapping[str, object]:
    return rule_of_release(paper.data) if paper.room == "versions" else paper.data


def cases(paper: Paper) -> list[Case]:
    """The facts and the expected verdict of each example."""
    presumed = paper.data.get("given", {})
    return [({**presumed, **example.get("with", {})}, example.get("expect", "")) for example in paper.data["examples"]]


def promised(paper: Paper, rule: Rule, examples: Sequence[Case]) -> Iterator[Fault]:
    """Every example has its expected verdict, and no explanation lacks a figure."""
    blank = phrase("judge.unknown").en
    for index, (facts, expect) in enumerate(examples):
        if expect not in VERDICTS:
            yield paper.fault(("examples", index), "unknown_word", word=expect, known=", ".join(VERDICTS))
            continue
        verdict = decide(rule, book(facts))
        if verdict.outcome != expect:
            yield paper.fault(("examples", index), "verdict_differs", expect=expect, outcome=verdict.outcome, line=verdict.deciding)
        if expect == "fires" and blank in verdict.explanation.en and "accounts_for" not in paper.data:
            yield paper.fault(("examples", index), "figure_missing", text=verdict.explanation.en)


def kinds(paper: Paper, examples: Sequence[Case]) -> Iterator[Fault]:
    for verdict in NEEDED:
        if not any(expect == verdict for _, expect in examples):
            yield paper.fault(("examples",), "no_example", verdict=verdict)


def earning(paper: Paper, rule: Rule, examples: Sequence[Case]) -> Iterator[Fault]:
    """Without any one of the conditions some example would have another verdict; otherwise the condition is untested or superfluous."""
    for part in ("all", "any", "none"):
        for index, line in enumerate(getattr(rule, part)):
            for left, shorter in shortened(line):
                lesser = instead(rule, part, index, shorter)
                if all(decide(lesser, book(facts)).outcome == expect for facts, expect in examples):
                    yield paper.fault(place(paper, part, index), "line_unused", line=left)


def shortened(line: Comparison) -> Iterator[tuple[str, tuple[Comparison, ...]]]:
    """Ways to weaken a condition: what is left out, and what remains (nothing, or one value fewer)."""
    yield str(line), ()
    if isinstance(line.right, Choices):
        for part in line.right.parts:
            fewer = Choices(tuple(choice for choice in line.right.parts if choice != part))
            yield f"{line.left} == {part}", (Comparison(line.left, line.operator, fewer),)


def instead(rule: Rule, part: str, index: int, lines: tuple[Comparison, ...]) -> Rule:
    """The rule with one condition replaced by others, or removed."""
    conditions: tuple[Comparison, ...] = getattr(rule, part)
    changed = conditions[:index] + lines + conditions[index + 1 :]
    if part == "any":
        return rule._replace(any=changed)
    return rule._replace(all=changed) if part == "all" else rule._replace(none=changed)


def place(paper: Paper, part: str, index: int) -> tuple[str | int, ...]:
    if paper.room == "causes":
        return ("when", part, index)
    return (("symptom" if part == "all" else part), index)


def book(facts: Mapping[str, str]) -> FactBook:
    """A FactBook with these values, as if a log had printed them."""
    witness = Witness("given", text="example")
    return FactBook(Fact(name, typed(name, text), "log", witness) for name, text in facts.items())


def neighbours(papers: Sequence[Paper]) -> Iterator[Fault]:
    """No two rules for different causes fire on each other's examples: one must yield, or they are the same rule."""
    speaking = [speaker for paper in papers if paper.room != "remedies" and (speaker := _speaking(paper)) is not None]
    for at, first in enumerate(speaking):
        for second in speaking[at + 1 :]:
            if (
                first.rule.cause != second.rule.cause
                and _fires_on(first, second)
                and _fires_on(second, first)
                and not related(first.rule, second.rule)
            ):
                yield first.paper.fault((), "neighbours", one=first.rule.id, other=second.rule.id)


def runs(paper: Paper) -> bool:
    """Whether conditions and examples can be parsed; otherwise other checks report it."""
    try:
        rule_of(written(paper))
        return all(book(facts) is not None for facts, _ in cases(paper))
    except UserError:
        return False


def related(rule: Rule, second: Rule) -> bool:
    to_all = {ANYTHING, EVERYTHING}
    return bool({second.id, second.cause, *to_all} & set(rule.yields_to)) or bool({rule.id, rule.cause, *to_all} & set(second.yields_to))


@dataclass(slots=True, eq=False)
class _Speaking:
    """A rule, the facts that it needs to fire, and the examples on which it fires."""

    paper: Paper
    rule: Rule
    needs: frozenset[str]
    fired: tuple[Mapping[str, str], ...]

    @classmethod
    def of(cls, paper: Paper) -> _Speaking:
        rule = rule_of(written(paper))
        needs = frozenset(name for line in rule.all for name in names(line))
        return cls(paper, rule, needs, tuple(facts for facts, expect in cases(paper) if expect == "fires"))


@cache
def _fires_on(first: _Speaking, second: _Speaking) -> bool:
    return any(first.needs <= facts.keys() and decide(first.rule, book(facts)).outcome == "fires" for facts in second.fired)


@cache
def _speaking(paper: Paper) -> _Speaking | None:
    """None: its conditions or examples cannot be read."""
    return _Speaking.of(paper) if runs(paper) else None
