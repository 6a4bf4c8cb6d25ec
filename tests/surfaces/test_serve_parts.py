"""The parts of `oomdoctor serve` alone: the gate, the patience of a connection, the processes behind it, what forms and JSON mean."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, MutableMapping
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from serving import LOG

from diagnose.render.parts.strings import one_line
from diagnose.surfaces.server import rule_lookup, serve_limits
from diagnose.surfaces.server import worker_pool as crews
from diagnose.surfaces.server.question import Question, label, setting_text
from diagnose.surfaces.server.serve_limits import Gate, Limits, TimedHttpProtocol, negotiate_language
from diagnose.surfaces.server.worker_answer import answer_question
from diagnose.surfaces.server.worker_pool import Lost, Overloaded, Stopped, Worker, WorkerPool

ASKED = Question(logs=(("", LOG),))


@cache
def slow() -> Question:
    """Takes seconds to answer."""
    return Question(logs=(("", "".join(LOG.replace("rank3", f"rank{n}") for n in range(3000))),))


# -- the gate


def through(gate: Gate, headers: dict[str, str], parts: list[bytes | float | None], client: str = "1.2.3.4") -> tuple[int, bytes]:
    """What the gate answers to a body that comes in parts: a number is a wait, None or nothing more the end of the connection."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        part = parts.pop(0) if parts else None
        if isinstance(part, float):
            await asyncio.sleep(part)
            return await receive()
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": raw, "client": (client, 1)}
    asyncio.run(gate(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


LIMITS = Limits(size=100, total_size=150, max_requests=2, per_client=1, arrival=0.2)


@for_each(
    "headers, parts, status",
    [
        ({"content-length": "6"}, [b"abc", 0.01, b"def"], 200),
        ({}, [b""], 200),
        ({"transfer-encoding": "chunked"}, [b"x" * 60, b"y" * 40], 200),
        ({"transfer-encoding": "chunked"}, [b"x" * 60, b"y" * 41, b""], 413),
        ({"content-length": "101"}, [], 413),
        ({"content-length": "1" * 400}, [], 413),
        ({"content-length": "²"}, [], 422),
        ({"content-length": "50"}, [b"abc", 5.0, b"def"], 408),
        ({"content-length": "50"}, [b"abc", None], 400),
        ({"content-length": "3", "content-encoding": "gzip"}, [b"abc"], 415),
    ],
)
def test_the_gate(headers: dict[str, str], parts: list[bytes | float | None], status: int) -> None:
    """A body comes whole, in time and no larger than it may be, or the request goes no further; either way its place is free again."""
    gate = Gate(echo, LIMITS)
    got, body = through(gate, headers, list(parts))
    assert got == status
    assert body == b"".join(part for part in parts if isinstance(part, bytes)) or json.loads(body)["status"] == status
    assert (gate.waiting, gate.bytes, dict(gate.by_client)) == (0, 0, {})


@for_each(
    "held, length, status",
    [((2, 0, "9.9.9.9"), 1, 503), ((1, 100, "9.9.9.9"), 60, 503), ((1, 0, "1.2.3.4"), 1, 429), ((1, 0, "9.9.9.9"), 1, 200)],
)
def test_the_gate_counts(held: tuple[int, int, str], length: int, status: int) -> None:
    """All together, of one address, and the bytes that are held at once."""
    gate = Gate(echo, LIMITS)
    gate.waiting, gate.bytes = held[:2]
    gate.by_client[held[2]] = 1
    assert through(gate, {"content-length": str(length)}, [b"x" * length])[0] == status


def test_requests_may_finish_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a signal: those that are waited for, those that come, and not those whose response has begun."""
    monkeypatch.setattr(serve_limits, "FINISH_SECONDS", 0.1)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/begun":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.3)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    gate, statuses = Gate(app, LIMITS), dict[str, list[int]]()

    async def ask(path: str) -> None:
        async def send(message: MutableMapping[str, Any]) -> None:
            if "status" in message:
                statuses.setdefault(path, []).append(message["status"])

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        await gate({"type": "http", "method": "GET", "path": path, "headers": []}, receive, send)

    async def all_of_it() -> None:
        asked = [asyncio.create_task(ask(path)) for path in ("/slow", "/begun")]
        await asyncio.sleep(0.05)
        gate.finish()
        await asyncio.gather(*asked, ask("/late"))

    async def in_time() -> None:
        async with asyncio.timeout(5):
            await all_of_it()

    asyncio.run(in_time())
    assert statuses == {"/slow": [503], "/late": [503], "/begun": [200, 200]}


def test_a_body_that_arrives_slowly_gives_up_its_place() -> None:
    """To the next request, where there is none left; one that is being answered does not."""
    gate, statuses = Gate(echo, Limits(size=100, total_size=150, max_requests=2, per_client=9, arrival=5)), list[int]()

    async def ask(body: bytes | None) -> None:
        async def receive() -> dict[str, Any]:
            if body is None:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": body}

        async def send(message: MutableMapping[str, Any]) -> None:
            if "status" in message:
                statuses.append(message["status"])

        headers = [(b"content-length", b"3"), (b"expect", b"100-continue")]
        await gate({"type": "http", "method": "POST", "path": "/", "headers": headers, "client": ("1.2.3.4", 1)}, receive, send)

    async def all_of_it() -> None:
        slow = [asyncio.create_task(ask(None)) for _ in range(2)]
        await asyncio.sleep(0)
        assert gate.waiting == 2
        await ask(b"abc")
        assert statuses == [200]
        await asyncio.wait({slow[0]}, timeout=1)
        assert statuses == [200, 503] and not slow[1].done()
        slow[1].cancel()
        await asyncio.wait(slow)

    asyncio.run(all_of_it())
    assert (gate.waiting, gate.bytes, dict(gate.by_client)) == (0, 0, {})


def test_a_failure_behind_the_gate_frees_the_place() -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    gate = Gate(fails, LIMITS)
    with pytest.raises(ZeroDivisionError):
        through(gate, {"content-length": "1"}, [b"x"])
    assert (gate.waiting, gate.bytes, dict(gate.by_client)) == (0, 0, {})


@given(st.text(max_size=200))
def test_any_accept_language_is_some_language(accepted: str) -> None:
    assert negotiate_language(accepted) in ("en", "zh")


# -- connections


@pytest.fixture
def hung_up() -> threading.Event:
    """Set when a connection of `patient` has ended."""
    return threading.Event()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch, hung_up: threading.Event) -> Iterator[int]:
    """The port of a server that has half a second of patience."""
    monkeypatch.setattr(serve_limits, "CONNECTION_SECONDS", 0.5)

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * (64 << 20)})

    class Protocol(TimedHttpProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            hung_up.set()

    server = uvicorn.Server(uvicorn.Config(large, http=Protocol, lifespan="off", log_level="critical", ws="none"))
    at = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([at],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield at.getsockname()[1]
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("head", [b"", b"POST / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_head_that_never_ends_is_cut_off(patient: int, head: bytes) -> None:
    """However steadily its bytes drip in."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", patient), timeout=0.05) as slow:
        slow.sendall(head)
        while time.monotonic() - start < 10 and not is_over(slow):
            with contextlib.suppress(OSError):
                slow.sendall(b"x" if head else b"")
    assert time.monotonic() - start < 5


def is_over(connection: socket.socket) -> bool:
    """Whether the other side has hung up; waits as long as the connection does."""
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_an_answer_that_nobody_takes_is_cut_off(patient: int, hung_up: threading.Event) -> None:
    """The reader stops: what waits for it is let go, and only what the network holds arrives."""
    with socket.create_connection(("127.0.0.1", patient), timeout=10) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert hung_up.wait(20)
        got = 0
        with contextlib.suppress(OSError):
            while part := slow.recv(1 << 20):
                got += len(part)
    assert got < 64 << 20


# -- processes


@pytest.fixture
def crew() -> Iterator[WorkerPool]:
    held = WorkerPool(workers=1, seconds=20, capacity=2)
    yield held
    held.close()


def test_a_question_is_answered(crew: WorkerPool) -> None:
    answer = asyncio.run(crew.answer(ASKED))
    assert json.loads(answer.data)["verdict"]["status"] == "oom" and answer.page == "" and crew.pending == 0


def test_a_mistake_of_the_asker_is_a_sentence(crew: WorkerPool) -> None:
    answer = asyncio.run(crew.answer(Question(logs=(("", LOG),), gpu="abacus")))
    assert "abacus" in answer.wrong and answer.data == ""


def test_a_mistake_of_ours_takes_nobody_along(crew: WorkerPool) -> None:
    """A form that does not exist fails inside the process, which goes on."""

    async def both() -> None:
        with pytest.raises(Lost, match="KeyError"):
            await crew.answer(Question(logs=(("", LOG),), form="nonsense"))
        assert (await crew.answer(ASKED)).data

    asyncio.run(both())


def test_a_process_that_died_while_idle_is_replaced_and_the_question_answered(crew: WorkerPool) -> None:
    """Also where the server that forks processes died with it, and where it dies again under the question."""

    async def all_of_it() -> None:
        await crew.start()
        for kills_the_fork_server in (False, True):
            crew._workers[0].process.kill()
            if kills_the_fork_server and (number := getattr(forkserver._forkserver, "_forkserver_pid", None)):
                os.kill(number, signal.SIGKILL)
            await asyncio.sleep(0.3)
            assert (await crew.answer(ASKED)).data
        (worker,) = crew._workers
        os.kill(worker.process.pid, signal.SIGSTOP)  # so that it cannot have answered before it dies
        asked = asyncio.create_task(crew.answer(ASKED))
        await asyncio.sleep(0.1)
        worker.process.kill()
        assert (await asked).data

    asyncio.run(all_of_it())
    assert len(crew._workers) == 1 and crew.pending == 0


class Killer:
    """A question that ends the process which reads it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


def test_a_question_that_kills_its_process_is_tried_twice(crew: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then its asker learns of it, and the next one is answered."""
    started: list[Worker] = []

    def start() -> Worker:
        started.append(Worker())
        return started[-1]

    monkeypatch.setattr(crews, "Worker", start)

    async def all_of_it() -> None:
        with pytest.raises(Lost, match="2 times"):
            await crew.answer(Killer())  # type: ignore[arg-type]
        assert len(started) == 2 and not crew._workers
        assert (await crew.answer(ASKED)).data

    asyncio.run(all_of_it())


def test_questions_of_a_pool_that_closes_are_refused(crew: WorkerPool) -> None:
    """Those that are being answered, those that wait, and those that come later; at once, and without another process."""

    async def all_of_it() -> list[Any]:
        await crew.start()
        asked = [asyncio.create_task(crew.answer(slow())) for _ in range(2)]
        await asyncio.sleep(0.1)
        begun = time.monotonic()
        await asyncio.to_thread(crew.close)
        answers = await asyncio.gather(*asked, crew.answer(ASKED), return_exceptions=True)
        assert time.monotonic() - begun < 3
        return answers

    assert [type(answer) for answer in asyncio.run(all_of_it())] == [Overloaded] * 3 and not crew._workers


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_process_ends_with_its_server_whatever_it_is_doing() -> None:
    """The server is killed while its worker diagnoses."""
    code = (
        "import asyncio, os\nfrom test_serve_parts import Worker, slow\n"
        "worker = Worker(); worker.pipe.send(slow()); print(worker.process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths}, timeout=60
    )
    ends = time.monotonic() + 3
    while is_running(int(done.stdout)) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not is_running(int(done.stdout))


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_time_is_up_and_the_next_one_is_answered(crew: WorkerPool) -> None:
    async def all_of_it() -> None:
        await crew.start()
        first = crew._workers[0].process.pid
        crew.seconds = 0.05
        with pytest.raises(Stopped):
            await crew.answer(slow())
        crew.seconds = 20
        assert (await crew.answer(ASKED)).data and crew._workers[0].process.pid != first

    asyncio.run(all_of_it())


def test_no_more_wait_than_may(crew: WorkerPool) -> None:
    async def all_of_it() -> list[Any]:
        return await asyncio.gather(*(crew.answer(ASKED) for _ in range(3)), return_exceptions=True)

    answers = asyncio.run(all_of_it())
    assert [type(answer) for answer in answers].count(Overloaded) == 1


def test_nobody_waits_for_ever(crew: WorkerPool) -> None:
    """Behind one that takes long the next is told to come again; it is not answered later in vain."""
    slow = Question(logs=(("", "".join(LOG.replace("rank3", f"rank{n}") for n in range(100))),))

    async def all_of_it() -> Any:
        await crew.start()
        crew.queue_seconds = 0.3
        return await asyncio.gather(crew.answer(slow), crew.answer(ASKED), return_exceptions=True)

    first, second = asyncio.run(all_of_it())
    assert isinstance(second, Overloaded) and json.loads(first.data)["verdict"]["status"] == "oom" and crew.pending == 0


def test_a_process_is_replaced_after_its_life(monkeypatch: pytest.MonkeyPatch, crew: WorkerPool) -> None:
    monkeypatch.setattr(crews, "QUESTIONS_PER_PROCESS", 1)
    pids = []
    for _ in range(2):
        asyncio.run(crew.answer(ASKED))
        pids.append(crew._workers[0].process.pid)
    assert pids[0] != pids[1] and len(crew._workers) == 1


def test_a_process_prints_nothing_on_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    """It may carry a protocol."""
    worker = Worker()
    try:
        worker.ask(ASKED, 60)
    finally:
        worker.end()
    assert capfd.readouterr().out == ""


# -- what is asked


@given(st.text(max_size=600))
def test_any_name_becomes_a_label(name: str) -> None:
    shown = label(name, "config-1")
    assert 0 < len(shown) <= 128 and "/" not in shown and "\\" not in shown and shown == one_line(shown)


@for_each("value, text", [(True, "true"), (None, "unknown"), (8, "8"), (0.9, "0.9"), ("2.5.1", "2.5.1")])
def test_values_are_written_as_on_the_command_line(value: Any, text: str) -> None:
    assert setting_text(value) == text


@given(
    log=st.one_of(st.text(max_size=300), st.binary(max_size=300)),
    config=st.text(max_size=300),
    form=st.sampled_from(["json", "body", "markdown"]),
)
def test_anything_can_be_asked(log: str | bytes, config: str, form: str) -> None:
    """Also halves of surrogate pairs and bytes that are no text."""
    answer = answer_question(Question(logs=(("", log),), configs=(("", config),), form=form))
    assert answer.wrong or json.loads(answer.data)["schema"] == "oomdoctor.report/1"


def test_the_rule_base_is_read_once() -> None:
    assert rule_lookup.rules("en") is rule_lookup.rules("en")
    assert {rule["kind"] for rule in rule_lookup.rules("en")} == {"cause", "remedy"}


def test_masking_reaches_the_patch() -> None:
    """Its context is lines of the config."""
    secret = "hf_" + "z" * 34
    config = f"model_name_or_path: Qwen/Qwen2-7B\nstage: sft\nfinetuning_type: full\nhub_token: {secret}\ncutoff_len: 8192\nbf16: true\n"
    for form in ("markdown", "body"):
        answer = answer_question(Question(logs=(("", LOG),), configs=(("a.yaml", config),), form=form))
        assert "cutoff_len" in answer.page and secret not in answer.page + answer.data


def test_large_questions_cross_the_pipe(crew: WorkerPool) -> None:
    log = LOG + ("x" * 100 + "\n") * 80_000
    assert json.loads(asyncio.run(crew.answer(Question(logs=(("", log),)))).data)["inputs"][0]["bytes"] == len(log.encode())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="address space is limited on POSIX")
def test_memory_is_bounded() -> None:
    """A process that wants more than any diagnosis needs is told no, and says so."""
    code = "from diagnose import workers; workers.confine(1 << 30); bytearray(2 << 30)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MemoryError" in done.stderr and done.stdout == ""
