"""What real reports teach, one line each: the rule that knows it, and a case of the corpus that goes wrong without that rule.

A rule is a cause, a remedy, or an entry `near.KIND` of rules/messages.yaml: the wordings of what only follows from a failure.
`tests/rules/test_needed.py` asks of every rule whether some case needs it; this table asks of every lesson whether we have learned it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cases import diagnosed, disagreements, run

from diagnose import rule_files
from diagnose.decide import rule_loader as causes
from diagnose.plan.remedies import remedy_rules as remedies
from diagnose.scan import memory_words

#: Number, lesson, rule, case.
LESSONS = [
    (
        1,
        "a printed request is the allocator's block: a tensor is matched after the rounding",
        "request-is-an-activation",
        "adapters-do-not-shrink-activations",
    ),
    (2, "one size fits several tensors: the phase and the known model break the tie", "logits-of-scoring", "sixteen-rows-of-experience"),
    (3, "the size tells the width in use, whatever the settings ask for", "request-of-another-width", "fp32-matrices-of-a-16-bit-run"),
    (
        4,
        "the size tells the tokens in use: many times the cap means that the cap is not in force",
        "token-cap-not-enforced",
        "thirty-thousand-tokens-under-a-cap-of-8192",
    ),
    (5, "other processes are found by subtraction", "foreign-memory", "a-colleague-has-the-card"),
    (6, "reserved and unallocated is a verdict only where it could have covered the request", "fragmented-reserve", "llamafactory-6800"),
    (
        7,
        "the loss needs the same tensor several times: making room for one moves the crash by a line",
        "chunked-loss",
        "thirty-two-thousand-rows-of-scores",
    ),
    (8, "a flat partition is optimizer state, whatever batch and length", "request-is-optimizer-state", "the-master-partition-at-start"),
    (
        9,
        "patches of an image attend to each other: pixels bound them, not the length limit",
        "request-is-vision",
        "one-image-of-twenty-megapixels",
    ),
    (10, "when it fails says why: states at the first step", "states-at-the-first-step", "adam-moments-at-the-first-step"),
    (10, "when it fails says why: growth is a leak", "memory-grows-every-step", "memory-grows-with-every-step"),
    (10, "when it fails says why: a late step is the longest sample", "longest-sample", "eight-hundred-steps-passed"),
    (10, "when it fails says why: the first step after an evaluation", "first-step-after-evaluation", "the-first-step-after-evaluation"),
    (10, "when it fails says why: a resume reads the states back", "optimizer-loaded-on-resume", "the-optimizer-comes-back-on-resume"),
    (
        11,
        "the first rank that fails is the cause: a time-out of the others is an echo",
        "near.collective_timeout",
        "seven-ranks-report-a-time-out",
    ),
    (11, "... a collective that lost its peer is an echo", "near.collective_error", "seven-ranks-report-a-time-out"),
    (11, "... a store that lost its peer is an echo", "near.store", "seven-ranks-report-a-time-out"),
    (11, "... the launcher ends the others", "near.sigterm", "seven-ranks-report-a-time-out"),
    (11, "... and sums up", "near.exit", "seven-ranks-report-a-time-out"),
    (12, "an error of this name may be host memory", "host-memory-exhausted", "slurm-kills-the-step"),
    (12, "an error of this name may be memory on the chip", "kernel-needs-more-shared-memory", "a-kernel-too-large-for-the-chip"),
    (12, "an error of this name may be pinned host memory", "pinned-memory-refused", "pinned-memory-of-the-host-runs-out"),
    (12, "a bus error may be shared memory", "shared-memory-full", "shared-memory-of-the-container"),
    (
        13,
        "a failure may be only a warning, and the checkpoint is broken all the same",
        "saving-gathers-on-the-card",
        "a-clone-fails-while-saving",
    ),
    (14, "what is in effect may not be what is written: a key that nobody reads", "key-not-read", "axolotl-2143"),
    (
        14,
        "what is in effect may not be what is written: the log shows another value",
        "log-shows-another-value",
        "the-log-shows-another-batch",
    ),
    (14, "what is in effect may not be what is written: set too late", "arguments-after-model", "arguments-created-after-the-model"),
    (15, "sharding divides states, never the logits of a row", "shard-everything", "a-small-model-with-a-large-vocabulary"),
    (16, "remedies move memory elsewhere: what sleeps fills the host", "sleeping-engines-in-host-memory", "sleeping-engines-fill-the-host"),
    (16, "remedies move memory elsewhere: offload is the cause of a kill", "offload-fills-the-host", "killed-while-offloading"),
    (
        17,
        "advice may need the opposite sign: an engine short of cache wants more of the card",
        "larger-engine-share",
        "no-room-for-one-sequence",
    ),
    (
        17,
        "advice may need the opposite sign: beside a trainer it wants less",
        "smaller-engine-share",
        "the-engine-keeps-three-quarters-of-the-card",
    ),
    (18, "more is not monotonic: further cards do not divide what one row needs", "more-cards", "thirty-two-thousand-rows-of-scores"),
    (19, "what is done already is no remedy", "gradient-checkpointing", "one-row-of-143360-tokens"),
    (20, "precision depends on the card", "bf16-compute", "two-buckets-on-a-t4"),
    (20, "attention kernels depend on the card", "flash-attention", "two-buckets-on-a-t4"),
    (21, "releases differ in their defaults", "attention-nobody-chose", "an-old-release-chose-eager-attention"),
    (22, "evaluation has its own arithmetic: predictions pile up", "predictions-concatenated", "predictions-pile-up-in-evaluation"),
    (22, "evaluation has its own arithmetic: a batch of its own", "evaluation-batch", "evaluation-has-a-batch-of-its-own"),
    (23, "without figures: what the configuration alone proves, and what to send next", "weights-do-not-fit", "no-figures-and-a-34b-model"),
    (23, "without a message: what the configuration makes likely, and what to ask", "offload-and-killed", "signal-nine-with-offload"),
    (23, "a silent host: the memory of the node is what to send next", "offload-and-killed", "signal-nine-with-offload"),
]


def test_every_lesson_has_its_case() -> None:
    assert sorted({number for number, *_ in LESSONS}) == list(range(1, 24))


@pytest.mark.parametrize(("rule", "case"), [line[2:] for line in LESSONS], ids=[f"{line[0]}-{line[2]}" for line in LESSONS])
def test_the_case_goes_wrong_without_the_rule(rule: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not (usual := disagreements(case, diagnosed(case))), usual
    with _taken_away(rule, monkeypatch):
        assert disagreements(case, run(case)), f"{case} comes out the same without {rule}"


def test_silence_names_no_certain_cause() -> None:
    """23: of a message and nothing else nothing is certain, and something is asked."""
    found = diagnosed("a-message-and-nothing-else")
    assert not any(cause.outcome == "fires" for cause in found.judgement.causes)
    assert found.outcome.questions


@contextmanager
def _taken_away(rule: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The rule deleted, for as long as it lasts."""
    if rule.startswith("near."):
        monkeypatch.delitem(rule_files.table("messages")["near"], rule.partition(".")[2])
        memory_words.words_near_messages.cache_clear()
        try:
            yield
        finally:
            monkeypatch.undo()
            memory_words.words_near_messages.cache_clear()
        return
    ids = {each.id for each in causes.rules()[0]} | {each.id for each in remedies.rules()}
    assert rule in ids, f"there is no rule {rule}"
    monkeypatch.setattr(causes, "rules", _without(rule, causes.rules))
    monkeypatch.setattr(remedies, "rules", _without(rule, remedies.rules))
    yield


def _without(rule: str, whole: Callable[..., Any]) -> Callable[..., Any]:
    def rules(*args: Any, **options: Any) -> Any:
        held = whole(*args, **options)
        if len(held) == 2 and isinstance(held[0], (list, tuple)):  # causes, and the faults of those that cannot be read
            return [each for each in held[0] if each.id != rule], held[1]
        return tuple(each for each in held if each.id != rule)

    return rules
