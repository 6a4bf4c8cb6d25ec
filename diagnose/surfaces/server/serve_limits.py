"""What stands between strangers and the web page: limits of size, time and number, the headers of every answer, problems as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypedDict

from uvicorn.protocols.http.h11_impl import H11Protocol

from diagnose.phrases import Lang, phrase
from diagnose.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Seconds in which a connection must have sent the head of a request, or have taken an answer and be gone.
CONNECTION_SECONDS = 20.0
#: Seconds in which the rest of a request that was turned away is read and thrown away: many clients look for an answer only when they
#: have sent all, and a connection that is closed before tells them nothing but that.
DISCARD_SECONDS = 10.0
#: Seconds after which whoever was turned away may try again.
RETRY_SECONDS = 5

#: The media type of a refusal (RFC 9457).
PROBLEM_TYPE = "application/problem+json"

#: A page of ours: no script, no frame, nothing from elsewhere. `serve_page.py` adds the styles of a report, by their hash.
CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'{styles}; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

HEADERS = {
    "content-security-policy": CONTENT_POLICY.format(styles=""),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "vary": "accept-language",
}


@record
class Limits:
    """What one server takes: `size` bytes of a request, `held` of all that are being read, `most` of them waiting or answered,
    `of_one` of these from one address, `arrival` seconds for a body to come, `seconds` for a diagnosis."""

    size: int = 16 << 20
    total_size: int = 256 << 20
    max_requests: int = 128
    per_client: int = 64
    arrival: float = 30.0
    seconds: float = 20.0


class Problem(TypedDict):
    """RFC 9457: what is wrong with a request."""

    type: str
    title: str
    status: int
    detail: str


class RequestError(Exception):
    """A request that is not answered: its status, and a sentence of rules/phrases/remote.yaml."""

    def __init__(self, status: int, key: str, **values: object) -> None:
        super().__init__(status, key)
        self.status, self.key, self.values = status, key, values

    def detail(self, lang: Lang) -> str:
        return phrase(f"remote.{self.key}", **self.values).to(lang)


def problem(status: int, detail: str) -> Problem:
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}


def retry_header(status: int) -> dict[str, str]:
    """The header of an answer that says: later."""
    return {"retry-after": str(RETRY_SECONDS)} if status in (429, 503) else {}


def negotiate_language(accept_language: str, requested: str = "") -> Lang:
    """The language asked for, else the first of ours that Accept-Language would rather have."""
    if requested in ("en", "zh"):
        return "zh" if requested == "zh" else "en"
    preferences: list[tuple[float, int, str]] = []
    for position, part in enumerate(accept_language[:500].split(",")):
        word, _, weight = part.partition(";")
        try:
            quality = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            quality = 0.0
        preferences.append((-quality, position, word.strip().lower()[:2]))
    return next(("zh" if word == "zh" else "en" for quality, _, word in sorted(preferences) if word in ("en", "zh") and quality < 0), "en")


class Gate:
    """The outermost layer: counts requests with a body, reads none that is too large or too slow, and puts the headers on.

    `form` writes the page, with a sentence of what is wrong, for whoever posted to it: people do not read JSON.
    """

    def __init__(self, app: ASGIApp, limits: Limits, form: Callable[[str, Lang], str] | None = None) -> None:
        self.app, self.limits, self.form = app, limits, form
        self.waiting = self.bytes = 0
        self.by_client: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message.get("headers", ())}
                missing = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in present]
                message = {**message, "headers": [*message.get("headers", ()), *missing]}
            await send(message)

        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        try:
            if scope["method"] in ("GET", "HEAD"):
                await self.app(scope, receive, send_with_headers)
            else:
                await self._with_body(scope, headers, receive, send_with_headers)
        except RequestError as refusal:
            lang = negotiate_language(headers.get(b"accept-language", ""))
            reads_answer = refusal.status in (400, 408) or b"expect" in headers  # it is gone, or waits for our word before it sends
            kind, detail = PROBLEM_TYPE, refusal.detail(lang)
            body = json.dumps(problem(refusal.status, detail), ensure_ascii=False)
            if self.form is not None and scope["path"] == "/":
                kind, body = "text/html; charset=utf-8", self.form(detail, lang)
            await send_response(send_with_headers, refusal.status, kind, body.encode(), None if reads_answer else receive)

    async def _with_body(self, scope: Scope, headers: Mapping[bytes, str], receive: Receive, send: Send) -> None:
        """Let the request pass once its whole body is here."""
        length = self._length(headers)
        client = scope["client"][0] if scope.get("client") else ""
        if self.waiting >= self.limits.max_requests or self.bytes + length > self.limits.total_size:
            raise RequestError(503, "too_busy", seconds=RETRY_SECONDS)
        if self.by_client[client] >= self.limits.per_client:
            raise RequestError(429, "too_many_of_yours", most=self.limits.per_client)
        self.waiting += 1
        self.bytes += length
        self.by_client[client] += 1
        try:
            body = await self._body(receive, length)
            await self.app(scope, _replay_body(body, receive), send)
        finally:
            self.waiting -= 1
            self.bytes -= length
            self.by_client[client] -= 1
            if not self.by_client[client]:
                del self.by_client[client]

    def _length(self, headers: Mapping[bytes, str]) -> int:
        """What the body may have; of one that does not say, all that any may."""
        if headers.get(b"content-encoding", "identity").strip().lower() != "identity":
            raise RequestError(415, "wrong_type", wanted="Content-Encoding: identity")
        value = headers.get(b"content-length")
        if value is None:
            return self.limits.size if b"transfer-encoding" in headers else 0
        if not (value.isascii() and value.isdigit()):
            raise RequestError(422, "no_length")
        if len(value) > 15 or int(value) > self.limits.size:
            raise RequestError(413, "too_large", most=self.limits.size >> 20)
        return int(value)

    async def _body(self, receive: Receive, length: int) -> bytes:
        parts: list[bytes] = []
        received = 0
        try:
            async with asyncio.timeout(self.limits.arrival):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RequestError(400, "broken_off")
                    parts.append(message.get("body", b""))
                    received += len(parts[-1])
                    if received > length:
                        raise RequestError(413, "too_large", most=self.limits.size >> 20)
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError as error:
            raise RequestError(408, "too_slow", seconds=f"{self.limits.arrival:g}") from error


async def send_response(send: Send, status: int, kind: str, body: bytes, receive: Receive | None) -> None:
    """An answer where no framework is there to send it; what is still on its way to be received is forgotten."""
    headers = {"content-type": kind, **retry_header(status), **({"connection": "close"} if status == 408 else {})}
    raw = [(name.encode(), value.encode()) for name, value in {**headers, "content-length": str(len(body))}.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if receive is not None:
        await _discard_body(receive)
    await send({"type": "http.response.body", "body": b""})


async def _discard_body(receive: Receive) -> None:
    """Receive the rest of a request, as long as patience lasts, and keep nothing of it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while (await receive()).get("more_body"):
                pass


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Hands out a body that was read already."""
    bodies = [body]

    async def given() -> Message:
        return {"type": "http.request", "body": bodies.pop(), "more_body": False} if bodies else await receive()

    return given


class TimedHttpProtocol(H11Protocol):
    """The protocol of uvicorn, whose patience with a connection that is not being answered ends.

    Whoever sends a head byte by byte, goes on sending after the answer, or takes the answer byte by byte is cut off.
    """

    clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wind()

    def handle_events(self) -> None:
        super().handle_events()
        if self.clock is not None and self.cycle is not None and not self.cycle.response_complete:
            self._stop()  # from here on the gate keeps the time

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wind()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wind(self) -> None:
        self._stop()
        self.clock = self.loop.call_later(CONNECTION_SECONDS, self.transport.abort)

    def _stop(self) -> None:
        if self.clock is not None:
            self.clock.cancel()
            self.clock = None
