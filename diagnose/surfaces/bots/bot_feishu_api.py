"""A small client of Feishu's and Lark's open platform: a cached access token and the few calls that a bot makes.

Source: open.feishu.cn: tenant_access_token/internal (`expire` in seconds; a token with less than 30 minutes left is replaced by a new
one while the old one still works), messages (get, list, reply, resources), files, rate limits (HTTP 429 with x-ogw-ratelimit-reset in
seconds; code 99991400, and 230020 of one chat).
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

#: Seconds for one response; the longest wait for a rate limit, and how many retries.
TIMEOUT, MAX_DELAY, RETRIES = 15.0, 60.0, 4
#: Seconds before its expiry at which a token is renewed.
RENEWAL_MARGIN = 600.0
#: Codes of rate limits, and of tokens that are invalid or expired.
RATE_LIMIT_CODES = frozenset({99991400, 230020, 11232})
STALE_TOKEN_CODES = frozenset({99991661, 99991663, 99991664, 99991668})
#: Ids of messages, files, chats and threads: they become segments of URLs.
NAME = re.compile(r"[\w-]{1,200}", re.ASCII)


class ApiError(Exception):
    """An error response: Feishu's code (or the HTTP status) and message."""

    def __init__(self, code: int, words: str = "") -> None:
        super().__init__(f"code {code}: {words[:200]}")
        self.code = code


class FileTooLarge(Exception):
    """A file exceeds the limit."""


class Client:
    """Thread-safe. Raises ApiError for an error response and httpx.HTTPError if Feishu cannot be reached."""

    def __init__(self, base: str, app_id: str, app_secret: str) -> None:
        self.app_id, self._secret = app_id, app_secret
        self._http = httpx.Client(base_url=f"{base}/open-apis/", timeout=TIMEOUT, follow_redirects=False)
        self._lock = threading.Lock()
        self._token, self._renew_at = "", 0.0

    def close(self) -> None:
        self._http.close()

    def token(self, rejected: str = "") -> str:
        """The tenant_access_token; a new one if the cached one expires soon or is the `rejected` one."""
        with self._lock:
            if not self._token or self._token == rejected or time.monotonic() >= self._renew_at:
                body = {"app_id": self.app_id, "app_secret": self._secret}
                answer = self._request(lambda: self._http.post("auth/v3/tenant_access_token/internal", json=body))
                lifetime = float(answer.get("expire", 0))
                self._token = str(answer["tenant_access_token"])
                self._renew_at = time.monotonic() + max(lifetime - RENEWAL_MARGIN, lifetime / 2)
            return self._token

    def call(self, method: str, path: str, **options: Any) -> dict[str, object]:
        """The `data` of a response, or the whole object if it has none."""
        headers = {"Content-Type": "application/json; charset=utf-8"} if "content" in options else {}
        token = self.token()
        try:
            answer = self._request(lambda: self._http.request(method, path, headers={**_bearer(token), **headers}, **options))
        except ApiError as refusal:
            if refusal.code not in STALE_TOKEN_CODES:
                raise
            new_token = self.token(rejected=token)
            answer = self._request(lambda: self._http.request(method, path, headers={**_bearer(new_token), **headers}, **options))
        data = answer.get("data", answer)
        return data if isinstance(data, dict) else {}

    def download(self, message: str, key: str, max_bytes: int) -> bytes:
        """A file of a message. Raises FileTooLarge once more than `max_bytes` have arrived."""
        path = f"im/v1/messages/{path_segment(message)}/resources/{path_segment(key)}"
        with self._http.stream("GET", path, params={"type": "file"}, headers=_bearer(self.token())) as answer:
            if answer.status_code != 200:
                raise ApiError(answer.status_code)
            parts: list[bytes] = []
            remaining = max_bytes
            for part in answer.iter_bytes(1 << 16):
                remaining -= len(part)
                if remaining < 0:
                    raise FileTooLarge
                parts.append(part)
            return b"".join(parts)

    def upload(self, name: str, data: bytes) -> str:
        """Upload a file; its key for a message."""
        answer = self.call("POST", "im/v1/files", data={"file_type": "stream", "file_name": name}, files={"file": (name, data)})
        return str(answer["file_key"])

    def reply(self, message: str, kind: str, content: Mapping[str, object], in_thread: bool, key: str) -> None:
        """Reply to a message. Feishu drops a second reply with the same `key` (at most 50 characters) within an hour."""
        body = {"msg_type": kind, "content": json.dumps(content, ensure_ascii=False), "reply_in_thread": in_thread, "uuid": key}
        data = json.dumps(body, ensure_ascii=False).encode(errors="replace")  # a card has 30 KB: no needless escapes
        self.call("POST", f"im/v1/messages/{path_segment(message)}/reply", content=data)

    def _request(self, send: Callable[[], httpx.Response]) -> dict[str, Any]:
        """The response, after retries at rate limits. Raises ApiError."""
        attempt = 0
        while True:
            answer = send()
            body = _json_object(answer)
            code = body.get("code", 0 if answer.status_code == 200 else answer.status_code)
            if answer.status_code == 200 and code == 0:
                return body
            delay = _retry_delay(answer, attempt)
            if attempt == RETRIES or delay > MAX_DELAY or not (answer.status_code == 429 or code in RATE_LIMIT_CODES):
                raise ApiError(code if isinstance(code, int) else answer.status_code, str(body.get("msg", "")))
            time.sleep(delay)
            attempt += 1


def toast(text: str) -> dict[str, object]:
    """The answer to a pressed button: a line that is shown for a moment."""
    return {"toast": {"type": "info", "content": text}}


def path_segment(name: str) -> str:
    """An id that is safe as one segment of a URL. Raises ApiError for any other text."""
    if not NAME.fullmatch(name):
        raise ApiError(0, "no name of a message or file")
    return name


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _json_object(answer: httpx.Response) -> dict[str, object]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _retry_delay(answer: httpx.Response, attempt: int) -> float:
    """Seconds until the next attempt: as the response says, else exponential."""
    seconds = answer.headers.get("x-ogw-ratelimit-reset") or answer.headers.get("retry-after") or ""
    return float(seconds[:6]) if seconds.isascii() and seconds.isdigit() else 0.5 * 2**attempt
