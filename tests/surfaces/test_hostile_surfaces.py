"""One job made to harm its reader, sent through the real process of every surface: reported as text, acted on nowhere.

What each format makes of it is tests/render/test_hostile_text.py; here are the streams, sockets and pipes that lie between.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from attacks import EVERYTHING, MESSAGE, ORDERS, config, log
from cases import CORPUS
from collected import for_each
from forked import ENTRY, forked
from listening import listening
from serving import Server, post, reply, serving
from sweep import sample

from diagnose.render.formats import RENDERERS
from diagnose.render.parts.strings import HARMFUL

PROGRAM = [sys.executable, "-c", ENTRY]
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
MANY = 100 << 20


def harmless(text: str) -> bool:
    """Nothing that steers a terminal, turns or hides text; a chat's zero-width blank behind @ is ours."""
    return not HARMFUL.search(text.replace("@\u200b", "@").replace("\r\n", "\n"))


@pytest.mark.parametrize("form", RENDERERS)
def test_the_command_line(form: str, tmp_path: Path) -> None:
    """The log on standard input, a config beside it, names of files that are attacks too."""
    evil = "\x1b]0;x\x07<img src=x>\u202e.yaml"
    (tmp_path / evil).write_bytes(config(EVERYTHING))
    words = ("explain", "-", "--config", evil, "--format", form, "--patch", "out.patch", "--lang", "en")
    done = forked(ENTRY, *words, cwd=tmp_path, env=ENVIRONMENT, input=log(EVERYTHING).encode())
    assert done.returncode == 0 and "4.64 GiB" in done.stdout and harmless(done.stdout) and harmless(done.stderr)
    assert "Traceback" not in done.stderr


def test_run(tmp_path: Path) -> None:
    """What the command prints is passed on to the byte, escapes and all; what we add is not its author's."""
    printed = log(EVERYTHING).encode()
    (tmp_path / "printed").write_bytes(printed)
    dying = "import os, sys; os.write(1, open('printed', 'rb').read()); sys.exit(1)"
    words = [*PROGRAM, "run", "--log", "kept.log", "--lang", "en", "--", sys.executable, "-c", dying]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, env=ENVIRONMENT, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, printed)
    assert b"OUT OF MEMORY" in done.stderr and harmless(done.stderr.decode())


def test_an_exception(tmp_path: Path) -> None:
    """The message of an exception is its raiser's: Python prints it as it is, our answer beside it does not."""
    script = (
        "import sys; from diagnose import watch\n"
        "try:\n    with watch(lang='en'): raise RuntimeError(open('message').read())\n"
        "except RuntimeError: pass\n"
    )
    (tmp_path / "message").write_text(log(EVERYTHING))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False
    )
    assert done.returncode == 0 and "4.64 GiB requested" in done.stderr and harmless(done.stderr)


def test_the_page_and_the_api() -> None:
    """The paste as a form and as JSON; the page names no host, runs nothing, and its policy forbids it anyway."""
    with serving("--workers", "1") as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        page = client.post("/", files={"log": (None, log(EVERYTHING)), "config_file": ("a.yaml", config(EVERYTHING))})
        assert page.status_code == 200 and "4.64 GiB" in page.text and harmless(page.text)
        assert not re.search(r"<(?:script|img|iframe)|<[^>]*\sonerror|(?:href|src|action)=\"?(?:javascript|http://evil)", page.text)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        told = client.post(
            "/api/explain", json={"text": log(EVERYTHING), "configs": [{"name": "a.yaml", "text": config(EVERYTHING).decode()}]}
        )
        assert told.status_code == 200 and told.json()["verdict"]["status"] == "oom" and harmless(told.text)


def test_an_agent() -> None:
    """Orders in a log reach the model as the log's words between marks, or not at all; tools and their results stay the same."""
    from mcp_types import TextContent

    calm, evil = asyncio.run(_asked(log("nothing of note"), log(EVERYTHING)))
    words = "\n".join(part.text for part in evil.content if isinstance(part, TextContent))
    assert "4.64 GiB" in words and harmless(words)
    assert ORDERS not in re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", words, flags=re.DOTALL))
    assert calm.structured_content and evil.structured_content
    for part in ("causes", "remedies", "plan"):
        assert _advice(evil.structured_content[part]) == _advice(calm.structured_content[part])


TOOLS = ["explain_oom", "check_config", "what_if", "list_knobs", "show_rule"]


async def _asked(*logs: str) -> list[Any]:
    """The answers; the tools are what they were after each."""
    from mcp import Client, StdioServerParameters, stdio_client  # half a second, in the worker that needs it

    program = StdioServerParameters(command=sys.executable, args=["-c", ENTRY, "mcp"], env=ENVIRONMENT)
    answers = []
    async with Client(stdio_client(program)) as client:
        for text in logs:
            answers.append(await client.call_tool("explain_oom", {"text": text}))
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    return answers


def _advice(part: Any) -> Any:
    """What it asks anybody to do, without the places in the log."""
    if isinstance(part, list):
        return [{name: each.get(name) for name in ("id", "rule", "certainty", "edits", "env", "command")} for each in part]
    return part


# -- more than there is room for, and slower than anybody waits


#: The command, and the most that it had in memory by itself: what getrusage tells of a child includes the parent that forked it.
MEASURED = """
import pathlib
from diagnose.surfaces.cli.entry import run
try:
    run()
finally:
    pathlib.Path("peak").write_bytes(pathlib.Path("/proc/self/status").read_bytes())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the kernel's account of a process")
def test_a_hundred_megabytes_on_standard_input(tmp_path: Path) -> None:
    """Escapes on every line; read to the end, in bounded memory: the failure is the last line."""
    lines = "for _ in range(1600): sys.stdout.write('step 12/500 loss 1.2345 \\x1b[31m' * 2048 + '\\n')"
    feed = subprocess.Popen([sys.executable, "-c", f"import sys\n{lines}\nsys.stdout.write({MESSAGE!r})"], stdout=subprocess.PIPE)
    with feed, (tmp_path / "answer").open("wb") as out:
        words = [sys.executable, "-c", MEASURED, "explain", "-", "--format", "json"]
        done = subprocess.run(words, stdin=feed.stdout, stdout=out, env=ENVIRONMENT, cwd=tmp_path, check=False)
    assert done.returncode == 0 and b'"status": "oom"' in (tmp_path / "answer").read_bytes()
    peak = (tmp_path / "peak").read_bytes().split(b"VmHWM:", 1)[1].split(maxsplit=1)[0]
    assert 16 << 10 < int(peak) < 256 << 10  # KiB


def memory_of(server: Server) -> int:
    """The most memory that the listening process has had, in bytes; 0 where the system does not say."""
    state = Path(f"/proc/{server.process.pid}/status")
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", state.read_text())[0]) if state.exists() else 0


@for_each("command, path", sample([("serve", "/"), ("serve", "/api/check"), ("mcp", "/mcp"), ("bot feishu", "/feishu/events")], 2))
def test_a_hundred_megabytes_over_http_are_refused_and_not_held(command: str, path: str) -> None:
    """By the length that is announced, before a byte has come; where none is, as soon as more has come than may: what comes after
    the answer is thrown away. The next one is answered."""
    with listening(command) as server:
        with server.raw(post(path, MANY)) as connection:
            assert reply(connection)[0] == 413
        before = memory_of(server)
        chunk = b"%x\r\n" % (1 << 20) + b"x" * (1 << 20) + b"\r\n"
        with server.raw(f"POST {path} HTTP/1.1\nHost: x\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n") as connection:
            with suppress(OSError):
                for _ in range(100):
                    connection.sendall(chunk)
            assert reply(connection)[0] == 413
        assert memory_of(server) - before < 96 << 20
        with server.raw(post(path, MANY)) as connection:
            assert reply(connection)[0] == 413


def test_a_webhook_that_arrives_a_byte_at_a_time_is_cut_off() -> None:
    """408 after the time that a body may take, however steadily it drips. The page: tests/surfaces/test_serve_parts.py."""
    with listening("bot feishu") as server, server.raw(post("/feishu/events", 1000)) as connection:
        connection.settimeout(0.4)
        began, answer = time.monotonic(), b""
        while not answer and time.monotonic() - began < 20:
            with suppress(TimeoutError):
                connection.sendall(b"x")
                answer = connection.recv(4096)
        assert answer.split()[1] == b"408" and time.monotonic() - began < 15


#: A name as old archives leave it, which is no UTF-8.
ODD = os.fsdecode(b"b\x80\xffad")


@pytest.mark.skipif(sys.platform == "darwin", reason="its file system takes UTF-8 only")
@for_each("words", [
    ("explain", "x.log", "--config", f"{ODD}.yaml"),
    ("explain", "x.log", "--config", f"{ODD}.yaml", "--format", "json"),
    ("explain", "x.log", "--config", f"{ODD}.yaml", "--format", "sarif"),
    ("explain", "x.log", "--config", f"{ODD}.yaml", "--apply"),
    ("explain", f"{ODD}.log"),
    ("facts", "--config", f"{ODD}.yaml"),
    ("check", f"{ODD}.yaml"),
    ("triage", ODD),
    ("triage", ".", "--out", f"{ODD}.html"),
    ("triage", ODD, "--store", "a.duckdb"),
    ("triage", ".", "--store", f"{ODD}.duckdb"),
    ("triage", ".", "--export", f"{ODD}.tables"),
])  # fmt: skip
def test_a_name_that_is_no_utf_8(words: tuple[str, ...], tmp_path: Path) -> None:
    case = CORPUS / "llamafactory-6800"
    (tmp_path / ODD).mkdir(exist_ok=True)
    for place in ("x.log", f"{ODD}.log", f"{ODD}/error.log"):
        shutil.copy(case / "error.log", tmp_path / place)
    for name in (f"{ODD}.yaml", f"{ODD}/train.yaml"):
        shutil.copy(case / "qwen2vl_dpo.yaml", tmp_path / name)
    ended = forked(ENTRY, *words, cwd=tmp_path)
    is_refused = any(f"{ODD}.{kind}" in words for kind in ("duckdb", "tables"))
    assert ended.returncode in ((2,) if is_refused else (0, 4)), ended.stderr
    assert "crashed" not in ended.stdout
