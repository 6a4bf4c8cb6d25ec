"""The measure of agreement itself, and what may be called one mistake."""

from __future__ import annotations

from triage.agreement import agreement, repeated

from diagnose.cluster.store.group_fingerprint import Parts, is_one_mistake

KNOWN = Parts("torch_cuda", "forward", "", "ledger.t_mlp_linear", "activations", "", "")


def test_pairs_are_counted_against_the_truth() -> None:
    """Two mistakes in one claimed group cost precision; one mistake in two groups costs recall; a job without a group is alone."""
    of = agreement([("a", "1", True), ("a", "1", True), ("b", "1", True), ("b", "2", False), ("b", "", False), ("b", "", False)])
    assert (of.claimed, of.claimed_right) == (3, 1) and (of.true, of.together) == (7, 1)


def test_one_mistake_needs_a_cause_and_a_tensor_or_a_place() -> None:
    """A cause without a name, a tensor that a frame alone names, or the function of every script only make failures look alike."""
    assert is_one_mistake(KNOWN)
    assert is_one_mistake(KNOWN._replace(tensor="", frame="loss.py:pairwise"))
    for other in (
        KNOWN._replace(cause=""),
        KNOWN._replace(cause="unknown"),
        KNOWN._replace(tensor="ledger.f_feed"),
        KNOWN._replace(tensor="", frame="train.py:main"),
        KNOWN._replace(tensor=""),
    ):
        assert not is_one_mistake(other), other


def test_a_repeated_log_is_another_jobs() -> None:
    """Other ranks, lines and requests, the same words: else the benchmark measured copies."""
    import random

    log = '[rank3]: File "/home/ann/train.py", line 40, in step\n[rank3]: torch.OutOfMemoryError: Tried to allocate 4.00 GiB.\n'
    made = {repeated(log, random.Random(number)) for number in range(20)}
    assert len(made) > 10 and all("Tried to allocate" in text for text in made) and any("4.00 GiB" not in text for text in made)
