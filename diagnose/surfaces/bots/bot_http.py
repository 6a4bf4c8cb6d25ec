"""Webhooks of chat platforms: one address, behind the limits of the web page. No framework: a body in, a body out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from diagnose.phrases import Lang, phrase
from diagnose.record import record
from diagnose.surfaces.server import serve_command
from diagnose.surfaces.server.serve_limits import Gate, Limits
from diagnose.surfaces.term import console

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from diagnose.surfaces.bots.bot_desk import Desk

#: Bytes of one request: events name files, they do not hold them. Seconds for it to arrive.
LARGEST, ARRIVAL = 2 << 20, 5.0


@record
class Reply:
    """What the platform is told."""

    status: int
    body: bytes = b""
    kind: str = "application/json"


Takes = Callable[[Mapping[str, str], bytes], Reply]


def listen(takes: Takes, path: str, desk: Desk, host: str, port: int, lang: Lang) -> None:
    """Hand the body of every POST to `takes` until a signal comes; what was taken is answered then. Raises UserError."""
    with serve_command.listening(host, port) as at:
        limits = Limits(size=LARGEST, held=64 * LARGEST, most=256, of_one=256, arrival=ARRIVAL)
        said = phrase("remote.listening", address=serve_command.address(at, path)).to(lang)
        serve_command.run(Gate(application(takes, path, desk, lambda: console.say(said)), limits), at)


def application(takes: Takes, path: str, desk: Desk, ready: Callable[[], None] = lambda: None) -> ASGIApp:
    """`takes` on `path`, and /healthz. A full desk is 503: platforms come again."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send, desk, ready)
            return
        if scope["path"] == "/healthz" and scope["method"] in ("GET", "HEAD"):
            reply = Reply(200, b'{"status": "ok"}')
        elif scope["path"] != path:
            reply = Reply(404)
        elif scope["method"] != "POST":
            reply = Reply(405)
        elif desk.full:
            reply = Reply(503)
        else:
            body = (await receive()).get("body", b"")
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            reply = await asyncio.to_thread(takes, headers, body)
        length = str(len(reply.body)).encode()
        headers_out = [(b"content-type", reply.kind.encode()), (b"content-length", length)]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers_out})
        await send({"type": "http.response.body", "body": reply.body})

    return app


async def _live(receive: Receive, send: Send, desk: Desk, ready: Callable[[], None]) -> None:
    await receive()
    await asyncio.to_thread(desk.open)
    await send({"type": "lifespan.startup.complete"})
    ready()
    await receive()
    await asyncio.to_thread(desk.close)
    await send({"type": "lifespan.shutdown.complete"})
