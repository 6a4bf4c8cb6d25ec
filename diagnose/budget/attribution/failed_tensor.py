"""Which of the tensors that request_tensor.py found is the one that failed, where its size is more than a coincidence."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.budget.model.ledger import Attribution
from diagnose.facts import FactBook


def identity(attributions: Sequence[Attribution], book: FactBook) -> Attribution | None:
    """The best attribution where the traceback shows it or it is no coincidence in its phase, and where its rows name the pass. Where
    nothing tells the phase, a product of known dimensions whose size is no coincidence, if all that print alike are of one group."""
    best = attributions[0] if attributions else None
    if best is None or best.named or best.scoring:
        return best
    exact = [attribution for attribution in attributions if attribution.exact and not attribution.solved]
    groups = {attribution.group for attribution in exact}
    return exact[0] if len(groups) == 1 and "log.phase" not in book else None
