"""Rules and facts to verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diagnose.decide import competition, rule_loader
from diagnose.decide.rule_outcome import decide
from diagnose.decide.verdict import Judgement, Verdict
from diagnose.errors import crashed
from diagnose.facts import FactBook


def judge(book: FactBook, folders: Sequence[Path] = (), trial: bool = False) -> Judgement:
    """Evaluate all rules on these facts and rank the causes that apply.

    `folders` hold the user's own rules, which add to ours or replace them by id. A rule that crashes becomes a note about that rule; the
    others go on.
    """
    rules, faults = rule_loader.rules(folders, trial=trial)
    verdicts: list[Verdict] = []
    for rule in rules:
        try:
            verdicts.append(decide(rule, book))
        except Exception as error:  # whatever a rule does wrong, the others go on
            faults.append(crashed(rule.id, error))
    shortage = book.size("log.shortage") if book.switch("log.on_card") is not False else None
    causes = competition.ranked(verdicts, {rule.id: rule.yields_to for rule in rules}, shortage)
    undecided = sorted((verdict for verdict in verdicts if verdict.outcome == "unknown"), key=lambda verdict: (verdict.open, verdict.rule))
    return Judgement(tuple(causes), tuple(undecided), tuple(verdicts), tuple(faults))
