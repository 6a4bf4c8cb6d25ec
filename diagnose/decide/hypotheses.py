"""How likely each cause is: its rate among labelled failures of the regime and phase, times the evidence (rules/hypotheses.yaml).

It weighs remedies (diagnose/plan/choose/base_rates.py). Which cause is named first is decided in competition.py; where no rule names one,
the likeliest is named as possible.

Probabilities are over what filled the memory: exactly one of the causes is taken to be true. Evidence adds in decibans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from diagnose import rule_files
from diagnose.decide.comparison import holds
from diagnose.decide.expression import Comparison, comparison_of, parse, to_data
from diagnose.decide.verdict import Judgement, Verdict
from diagnose.facts import FactBook
from diagnose.phrases import phrase, same

#: The name of the verdict that no rule gives.
POSSIBLE = "likeliest"


def probabilities(book: FactBook, verdicts: Iterable[Verdict]) -> dict[str, float]:
    """The probability of each cause that labelled failures of this regime had or that a rule speaks for; the likeliest first."""
    table = _evidence()
    odds = dict(prior(book))
    least = min(odds.values(), default=1.0)
    spoken: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.cause != "unknown":
            weight = table["rules"]["aside" if verdict.also_true else verdict.outcome]
            spoken[verdict.cause] = max(spoken.get(verdict.cause, 0), weight)
    for cause in spoken:
        odds.setdefault(cause, least)
    for cause in odds:
        rows = table["evidence"].get(cause, ())
        decibans = spoken.get(cause, 0) + sum(
            weight
            for weight, conditions, unknown in rows
            if all(holds(line, book.value) is True for line in conditions) and all(book.value(name) is None for name in unknown)
        )
        odds[cause] *= 10.0 ** (decibans / 10)
    whole = sum(odds.values())
    return {cause: share / whole for cause, share in sorted(odds.items(), key=lambda pair: (-pair[1], pair[0]))}


def named(book: FactBook, judgement: Judgement) -> Judgement:
    """The same where a cause leads, or calls for remedies of its own; else with the likeliest one as possible, where it is likely enough.
    What is said of a card whose content nobody knows is said of it, too. It calls for no remedy: those are weighed over all causes."""
    leading = [cause for cause in judgement.causes if not cause.also_true]
    first = next(iter(leading), None)
    of_no_network = book.word("run.takes") == "none"  # what was labelled had one
    if of_no_network or any(cause.cause != "unknown" or cause.remedies for cause in leading):
        return judgement
    cause, share = next(iter(probabilities(book, judgement.causes).items()), ("unknown", 0.0))
    if cause == "unknown" or share < rule_files.table("hypotheses")["named"]:
        return judgement
    what, nothing = phrase(f"manual.cause_{cause}"), same("")
    told = first.explanation if first is not None else phrase("judge.nothing_shows")
    verdict = first or Verdict(POSSIBLE, cause, "possible", "", None, nothing, nothing, None, False, (), (), "")
    verdict = verdict._replace(
        cause=cause,
        outcome="possible",
        title=phrase("judge.possible", what=what),
        explanation=told,
        accounts_for=None,
        share=None,
    )
    return judgement._replace(causes=(verdict, *(other for other in judgement.causes if other is not first)))


def prior(book: FactBook) -> dict[str, float]:
    """How often each cause was that of a labelled failure of this regime and phase. Where few were labelled in this phase, those of the
    whole regime stand in; host memory and cards are never mixed."""
    pseudo = rule_files.table("hypotheses")["pseudo"]
    failed = phase(book)
    phases: Mapping[str, Mapping[str, Any]] = rule_files.table("cures").get(book.word("run.regime") or "train", {})
    own = phases.get(failed, {})
    whole: dict[str, float] = {}
    for name, causes in phases.items():
        if (name == "host") == (failed == "host"):
            for cause, entry in causes.items():
                whole[cause] = whole.get(cause, 0.0) + entry["of"]
    total = sum(whole.values()) or 1.0
    return {
        cause: (own[cause]["of"] if cause in own else 0) + pseudo["regime"] * count / total + pseudo["unseen"] / len(whole)
        for cause, count in whole.items()
    }


def phase(book: FactBook) -> str:
    """The phase as the table of labelled failures has it."""
    return "host" if book.switch("log.on_card") is False else book.word("log.phase") or "unknown"


@lru_cache(maxsize=1)
def _evidence() -> dict[str, Any]:
    """The table, with its conditions compiled."""
    kept = rule_files.kept("decide.hypotheses", _compiled, "hypotheses", "facts")
    evidence: dict[str, list[tuple[int, list[Comparison], list[str]]]] = {
        cause: [(weight, [comparison_of(line) for line in lines], names) for weight, lines, names in rows]
        for cause, rows in kept["evidence"].items()
    }
    return {"rules": kept["rules"], "evidence": evidence}


def _compiled() -> dict[str, Any]:
    """The rows of each cause; one that is a group of the estimate also has those of `of_estimate`."""
    table = rule_files.table("hypotheses")
    rows: dict[str, list[Mapping[str, Any]]] = {cause: list(lines) for cause, lines in table["evidence"].items()}
    for name in rule_files.table("facts"):
        group, _, cause = name.partition(".")
        if group == "ledger" and cause in rows:
            rows[cause] += [{**row, "when": [line.format(cause=cause) for line in row["when"]]} for row in table["of_estimate"]]
    evidence = {
        cause: [(row["weight"], [to_data(parse(line)) for line in row.get("when", ())], row.get("unknown", [])) for row in lines]
        for cause, lines in rows.items()
    }
    return {"rules": dict(table["rules"]), "evidence": evidence}
