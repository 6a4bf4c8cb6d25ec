"""The command `serve`: a paste page and a JSON API on one address; and what all commands that listen share."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from diagnose.errors import UserError, pip
from diagnose.phrases import Lang, phrase
from diagnose.surfaces.server.worker_pool import WorkerPool
from diagnose.surfaces.terminal import console

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from diagnose.surfaces.server.serve_limits import Gate

#: Open connections; for a further one the one that is idle longest is cut.
MAX_CONNECTIONS = 1000
#: Files that a server wants to be able to open: half of them for connections, a quarter for those that wait to be accepted.
MAX_FILES = 8192


@dataclass(slots=True)
class ServeOptions:
    """Options of the command. Sizes in MiB, times in seconds; `queue`: requests at once in all, `per_client`: of one address."""

    host: str = "127.0.0.1"
    port: int = 8080
    workers: int | None = None
    max_mib: int = 16
    timeout: float = 20.0
    queue: int = 128
    per_client: int = 64
    redact: bool = True
    lang: Lang = "en"


def serve(options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; running requests are finished. Raises UserError if the server cannot start."""
    try:
        # optional libraries, here and in run_server
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401

        from diagnose.surfaces.server.serve_app import application
        from diagnose.surfaces.server.serve_limits import Limits
    except ImportError as error:
        raise missing_extra("serve", error) from error

    size = options.max_mib << 20
    limits = Limits(
        size=size, total_size=max(16 * size, 256 << 20), max_requests=options.queue, per_client=options.per_client, seconds=options.timeout
    )
    pool = WorkerPool(options.workers or min(os.cpu_count() or 1, 8), options.timeout, options.queue)
    with open_listener(options.host, options.port) as listener:
        sentence = phrase("remote.listening", address=listener_url(listener)).to(options.lang)
        try:
            asyncio.run(pool.start())
            run_server(application(pool, limits, options.redact, ready=lambda: console.say(sentence)), listener)
        finally:
            pool.close()  # where the application did not come to it
    return 0


def open_listener(host: str, port: int) -> socket.socket:
    """A listening TCP socket. Raises UserError if the address cannot be bound."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(512)
        except OSError:
            listener.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UserError(phrase("remote.cannot_listen", host=host, port=port, why=why), "", phrase("remote.other_port")) from error
    return listener


def listener_url(listener: socket.socket, path: str = "/") -> str:
    """The URL of a path on the socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"


def run_server(gate: Gate, listener: socket.socket, on_stop: Callable[[], None] = lambda: None) -> None:
    """Answer requests on the socket until SIGTERM or SIGINT; then running ones may finish within FINISH_SECONDS. `on_stop` is called when
    the signal arrives."""
    import uvicorn

    from diagnose.surfaces.server.serve_limits import CUT_SECONDS, SPARE_CONNECTIONS, TimedHttpProtocol

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
            self.should_exit = True  # also at a second Ctrl-C: it ends in seconds, and nothing is left behind

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            on_stop()
            gate.finish()
            await super().shutdown(sockets)

    keep_memory_small()
    files = open_files()
    config = uvicorn.Config(
        gate,
        http=TimedHttpProtocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        access_log=False,
        log_level="error",
        server_header=False,
        backlog=min(2048, files // 4),
        limit_concurrency=min(MAX_CONNECTIONS, files // 2) + SPARE_CONNECTIONS,
        timeout_graceful_shutdown=round(CUT_SECONDS) + 1,  # never reached: by then every connection is cut
    )
    # uvicorn raises the signal again at the end; a requested stop is not a failure
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    Server(config).run(sockets=[listener])


def keep_memory_small() -> None:
    """For a process that answers for weeks: collect garbage as often as Python does by default (a command that ends soon hardly does), and
    let glibc return the memory of large requests, also where several threads took it."""
    import ctypes

    gc.set_threshold(700, 10, 10)
    heaps_at_most, map_from = -8, -3  # M_ARENA_MAX and M_MMAP_THRESHOLD of malloc.h
    with contextlib.suppress(OSError, AttributeError):  # other C libraries than glibc
        set_option = ctypes.CDLL(None).mallopt
        set_option(heaps_at_most, 2)
        set_option(map_from, 128 << 10)


def open_files() -> int:
    """How many files this process may open, at most MAX_FILES; the limit is raised as far as it may be."""
    try:
        import resource  # POSIX only
    except ImportError:
        return MAX_FILES
    soft, hard = (MAX_FILES if files == resource.RLIM_INFINITY else files for files in resource.getrlimit(resource.RLIMIT_NOFILE))
    if soft < min(hard, MAX_FILES):
        with contextlib.suppress(ValueError, OSError):  # a system with a lower limit that it does not name
            wanted = min(hard, MAX_FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            soft = wanted
    return min(soft, MAX_FILES)


def missing_extra(extra: Literal["serve", "mcp", "slack", "feishu", "feishu-socket"], error: ImportError, command: str = "") -> UserError:
    """The error that tells how to install the optional libraries of a command; `command` if it is not called like the extra."""
    sentence = phrase("remote.extra", command=command or extra, module=error.name or "?")
    return UserError(sentence, "", phrase("remote.install", extra=extra, pip=pip()))
