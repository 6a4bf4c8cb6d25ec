"""Attempts and survivals: a job that was started again, a failure that was caught, a run that came to its end all the same."""

from __future__ import annotations

import pytest
from collected import for_each
from logs_of_torch import LOSS, message, read
from pace import within

from diagnose.parse.model.reading import Reading

BANNER = "[INFO|trainer.py:2369] 2026-03-02 10:11:12,345 >> ***** Running training *****"


def fails(gpu: int = 0, requested: str = "4.64 GiB") -> list[str]:
    return [*LOSS, f"torch.OutOfMemoryError: {message(gpu, requested=requested)}"]


def bar(step: int) -> str:
    return f"{step:3d}%|#         | {step}/100 [00:10<01:00,  2.00it/s]"


def seen(reading: Reading) -> tuple[list[int], int | None]:
    """The attempt of each failure, and the root."""
    return [event.attempt for event in reading.events if event.status != "none"], reading.root


# -- started again


STARTS = [
    (["nohup: ignoring input"], 1),
    ([BANNER], 1),
    (["Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded"], 1),
    (["[INFO|2026-03-02 10:11:12] llamafactory.cli:143 >> Initializing 8 distributed tasks at: 127.0.0.1:29500"], 1),
    (["[2026-03-02 10:11:12,345] [INFO] [launch.py:146:main] WORLD INFO DICT: {'localhost': [0, 1]}"], 1),
    (["2026-03-02 10:11:12,345\tINFO worker.py:1841 -- Started a local Ray instance."], 1),
    (["[default] Rendezvous complete for workers. Result:", "  restart_count=1"], 0),
    (["slurmstepd: error: *** JOB 71 ON n4 CANCELLED AT 2026-03-02T10:11:12 DUE TO JOB REQUEUE ***"], 0),
    (["Restarting worker group", BANNER], 0),
]


@for_each("between, root", STARTS)
def test_a_job_that_was_started_again(between: list[str], root: int) -> None:
    """A launcher's restart runs the same job, whose first failure tells why; a run that a person appended is the one asked about."""
    reading = read("\n".join([BANNER, *fails(0), *between, bar(1), *fails(1, "2.32 GiB")]))
    assert seen(reading) == ([1, 2], root)
    assert [notice.code for notice in reading.notices] == ["attempts"]


def test_what_several_nodes_print_when_they_begin_is_one_start() -> None:
    """Starts count after a failure only: eight launchers and eight trainers that come up are one attempt."""
    starts = ["Setting OMP_NUM_THREADS environment variable for each process to be 1", BANNER] * 8
    reading = read("\n".join([*starts, *fails(0), *fails(1)]))
    assert (seen(reading), reading.events[0].count, reading.notices) == (([1], 0), 2, ())


def test_equal_failures_of_two_attempts_are_two_events() -> None:
    """Ranks of one attempt fold, attempts do not: that it failed again in the same way is news."""
    both = [*fails(0), *fails(1)]
    reading = read("\n".join([*both, "nohup: ignoring input", *both]))
    assert [(event.attempt, event.count) for event in reading.events] == [(1, 2), (2, 2)]


def test_what_follows_is_linked_within_its_attempt() -> None:
    """A broken connection of the second attempt does not follow from the first one's failure."""
    reading = read("\n".join([*fails(0), "nohup: ignoring input", *fails(1), "RuntimeError: Connection reset by peer"]))
    assert [(event.attempt, event.consequence_of) for event in reading.events] == [(1, None), (2, None), (2, 1)]


def test_facts_are_those_of_the_run_that_is_diagnosed() -> None:
    """Between two runs in one file a person changed something."""
    runs = [
        [f"[INFO|trainer.py:2371] 2026-03-02 10:11:12,345 >>   Instantaneous batch size per device = {size}", *fails(0, asked)]
        for size, asked in ((16, "9.28 GiB"), (8, "4.64 GiB"))
    ]
    first, second = ["+ torchrun --nproc_per_node 8 train.py --fp16", *runs[0]], ["nohup: ignoring input", *runs[1]]
    reading = read("\n".join([*first, *second]))
    assert {fact.value for fact in reading.facts if fact.name == "train.micro_batch_size"} == {8}
    assert reading.commands == ()
    alone = read("\n".join(first))
    assert len(alone.commands) == 1


def test_a_later_run_without_a_failure_is_mentioned() -> None:
    """Perhaps the question is answered already."""
    reading = read("\n".join([*fails(), "nohup: ignoring input", BANNER, bar(3), bar(60), "{'train_runtime': 812.4}"]))
    assert (seen(reading), reading.events[0].fatal) == (([1], 0), True)
    assert [notice.code for notice in reading.notices] == ["started_again"]


# -- survived


def test_progress_counts_only_within_the_attempt() -> None:
    """The bar of the next attempt runs further; the failure before it was the end all the same."""
    reading = read("\n".join([bar(3), *fails(), "nohup: ignoring input", bar(1), bar(40), bar(90)]))
    assert reading.events[0].fatal


@for_each(
    "says",
    [
        "| WARNING: ran out of memory, retrying batch",
        "CUDA out of memory with batch=16. Reducing to batch=8 and retrying (1/3).",
        "attempting to recover from OOM in forward/backward pass",
        "Batch size 64 failed, trying batch size 32",
        "OOM at step 71, skipping batch",
    ],
)
def test_what_is_tried_again_is_not_the_death(says: str) -> None:
    """Loops that catch the error say so below it; the one that nobody catches is the root, though the figures are the same."""
    reading = read("\n".join([f"RuntimeError: {message()}", says, "step 72", *fails()]))
    assert [event.fatal for event in reading.events] == [False, True]
    assert reading.root == 1


def test_words_about_a_retry_belong_to_the_last_failure_above_them() -> None:
    """Two failures, one retry: the first was not retried."""
    reading = read("\n".join([*fails(0, "9.28 GiB"), *fails(0, "4.64 GiB"), "retrying with a smaller batch"]))
    assert [event.fatal for event in reading.events] == [True, False]


def test_a_search_for_a_batch_ends_with_none() -> None:
    """The failures before the last were caught; the last one is the death, and the final word is no failure of its own."""
    tries = [line for asked in ("9.28 GiB", "4.64 GiB", "2.32 GiB") for line in fails(0, asked)]
    reading = read("\n".join([*tries, "RuntimeError: No executable batch size found, reached zero."]))
    assert [event.fatal for event in reading.events] == [False, False, True]
    assert reading.root == 2
    assert reading.events[2].evidence[-1].text.startswith("RuntimeError: No executable")


def test_a_search_that_prints_no_failure_is_one() -> None:
    """accelerate swallows the messages; only its last word is in the log. Which memory it was, it does not say."""
    reading = read("step 1\nRuntimeError: No executable batch size found, reached zero.\n")
    assert [(event.status, event.family, event.fatal) for event in reading.events] == [("oom", "other", True)]


@pytest.mark.parametrize("end", ["{'train_runtime': 4012.8, 'epoch': 3.0}", "***** train metrics *****", "Training completed."])
def test_a_job_that_finished_did_not_die(end: str) -> None:
    """The message was caught somewhere; it is told, but not as the death, unless the launcher found a process dead after that."""
    lines = [f"a.py:31: saving failed, going on: {message()}", end]
    reading = read("\n".join(lines))
    assert (reading.events[0].fatal, [notice.code for notice in reading.notices]) == (False, ["survived"])
    dead = read("\n".join([*lines, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "]))
    assert dead.events[0].fatal


def test_a_helper_killed_after_the_end_is_not_the_death() -> None:
    """Slurm counts every process of the step; a launcher that lost a rank is another matter."""
    slurm = "slurmstepd: error: Detected 1 oom_kill event in StepId=44.extern. Some of the step tasks have been OOM Killed."
    killed = "E0302 10:11:19.0 41 api.py:869] failed (exitcode: -9) local_rank: 1 (pid: 512) of binary: /opt/env/bin/python"
    assert not read(f"Training completed.\n{slurm}\n").events[0].fatal
    assert read(f"Training completed.\n{killed}\n{slurm}\n").events[0].fatal
    assert read(f"{slurm}\n").events[0].fatal


# -- how long it takes


def test_hundreds_of_failures_take_no_longer_than_they_must() -> None:
    """600 messages of one process, each caught with other figures, among bars: searched once, folded by what they have in common."""
    lines = []
    for step in range(600):
        lines += [bar(step % 100), *LOSS, f"RuntimeError: {message(requested=f'{step}.50 MiB', free=f'{step}.25 MiB')}"]
    with within(6):
        assert len(read("\n".join(lines)).events) == 600
