"""An HTTP server for webhooks of chat platforms: a plain ASGI application behind the limits of `serve`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diagnose.phrases import Lang, phrase
from diagnose.surfaces.bots.bot_dispatcher import Dispatcher
from diagnose.surfaces.server import serve_command
from diagnose.surfaces.server.serve_limits import Gate, Limits
from diagnose.surfaces.terminal import console

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: Bytes of one request (events refer to files, they do not contain them), and seconds for it to arrive.
MAX_REQUEST_BYTES, ARRIVAL_SECONDS = 2 << 20, 5.0


@dataclass(slots=True)
class Reply:
    """The response to the platform."""

    status: int
    body: bytes = b""
    kind: str = "application/json"


RequestHandler = Callable[[Mapping[str, str], bytes], Reply]


def serve_webhook(handler: RequestHandler, path: str, dispatcher: Dispatcher, host: str, port: int, lang: Lang) -> None:
    """Pass every POST to `handler` until a signal arrives, then answer the queued messages. Raises UserError if the address is taken."""
    with serve_command.open_listener(host, port) as listener:
        limits = Limits(
            size=MAX_REQUEST_BYTES, total_size=64 * MAX_REQUEST_BYTES, max_requests=256, per_client=256, arrival=ARRIVAL_SECONDS
        )
        sentence = phrase("remote.listening", address=serve_command.listener_url(listener, path)).to(lang)
        dispatcher.open()
        gate = Gate(application(handler, path, dispatcher, lambda: console.say(sentence)), limits)
        serve_command.run_server(gate, listener, dispatcher.stop)


def application(handler: RequestHandler, path: str, dispatcher: Dispatcher, ready: Callable[[], None] = lambda: None) -> ASGIApp:
    """`handler` on `path`, and /healthz. 503 while the queue is full: platforms deliver again."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send, dispatcher, ready)
            return
        if scope["path"] == "/healthz" and scope["method"] in ("GET", "HEAD"):
            reply = Reply(200, b'{"status": "ok"}')
        elif scope["path"] != path:
            reply = Reply(404)
        elif scope["method"] != "POST":
            reply = Reply(405)
        elif dispatcher.is_full:
            reply = Reply(503)
        else:
            body = (await receive()).get("body", b"")
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            reply = await asyncio.to_thread(handler, headers, body)
        length = str(len(reply.body)).encode()
        reply_headers = [(b"content-type", reply.kind.encode()), (b"content-length", length)]
        await send({"type": "http.response.start", "status": reply.status, "headers": reply_headers})
        await send({"type": "http.response.body", "body": reply.body})

    return app


async def _lifespan(receive: Receive, send: Send, dispatcher: Dispatcher, ready: Callable[[], None]) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    ready()
    await receive()
    await asyncio.to_thread(dispatcher.close)
    await send({"type": "lifespan.shutdown.complete"})
