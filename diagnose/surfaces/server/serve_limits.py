"""Limits of size, time and number for requests, the security headers of every response, and errors as RFC 9457 problems."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypedDict

from uvicorn.protocols.http.h11_impl import H11Protocol

from diagnose.phrases import Lang, phrase
from diagnose.surfaces.server.worker_pool import FINISH_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Seconds in which a client must send the head of a request, or read a response and close.
CONNECTION_SECONDS = 20.0
#: Seconds in which the body of a refused request is read and discarded: many clients read the response only after sending everything,
#: and see a mere reset if the connection is closed before.
DISCARD_SECONDS = 10.0
#: Seconds after a signal to stop after which every connection is cut.
CUT_SECONDS = FINISH_SECONDS + 0.5
#: Connections beyond the limit for which the one that is idle longest is cut: those that are being answered.
SPARE_CONNECTIONS = 128
#: Seconds in the Retry-After header of 429 and 503.
RETRY_SECONDS = 5

#: The media type of an error (RFC 9457).
PROBLEM_TYPE = "application/problem+json"

#: For the pages of the server: no script, no frame, nothing from elsewhere. `serve_page.py` adds the styles of a report, by their hash.
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


@dataclass(slots=True, frozen=True)
class Limits:
    """Bytes of one request (`size`) and of all that are being read (`total_size`); requests at once, and of one address
    (`per_client`); seconds for a body to arrive, and for a diagnosis (`seconds`)."""

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
    """A refused request: its status, and a sentence of rules/phrases/remote.yaml."""

    def __init__(self, status: int, key: str, **values: object) -> None:
        super().__init__(status, key)
        self.status, self.key, self.values = status, key, values

    def detail(self, lang: Lang) -> str:
        return phrase(f"remote.{self.key}", **self.values).to(lang)


def problem(status: int, detail: str) -> Problem:
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}


def retry_header(status: int) -> dict[str, str]:
    """The Retry-After header of statuses that have one."""
    return {"retry-after": str(RETRY_SECONDS)} if status in (429, 503) else {}


def negotiate_language(accept_language: str, requested: str = "") -> Lang:
    """The requested language, else the supported one that Accept-Language prefers, else English."""
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


@dataclass(slots=True, eq=False)
class Place:
    """A counted request: the bytes that its body announced, its client, and the time limit of its body."""

    length: int
    client: str
    arrival: asyncio.Timeout
    is_evicted: bool = False


class Gate:
    """ASGI middleware: counts requests with a body, refuses bodies that are too large or too slow, and adds the headers. Where all places
    are taken, the request whose body has been arriving longest gives up its own, so that slow senders keep nobody out.

    `form` renders the page with an error for requests to it: people do not read JSON.
    """

    def __init__(self, app: ASGIApp, limits: Limits, form: Callable[[str, Lang], str] | None = None) -> None:
        self.app, self.limits, self.form = app, limits, form
        self.waiting = self.bytes = 0
        self.by_client: Counter[str] = Counter()
        self._arriving: dict[Place, None] = {}  # the longest first
        self._unanswered: set[asyncio.Timeout] = set()  # of requests without a response yet
        self._ends_at: float | None = None  # in the loop's time

    def finish(self) -> None:
        """Give the requests that are here FINISH_SECONDS; what is not answered then is refused."""
        self._ends_at = asyncio.get_running_loop().time() + FINISH_SECONDS
        for timeout in self._unanswered:
            timeout.reschedule(self._ends_at)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        timeout = asyncio.timeout_at(self._ends_at)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                if timeout in self._unanswered:
                    self._unanswered.remove(timeout)
                    timeout.reschedule(None)  # a client that is slow to read is cut off by its connection
                present = {name.lower() for name, _ in message.get("headers", ())}
                missing = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in present]
                message = {**message, "headers": [*message.get("headers", ()), *missing]}
            await send(message)

        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}

        async def answer() -> None:
            if scope["method"] in ("GET", "HEAD"):
                await self.app(scope, receive, send_with_headers)
            else:
                await self._with_body(scope, headers, receive, send_with_headers)

        try:
            await self._answer_in_time(answer, timeout)
        except RequestError as refusal:
            lang = negotiate_language(headers.get(b"accept-language", ""))
            reads_answer = (
                refusal.status in (400, 408) or b"expect" in headers
            )  # it is gone, or waits for a response before it sends the body
            kind, detail = PROBLEM_TYPE, refusal.detail(lang)
            body = json.dumps(problem(refusal.status, detail), ensure_ascii=False)
            if self.form is not None and scope["path"] == "/":
                kind, body = "text/html; charset=utf-8", self.form(detail, lang)
            await send_response(send_with_headers, refusal.status, kind, body.encode(), None if reads_answer else receive)

    async def _answer_in_time(self, answer: Callable[[], Awaitable[None]], timeout: asyncio.Timeout) -> None:
        """Run `answer`, which may be stopped by `finish` until its response has begun. Raises RequestError then."""
        try:
            async with timeout:
                self._unanswered.add(timeout)
                await answer()
        except TimeoutError:
            if not timeout.expired():
                raise
            raise RequestError(503, "stopping") from None
        finally:
            self._unanswered.discard(timeout)

    async def _with_body(self, scope: Scope, headers: Mapping[bytes, str], receive: Receive, send: Send) -> None:
        """Count the request and pass it on once its whole body has arrived."""
        length = self._length(headers)
        client = scope["client"][0] if scope.get("client") else ""
        if self.by_client[client] >= self.limits.per_client:
            raise RequestError(429, "too_many_of_yours", most=self.limits.per_client)
        while self.waiting >= self.limits.max_requests or self.bytes + length > self.limits.total_size:
            if not self._arriving:
                raise RequestError(503, "too_busy", seconds=RETRY_SECONDS)
            self._evict(next(iter(self._arriving)))
        place = Place(length, client, asyncio.timeout(self.limits.arrival))
        self._count(place, 1)
        try:
            body = await self._body(receive, place)
            await self.app(scope, _replay_body(body, receive), send)
        finally:
            if not place.is_evicted:
                self._count(place, -1)

    def _count(self, place: Place, number: int) -> None:
        self.waiting += number
        self.bytes += number * place.length
        self.by_client[place.client] += number
        if not self.by_client[place.client]:
            del self.by_client[place.client]

    def _evict(self, place: Place) -> None:
        """Refuse a request whose body is still arriving, for the sake of another one."""
        del self._arriving[place]
        self._count(place, -1)
        place.is_evicted = True
        place.arrival.reschedule(asyncio.get_running_loop().time())

    def _length(self, headers: Mapping[bytes, str]) -> int:
        """Declared bytes of the body, or the limit for a chunked one. Raises RequestError."""
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

    async def _body(self, receive: Receive, place: Place) -> bytes:
        """The whole body. Raises RequestError."""
        parts: list[bytes] = []
        received = 0
        try:
            async with place.arrival:
                self._arriving[place] = None
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RequestError(400, "broken_off")
                    parts.append(message.get("body", b""))
                    received += len(parts[-1])
                    if received > place.length:
                        raise RequestError(413, "too_large", most=self.limits.size >> 20)
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError as error:
            if place.is_evicted:
                raise RequestError(503, "too_busy", seconds=RETRY_SECONDS) from error
            raise RequestError(408, "too_slow", seconds=f"{self.limits.arrival:g}") from error
        finally:
            self._arriving.pop(place, None)


async def send_response(send: Send, status: int, kind: str, body: bytes, receive: Receive | None) -> None:
    """Send a response without the framework; `receive` if the rest of the body is to be read and discarded first."""
    headers = {"content-type": kind, **retry_header(status), **({"connection": "close"} if status == 408 else {})}
    raw = [(name.encode(), value.encode()) for name, value in {**headers, "content-length": str(len(body))}.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if receive is not None:
        await _discard_body(receive)
    await send({"type": "http.response.body", "body": b""})


async def _discard_body(receive: Receive) -> None:
    """Read the rest of a body for at most DISCARD_SECONDS."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while (await receive()).get("more_body"):
                pass


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns a body that has been read already, then goes on."""
    bodies = [body]

    async def replay() -> Message:
        return {"type": "http.request", "body": bodies.pop(), "more_body": False} if bodies else await receive()

    return replay


class TimedHttpProtocol(H11Protocol):
    """uvicorn's protocol with a timer for connections that are not being answered, and a limit of their number.

    It aborts a client that sends the head byte by byte, goes on sending after the response, or reads the response byte by byte. Where
    there are too many connections it aborts the one that has been idle longest, so that a new one can always ask.
    """

    timer: asyncio.TimerHandle | None = None
    idle_since = 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._restart_timer()
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency - SPARE_CONNECTIONS:
            self._abort_longest_idle()

    def handle_events(self) -> None:
        super().handle_events()
        if self.timer is not None and self.is_answering:
            self._stop_timer()  # from here on Gate limits the time

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.idle_since = self.loop.time()
        self._restart_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._restart_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.is_answering:
            self._stop_timer()

    def shutdown(self) -> None:
        super().shutdown()
        self.loop.call_later(CUT_SECONDS, self.transport.abort)

    @property
    def is_answering(self) -> bool:
        """Whether there is a request without its whole response."""
        return self.cycle is not None and not self.cycle.response_complete

    def _abort_longest_idle(self) -> None:
        """Abort one connection whose request, if any, has been answered or refused already."""
        idle = [
            connection
            for connection in self.connections
            if isinstance(connection, TimedHttpProtocol)
            and connection is not self
            and not connection.transport.is_closing()
            and (connection.cycle is None or connection.cycle.response_started)
        ]
        if idle:
            min(idle, key=lambda connection: connection.idle_since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _restart_timer(self) -> None:
        self._stop_timer()
        self.timer = self.loop.call_later(CONNECTION_SECONDS, self.transport.abort)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
