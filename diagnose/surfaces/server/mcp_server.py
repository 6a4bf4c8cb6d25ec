"""The command `mcp`: the same diagnosis as tools for agents, on standard input and output or over streamable HTTP.

Tools take texts and return text with typed data. Files are read only from folders that the operator opened; jobs are kept in memory for
the next question about them. Nothing is run, and text in a log is never an instruction.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diagnose.phrases import Lang, phrase
from diagnose.surfaces.server import serve_command
from diagnose.surfaces.server.json_text import without_lone_surrogates
from diagnose.surfaces.server.worker_pool import WorkerPool
from diagnose.surfaces.terminal import console

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Questions that may wait or be answered at once.
QUEUE_CAPACITY = 32


@dataclass(slots=True)
class McpOptions:
    """Options of the command: transport, address of the HTTP transport, `timeout` of one diagnosis in seconds, `folders` whose files may
    be named."""

    http: bool = False
    host: str = "127.0.0.1"
    port: int = 8081
    timeout: float = 60.0
    redact: bool = True
    lang: Lang = "en"
    folders: tuple[str, ...] = ()


def serve_mcp(options: McpOptions) -> int:
    """Serve until the client disconnects (standard input) or a signal arrives (HTTP). Raises UserError if the server cannot start."""
    try:
        from diagnose.surfaces.server.mcp_tools import build_server  # optional libraries, here and below
    except ImportError as error:
        raise serve_command.missing_extra("mcp", error) from error
    pool = WorkerPool(min(os.cpu_count() or 1, 4), options.timeout, QUEUE_CAPACITY)
    mcp = build_server(pool, options.redact, options.lang, options.folders)
    try:
        if options.http:
            serve_over_http(mcp, pool, options)
        else:
            serve_command.keep_memory_small()
            serve_on_stdio(mcp)
    finally:
        pool.close()
    return 0


def serve_on_stdio(mcp: MCPServer) -> None:
    """Standard input and output. A line that is no message is answered as JSON-RPC says; the library would leave its sender waiting."""
    import anyio
    import pydantic_core
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage
    from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError

    class Lines:
        """Standard input by lines; `line` is the last one."""

        line = b""

        async def __aiter__(self) -> AsyncIterator[str]:
            async for line in anyio.wrap_file(sys.stdin.buffer):
                self.line = without_lone_surrogates(line)
                if line.strip():
                    yield self.line.decode("utf-8", "replace")

    def refusal(line: bytes) -> SessionMessage:
        try:
            request = pydantic_core.from_json(line)
            code, why = INVALID_REQUEST, "Invalid Request"
        except ValueError:
            request, code, why = None, PARSE_ERROR, "Parse error"
        name = request.get("id") if isinstance(request, dict) else None
        known = name if isinstance(name, (str, int)) and not isinstance(name, bool) else None
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=why)))

    async def serve() -> None:
        lines: Any = Lines()
        async with stdio_server(stdin=lines) as (received, replies), anyio.create_task_group() as tasks:
            sent, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def sort() -> None:
                async with sent:
                    async for message in received:
                        if isinstance(message, Exception):
                            await replies.send(refusal(lines.line))
                        else:
                            await sent.send(message)

            tasks.start_soon(sort)
            server = mcp._lowlevel_server  # noqa: SLF001 - run_stdio_async does the same with streams that cannot be reached
            await server.run(messages, replies, server.create_initialization_options())

    anyio.run(serve)


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
    stream would hold a connection for ever. Bodies, which Gate hands over whole, lose their halves of surrogate pairs.
    """
    from starlette.responses import JSONResponse

    from diagnose.surfaces.server.serve_limits import PROBLEM_TYPE, problem

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_clean() -> Message:
            message = await receive()
            return {**message, "body": without_lone_surrogates(message["body"])} if "body" in message else message

        if scope["type"] != "http" or scope["method"] == "POST":
            await app(scope, receive_clean, send)
            return
        detail = phrase("remote.no_such_method", method=scope["method"]).to(lang)
        refusal = JSONResponse(problem(405, detail), 405, {"allow": "POST"}, PROBLEM_TYPE)
        await refusal(scope, receive, send)

    return handle
