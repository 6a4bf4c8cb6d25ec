"""Where nobody knows what fits, the first remedies stand by how they were judged when such a cause was named."""

from __future__ import annotations

import pytest

from diagnose import explain, rule_files

TITLE = "# Runs out of memory\n\nThe kernel's OOM killer ends it: exit code 137, the host has 64 GB of RAM.\n"


@pytest.mark.parametrize("useful", [0, 1])
def test_judgements_move_the_first_remedies_and_no_others(monkeypatch: pytest.MonkeyPatch, useful: int) -> None:
    judged = rule_files.table("judged")
    found = explain(TITLE)
    rule, shown = found.judgement.causes[0].rule, [remedy.id for remedy in found.outcome.remedies]
    assert len(shown) > 1
    count = (100, 100 * useful, 100 * useful, 100 * (1 - useful))
    monkeypatch.setitem(judged, rule, {shown[1]: count})
    after = [remedy.id for remedy in explain(TITLE).outcome.remedies]
    assert sorted(after) == sorted(shown)
    assert (after[0] == shown[1]) is bool(useful)
