"""A real `oomdoctor serve` or `oomdoctor mcp --http` process, and what tests say to it."""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from cases import CORPUS
from forked import ENTRY, Forked, forked

CASE = CORPUS / "llamafactory-6800"
LOG = (CASE / "error.log").read_text(encoding="utf-8")
CONFIGS = [
    {"name": "qwen2vl_dpo.yaml", "text": (CASE / "qwen2vl_dpo.yaml").read_text(encoding="utf-8")},
    {"name": "ds_z3_config.json", "text": (CASE / "ds_z3_config.json").read_text(encoding="utf-8")},
]
SHORT = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB."
STARTS = 60.0
PROBLEM = "application/problem+json"


class Server:
    """A process that listens, and where."""

    def __init__(self, process: subprocess.Popen[bytes] | Forked, url: str) -> None:
        self.process, self.url = process, url
        self.port = int(url.rsplit(":", 1)[1].split("/")[0])

    def raw(self, head: str, body: bytes = b"") -> socket.socket:
        """A connection that has sent just this."""
        made = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        made.sendall(head.replace("\n", "\r\n").encode() + body)
        return made


def post(path: str, length: int, more: str = "") -> str:
    """The head of a request with a body of that length, as it was announced."""
    return f"POST {path} HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: {length}\n{more}\n"


def reply(connection: socket.socket) -> tuple[int, bytes]:
    """The status and everything that comes until the other side is quiet for a moment or closes."""
    data = b""
    ends = time.monotonic() + 20
    while time.monotonic() < ends and not (data and not select.select([connection], [], [], 0.5)[0]):
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return int(data.split()[1]), data


#: What a surface imports when it starts.
IMPORTS = {
    "serve": (
        "uvicorn",
        "diagnose.surfaces.server.serve_command",
        "diagnose.surfaces.server.serve_app",
        "diagnose.surfaces.server.serve_page",
    ),
    "bot": ("uvicorn", "diagnose.surfaces.bots.bot_command", "diagnose.surfaces.bots.bot_http"),
    "mcp": ("uvicorn", "diagnose.surfaces.server.mcp_server", "diagnose.surfaces.server.mcp_tools"),
}


@contextmanager
def serving(*options: str, command: str = "serve", env: dict[str, str] | None = None, is_new: bool = False) -> Iterator[Server]:
    """The command on a free port, until the block ends; `is_new`: an interpreter of its own, whose start costs a second and more."""
    words = [*command.split(), "--port", "0", *options]
    variables, folder = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}, Path(__file__).parent
    process: subprocess.Popen[bytes] | Forked
    if is_new:
        process = subprocess.Popen(
            [sys.executable, "-c", ENTRY, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=variables, cwd=folder
        )
    else:
        process = Forked(ENTRY, *words, env=variables, cwd=folder, imports=IMPORTS[words[0]])
    assert process.stdout is not None
    watch = threading.Timer(STARTS, process.kill)
    watch.start()
    try:
        said = process.stdout.readline().decode()
        found = re.search(r"http://\S+", said)
        assert found, said + process.stdout.read().decode()
        watch.cancel()
        yield Server(process, found[0].rstrip("/"))
    finally:
        watch.cancel()
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def is_problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    told: dict[str, Any] = answer.json()
    assert told["status"] == status and told["title"] and told["detail"]
    return told


def command(*words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """A command that ends by itself, after some lines of Python."""
    return forked(f"{before}\n{ENTRY}", *words, cwd=Path(__file__).parent)
