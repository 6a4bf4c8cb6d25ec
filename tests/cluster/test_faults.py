"""What goes wrong in a cluster: each fault ends in a clear line and a row in `errors`, and nothing that was done is lost."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from many import QUIET, failure, lay, rows, still  # noqa: F401
from sweep import SWEEP

from diagnose import triage, workers
from diagnose.cluster.cluster_errors import database_errors
from diagnose.cluster.find.job import Job
from diagnose.cluster.run import content_hash, job_work
from diagnose.cluster.run import triage_run as story
from diagnose.cluster.run.task import JobOptions, Task
from diagnose.cluster.store import result_tables
from diagnose.cluster.store.result import Result
from diagnose.cluster.store.result_store import Store
from diagnose.errors import UserError
from diagnose.phrases import Text

pytestmark = pytest.mark.usefixtures("still")

ERRORS = "select fault, message_en from errors order by 1, 2"


def read(*logs: Path) -> Result:
    """One job, read in this process."""
    return job_work.work(Task(Job("x", tuple(map(str, logs)))), JobOptions())


# -- one job among many

#: What people and generators write where a figure belongs.
ABSURD = (
    "1000000000",
    "1" + "0" * 40,
    "-1",
    "1e308",
    "-1e-300",
    "nan",
    ".inf",
    "0",
    "true",
    "null",
    "[]",
    "{a: 1}",
    "9" * 5000,
    "1_000_000",
    "٣",
    "1e",
)
KNOBS = (
    "cutoff_len",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "lora_rank",
    "num_train_epochs",
    "image_max_pixels",
    "max_samples",
)
RECORD = ("gpus", "elapsed", "nodes", "started", "exit_code", "memory_limit", "restarts", "user")
SIZES = ("4.64 GiB", "30.26 GiB", "31.74 GiB", "1.41 GiB")


def test_absurd_figures_end_no_run(tmp_path: Path, oomdoctor: Any) -> None:
    """In configs, in messages and in what a scheduler says: the job between them is reported, in every form of the report."""
    records, count = [], 200 if SWEEP else 32
    for number in range(count):
        folder, absurd = tmp_path / "jobs" / f"job{number:03d}", ABSURD[number % len(ABSURD)]
        folder.mkdir(parents=True)
        (folder / "error.log").write_text(failure(1).replace(SIZES[number % len(SIZES)], f"{absurd[:400]} GiB"))
        knob = KNOBS[number * 3 % len(KNOBS)]
        (folder / "train.yaml").write_text(f"stage: sft\nmodel_name_or_path: Qwen/Qwen2-7B\n{knob}: {absurd}\n")
        value = absurd if number % 2 or not absurd.isdecimal() else int(absurd[:4000])
        records.append(
            {
                "id": f"j{number}",
                "log": f"jobs/{folder.name}/error.log",
                "configs": [f"jobs/{folder.name}/train.yaml"],
                RECORD[number % len(RECORD)]: value,
            }
        )
    (tmp_path / "good.log").write_text(failure(2))
    records.append({"id": "good", "log": "good.log", "gpus": 8, "elapsed": 3600})
    (tmp_path / "jobs.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    database = tmp_path / "t.duckdb"
    command = ("triage", tmp_path / "jobs.jsonl", "--store", database, "--jobs", "1")
    ended = oomdoctor(*command, "--out", tmp_path / "report.html", "--export", tmp_path / "tables")
    assert ended.status in (0, 1), ended.err
    assert rows(database, "select state, found from runs") == [("done", count + 1)]
    assert rows(database, "select status, gpu_seconds from jobs where job like '%good'") == [("oom", 28800.0)]
    for format in ("json", "markdown", "html"):
        again = oomdoctor(*command, "--format", format)
        assert again.status in (0, 1) and again.out, again.err


@pytest.mark.parametrize("module, function", [
    (job_work, "open_inputs"), (job_work, "read"), (job_work, "diagnosis_key"), (job_work, "diagnose"), (job_work, "digest"),
    (job_work, "fingerprint"), (job_work, "event_row"), (story, "stamp"), (result_tables, "job_row"),
])  # fmt: skip
def test_a_crash_in_any_stage_is_an_error_of_its_job(module: Any, function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading, diagnosis, digest, storing: the jobs before and after it have their rows."""
    top, real, calls = lay(tmp_path / "jobs", 6, distinct=6), getattr(module, function), []

    def crash_once(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2 if module is not result_tables else arguments[0].status == "oom" and "job003" in arguments[0].job.id:
            raise KeyError("a mistake of ours")
        return real(*arguments, **named)

    database = tmp_path / "t.duckdb"
    if module is story:
        list(triage([top], store=database, workers=1))  # a job is looked at before it is read where it was read before
    monkeypatch.setattr(module, function, crash_once)
    monkeypatch.setattr(
        story,
        "run_local",
        lambda tasks, options, *_: (item if isinstance(item, Result) else job_work.work(item, options) for item in tasks),
    )
    run = list(triage([top], store=database, workers=1))
    assert len(calls) > 1 and rows(database, "select state from runs where run = (select max(run) from runs)") == [("done",)]
    assert rows(database, "select count(*), count(distinct job) from jobs") == [(6, 6)] and len(run) <= 6
    [(fault, message)] = rows(database, ERRORS)
    assert fault in ("crashed", "not_stored") and "mistake of ours" in message


def test_a_digest_that_cannot_be_shown_costs_its_own_place(tmp_path: Path, oomdoctor: Any) -> None:
    """One that another release wrote, or half of one: the report has the other groups, and the error is in the database."""
    database, page = tmp_path / "t.duckdb", tmp_path / "report.html"
    list(triage([lay(tmp_path / "jobs", 8, distinct=3)], store=database, workers=1))
    store = Store.open(database)
    list(
        store.query('update diagnoses set digest = \'{"plan": {"steps": ["x"]}}\' where diagnosis = (select min(diagnosis) from diagnoses)')
    )
    store.close()
    ended = oomdoctor("triage", tmp_path / "jobs", "--store", database, "--jobs", "1", "--out", page)
    assert ended.status == 0 and page.stat().st_size > 10_000, ended.err
    errors = rows(database, "select distinct fault, job in (select job from jobs) from errors")
    assert errors == [("not_reported", True)], "the error names a job, which no report then lists as unread"


# -- inputs


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.log"
    log.write_text(failure(1))

    real = os.open

    def refused(path: Any, *given: Any, **named: Any) -> int:
        if Path(path) == log:
            raise PermissionError(13, "Permission denied")
        return real(path, *given, **named)

    monkeypatch.setattr(os, "open", refused)  # root may read everything
    found = read(log)
    assert (found.status, found.fault) == ("unread", "unreadable") and found.error and "Permission denied" in found.error.en


def test_a_file_that_vanished_after_it_was_found(tmp_path: Path) -> None:
    found = read(tmp_path / "gone.log")
    assert (found.status, found.fault) == ("unread", "vanished") and found.error and "gone.log" in found.error.zh


def test_one_of_two_logs_cannot_be_read(tmp_path: Path) -> None:
    """The job is diagnosed from the other; the loss is told."""
    (tmp_path / "a.log").write_text(failure(1))
    found = read(tmp_path / "a.log", tmp_path / "gone.log")
    assert found.status == "oom" and [each.fault for each in found.troubles] == ["vanished"]


@pytest.mark.parametrize("left", [0.0002, 0.7])
def test_a_broken_archive(tmp_path: Path, left: float) -> None:
    path = tmp_path / "run.tar.gz"
    (tmp_path / "error.log").write_bytes(os.urandom(200_000) + failure(1).encode())
    with tarfile.open(path, "w:gz") as packed:
        packed.add(tmp_path / "error.log", "error.log")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * left)])
    found = read(path)
    assert found.fault == "broken_archive" or [each.fault for each in found.troubles] == ["broken_archive"]


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.log"
    log.write_text(failure(1) + QUIET * 40_000)
    real = content_hash._TrackedFile.readinto

    def cut(self: Any, target: Any) -> int:
        count = real(self, target)
        os.truncate(log, 100)
        return count

    monkeypatch.setattr(content_hash._TrackedFile, "readinto", cut)
    found = read(log)
    assert found.status == "oom" and [each.fault for each in found.troubles] == ["shrunk"]
    monkeypatch.undo()
    log.write_text(QUIET)
    assert job_work.work(Task(Job("x", (str(log),)), found.content), JobOptions()).status == "none"  # it is read again


def masked(pipe: Any) -> None:
    """The life of a worker that tells whether Ctrl-C reaches it."""
    pipe.send("ready")
    pipe.send(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))


def test_ctrl_c_reaches_no_process_that_is_started() -> None:
    """Not even one that is still loading what it needs, and would die of it with a traceback."""
    worker = workers.Worker(masked)
    try:
        assert worker.receive(60) is True
    finally:
        worker.end()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("said", [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT Error: Interrupted!")])
def test_ctrl_c_while_the_database_answers_is_ctrl_c(said: Exception) -> None:
    with pytest.raises(KeyboardInterrupt), database_errors(Path("t.duckdb")):
        raise said


def test_a_file_that_grows_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(QUIET)
    first = read(log)
    with log.open("a") as file:
        file.write(failure(1))
    assert job_work.work(Task(Job("x", (str(log),)), first.content), JobOptions()).status == "oom"


def test_a_config_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(failure(1))
    found = job_work.work(Task(Job("x", (str(tmp_path / "a.log"),), (str(tmp_path / "gone.yaml"),))), JobOptions())
    told = [each.message.en for each in found.troubles] or [found.error.en if found.error else ""]
    assert "gone.yaml" in told[0]


def test_faults_are_lines_rows_and_status_1(tmp_path: Path, oomdoctor: Any) -> None:
    top, path = lay(tmp_path / "jobs", 4), tmp_path / "t.duckdb"
    (top / "job001" / "second.log.gz").write_bytes(gzip.compress(QUIET.encode() * 99)[:-30])
    (top / "lost").mkdir()
    (top / "lost" / "error.log").symlink_to(tmp_path / "nowhere")
    ended = oomdoctor("triage", top, "--store", path)
    assert ended.status == 1 and "lost/error.log" in "".join(ended.out.split()) and "second.log.gz" in ended.err
    assert [fault for fault, _ in rows(path, ERRORS)] == ["broken_archive", "vanished"]
    (top / "lost" / "error.log").unlink()
    (top / "lost" / "error.log").write_text(QUIET)
    (top / "job001" / "second.log.gz").write_bytes(gzip.compress(QUIET.encode()))
    assert oomdoctor("triage", top, "--store", path).status == 0  # what could not be read is tried again
    assert rows(path, "select count(*) from jobs where status = 'unread'") == [(0,)]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may look everywhere")
def test_a_folder_without_permission(tmp_path: Path, oomdoctor: Any) -> None:
    top = lay(tmp_path / "jobs", 2)
    (top / "closed").mkdir(mode=0)
    try:
        assert oomdoctor("triage", top).status == 1
    finally:
        (top / "closed").chmod(stat.S_IRWXU)


# -- processes


def test_a_worker_that_is_killed_from_outside(tmp_path: Path) -> None:
    """By the kernel, say. Its jobs are done by another."""
    killed = 0
    seen = []
    for result in triage([lay(tmp_path / "jobs", 120, distinct=40)], workers=2):
        seen.append(result)
        for child in multiprocessing.active_children()[:1] if len(seen) == 20 else ():
            os.kill(child.pid or 0, signal.SIGKILL)
            killed += 1
    assert killed == 1 and len({each.job.id for each in seen}) == 120
    assert {each.status for each in seen} == {"oom", "none"}


def test_when_nothing_can_be_stored_nobody_works_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise UserError(Text("full", "满"))

    monkeypatch.setattr(story, "STORE_BATCH", 2)
    monkeypatch.setattr(Store, "add", refused)
    with pytest.raises(UserError, match="full"):
        list(triage([lay(tmp_path / "jobs", 20)], store=tmp_path / "t.duckdb", workers=2))
    assert not multiprocessing.active_children()
    monkeypatch.undo()
    assert rows(tmp_path / "t.duckdb", "select state from runs") == [("running",)]  # the next run says that it was cut off


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path, oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    top, path = lay(tmp_path / "jobs", 20), tmp_path / "t.duckdb"
    monkeypatch.setattr(story, "STORE_BATCH", 3)
    real, stored = Store.add, []

    def add(self: Store, results: Any) -> list[Result]:
        refused = real(self, results)
        stored.append(len(results))
        if len(stored) == 2:
            signal.raise_signal(signal.SIGINT)
        return refused

    monkeypatch.setattr(Store, "add", add)
    ended = oomdoctor("triage", top, "--store", path, "--jobs", 1)
    assert ended.status == 130 and "t.duckdb" in ended.err and "same command goes on" in ended.err
    monkeypatch.setattr(Store, "add", real)
    assert rows(path, "select state from runs") == [("stopped",)]
    done = rows(path, "select count(*) from jobs")[0][0]
    assert 0 < done < 20 and not multiprocessing.active_children()
    assert oomdoctor("triage", top, "--store", path, "--jobs", 1).status == 0
    assert rows(path, "select count(*) from jobs") == [(20,)]
    assert rows(path, "select reused from runs where run = 2") == [(done,)]


# -- the database


def test_a_run_beside_another_on_one_database(tmp_path: Path, oomdoctor: Any) -> None:
    top, path = lay(tmp_path / "jobs", 2), tmp_path / "t.duckdb"
    Store.open(path).close()
    code = f"import duckdb, sys; held = duckdb.connect({str(path)!r}); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "held\n"
        ended = oomdoctor("triage", top, "--store", path)
        assert other.stdin
        other.stdin.close()
    assert ended.status == 2 and ended.err.count("\n") == 1 and "in use by another run" in ended.err
    assert oomdoctor("triage", top, "--store", path).status == 0


def test_a_damaged_database_is_left_alone(tmp_path: Path, oomdoctor: Any) -> None:
    path = tmp_path / "t.duckdb"
    for data in (b"no database" * 1000, b"", _damaged(tmp_path)):
        path.write_bytes(data)
        ended = oomdoctor("triage", lay(tmp_path / f"jobs{len(data)}", 1), "--store", path)
        if data:
            assert ended.status == 2 and "is no database that can be read" in ended.err and path.read_bytes() == data
        else:  # an empty file is nobody's: it becomes one
            assert ended.status == 0


def _damaged(folder: Path) -> bytes:
    path = folder / "whole.duckdb"
    list(triage([lay(folder / "whole", 4)], store=path, workers=1))
    data = bytearray(path.read_bytes())
    data[4096 + 8 : 3 * 4096] = bytes(len(data[4096 + 8 : 3 * 4096]))
    return bytes(data)


def test_a_database_in_a_folder_that_is_not_there(tmp_path: Path, oomdoctor: Any) -> None:
    ended = oomdoctor("triage", lay(tmp_path / "jobs", 1), "--store", tmp_path / "no" / "t.duckdb")
    assert ended.status == 2 and "cannot be opened" in ended.err


FULL = """
import resource, signal, sys
from diagnose.cluster.run import triage_run as story
from dataclasses import replace

if __name__ == "__main__":
    story.with_basis = lambda asked: replace(asked, basis="rules")
    story.STORE_BATCH = 4
    store = story.Store.open(story.Path(sys.argv[2]))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    run = story.Run(store, story.RunPlan((sys.argv[1],), workers=1), story.JobOptions())
    real = store.add
    def add(results):
        refused = real(results)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        return refused
    store.add = add
    try:
        for result in run.results():
            pass
    except story.UserError as refusal:
        print(refusal)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file sizes are limited on POSIX")
def test_a_full_disk_keeps_what_was_stored(tmp_path: Path) -> None:
    """After the first batch nothing more can be written; the next run goes on from there."""
    top, path, script = lay(tmp_path / "jobs", 40, distinct=20), tmp_path / "t.duckdb", tmp_path / "run.py"
    script.write_text(FULL)
    ended = subprocess.run([sys.executable, script, top, path], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0 and "no room is left for the database" in ended.stdout and "run the same command again" in ended.stdout
    assert ended.stderr == ""
    kept = rows(path, "select count(*) from jobs")[0][0]
    assert 0 < kept < 40
    assert len(list(triage([top], store=path, workers=1))) == 40 - kept
    assert rows(path, "select count(*) from jobs") == [(40,)]


def test_words_of_the_database_are_sentences(tmp_path: Path) -> None:
    """An error of which we know nothing is told in its own words."""
    store = Store.open(tmp_path / "t.duckdb")
    try:
        with pytest.raises(UserError, match=r"the database failed .*no_such_table"):
            list(store.query("from no_such_table"))
    finally:
        store.close()


def test_an_export_that_cannot_be_written(tmp_path: Path, oomdoctor: Any) -> None:
    (tmp_path / "file").write_text("x")
    ended = oomdoctor("triage", lay(tmp_path / "jobs", 1), "--export", tmp_path / "file" / "out")
    assert ended.status == 2 and "cannot be written" in ended.err


def test_duckdb_is_missing(tmp_path: Path, oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    ended = oomdoctor("triage", lay(tmp_path / "jobs", 1))
    assert ended.status == 2 and "pip install '.[triage]'" in ended.err
    assert duckdb.__version__
