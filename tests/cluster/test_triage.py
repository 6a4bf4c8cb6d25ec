"""The command `triage`: what it prints and writes, its conditions, its exit statuses."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from collected import for_each
from many import QUIET, failure, lay, rows, still  # noqa: F401

from diagnose.cluster.report import fail_conditions
from diagnose.cluster.report.summary_types import BY
from diagnose.errors import UserError

pytestmark = pytest.mark.usefixtures("still")

FIGURES = {"jobs": 200.0, "failed": 30.0, "oom": 20.0, "suspected": 10.0, "lookalike": 0.0, "unread": 1.0, "groups": 4.0, "gpu-hours": 12.5,
           "share": 15.0, "new-groups": 2.0}  # fmt: skip


# -- conditions and times


@for_each(
    "text, holds",
    [
        ("oom>10", True),
        ("oom > 20", False),
        ("oom>=20", True),
        ("OOM=20", True),
        ("unread>0", True),
        ("share>5%", True),
        ("share>15", False),
        ("failed>=15%", True),
        ("oom>10%", False),
        ("new_groups>0", True),
        ("new-groups < 2", False),
        ("gpu-hours>12.4", True),
        ("groups<=3", False),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    assert fail_conditions.parse_condition(text).holds(FIGURES) is holds


def test_a_share_of_no_jobs_is_none() -> None:
    assert not fail_conditions.parse_condition("oom>0%").holds(dict.fromkeys(FIGURES, 0.0))


@for_each(
    "text, said",
    [
        ("", "FIGURE>NUMBER"),
        ("oom", "FIGURE>NUMBER"),
        ("oom>many", "FIGURE>NUMBER"),
        ("oom>-1", "FIGURE>NUMBER"),
        ("__import__('os')>1", "FIGURE>NUMBER"),
        ("ooms>1", "did you mean oom?"),
        ("weather>1", "it knows jobs, failed"),
        ("groups>5%", "cannot be a percentage"),
    ],
)
def test_what_is_no_condition_is_a_sentence(text: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        fail_conditions.parse_condition(text)
    assert said in refused.value.to("en") and refused.value.to("zh") != refused.value.to("en")


@for_each("text, seconds", [("90m", 5400), ("12h", 43200), ("7d", 604800), ("1.5 w", 907200), ("30s", 30)])
def test_durations_count_back_from_now(text: str, seconds: float) -> None:
    assert fail_conditions.parse_since(text, 2_000_000.0) == 2_000_000.0 - seconds


def test_dates_are_local_unless_they_name_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fail_conditions.parse_since("2026-11-20T08:00+08:00", 0) == fail_conditions.parse_since("2026-11-20T00:00Z", 0) == 1_795_132_800
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert fail_conditions.parse_since("2026-11-20", 0) == 1_795_132_800 - 8 * 3600
    finally:
        monkeypatch.undo()
        time.tzset()


@for_each("text", ["yesterday", "7", "7y", "2026-13-01", "d", "99999-01-01"])
def test_what_is_no_time_is_a_sentence(text: str) -> None:
    with pytest.raises(UserError, match="--since takes a duration or a date"):
        fail_conditions.parse_since(text, 0.0)


# -- the command


def test_the_whole_command(tmp_path: Path, oomdoctor: Any) -> None:
    """Real diagnoses in real processes: the report, the page, the tables, the database."""
    top, path = lay(tmp_path / "jobs", 12), tmp_path / "t.duckdb"
    ended = oomdoctor("triage", top, "--store", path, "--out", tmp_path / "report.html", "--export", tmp_path / "out", "--jobs", 2)
    assert ended.status == 0, ended.err
    assert "12 jobs: 6 out of memory, 6 not, 0 unread" in ended.out
    assert (tmp_path / "report.html").read_text().lower().startswith("<!doctype html>")
    assert (tmp_path / "out" / "jobs.parquet").exists() and "out" in ended.err
    again = oomdoctor("triage", top, "--store", path)
    assert (again.status, again.out) == (0, ended.out) and rows(path, "select reused from runs where run = 2") == [(12,)]


def test_every_format(tmp_path: Path, oomdoctor: Any) -> None:
    top, path = lay(tmp_path / "jobs", 4), tmp_path / "t.duckdb"
    data = json.loads(oomdoctor("triage", top, "--store", path, "--format", "json", "--jobs", 1).out)
    assert data["jobs"]["oom"] == 2 and len(data["groups"]) >= 1
    assert "| jobs" in oomdoctor("triage", top, "--store", path, "--format", "markdown", "--jobs", 1).out
    assert '<html lang="zh' in oomdoctor("triage", top, "--store", path, "--format", "html", "--lang", "zh", "--jobs", 1).out
    assert oomdoctor("triage", top, "--store", path, "--format", "sarif").status == 2


def test_reports_as_json_lines(tmp_path: Path, oomdoctor: Any) -> None:
    top, out = lay(tmp_path / "jobs", 6), tmp_path / "new" / "all.jsonl"
    ended = oomdoctor("triage", top, "--export", out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert ended.status == 0 and "6 reports" in ended.err and len(lines) == 6
    assert {line["schema"] for line in lines} == {"oomdoctor.report/1"} and all(line["logs"] for line in lines)
    assert sorted(line["verdict"]["status"] for line in lines) == ["none"] * 3 + ["oom"] * 3


def test_what_is_shared_is_masked(tmp_path: Path, oomdoctor: Any) -> None:
    """text and JSON only where it is asked for, Markdown and the page unless it is not."""
    top, path = lay(tmp_path / "hushhush" / "jobs", 4), tmp_path / "t.duckdb"
    (top / "gone.log").symlink_to(tmp_path / "nowhere")

    def shows(*words: str) -> bool:
        return "hushhush" in oomdoctor("triage", top, "--store", path, "--jobs", 1, *words).out.replace("\n    ", "")

    def page() -> bool:
        return "hushhush" in (tmp_path / "r.html").read_text()

    out = ("--out", str(tmp_path / "r.html"))
    assert shows(*out) and not page()
    assert not shows("--format", "json", "--redact")
    assert not shows("--format", "markdown")
    assert shows("--format", "markdown", "--no-redact", *out) and page()


def test_conditions_end_with_5(tmp_path: Path, oomdoctor: Any) -> None:
    """Whether something was unread or not; a nightly run over what is known has no new groups."""
    top, path = lay(tmp_path / "jobs", 6), tmp_path / "t.duckdb"
    first = oomdoctor("triage", top, "--store", path, "--fail-on", "new-groups>0", "--fail-on", "oom>100")
    assert first.status == 5 and "--fail-on new-groups>0 holds" in first.err and "oom>100" not in first.err
    assert oomdoctor("triage", top, "--store", path, "--fail-on", "new-groups>0").status == 0
    (top / "gone.log").symlink_to(tmp_path / "nowhere")
    assert oomdoctor("triage", top, "--store", path).status == 1
    assert oomdoctor("triage", top, "--store", path, "--fail-on", "unread>0").status == 5
    assert oomdoctor("triage", top, "--store", path, "--fail-on", "oom>=50%").status == 1  # 3 of 7


def test_mistakes_are_said_before_any_work(tmp_path: Path, oomdoctor: Any) -> None:
    top = lay(tmp_path / "jobs", 2)
    for words, said in (
        (("--fail-on", "oom"), "--fail-on takes"),
        (("--since", "soon"), "--since takes"),
        (("--group-by", "colour"), f"use one of {', '.join(BY)}"),
        (("--jobs", "0"), "--jobs takes"),
        (("--notify", "no-address"), ""),
        (("--gpu", "no such card"), "no such card"),
        (("--set", "nonsense"), "--set takes"),
        (("--job-pattern", "("), ""),
    ):
        ended = oomdoctor("triage", top, "--store", tmp_path / "t.duckdb", *words)
        assert ended.status == 2 and said in ended.err and ended.err.count("\n") == 1, (words, ended.err)


def test_no_log_under_a_path(tmp_path: Path, oomdoctor: Any) -> None:
    ended = oomdoctor("triage", tmp_path)
    assert ended.status == 2 and "no log was found" in ended.err


def test_only_what_ended_since(tmp_path: Path, oomdoctor: Any) -> None:
    top, path = lay(tmp_path / "jobs", 4), tmp_path / "t.duckdb"
    os.utime(top / "job001" / "error.log", (time.time(), time.time()))
    oomdoctor("triage", top, "--store", path, "--since", "1d")
    assert rows(path, "select count(*) from jobs") == [(1,)]


def test_grouped_by_something_else(tmp_path: Path, oomdoctor: Any) -> None:
    (tmp_path / "a.log").write_text(failure(1))
    ended = oomdoctor("triage", tmp_path / "a.log", "--group-by", "phase", "--format", "json")
    assert ended.status == 0 and json.loads(ended.out)["by"] == "phase"


def test_a_bar_only_on_a_terminal(tmp_path: Path, oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rate and the time that is left; a pipe gets none."""
    import sys

    top = lay(tmp_path / "jobs", 12)
    assert "\x1b" not in oomdoctor("triage", top).err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    ended = oomdoctor("triage", top, "--jobs", 1)
    assert ended.status == 0 and "diagnosing" in ended.err and "12/12" in ended.err and "/s" in ended.err


def test_a_webhook_is_told_once(tmp_path: Path, oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from diagnose.cluster.report import webhooks

    told: list[dict[str, Any]] = []
    monkeypatch.setattr(webhooks, "post", lambda url, message, wait: told.append(message))
    top, path = lay(tmp_path / "hushhush", 4), tmp_path / "t.duckdb"
    words = ("triage", top, "--store", path, "--notify", "https://hooks.example.org/x")
    assert oomdoctor(*words).status == 0
    groups = len(told)
    assert groups and "hushhush" not in json.dumps(told)
    oomdoctor(*words)
    assert len(told) == groups and rows(path, "select count(*) from groups where notified is null") == [(0,)]


def test_a_webhook_that_cannot_be_reached_is_an_error_of_the_run(tmp_path: Path, oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from diagnose.cluster.report import webhooks

    def refused(*_: Any) -> None:
        raise webhooks.webhook_error("bad_url", "hooks.example.org", "write_url")

    monkeypatch.setattr(webhooks, "post", refused)
    path = tmp_path / "t.duckdb"
    ended = oomdoctor("triage", lay(tmp_path / "jobs", 4), "--store", path, "--notify", "https://hooks.example.org/x")
    assert ended.status == 0 and "hooks.example.org" in ended.err
    assert rows(path, "select fault, job from errors") == [("not_told", None)]


def test_a_watch_reads_what_is_new_in_each_round(tmp_path: Path, oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that meets nothing new leaves no trace; Ctrl-C ends it in peace."""
    from diagnose.cluster.run import folder_watch
    from diagnose.surfaces.terminal import triage_command

    top, path = lay(tmp_path / "jobs", 2), tmp_path / "t.duckdb"
    rounds = []

    class Three(folder_watch.Watch):
        def __init__(self) -> None:
            super().__init__(every=0.0, settle=0.0)

        def run(self, round: Any, say: Any = None) -> None:
            for number in range(3):
                if number == 2:
                    (top / "new.log").write_text(QUIET + failure(5))
                round()
                rounds.append(number)

    monkeypatch.setattr(triage_command, "Watch", Three)
    ended = oomdoctor("triage", top, "--store", path, "--watch")
    assert ended.status == 0 and rounds == [0, 1, 2] and ended.out.count(" jobs: ") == 2
    assert rows(path, "select read, reused from runs order by run") == [(2, 0), (1, 0)]
