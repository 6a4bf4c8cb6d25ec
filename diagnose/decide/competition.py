"""Rank the causes that apply: which is set aside by which, which comes first; then one verdict per cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnose.decide.verdict import Verdict
from diagnose.units import Size

_CERTAINTY = {"fires": 0, "likely": 1}

#: Two sums of a ledger that are this close are equals: its formulas are no better.
ALIKE = 0.95

#: In `yields_to`: true as it may be, this is not what filled the memory this time.
EVERYTHING = "everything"

#: In `yields_to`: what is left to say where no other cause leads.
ANYTHING = "anything"


def ranked(verdicts: Sequence[Verdict], yields_to: Mapping[str, tuple[str, ...]], shortage: Size | None) -> list[Verdict]:
    """The causes that fire or are likely, best first: those set aside last, then by certainty, then by bytes; at the end causes that apply
    only if no other does.

    `yields_to` names, by rule, the rules or causes that set it aside. `shortage` is the request less the free memory; without it (no
    figures, or a host kill) the bytes alone rank. No weights: every step is one comparison.
    """
    speaking = [_hedged(verdict) for verdict in verdicts if verdict.outcome in _CERTAINTY]
    standing = [verdict._replace(also_true=_set_aside(verdict, speaking, yields_to.get(verdict.rule, ()))) for verdict in speaking]
    last = {verdict.rule for verdict in standing if ANYTHING in yields_to.get(verdict.rule, ())}
    if any(not verdict.also_true and verdict.rule not in last for verdict in standing):
        standing = [verdict for verdict in standing if verdict.rule not in last]
    ordered = sorted(standing, key=lambda verdict: (*_rank(verdict, shortage), *_alike(verdict)))
    return _merged(sorted(_settled(ordered, shortage), key=lambda verdict: verdict.rule in last), yields_to)


def _hedged(verdict: Verdict) -> Verdict:
    """An unnamed cause is at most likely: only what filled the memory is known, not why."""
    return verdict._replace(outcome="likely") if verdict.cause == "unknown" else verdict


def _set_aside(verdict: Verdict, speaking: Sequence[Verdict], to: tuple[str, ...]) -> bool:
    """Whether a cause that it yields to applies with at least the same certainty: a likely cause never sets a certain one aside."""
    return EVERYTHING in to or any(
        (rival.rule in to or rival.cause in to) and rival.rule != verdict.rule and _CERTAINTY[rival.outcome] <= _CERTAINTY[verdict.outcome]
        for rival in speaking
    )


def _rank(verdict: Verdict, shortage: Size | None) -> tuple[bool, int, bool, bool]:
    """Sort key before bytes: set aside or not, certainty, whether it accounts for the shortage, whether it names the requested tensor."""
    # One tensor that prints as the request accounts for it, whatever the rest of its pool holds.
    covers = verdict.exact or shortage is None or (verdict.accounts_for is not None and verdict.accounts_for.high >= shortage.low)
    return verdict.also_true, _CERTAINTY[verdict.outcome], not covers, not verdict.exact


def _bytes(verdict: Verdict) -> int:
    return verdict.accounts_for.bytes if verdict.accounts_for else 0


def _settled(verdicts: Sequence[Verdict], shortage: Size | None) -> list[Verdict]:
    """Reorder causes of equal rank and similar bytes by the number of rule lines that support them."""
    settled: list[Verdict] = []
    alike: list[Verdict] = []
    for verdict in verdicts:
        first = alike[0] if alike else verdict
        if _rank(verdict, shortage) != _rank(first, shortage) or _bytes(verdict) < _bytes(first) * ALIKE:
            settled += sorted(alike, key=lambda held: (-held.told, *_alike(held)))
            alike = []
        alike.append(verdict)
    return settled + sorted(alike, key=lambda held: (-held.told, *_alike(held)))


def _alike(verdict: Verdict) -> tuple[int, int, str, str]:
    """Sort key between equals: bytes, number of witnesses, deciding line, title; never the name of the rule's file."""
    return -_bytes(verdict), -len(verdict.evidence), verdict.deciding, verdict.title.en


def _merged(verdicts: Sequence[Verdict], yields_to: Mapping[str, tuple[str, ...]]) -> list[Verdict]:
    """One verdict per cause: the best ranked, with the witnesses and remedies of the others added. A certain rule that yields to a
    likely one of its own cause lends it the certainty of the cause: that host RAM ran out is certain, by what is the likely account."""
    merged: dict[str, Verdict] = {}
    for verdict in verdicts:
        merged_verdict = merged.get(verdict.cause)
        if merged_verdict is None:
            merged[verdict.cause] = verdict
        elif not verdict.also_true and not merged_verdict.also_true and _gives_way(merged_verdict, verdict, yields_to):
            merged[verdict.cause] = _joined(verdict, merged_verdict)._replace(outcome=merged_verdict.outcome)
        else:
            merged[verdict.cause] = _joined(merged_verdict, verdict)
    return list(merged.values())


def _gives_way(general: Verdict, account: Verdict, yields_to: Mapping[str, tuple[str, ...]]) -> bool:
    to = yields_to.get(general.rule, ())
    return account.outcome == "likely" and (account.rule in to or account.cause in to)


def _joined(best: Verdict, further: Verdict) -> Verdict:
    return best._replace(
        accounts_for=best.accounts_for or further.accounts_for,
        share=best.share if best.accounts_for else further.share,
        evidence=tuple(dict.fromkeys(best.evidence + further.evidence)),
        put_right=best.put_right or further.put_right,
        rules_out=best.rules_out or further.rules_out,
        # what was set aside lends no advice to what stands
        remedies=best.remedies if further.also_true and not best.also_true else tuple(dict.fromkeys(best.remedies + further.remedies)),
    )
