"""The measure of agreement itself, and what may be called one mistake."""

from __future__ import annotations

from pathlib import Path

from cases import deferred_advice
from triage.agreement import PRECISION, RECALL, agreement, grown, repeated

from diagnose import explain
from diagnose.cluster.store import group_fingerprint
from diagnose.cluster.store.group_fingerprint import Parts, is_one_mistake, name

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


def test_one_program_at_one_place_is_one_mistake_whatever_tips_the_cause() -> None:
    """What is idle that day makes it fragmentation or a long row; another model, card or stack is another mistake."""
    job = KNOWN._replace(tensor="", frame="", cause="fragmentation", model="40370176", card="79", stack="a1")
    assert name(job) == name(job._replace(cause="long_sample", knobs="train.packing=off", phase="backward"))
    assert is_one_mistake(job) and not is_one_mistake(job._replace(cause="unknown"))
    for other in ({"model": "8"}, {"card": "24"}, {"stack": "b2"}, {"family": "cublas"}):
        assert name(job) != name(job._replace(**other)), other
    assert name(job._replace(model="")) != name(job._replace(model="", cause="long_sample")), "else the cause is all there is"


def test_a_switch_is_one_mistake_with_any_model() -> None:
    job = KNOWN._replace(tensor="ledger.t_mlp_product", knobs="train.gradient_checkpointing=disabled", model="1", card="24", stack="a")
    assert is_one_mistake(job) and name(job) == name(job._replace(model="2", card="79", stack="b"))
    unproven = job._replace(tensor="ledger.f_feed")  # of a frame alone
    assert name(unproven) != name(unproven._replace(model="2"))


def test_the_mistakes_of_a_generated_tree_are_found_again(tmp_path: Path) -> None:
    """Both bars, on jobs of which half have figures of their own and some a config; the benchmark does it with hundreds."""
    rows = []
    for log, mistake in grown(tmp_path, 70, 5).items():
        path = tmp_path / log
        if mistake is None or path.name.startswith("rank"):  # a log of one rank is not a job
            continue
        config = path.with_name("train.yaml")
        with deferred_advice():
            parts = group_fingerprint.parts(explain(path, configs=[config] if config.exists() else []))
        if parts is not None:
            rows.append((mistake, name(parts), is_one_mistake(parts)))
    of = agreement(rows)
    assert of.claimed > 20 and of.precision >= PRECISION and of.recall >= RECALL, of
