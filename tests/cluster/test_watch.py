"""A folder that grows: what is read when, how a watch ends, and what a webhook is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from collected import for_each

from diagnose.cluster.find.job import About, Job
from diagnose.cluster.find.job_files import stamp
from diagnose.cluster.find.job_finder import find
from diagnose.cluster.report import webhooks
from diagnose.cluster.report.webhooks import MAX_MESSAGES, News, announce, body, platform_of, post
from diagnose.cluster.run.folder_watch import Watch, is_over
from diagnose.errors import UserError
from diagnose.phrases import phrase


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# -- what is read when


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> Iterator[Watch]:
    made = Watch(settle=60, clock=clock)
    yield made
    made.close()


def refuse(group: str, refusal: UserError) -> None:
    raise AssertionError(f"{group}: {refusal}")


def job(folder: Path) -> Job:
    (one,) = find([str(folder)])
    assert isinstance(one, Job)
    return one


def test_a_log_that_grows_waits_until_it_has_settled(tmp_path: Path, watch: Watch, clock: Clock) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1\n")
    assert not watch.is_ready(job(tmp_path))
    clock.now += 59
    assert not watch.is_ready(job(tmp_path))
    with log.open("a") as out:
        out.write("step 2\n")
    clock.now += 2
    assert not watch.is_ready(job(tmp_path))  # it has grown: the wait begins again
    clock.now += 60
    assert watch.is_ready(job(tmp_path))


def test_a_second_log_of_a_job_makes_it_wait_again(tmp_path: Path, watch: Watch, clock: Clock) -> None:
    (tmp_path / "rank_0.log").write_text("a\n")
    watch.is_ready(job(tmp_path))
    clock.now += 61
    (tmp_path / "rank_1.log").write_text("a\n")
    assert not watch.is_ready(job(tmp_path))


def test_a_job_that_was_read_as_it_is_need_not_wait(tmp_path: Path, watch: Watch) -> None:
    """A watch that is started again over an archive does not wait for what it knows."""
    (tmp_path / "train.log").write_text("a\n")
    assert watch.is_ready(job(tmp_path), last_stamp=stamp(job(tmp_path)))


@pytest.mark.parametrize(
    ("about", "over"),
    [
        (About("slurm", "1", state="FAILED", ended=1.0), True),
        (About("slurm", "1", state="RUNNING", ended=1.0), False),
        (About("slurm", "1", state="COMPLETING"), False),
        (About(), False),
    ],
)
def test_a_scheduler_that_says_that_a_job_ended_is_believed(tmp_path: Path, watch: Watch, about: About, over: bool) -> None:
    (tmp_path / "train.log").write_text("a\n")
    assert is_over(about) == over
    assert watch.is_ready(Job("1", job(tmp_path).logs, about=about)) == over


def test_a_file_dated_into_the_future_or_the_past_settles_like_any_other(tmp_path: Path, watch: Watch, clock: Clock) -> None:
    """Clocks of file servers are wrong, and jump: times are compared with themselves only."""
    log = tmp_path / "train.log"
    log.write_text("a\n")
    for when in (4e9, 1.0):
        os.utime(log, (when, when))
        assert not watch.is_ready(job(tmp_path))
        clock.now += 61
        assert watch.is_ready(job(tmp_path))


def test_the_clock_of_the_machine_is_never_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch lives through a clock that is set back by years."""

    def jump() -> float:
        raise AssertionError("the time of day was asked for")

    monkeypatch.setattr(time, "time", jump)
    (tmp_path / "train.log").write_text("a\n")
    watch = Watch(every=0.01, settle=0.02)
    seen: list[bool] = []

    def round() -> None:
        seen.append(watch.is_ready(job(tmp_path)))
        if seen[-1]:
            watch.stop()

    watch.run(round)
    watch.close()
    assert seen[0] is False and seen[-1] is True


# -- how it ends


def test_a_round_that_fails_is_said_and_the_next_one_comes() -> None:
    watch = Watch(every=0.01)
    rounds, said = [], []

    def round() -> None:
        rounds.append(1)
        if len(rounds) == 1:
            raise UserError(phrase("notify.bad_url"), "triage.duckdb")
        watch.stop()

    watch.run(round, lambda text: said.append(text))
    assert len(rounds) == 2 and "triage.duckdb" in said[1].en and "triage.duckdb" in said[1].zh


WATCHING = """
import sys, time
from diagnose.cluster.run.folder_watch import Watch
def round():
    try:
        print("round", flush=True)
        time.sleep(float(sys.argv[1]))
    finally:
        print("tidied up", flush=True)
Watch(every=600).run(round, lambda text: print(text.en, flush=True))
print("after", flush=True)
"""


@for_each("number", [signal.SIGINT, signal.SIGTERM])
@for_each("busy", ["0", "600"])
def test_ctrl_c_and_sigterm_end_a_watch_in_a_round_and_between_rounds(number: signal.Signals, busy: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WATCHING, busy], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        lines = [process.stdout.readline() for _ in range(2 if busy == "600" else 3)]
        assert lines[1] == "round\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0 and err == ""
        assert ("tidied up" in out) == (busy == "600") and out.splitlines()[-2:] == [phrase("notify.ended").en, "after"]


# -- webhooks


class Hook:
    """A webhook at this machine that answers as it is told."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.bodies: list[dict[str, Any]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                status, headers, data = hook.answers.pop(0) if hook.answers else (200, {}, b"ok")
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook/secret"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


def test_each_new_group_is_one_message(hook: Hook) -> None:
    told: list[str] = []
    news = [News(f"1:{name}", f"logits × 4 显存 {name}", {"jobs": 4}) for name in "ab"]
    assert announce(news, hook.url, told.append, refuse) == 2
    assert told == ["1:a", "1:b"]
    assert hook.bodies[0] == {
        "schema": "oomdoctor.notify/1", "event": "new_group", "group": "1:a", "text": "logits × 4 显存 a", "jobs": 4,
    }  # fmt: skip


@for_each(
    "url, platform, key",
    [
        ("https://hooks.slack.com/services/T/B/x", "slack", "text"),
        ("https://discord.com/api/webhooks/1/x", "discord", "content"),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/x", "feishu", "card"),
        ("https://open.larksuite.com/open-apis/bot/v2/hook/x", "feishu", "card"),
        ("https://mattermost.example.org/hooks/x", "", "text"),
        ("http://HOOKS.slack.com.evil.example/x", "", "text"),
    ],
)
def test_platforms_take_what_they_take(url: str, platform: str, key: str) -> None:
    assert platform_of(url) == platform
    message = body(platform_of(url), "said", {"jobs": 1})
    assert "said" in json.dumps(message[key])
    if platform == "discord":
        assert message["allowed_mentions"] == {"parse": []}  # nobody is called by what stands in a log


@for_each("url", ["file:///etc/passwd", "ftp://host/x", "hooks.slack.com/x", "http://", "http://[", "", "javascript:1"])
def test_only_http_is_spoken(url: str) -> None:
    with pytest.raises(UserError, match="http://"):
        post(url, {})


def test_more_groups_than_anyone_reads_are_one_last_message(hook: Hook) -> None:
    """The first run over a year's archive is no flood."""
    told: list[str] = []
    assert announce([News(str(number), "x", {}) for number in range(500)], hook.url, told.append, refuse, "zh") == 500
    assert len(hook.bodies) == MAX_MESSAGES + 1 and len(told) == 500
    assert hook.bodies[-1]["text"] == phrase("notify.more", count=500 - MAX_MESSAGES).zh


@pytest.mark.parametrize(
    "answers, waits",
    [
        ([(503, {}, b"")], [1.0]),
        ([(429, {"Retry-After": "7"}, b""), (500, {}, b"")], [7.0, 14.0]),
        ([(429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"")], [1.0]),
        ([(200, {}, b'{"code": 11232, "msg": "frequency limited"}')], [1.0]),
    ],
)
def test_what_may_pass_is_tried_again_as_the_answer_says(hook: Hook, answers: list[Any], waits: list[float]) -> None:
    hook.answers = list(answers)
    waited: list[float] = []
    post(hook.url, {"text": "x"}, waited.append)
    assert waited == waits and len(hook.bodies) == len(answers) + 1


@pytest.mark.parametrize(
    "answer, says",
    [
        ((404, {}, b"no_service"), "HTTP 404"),
        ((302, {"Location": "http://127.0.0.1:1/elsewhere"}, b""), "HTTP 302"),
        ((429, {"Retry-After": "3600"}, b""), "HTTP 429"),
        ((200, {}, b'{"code": 19024, "msg": "Key Words Not Found"}'), "Key Words Not Found"),
    ],
)
def test_what_will_not_pass_is_said_without_the_secret_of_the_address(hook: Hook, answer: Any, says: str) -> None:
    hook.answers = [answer]
    with pytest.raises(UserError, match=says) as refusal:
        post(hook.url, {"text": "x"}, lambda _: pytest.fail("waited"))
    assert len(hook.bodies) == 1
    assert "secret" not in refusal.value.to("en") + refusal.value.to("zh")


def test_a_webhook_that_is_not_there_is_tried_for_a_while_only(clock: Clock) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        clock.now += seconds

    with pytest.raises(UserError, match="not reached"):
        post("http://127.0.0.1:9/hook", {}, wait, clock)
    assert waited == [1, 2, 4, 8, 16] and sum(waited) <= webhooks.WITHIN


def test_a_group_that_was_not_told_of_stays_untold_and_so_do_those_behind_it(hook: Hook) -> None:
    hook.answers = [(200, {}, b"ok"), (400, {}, b"")]
    told: list[str] = []
    failed: list[tuple[str, str]] = []
    news = [News(name, name, {}) for name in "abc"]
    assert announce(news, hook.url, told.append, lambda group, refusal: failed.append((group, refusal.key))) == 1
    assert told == ["a"] and failed == [("b", "not_told")] and len(hook.bodies) == 2


# -- from a log to a message

COMMAND = """
import sys
from diagnose.cluster.run import folder_watch as watch
watch.Watch.__init__.__defaults__ = (0.2, 0.5, watch.monotonic)
from diagnose.surfaces.cli.entry import run
sys.argv = ["oomdoctor", "triage", *sys.argv[1:]]
run()
"""
CARD = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n"
)
HOST = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch. Some of the step tasks have been OOM Killed.\n"


def until(condition: Any, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(condition())


def test_the_whole_command_watches_tells_and_ends(tmp_path: Path, hook: Hook) -> None:
    """A log that grows is waited for; a new mistake is one message, the same mistake again is none; SIGTERM ends it well."""
    duckdb = pytest.importorskip("duckdb")
    logs, store = tmp_path / "logs", tmp_path / "t.duckdb"
    logs.mkdir()
    (logs / "a.log").write_text("step 1\n")
    hook.answers = [(500, {}, b""), (404, {}, b"")]  # the first message does not arrive: once more later, then given up for this round
    words = [
        sys.executable,
        "-c",
        COMMAND,
        str(logs),
        "--watch",
        "--store",
        str(store),
        "--notify",
        hook.url,
        "--jobs",
        "1",
        "--lang",
        "en",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            with (logs / "a.log").open("a") as out:
                out.write(CARD)
            assert until(lambda: len(hook.bodies) == 3), hook.bodies
            (logs / "b.log").write_text(CARD)
            time.sleep(2)
            (logs / "c.log").write_text(HOST)
            assert until(lambda: len(hook.bodies) == 4), hook.bodies
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in err, err
    assert [message["event"] for message in hook.bodies] == ["new_group"] * 4
    assert len({message["group"] for message in hook.bodies}) == 2
    assert str(tmp_path) not in json.dumps(hook.bodies)  # masked
    assert phrase("notify.ended").en in err and "secret" not in err
    with duckdb.connect(str(store), read_only=True) as held:
        assert held.execute("select count(*), count(fingerprint) from jobs").fetchone() == (3, 3)
        found, told = held.execute("select count(*), count(notified) from groups").fetchone()
        assert found == 2 and told >= 1  # ended between a message and its note, it tells once more next time
        assert {fault for (fault,) in held.execute("select fault from errors").fetchall()} == {"not_told"}
