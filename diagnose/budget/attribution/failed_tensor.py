"""Which of the tensors that request_tensor.py found is the one that failed, where its size is more than a coincidence."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.budget.model.ledger import Attribution
from diagnose.facts import FactBook

#: Below this chance a weight is likeliest where a run that learns nothing asked for it and nothing else prints alike: every run makes all
#: of them, one after the other, and most that fill a card do so then.
LIKELIEST = 0.05


def identity(attributions: Sequence[Attribution], book: FactBook) -> Attribution | None:
    """The best attribution where the traceback shows it or it is no coincidence in its phase, and where its rows name the pass. Where
    nothing tells the phase, a product of known dimensions whose size is no coincidence, if all that print alike are of one group; of a run
    that learns nothing also a weight that is likeliest."""
    best = attributions[0] if attributions else None
    if best is None or best.named or best.scoring:
        return best
    known = [attribution for attribution in attributions if not attribution.solved]
    exact = [attribution for attribution in known if attribution.exact]
    if not exact and book.switch("train.enabled") is False and all(each.group == "weights" for each in attributions):
        exact = [attribution for attribution in known if attribution.chance < LIKELIEST and not attribution.by_frame]
    groups = {attribution.group for attribution in exact}
    return exact[0] if len(groups) == 1 and "log.phase" not in book else None
