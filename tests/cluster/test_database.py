"""The database: what is stored is true at any moment, whatever cuts a run off, and whoever wrote it before."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from checkout import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from many import QUIET, failure, lay, rows, still, told  # noqa: F401
from sweep import examples, sample

from diagnose import triage, workers
from diagnose.cluster.find.job import About, Job
from diagnose.cluster.run import triage_run as story
from diagnose.cluster.run.task import JobOptions, with_basis
from diagnose.cluster.store import result_store as module
from diagnose.cluster.store import result_tables
from diagnose.cluster.store.result import DiagnosisSummary, EventRow, InputFault, Result
from diagnose.cluster.store.result_store import BloomFilter, Store
from diagnose.errors import UserError
from diagnose.phrases import Text

pytestmark = pytest.mark.usefixtures("still")

DIGEST = json.dumps({
    "parts": {"family": "torch_cuda", "phase": "", "frame": "", "tensor": "", "cause": "logits", "knobs": ""},
    "headline": {"en": "h", "zh": "题"},
    "causes": [{"cause": "logits", "rule": "r", "certainty": "certain", "also_true": False, "accounts_for": 7}],
    "remedies": [{"remedy": "shorten", "rule": "r", "saves": 5, "fits": "yes", "planned": True}],
})  # fmt: skip
EVENT = EventRow("torch_cuda", "oom", "E", True, 1, 0, "", 3, "forward", 100, 1000, 30, 900, 5, "a.log", 12, True)


def result(job: str = "a", **values: Any) -> Result:
    about = About("slurm", "1", user="u", gpus=8, elapsed=100.0)
    defaults: dict[str, Any] = {
        "status": "oom",
        "same": "k",
        "digest": DIGEST,
        "fingerprint": "1:f",
        "events": (EVENT,),
        "content": "c",
        "stamp": "s",
    }
    return Result(Job(job, (f"{job}.log",), about=about), **{**defaults, **values})


@pytest.fixture
def store(tmp_path: Path) -> Any:
    held = Store.open(tmp_path / "t.duckdb")
    held.begin_run("rules", "local", {"paths": ["x"]})
    yield held
    held.close()


def one(store: Store, sql: str) -> Any:
    [row] = store.query(sql)
    return row


# -- rows


def test_what_is_stored_can_be_asked_for(store: Store) -> None:
    store.add([result()])
    asked = 'select status, requested, shortage, gpu_seconds, scheduler_id, "user", diagnosis, name, gone from jobs'
    assert one(store, asked) == ("oom", 100, 70, 800.0, "1", "u", "k", "a", False)
    assert one(store, "select cause, accounts_for, also_true from causes") == ("logits", 7, False)
    assert one(store, "select remedy, saves, in_plan from remedies") == ("shorten", 5, True)
    assert one(store, "select family, source, line, root from events") == ("torch_cuda", "a.log", 12, True)
    assert one(store, "select version, first_run, parts->>'$.cause' from groups") == (1, 1, "logits")
    assert one(store, "select found, read, reused, failed from runs") == (1, 1, 0, 1)
    held = store.diagnosis_summary("k")
    assert held is not None and held == (Text("h", "题"), "1:f") and store.diagnosis_summary("other") is None


def test_a_job_is_replaced_as_a_whole(store: Store) -> None:
    store.add([result(events=(EVENT, EVENT))])
    store.begin_run("rules", "local", {"paths": ["x"]})
    store.add([result(status="none", same="", digest="", fingerprint="", events=())])
    assert one(store, "select count(*), any_value(status), any_value(first_run), any_value(last_run) from jobs") == (1, "none", 1, 2)
    assert one(store, "select count(*) from events") == (0,)


def test_what_can_no_longer_be_read_keeps_what_was_known(store: Store) -> None:
    store.add([result()])
    lost = result(status="unread", error=Text("gone", "没了"), fault="vanished", digest="", same="", events=())
    store.add([lost, result("b", status="unread", error=Text("no", "不"), fault="unreadable", digest="", same="", events=())])
    assert dict(store.query("select job, status from jobs")) == {"a": "oom", "b": "unread"}
    assert sorted(store.query("select job, fault, message_zh, run from errors")) == [
        ("a", "vanished", "没了", 1),
        ("b", "unreadable", "不", 1),
    ]


def test_a_part_that_could_not_be_used_is_an_error_too(store: Store) -> None:
    store.add([result(troubles=(InputFault("shrunk", Text("shorter", "变短")),))])
    assert one(store, "select job, fault from errors") == ("a", "shrunk")


def test_the_same_job_twice_in_a_batch_is_one(store: Store) -> None:
    store.add([result(), result(status="suspected")])
    assert one(store, "select count(*), any_value(status) from jobs") == (1, "suspected")


def test_what_is_known_is_known_for_the_same_rules_only(store: Store) -> None:
    store.add([result(), result("b", status="unread", error=Text("x", "x"), stamp="")])
    assert store.last_read(["a", "b", "c"]) == {"a": ("s", "c")}
    store.begin_run("other rules", "local", {"paths": ["x"]})
    assert store.last_read(["a"]) == {}


def test_diagnoses_that_nobody_refers_to_go(store: Store) -> None:
    store.add([result()])
    store.begin_run("rules", "local", {"paths": ["x"]})
    store.add([result(same="new")])
    store.end_run("done")
    assert list(store.query("select diagnosis from diagnoses")) == [("new",)] == list(store.query("select diagnosis from causes"))


def test_what_a_run_over_the_same_paths_no_longer_finds_is_gone(store: Store) -> None:
    store.add([result("a"), result("b")])
    store.end_run("done", complete=True)
    store.begin_run("rules", "local", {"paths": ["y"]})
    store.add([result("c")])
    store.end_run("done", complete=True)
    assert one(store, "select count(*) from jobs where gone") == (0,)  # other paths say nothing of these
    store.begin_run("rules", "local", {"paths": ["x"]})
    store.add([result("a", reused=True)])
    store.end_run("done", complete=True)
    assert dict(store.query("select job, gone from jobs")) == {"a": False, "b": True, "c": False}
    store.begin_run("rules", "local", {"paths": ["x"]})
    store.add([result("b")])
    assert one(store, "select gone from jobs where job = 'b'") == (False,)


def test_half_a_batch_is_never_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add([result("a")])
    monkeypatch.setattr(result_tables, "error_rows", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.add([result("b"), result("a", status="none")])
    monkeypatch.undo()
    assert list(store.query("select job, status from jobs")) == [("a", "oom")]
    store.add([result("b")])
    assert one(store, "select count(*) from jobs") == (2,)


PLAIN = ("str", "int", "float", "int | None", "float | None")
NUMBERS = st.one_of(st.none(), st.integers(-(10**40), 10**40), st.floats())
TEXTS = st.one_of(st.text(st.characters(codec=None), max_size=8), st.just("\0\ud800"))


def absurd_fields(kind: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Some fields of a dataclass with values of their type that nobody expects."""
    names = {column.name: TEXTS if column.type == "str" else NUMBERS for column in fields(kind) if column.type in PLAIN}
    return st.fixed_dictionaries({}, optional=names)


@settings(max_examples=examples(100), deadline=None)
@given(absurd_fields(EventRow), absurd_fields(About), absurd_fields(Result), NUMBERS)
def test_an_absurd_value_costs_its_own_job_at_most(event: Any, about: Any, values: Any, saves: Any) -> None:
    """Whatever stands in a field, the run goes on: the job is stored with what fits, or is an error."""
    absurd = replace(result("absurd", **{"digest": DIGEST, **values}), events=(replace(EVENT, **event),))
    absurd.job.about = replace(absurd.job.about, **about)
    if absurd.digest == DIGEST:
        digest = json.loads(absurd.digest)
        digest["remedies"][0]["saves"] = digest["causes"][0]["accounts_for"] = saves
        absurd.digest = json.dumps(digest)
    store = memory_store()
    errors_before = one(store, "select count(*) from errors")[0]
    refused = store.add([result("good"), absurd])
    assert [failure.job.id for failure in refused] in ([], ["absurd"])
    assert one(store, "select status, requested from jobs where job = 'good'") == ("oom", 100)
    assert one(store, "select count(*) from errors")[0] == errors_before + len(refused)


@cache
def memory_store() -> Store:
    """One database for all examples, of which each replaces the rows of the one before."""
    store = Store(Path("memory"), duckdb.connect())
    store._migrate()
    return store


def test_a_value_beyond_its_column_is_stored_as_the_nearest(store: Store) -> None:
    store.add([result(events=(replace(EVENT, requested=10**30, gpu=-(10**30), line=None, source="a\0\ud800b"),))])
    assert one(store, "select requested, gpu, line, source from events") == ((1 << 63) - 1, 1 - (1 << 31), None, "a?b")


def test_an_integer_of_more_than_128_bits_costs_nothing(store: Store) -> None:
    long = result("long")
    long.job.about = replace(long.job.about, elapsed=10**42)
    assert store.add([result("good"), long]) == []
    assert one(store, "select elapsed from jobs where job = 'long'") == (1e42,)


def test_a_clock_that_jumps_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is ordered by the time of day: runs are numbered, jobs are compared by what they hold."""
    top, path = lay(tmp_path / "jobs", 6), tmp_path / "t.duckdb"
    list(triage([top], store=path, workers=1))
    monkeypatch.setattr(module, "time", lambda: 1000.0)
    assert list(triage([top], store=path, workers=1)) == []
    (top / "job001" / "error.log").write_text(failure(9))
    os.utime(top / "job001" / "error.log", (10, 10))  # older than before
    assert [Path(each.job.logs[0]).parent.name for each in triage([top], store=path, workers=1)] == ["job001"]
    assert [run for (run,) in rows(path, "select run from runs order by run")] == [1, 2, 3]


# -- again and again


def test_a_second_run_reads_what_is_new_or_has_changed(tmp_path: Path) -> None:
    top, path = lay(tmp_path / "jobs", 10), tmp_path / "t.duckdb"
    assert len(list(triage([top], store=path, workers=1))) == 10
    assert list(triage([top], store=path, workers=1)) == []
    lay(top / "more", 2)
    (top / "job002" / "error.log").write_text(failure(0))
    os.utime(top / "job003" / "error.log", (1, 1))
    new = list(triage([top], store=path, workers=1))
    assert len(new) == 3 and {each.status for each in new} == {"none", "oom"}
    assert rows(path, "select found, read, reused from runs order by run") == [(10, 10, 0), (10, 0, 10), (12, 3, 9)]
    fresh = tmp_path / "fresh.duckdb"
    list(triage([top], store=fresh, workers=1))
    assert told(path) == told(fresh)


def test_a_run_without_anything_new_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker takes longer to start than a thousand jobs to be looked at."""
    top, path = lay(tmp_path / "jobs", 4), tmp_path / "t.duckdb"
    list(triage([top], store=path, workers=1))
    monkeypatch.setattr(workers, "Worker", None)
    assert list(triage([top], store=path, workers=1)) == []
    assert rows(path, "select reused from runs where run = 2") == [(4,)]


def test_only_a_diagnosis_that_may_be_there_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every failed job asks whether there is one: a query for each takes as long as to store it."""
    for run in (1, 2):
        held = Store.open(tmp_path / "t.duckdb")
        held.begin_run("rules", "local", {})
        assert (held.diagnosis_summary("k") is None) == (run == 1)
        held.add([result()])
        assert held.diagnosis_summary("k") == DiagnosisSummary(Text("h", "题"), "1:f")
        with monkeypatch.context() as patch:
            patch.setattr(held, "_cursor", None)
            assert held.diagnosis_summary("another") is None
        held.close()


def test_other_rules_are_another_diagnosis(tmp_path: Path) -> None:
    """What a job was diagnosed with is told apart by the content of rules, not by when they were written."""
    folder = tmp_path / "rules"
    folder.mkdir()
    bases = [with_basis(JobOptions(rules=(str(folder),))).basis]
    (folder / "a.yaml").write_text("x: 1\n")
    bases.append(with_basis(JobOptions(rules=(str(folder),))).basis)
    os.utime(folder / "a.yaml", (1, 1))
    bases.append(with_basis(JobOptions(rules=(str(folder),))).basis)
    assert bases[0] != bases[1] == bases[2]


def test_other_options_are_another_diagnosis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "with_basis", with_basis)
    top, path = lay(tmp_path / "jobs", 4), tmp_path / "t.duckdb"
    list(triage([top], store=path, workers=1))
    assert len(list(triage([top], store=path, workers=1, gpu="A100-80GB"))) == 4


SCRIPT = """
import sys
from diagnose.cluster.run import triage_run as story
from dataclasses import replace

if __name__ == "__main__":
    story.STORE_BATCH = 3
    story.with_basis = lambda asked: replace(asked, basis="rules")
    for result in story.triage([sys.argv[1]], store=sys.argv[2], workers=1):
        pass
"""


def test_kill_9_at_any_point_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """The run is killed again and again, each time later; what the last one leaves is what one undisturbed run does."""
    top, path, whole = lay(tmp_path / "jobs", 36, distinct=9), tmp_path / "t.duckdb", tmp_path / "whole.duckdb"
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    begun = time.monotonic()
    subprocess.run([sys.executable, script, top, whole], check=True, timeout=60)
    length = time.monotonic() - begun
    chance = random.Random(8)
    for at in sample((0.4, 0.6, 0.8), 2):
        running = subprocess.Popen([sys.executable, script, top, path], start_new_session=True)
        time.sleep(length * (at + chance.uniform(-0.1, 0.1)))
        running.send_signal(signal.SIGKILL)
        running.wait()
    subprocess.run([sys.executable, script, top, path], check=True, timeout=60)
    assert told(path) == told(whole)
    states = [state for (state,) in rows(path, "select state from runs order by run")]
    assert states[-1] == "done" and "running" not in states
    assert rows(
        path, "select count(*) from jobs j left join diagnoses using (diagnosis) where j.diagnosis is not null and digest is null"
    ) == [(0,)]


# -- files of others


def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    Store.open(path).close()
    with duckdb.connect(str(path)) as held:
        held.execute("update meta set value = '99' where key = 'schema'")
    with pytest.raises(UserError, match="newer release"):
        Store.open(path)


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as held:
        held.execute("create table salaries (name varchar)")
    with pytest.raises(UserError, match="something else"):
        Store.open(path)
    with duckdb.connect(str(path)) as held:
        assert held.execute("select count(*) from information_schema.tables").fetchall() == [(1,)]


def test_an_older_database_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version in turn, each as a whole; what was stored is still there."""
    path = tmp_path / "t.duckdb"
    held = Store.open(path)
    held.begin_run("rules", "local", {})
    held.add([result()])
    held.close()
    more = {
        2: ("alter table jobs add column colour varchar", "update jobs set colour = 'red'"),
        3: ("alter table jobs rename colour to hue",),
    }
    monkeypatch.setattr(result_tables, "MIGRATIONS", {**result_tables.MIGRATIONS, **more})
    monkeypatch.setattr(result_tables, "VERSION", 3)
    assert rows(path, "select job, hue from jobs") == [("a", "red")]
    assert rows(path, "select value from meta where key = 'schema'") == [("3",)]


def test_a_migration_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.duckdb"
    Store.open(path).close()
    monkeypatch.setattr(
        result_tables, "MIGRATIONS", {**result_tables.MIGRATIONS, 2: ("alter table jobs add column colour varchar", "no sql")}
    )
    monkeypatch.setattr(result_tables, "VERSION", 2)
    with pytest.raises(UserError):
        Store.open(path)
    monkeypatch.undo()
    assert ("colour",) not in rows(path, "select column_name from information_schema.columns where table_name = 'jobs'")


def test_the_tables_are_those_of_the_page() -> None:
    """docs/triage.md names every table and every column."""
    page = (ROOT / "docs" / "triage.md").read_text(encoding="utf-8")
    with duckdb.connect() as held:
        for statements in result_tables.MIGRATIONS.values():
            for statement in statements:
                held.execute(statement)
        found = held.execute("select table_name, column_name from information_schema.columns").fetchall()
    assert {table for table, _ in found} == {*result_tables.TABLES, "meta"}
    assert not [f"{table}.{column}" for table, column in found if f"`{column}`" not in page or f"`{table}`" not in page]


# -- files for others


def test_tables_are_exported_as_parquet_and_json_lines(tmp_path: Path) -> None:
    top, path = lay(tmp_path / "jobs", 6), tmp_path / "t.duckdb"
    list(triage([top], store=path, workers=1))
    store = Store.open(path)
    try:
        written = store.export_tables(tmp_path / "it's out")
    finally:
        store.close()
    assert sorted(each.name for each in written) == sorted(
        f"{table}.{ending}" for table in result_tables.TABLES for ending in ("parquet", "jsonl")
    )
    assert sorted(each.name for each in (tmp_path / "it's out").iterdir()) == sorted(each.name for each in written)
    with duckdb.connect() as held:
        parquet = held.execute(
            "select job, status, logs from read_parquet(?) order by 1", [str(tmp_path / "it's out" / "jobs.parquet")]
        ).fetchall()
    lines = [json.loads(line) for line in (tmp_path / "it's out" / "jobs.jsonl").read_text().splitlines()]
    assert parquet == [(line["job"], line["status"], line["logs"]) for line in lines] and len(lines) == 6
    digests = [json.loads(line) for line in (tmp_path / "it's out" / "diagnoses.jsonl").read_text().splitlines()]
    assert all(line["digest"]["causes"] for line in digests)


def test_the_library_yields_results_as_they_come_and_keeps_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "STORE_BATCH", 2)
    top, path = lay(tmp_path / "jobs", 12), tmp_path / "t.duckdb"
    found = triage([top], store=path, workers=1)
    first = [next(found) for _ in range(5)]
    found.close()  # type: ignore[attr-defined]
    assert rows(path, "select state, found from runs") == [("stopped", 5)]
    rest = list(triage([top], store=path, workers=1))
    assert len(first) + len(rest) == 12 and {each.job.id for each in first}.isdisjoint(each.job.id for each in rest)


def test_without_a_database_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "a.log").write_text(QUIET)
    assert [each.status for each in triage([tmp_path / "a.log"])] == ["none"]
    assert not list((tmp_path / "tmp").glob("oomdoctor-*"))


@given(st.sets(st.text(max_size=40), max_size=200))
def test_what_was_added_is_never_said_to_be_missing(keys: set[str]) -> None:
    """A diagnosis that is there would be made again."""
    held = BloomFilter()
    for key in keys:
        held.add(key)
    assert all(key in held for key in keys)


def test_few_of_what_was_not_added_are_taken_for_it() -> None:
    held = BloomFilter()
    for number in range(20_000):
        held.add(f"{number:032x}")
    assert sum(f"{number:032x}" in held for number in range(20_000, 30_000)) < 10
