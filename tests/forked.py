"""Python programs with `oomdoctor` in them as processes, forked from one that has imported it: a fifth of the CPU of a start.

Descriptors, folder, environment, limits, signals and exit status are each process's own. What an interpreter does before the program's
first line is not tested: a test of closed streams, of packages that are missing at the start or of Python's own variables starts one.
What stays until it is told to end, as servers do, is a `Forked`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path

from checkout import ROOT

ENTRY = "from diagnose.surfaces.cli.entry import run; run()"
#: After these the system ends a process.
SECONDS = 120
#: What a pipe holds without a reader.
MOST_INPUT = 1 << 16


def forked(
    code: str, *words: str, cwd: Path, env: Mapping[str, str] | None = None, input: bytes = b"", stdout: int | None = None
) -> subprocess.CompletedProcess[str]:
    """What `python -c CODE WORDS` in this folder prints and leaves with; `stdout` is a descriptor that its output goes to instead."""
    done = forked_bytes(code, *words, cwd=cwd, env=env, input=input, stdout=stdout)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def forked_bytes(
    code: str, *words: str, cwd: Path, env: Mapping[str, str] | None = None, input: bytes = b"", stdout: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The same, not decoded."""
    assert len(input) <= MOST_INPUT
    pipes = [os.pipe() for _ in range(3)]
    (stdin, feed), (out, to_out), (err, to_err) = pipes
    os.write(feed, input)
    os.close(feed)
    connection = _ask(code, words, cwd, env, [stdin, to_out if stdout is None else stdout, to_err])
    for end in (stdin, to_out, to_err):
        os.close(end)
    with ThreadPoolExecutor(2) as readers:
        printed, complained = readers.map(_drained, (out, err))
    return subprocess.CompletedProcess([code, *words], int(connection.recv(16)), printed, complained)


class Forked:
    """A process that runs beside the test; the methods are those of subprocess.Popen. What it prints on either stream is `stdout`."""

    def __init__(self, code: str, *words: str, cwd: Path, env: Mapping[str, str], imports: Sequence[str] = ()) -> None:
        """`imports`: modules that the process finds imported."""
        (out, to_out), (self._status, to_status) = os.pipe(), os.pipe()
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            connection = _ask(code, words, cwd, env, [nothing.fileno(), to_out, to_out, to_status], imports)
        for end in (to_out, to_status):
            os.close(end)
        self.stdout = os.fdopen(out, "rb")
        self.pid = int(connection.recv(16))
        self.returncode: int | None = None

    def wait(self, seconds: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), seconds or 0)
            self.returncode = int(os.read(self._status, 16))
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _ask(
    code: str, words: Sequence[str], cwd: Path, env: Mapping[str, str] | None, ends: list[int], imports: Sequence[str] = ()
) -> socket.socket:
    """Have a process made; three descriptors are its streams, a fourth takes its exit status. Where to read on."""
    asked = {"code": code, "words": words, "cwd": str(cwd), "env": dict(env or {**os.environ, "LC_ALL": "C.UTF-8"}), "imports": imports}
    connection = _origin(bool(imports))  # what servers import is missing in no other process
    data = json.dumps(asked).encode() + b"\n"
    sent = socket.send_fds(connection, [data], ends)
    connection.sendall(data[sent:])
    return connection


def _drained(end: int) -> bytes:
    with open(end, "rb") as pipe:
        return pipe.read()


@cache
def _origin(is_of_servers: bool) -> socket.socket:
    """The other end is the process that all others are forked from; it ends when this one does."""
    ours, theirs = socket.socketpair()
    ours.settimeout(2 * SECONDS)
    paths = os.pathsep.join([str(Path(__file__).parent), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-c", f"import forked; forked.fork_for_ever({theirs.fileno()}, {is_of_servers})"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[theirs.fileno()],
        env={**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": paths},
    )  # fmt: skip
    theirs.close()

    def end() -> None:
        ours.close()
        process.communicate()

    atexit.register(end)
    return ours


def fork_for_ever(number: int, is_of_servers: bool) -> None:
    """Answer each request on this descriptor with the exit status of the process made for it; with its number if it stays."""
    if not is_of_servers:
        _warm_up()
    gc.freeze()
    connection = socket.socket(fileno=number)
    while True:
        data, ends, *_ = socket.recv_fds(connection, 1 << 20, 4)
        if not data:
            return
        while not data.endswith(b"\n"):
            data += connection.recv(1 << 20)
        asked = json.loads(data)
        for module in asked.pop("imports"):
            import_module(module)
        streams, stays = ends[:3], len(ends) > 3
        child = os.fork()  # for a process that stays, one that waits for it
        if not child and stays:
            child = os.fork()
            if child:
                connection.sendall(b"%d" % child)
                connection.close()
                for end in streams:
                    os.close(end)
                _, status = os.waitpid(child, 0)
                os.write(ends[3], b"%d" % os.waitstatus_to_exitcode(status))
                os._exit(0)
            os.close(ends[3])
        if not child:
            connection.close()
            for target, end in enumerate(streams):
                os.dup2(end, target)
            for end in set(streams):
                os.close(end)
            signal.alarm(0 if stays else SECONDS)
            _become(**asked)
            return
        for end in ends:
            os.close(end)
        if not stays:
            _, status = os.waitpid(child, 0)
            connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))


def _warm_up() -> None:
    """Import what commands import when they run, and read rules and grammars."""
    from diagnose.cluster.report import report_files  # noqa: F401
    from diagnose.cluster.run import triage_run  # noqa: F401
    from diagnose.pipeline import explain
    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts.view import View
    from diagnose.surfaces.cli import commands, usage  # noqa: F401

    case = ROOT / "corpus" / "llamafactory-6800"
    found = explain(case / "error.log", configs=[case / "qwen2vl_dpo.yaml"])
    for render in RENDERERS.values():
        render(found, "en", View())


def _become(code: str, words: list[str], cwd: str, env: dict[str, str]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["-c", *words]
    exec(code, {"__name__": "__main__"})
