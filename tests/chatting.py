"""A chat platform on the loopback address that records what real clients send to it, and a crew that outlives its desk."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from diagnose.surfaces.server.worker_pool import WorkerPool


@dataclass
class Call:
    """One request, as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body)
        return told

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}


Answer = tuple[int, dict[str, str], bytes]
Route = Callable[[Call], Answer]


def as_json(told: Any, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"content-type": "application/json", **named}, json.dumps(told).encode()


def always(answer: Answer) -> Route:
    def route(_: Call) -> Answer:
        return answer

    return route


@dataclass
class Fake:
    """`routes`: what is answered by path; `first`: what is answered before that, once each."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    routes: dict[str, Route] = field(default_factory=dict)
    first: dict[str, list[Answer]] = field(default_factory=dict)

    def to(self, path: str) -> list[Call]:
        return [call for call in self.calls if call.path == path]

    def answer(self, call: Call) -> Answer:
        self.calls.append(call)
        if self.first.get(call.path):
            return self.first[call.path].pop(0)
        route = self.routes.get(call.path, always(as_json({"ok": False, "code": 404, "error": "unknown_method"}, 404)))
        return route(call)


@contextmanager
def faked() -> Iterator[Fake]:
    """A platform that knows nothing yet."""
    held = Fake()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more, body = held.answer(Call(self.command, parts.path, query, headers, self.rfile.read(length)))
            try:
                self.send_response(status)
                for name, value in {"content-length": str(len(body)), **more}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # whoever asked has had enough

        do_GET = do_POST = handle_one

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    held.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Kept(WorkerPool):
    """Not closed by a desk: starting processes takes a while."""

    def close(self) -> None:
        pass

    def end(self) -> None:
        super().close()
