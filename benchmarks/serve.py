"""How many pastes `oomdoctor serve` answers: requests per second and latencies, many clients at once, over loopback.

    python benchmarks/serve.py [LOG] [--config FILE]... [--clients 50] [--seconds 20] [--workers N] [--page] [--check]

A server process is started; each client (a thread with its own connection and loopback address, where the system has many) posts,
waits for the answer and posts again. What limits it is the diagnosis itself, so a direct call in this process is measured too: the
best there could be is `workers` of those at once, and with `clients` waiting in line the last one waits `clients / workers` of them.
Clients and server share the cores, and perhaps with others: the CPU time that the server took for an answer (Linux) says what it
would do alone. With --check the exit status is 1 where an answer was not 200 or the slowest hundredth took more
than three times the fair wait.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

CASE = Path(__file__).resolve().parent.parent / "corpus" / "llamafactory-6800"
BOUNDARY = "paste"


def body_of(log: str, configs: list[Path], page: bool) -> tuple[str, str, bytes]:
    """(path, content type, body) of one paste."""
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in configs]
    if not page:
        body = {"text": log, "configs": [{"name": name, "text": text} for name, text in texts]}
        return "/api/explain", "application/json", json.dumps(body).encode()
    parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="log"\r\n\r\n{log}\r\n']
    parts += [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="config_file"; filename="{n}"\r\n\r\n{t}\r\n' for n, t in texts]
    return "/", f"multipart/form-data; boundary={BOUNDARY}", "".join([*parts, f"--{BOUNDARY}--\r\n"]).encode()


def one_by_one(log: str, configs: list[Path], page: bool) -> float:
    """CPU seconds of one diagnosis without a server, the best of ten."""
    from diagnose.surfaces.server.question import Question
    from diagnose.surfaces.server.worker_answer import answer_question

    texts = tuple((path.name, path.read_text(encoding="utf-8")) for path in configs)
    question = Question(logs=(("", log),), configs=texts, form="body" if page else "json")
    best = 1e9
    for _ in range(10):
        start = time.process_time()
        answer_question(question)
        best = min(best, time.process_time() - start)
    return best


def client(number: int, port: int, request: tuple[str, str, bytes], ends: float, found: list[tuple[int, float]]) -> None:
    """Post until the time is over; (status, seconds) of each."""
    path, kind, body = request
    source = (f"127.0.0.{2 + number % 200}", 0) if sys.platform == "linux" else None
    connection = HTTPConnection("127.0.0.1", port, timeout=120, source_address=source)
    while time.perf_counter() < ends:
        start = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        answer.read()
        found.append((answer.status, time.perf_counter() - start))
    connection.close()


def cpu_of(group: int) -> float:
    """CPU seconds so far of every process of a group; 0 where the system does not say."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("log", nargs="?", type=Path, default=CASE / "error.log")
    asked.add_argument("--config", action="append", type=Path)
    asked.add_argument("--clients", type=int, default=50)
    asked.add_argument("--seconds", type=float, default=20)
    asked.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8))
    asked.add_argument("--page", action="store_true", help="post the form instead of JSON")
    asked.add_argument("--check", action="store_true")
    options = asked.parse_args()
    configs = options.config or [CASE / "qwen2vl_dpo.yaml", CASE / "ds_z3_config.json"]
    log = options.log.read_text(encoding="utf-8", errors="replace")

    alone = one_by_one(log, configs, options.page)
    program = "from diagnose.surfaces.cli.entry import run; run()"
    command = [sys.executable, "-c", program, "serve", "--port", "0", "--workers", str(options.workers)]
    found: list[tuple[int, float]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as server:
        try:
            assert server.stdout is not None
            said = re.search(r":(\d+)/", server.stdout.readline())
            assert said, "the server did not start"
            ends = time.perf_counter() + options.seconds
            request = body_of(log, configs, options.page)
            threads = [threading.Thread(target=client, args=(n, int(said[1]), request, ends, found)) for n in range(options.clients)]
            start, before = time.perf_counter(), cpu_of(server.pid)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took, used = time.perf_counter() - start, cpu_of(server.pid) - before
        finally:
            server.terminate()

    times = sorted(seconds for _, seconds in found)
    failed = sum(status != 200 for status, _ in found)
    p50, p99 = (times[int(len(times) * part)] for part in (0.5, 0.99))
    fair = alone * options.clients / min(options.workers, os.cpu_count() or 1)
    print(f"one diagnosis alone, CPU      {1000 * alone:8.0f} ms")
    print(f"clients, workers              {options.clients:8} {options.workers}")
    print(f"answers, not 200              {len(times):8} {failed}")
    print(f"server's CPU per answer       {1000 * used / len(times):8.0f} ms")
    print(f"requests per second           {len(times) / took:8.1f}")
    print(f"latency p50, p99, max         {1000 * p50:8.0f} {1000 * p99:.0f} {1000 * times[-1]:.0f} ms")
    print(f"fair wait in line             {1000 * fair:8.0f} ms")
    return 1 if options.check and (failed or p99 > 3 * fair) else 0


if __name__ == "__main__":
    sys.exit(main())
