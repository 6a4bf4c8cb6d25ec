"""Jobs on worker processes: nothing is diagnosed twice, nothing is lost when a process dies, and memory stays bounded."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from many import QUIET, failure, lay

from diagnose import explain, workers
from diagnose.cluster.find.job import About, Job
from diagnose.cluster.run import job_work, local_engine, ray_engine, worker_supervisor
from diagnose.cluster.run.local_engine import Deduplicator, run_local
from diagnose.cluster.run.task import JobOptions, Limits, Task
from diagnose.cluster.store.digests import digest
from diagnose.cluster.store.result import DiagnosisSummary, Result
from diagnose.errors import UserError
from diagnose.phrases import Text


def tasks(top: Path) -> list[Task]:
    """A task for every log under a folder."""
    return [Task(Job(str(log), (str(log),))) for log in sorted(top.rglob("*.log"))]


def faulty(pipe: Any, asked: JobOptions, limits: Limits) -> None:
    """A worker that dies, hangs or takes all memory at some jobs."""
    real = job_work._read_and_diagnose

    def worked(task: Task, options: JobOptions, claim: Any) -> Result:
        name = Path(task.job.id).parent.name
        if name.startswith("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
        if name.startswith("hangs"):
            time.sleep(60)
        if name.startswith("grows"):
            bytearray(limits.memory)
        return real(task, options, claim)

    job_work._read_and_diagnose = worked
    worker_supervisor.worker_main(pipe, asked, limits)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_supervisor, "worker_main", faulty)


def named(top: Path, *names: str) -> list[Task]:
    for name in names:
        (top / name).mkdir(parents=True)
        (top / name / "error.log").write_text(failure(1))
    return tasks(top)


# -- what is diagnosed


def test_every_job_has_one_result_and_equal_jobs_one_diagnosis(tmp_path: Path) -> None:
    found = list(run_local(tasks(lay(tmp_path, 40)), JobOptions(), 2))
    assert Counter(result.status for result in found) == {"none": 20, "oom": 20}
    assert len({result.job.id for result in found}) == 40
    failed = [result for result in found if result.failed]
    assert len({result.same for result in failed}) == 3 == sum(bool(result.digest) for result in failed)
    assert {(result.same, result.headline, result.fingerprint) for result in failed} == {
        (result.same, result.headline, result.fingerprint) for result in failed if result.digest
    }


def test_a_diagnosis_comes_before_the_jobs_that_it_answers(tmp_path: Path) -> None:
    """What is stored in order is whole at any moment."""
    there: set[str] = set()
    for result in run_local(tasks(lay(tmp_path, 40)), JobOptions(), 2):
        there |= {result.same} if result.digest else set()
        assert not result.same or result.same in there


def test_the_same_as_explain_one_by_one(tmp_path: Path) -> None:
    top = lay(tmp_path, 12)
    held = {result.same: result for result in run_local(tasks(top), JobOptions(), 2) if result.digest}
    for result in run_local(tasks(top), JobOptions(), 1):
        if result.failed:
            alone = explain([Path(log) for log in result.job.logs])
            assert json.loads(digest(alone))["causes"] == json.loads(held[result.same].digest)["causes"]
            assert (alone.verdict.headline, alone.verdict.status) == (result.headline, result.status)


def test_a_diagnosis_that_is_known_is_not_made_again(tmp_path: Path) -> None:
    known = DiagnosisSummary(Text("of old", "旧"), "1:0")
    found = list(run_local(tasks(lay(tmp_path, 6)), JobOptions(), 1, lookup=lambda _: known))
    assert {(result.headline.en, result.digest) for result in found if result.failed} == {("of old", "")}


def test_with_reports_every_job_is_diagnosed_itself(tmp_path: Path) -> None:
    """A report names the job's own lines."""
    found = list(run_local(tasks(lay(tmp_path, 12)), JobOptions(reports="en"), 1))
    assert sorted(json.loads(result.report)["path"] for result in found) == sorted(result.job.id for result in found)
    assert {json.loads(result.report)["schema"] for result in found} == {"oomdoctor.report/1"}


def test_results_of_others_pass_through() -> None:
    """What could not be found is no work, and no less a result."""
    lost = Result(Job("gone", ()), error=Text("gone", "没了"), fault="vanished")
    assert list(run_local([lost], JobOptions(), 1)) == [lost]


def test_no_jobs_no_results() -> None:
    assert list(run_local([], JobOptions(), 2)) == []


def test_a_file_that_a_config_names_makes_a_difference(tmp_path: Path) -> None:
    """It is looked up beside the config, so it is a part of what the diagnosis depends on."""
    same = []
    for number, stage in enumerate((2, 3)):
        folder = tmp_path / str(number)
        (folder / "ds").mkdir(parents=True)
        (folder / "error.log").write_text(failure(1))
        (folder / "train.yaml").write_text("stage: sft\ntemplate: qwen\ndeepspeed: ds/zero.json\n")
        (folder / "ds" / "zero.json").write_text(json.dumps({"zero_optimization": {"stage": stage}}))
        same.append(job_work.work(Task(Job("x", (str(folder / "error.log"),), (str(folder / "train.yaml"),))), JobOptions()).same)
    assert same[0] and same[0] != same[1]


# -- what was read before


def test_a_job_that_was_only_touched_is_not_diagnosed(tmp_path: Path) -> None:
    log = tmp_path / "error.log"
    log.write_text(failure(1))
    job = Job(str(log), (str(log),))
    first = job_work.work(Task(job), JobOptions())
    os.utime(log, (5, 5))
    touched = job_work.work(Task(job, first.content), JobOptions())
    log.write_text(failure(2))
    changed = job_work.work(Task(job, first.content), JobOptions())
    assert touched.reused and not changed.reused
    assert first.stamp != touched.stamp and changed.status == "oom" and changed.content != first.content


def test_what_the_scheduler_says_anew_is_taken_up(tmp_path: Path) -> None:
    log = tmp_path / "error.log"
    log.write_text(QUIET)
    job = Job("1", (str(log),), about=About("slurm", "1", state="RUNNING", elapsed=10.0))
    first = job_work.work(Task(job), JobOptions())
    ended = replace(job, about=About("slurm", "1", state="FAILED", elapsed=99.0))
    assert not job_work.work(Task(ended, first.content), JobOptions()).reused


# -- processes that die


def test_a_job_that_kills_its_worker_costs_only_itself(tmp_path: Path, faults: None) -> None:
    found = {Path(each.job.id).parent.name: each for each in run_local(named(tmp_path, "a", "b", "dies", "c", "d"), JobOptions(), 2)}
    assert {name: each.status for name, each in found.items()} == dict.fromkeys("abcd", "oom") | {"dies": "unread"}
    assert found["dies"].fault == "worker_died" and found["dies"].error


def test_a_job_that_takes_too_long_is_stopped(tmp_path: Path, faults: None) -> None:
    found = {
        Path(each.job.id).parent.name: each for each in run_local(named(tmp_path, "a", "b", "hangs"), JobOptions(), 1, Limits(seconds=0.7))
    }
    assert {name: each.status for name, each in found.items()} == {"a": "oom", "b": "oom", "hangs": "unread"}
    assert found["hangs"].fault == "timed_out"


def test_a_job_that_wants_too_much_memory_is_a_row(tmp_path: Path, faults: None) -> None:
    found = {Path(each.job.id).parent.name: each for each in run_local(named(tmp_path, "a", "grows"), JobOptions(), 1)}
    assert found["grows"].fault == "out_of_memory" and found["a"].status == "oom"


def test_the_one_that_was_to_make_the_diagnosis_dies(tmp_path: Path) -> None:
    """Those that waited for it are done again, and one of them makes it."""
    shared = Deduplicator()
    assert shared.claim("k", "first") and not shared.claim("k", "second") and shared.claim("k", "first")
    second = Result(Job("second", ()), status="oom", same="k")
    assert shared.add(second) == ([], [])
    died = Result(Job("first", ()), error=Text("died", "死"), fault="worker_died")
    assert shared.add(died) == ([died], [Task(second.job)])
    assert shared.claim("k", "second")
    made = replace(second, digest="{}", headline=Text("h", "题"), fingerprint="1:f")
    third = Result(Job("third", ()), status="oom", same="k")
    assert shared.add(third) == ([], [])
    assert shared.add(made) == ([made, replace(third, headline=made.headline, fingerprint="1:f")], [])
    assert not shared.claim("k", "fourth")


def test_a_maker_that_finds_other_facts_the_second_time_lets_go(tmp_path: Path) -> None:
    """A log that grew between two tries must not leave others waiting for what never comes."""
    shared = Deduplicator()
    shared.claim("old", "first")
    waits = Result(Job("second", ()), status="oom", same="old")
    shared.add(waits)
    shared.claim("new", "first")
    made = Result(Job("first", ()), status="oom", same="new", digest="{}")
    assert shared.add(made) == ([made], [Task(waits.job)])


def test_processes_are_replaced_after_their_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    real = workers.Worker

    class Counted(real):  # type: ignore[misc, valid-type]
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            started.append(self.process.pid)

    monkeypatch.setattr(workers, "Worker", Counted)
    monkeypatch.setattr(worker_supervisor, "JOBS_PER_PROCESS", 2)
    monkeypatch.setattr(local_engine, "CHUNK", 2)
    assert len(list(run_local(tasks(lay(tmp_path, 6)), JobOptions(), 1))) == 6
    assert len(set(started)) >= 3


def dead(*_: Any) -> None:
    """A worker that ends at once."""


def test_a_process_that_cannot_be_started_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_supervisor, "worker_main", dead)
    with pytest.raises(UserError, match="no worker process could be started"):
        list(run_local(tasks(lay(tmp_path, 2)), JobOptions(), 1))


def test_no_process_is_left_when_nobody_wants_more(tmp_path: Path) -> None:
    import multiprocessing

    found = run_local(tasks(lay(tmp_path, 40)), JobOptions(), 2)
    next(found)
    assert multiprocessing.active_children()
    found.close()
    assert not multiprocessing.active_children()


def test_no_more_is_taken_than_can_be_worked_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with the number of jobs: who takes no results stops the search."""
    monkeypatch.setattr(local_engine, "MAX_TASKS", 4)
    monkeypatch.setattr(local_engine, "MAX_RESULTS", 4)
    log = tmp_path / "a.log"
    log.write_text(QUIET)
    taken = 0

    def endless() -> Iterator[Task]:
        nonlocal taken
        while True:
            taken += 1
            yield Task(Job(f"{taken}", (str(log),)))

    found = run_local(endless(), JobOptions(), 1)
    for _ in range(10):
        next(found)
    time.sleep(0.3)
    assert taken <= 10 + 4 + 4 + 2 * local_engine.CHUNK
    found.close()


def test_an_error_of_whoever_finds_the_jobs_is_raised(tmp_path: Path) -> None:
    def broken() -> Iterator[Task]:
        yield from tasks(lay(tmp_path, 2))
        raise RuntimeError("of ours")

    with pytest.raises(RuntimeError, match="of ours"):
        list(run_local(broken(), JobOptions(), 1))


# -- rows


def test_a_result_survives_as_a_row(tmp_path: Path) -> None:
    top = lay(tmp_path, 2)
    (top / "job001" / "second.log").write_text("x")
    job = Job("7", (str(top / "job001" / "error.log"),), ("c.yaml",), About("slurm", "7", user="用户", gpus=8, elapsed=3.5), "name")
    assert ray_engine.row_to_task(ray_engine.task_to_row(Task(job, "c"))) == Task(job, "c")
    for each in (job_work.work(Task(replace(job, configs=())), JobOptions()), job_work.work(Task(job), JobOptions())):
        row = ray_engine.result_to_row(each)
        assert ray_engine.row_to_result(row) == each and set(row) == set(ray_engine.COLUMNS)
