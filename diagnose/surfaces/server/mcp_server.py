"""The command `mcp`: the same diagnosis as tools for agents, on standard input and output or over streamable HTTP.

Tools take texts and return text with typed data. Nothing is opened, run or kept; text in a log is never an instruction.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diagnose.phrases import Lang, phrase
from diagnose.surfaces.server import serve_command
from diagnose.surfaces.server.worker_pool import WorkerPool
from diagnose.surfaces.term import console

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send

#: Questions that may wait or be answered at once.
QUEUE_CAPACITY = 32


@dataclass(slots=True)
class McpOptions:
    """Options of the command: transport, address of the HTTP transport, and `timeout` of one diagnosis in seconds."""

    http: bool = False
    host: str = "127.0.0.1"
    port: int = 8081
    timeout: float = 60.0
    redact: bool = True
    lang: Lang = "en"


def serve_mcp(options: McpOptions) -> int:
    """Serve until the client disconnects (standard input) or a signal arrives (HTTP). Raises UserError if the server cannot start."""
    try:
        from diagnose.surfaces.server.mcp_tools import build_server  # optional libraries, here and below
    except ImportError as error:
        raise serve_command.missing_extra("mcp", error) from error
    pool = WorkerPool(min(os.cpu_count() or 1, 4), options.timeout, QUEUE_CAPACITY)
    mcp = build_server(pool, options.redact, options.lang)
    try:
        if options.http:
            serve_over_http(mcp, pool, options)
        else:
            mcp.run("stdio")
    finally:
        pool.close()
    return 0


def serve_over_http(mcp: MCPServer, pool: WorkerPool, options: McpOptions) -> None:
    """Streamable HTTP behind the limits of the web page; one client may take half of the queue."""
    from diagnose.surfaces.server.serve_limits import Gate, Limits

    limits = Limits(max_requests=pool.capacity, per_client=pool.capacity // 2, seconds=options.timeout)
    with serve_command.open_listener(options.host, options.port) as listener:
        app = mcp.streamable_http_app(json_response=True, stateless_http=True, max_request_body_size=limits.size, host=options.host)
        console.warn(phrase("remote.listening", address=serve_command.listener_url(listener, "/mcp")).to(options.lang))
        serve_command.run_server(Gate(post_only(app, options.lang), limits), listener)


def post_only(app: ASGIApp, lang: Lang) -> ASGIApp:
    """Answer all methods but POST with 405, as the protocol allows: without sessions there is nothing to stream, and an open
    stream would hold a connection for ever.
    """
    from starlette.responses import JSONResponse

    from diagnose.surfaces.server.serve_limits import PROBLEM_TYPE, problem

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "POST":
            await app(scope, receive, send)
            return
        detail = phrase("remote.no_such_method", method=scope["method"]).to(lang)
        refusal = JSONResponse(problem(405, detail), 405, {"allow": "POST"}, PROBLEM_TYPE)
        await refusal(scope, receive, send)

    return handle
