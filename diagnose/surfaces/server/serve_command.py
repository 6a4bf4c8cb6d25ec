"""The command `serve`: a paste page and a JSON API on one address, until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

from diagnose.errors import UserError
from diagnose.phrases import Lang, phrase
from diagnose.record import record
from diagnose.surfaces.server import remote_answer
from diagnose.surfaces.term import console

if TYPE_CHECKING:
    from starlette.types import ASGIApp

#: Seconds that requests have to finish when the server is told to stop.
GRACE = 25
#: Open connections; more are turned away.
CONNECTIONS = 1000


@record
class Served:
    """Where, and how much at once. Sizes in MiB, times in seconds; `queue`: requests of all, `per_client` of one address."""

    host: str = "127.0.0.1"
    port: int = 8080
    workers: int | None = None
    max_mib: int = 16
    timeout: float = 20.0
    queue: int = 128
    per_client: int = 64
    redact: bool = True
    lang: Lang = "en"


def serve(asked: Served) -> int:
    """Serve until SIGTERM or SIGINT; requests that are being answered are finished. Raises UserError where that cannot begin."""
    try:
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401

        from diagnose.surfaces.server.serve_app import application
        from diagnose.surfaces.server.serve_limits import Limits
    except ImportError as error:
        raise remote_answer.missing("serve", error) from error
    from diagnose.surfaces.server.worker_pool import Crew

    size = asked.max_mib << 20
    limits = Limits(size=size, held=max(16 * size, 256 << 20), most=asked.queue, of_one=asked.per_client, seconds=asked.timeout)
    crew = Crew(asked.workers or min(os.cpu_count() or 1, 8), asked.timeout, asked.queue)
    with listening(asked.host, asked.port) as at:
        said = phrase("remote.listening", address=address(at)).to(asked.lang)
        run(application(crew, limits, asked.redact, ready=lambda: console.say(said)), at)
    return 0


def listening(host: str, port: int) -> socket.socket:
    """A socket that takes connections. Raises UserError where it cannot be had."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(where)
            made.listen(512)
        except OSError:
            made.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UserError(phrase("remote.cannot_listen", host=host, port=port, why=why), "", phrase("remote.other_port")) from error
    return made


def address(at: socket.socket, path: str = "/") -> str:
    """Where the socket is found, as a browser writes it."""
    host, port = at.getsockname()[:2]
    return f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"


def run(app: ASGIApp, at: socket.socket) -> None:
    """Answer requests on the socket until a signal says stop, then finish what was begun."""
    import uvicorn

    from diagnose.surfaces.server.serve_limits import Patient

    config = uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        loop="asyncio",
        lifespan="on",
        access_log=False,
        log_level="error",
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
    )
    # uvicorn raises the signal again when it is done; to have stopped when told to is no failure
    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, lambda *_: None)
    uvicorn.Server(config).run(sockets=[at])
