"""No answer offers one act twice in two words: over the corpus, and a row of the vocabulary for every pair of rules that is one act."""

from __future__ import annotations

from itertools import combinations

import cases
from collected import for_each
from sweep import sample

from diagnose import explain, rule_files
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


def test_a_batch_of_unknown_size_is_named_with_the_samples() -> None:
    """Of reports that do not say how large the batch is nearly half have it at its lowest: it takes no place of its own in the list. Where
    the batch is told, it does."""
    message = "CUDA out of memory. Tried to allocate 560.00 MiB. GPU 0 has a total capacity of 47.41 GiB of which 370.38 MiB is free.\n"
    frame = 'File "train.py", line 61, in step\n    loss.backward()\n'
    unknown = {remedy.id: remedy for remedy in explain(f"{frame}{message}").outcome.remedies}
    assert "lower_micro_batch" not in unknown
    assert (
        "Halve the batch if it is above 1" in unknown["smaller_samples"].title.en
        and "先减半（结果不变" in unknown["smaller_samples"].title.zh
    )
    known = explain(f"{frame}{message}", set={"train.micro_batch_size": "16"}).outcome.remedies
    assert known[0].id == "lower_micro_batch" and all("Halve the batch" not in remedy.title.en for remedy in known)
