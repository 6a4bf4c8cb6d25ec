"""No answer offers one act twice in two words: over the corpus, and a row of the vocabulary for every pair of rules that is one act."""

from __future__ import annotations

from itertools import combinations

import cases
from collected import for_each
from sweep import sample

from diagnose import rule_files
from diagnose.plan.remedies import remedy_rules


def test_every_act_names_rules() -> None:
    rules = {rule.id for rule in remedy_rules.rules()}
    assert [name for act in rule_files.table("vocabulary")["acts"] for name in act if name not in rules] == []


@for_each("case", sample(sorted(cases.short_cases()), 60))
def test_no_answer_offers_one_act_twice(case: str) -> None:
    remedies = cases.diagnosed(case).outcome.remedies
    acts = rule_files.table("vocabulary")["acts"]
    pairs = list(combinations([remedy.rule for remedy in remedies], 2))
    assert [pair for pair in pairs if any(set(pair) <= set(act) for act in acts)] == []
    titles = [remedy.title.en for remedy in remedies]
    assert len(titles) == len(set(titles))
