"""The command `mcp`: the same diagnosis as tools for agents, on standard input and output or over streamable HTTP.

Tools take texts and return texts with typed data beside them. Nothing is opened, run or kept; what a log says is data, whoever it
seems to speak to.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from diagnose.phrases import Lang, phrase
from diagnose.record import record
from diagnose.surfaces.server import remote_answer
from diagnose.surfaces.term import console

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send

    from diagnose.surfaces.server.worker_pool import Crew

#: Questions that may wait.
QUEUE = 32


@record
class Spoken:
    """How it is spoken, and where if over HTTP; `timeout`: seconds that one diagnosis may take."""

    http: bool = False
    host: str = "127.0.0.1"
    port: int = 8081
    timeout: float = 60.0
    redact: bool = True
    lang: Lang = "en"


def speak_mcp(asked: Spoken) -> int:
    """Serve until the client goes (standard input) or a signal comes (HTTP). Raises UserError where that cannot begin."""
    try:
        from diagnose.surfaces.server.mcp_tools import server
    except ImportError as error:
        raise remote_answer.missing("mcp", error) from error
    from diagnose.surfaces.server.worker_pool import Crew

    crew = Crew(min(os.cpu_count() or 1, 4), asked.timeout, QUEUE)
    made = server(crew, asked.redact, asked.lang)
    try:
        if asked.http:
            over_http(made, crew, asked)
        else:
            made.run("stdio")
    finally:
        crew.close()
    return 0


def over_http(made: MCPServer, crew: Crew, asked: Spoken) -> None:
    """The same on an address, behind the limits of the web page; one client may take half of the queue."""
    from diagnose.surfaces.server import serve_command
    from diagnose.surfaces.server.serve_limits import Gate, Limits

    limits = Limits(most=crew.most, of_one=crew.most // 2, seconds=asked.timeout)
    with serve_command.listening(asked.host, asked.port) as at:
        app = made.streamable_http_app(json_response=True, stateless_http=True, max_request_body_size=limits.size, host=asked.host)
        console.warn(phrase("remote.listening", address=serve_command.address(at, "/mcp")).to(asked.lang))
        serve_command.run(Gate(posted(app, asked.lang), limits), at)


def posted(app: ASGIApp, lang: Lang) -> ASGIApp:
    """The app without its streams: who keeps no sessions has nothing to send unasked, and an open stream would hold a connection for
    ever. The protocol lets a server answer GET with 405.
    """
    from starlette.responses import JSONResponse

    from diagnose.surfaces.server.serve_limits import PROBLEM, problem

    async def only(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "POST":
            await app(scope, receive, send)
            return
        detail = phrase("remote.no_such_method", method=scope["method"]).to(lang)
        refusal = JSONResponse(problem(405, detail), 405, {"allow": "POST"}, PROBLEM)
        await refusal(scope, receive, send)

    return only
