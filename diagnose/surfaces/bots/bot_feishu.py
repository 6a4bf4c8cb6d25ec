"""`oomdoctor bot feishu`: messages to the bot in Feishu or Lark, through the signed and encrypted webhook of an event subscription, or the
long connection of bot_feishu_socket.py.

Source: open.feishu.cn: event subscription (url_verification, X-Lark-Signature, AES-256-CBC of `encrypt`), im.message.receive_v1,
content of received messages, cards in JSON 2.0.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import html
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import httpx
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.render.markup.chat_within_limit import dialect
from diagnose.surfaces.bots import bot_command
from diagnose.surfaces.bots.bot_command import BotOptions, FetchError, File, Incoming, Outgoing, Post, SendError
from diagnose.surfaces.bots.bot_dispatcher import Dispatcher, build_pool
from diagnose.surfaces.bots.bot_feishu_api import ApiError, Client, FileTooLarge, toast
from diagnose.surfaces.bots.bot_http import Reply, serve_webhook
from diagnose.surfaces.server.worker_pool import WorkerPool

API = "https://open.feishu.cn"
PATH = "/feishu/events"
#: Bytes of a url_verification challenge, the only request without a signature.
MAX_CHALLENGE_BYTES = 4096
#: Seconds after which an event is too old to answer: Feishu repeats deliveries for about seven hours.
MAX_EVENT_AGE = 24 * 3600
#: Bytes of a patch in a card, where files are not allowed: a card has 30 KB in all.
MAX_BLOCK_BYTES = 20_000
#: The placeholder of a mention in a text.
MENTION = re.compile(r"@_(?:user_\d{1,4}|all)\b ?")
#: Tags of rich text that contain text, and the key that holds it.
TEXT_FIELDS = {
    "text": "text",
    "a": "text",
    "code_block": "text",
    "md": "text",
    "markdown": "content",
    "plain_text": "content",
    "lark_md": "content",
}


class ForgedRequest(Exception):
    """A request that Feishu did not sign."""


class RequestVerifier:
    """Authenticates requests by their signature and encryption with the Encrypt Key and by the Verification Token."""

    def __init__(self, key: str, token: str) -> None:
        self._key, self._token = key.encode(), token.encode()
        self._cipher = hashlib.sha256(self._key).digest()

    def verify(self, headers: Mapping[str, str], body: bytes) -> dict[str, object]:
        """Verify and decrypt a request; the event. Raises ForgedRequest, before anything is parsed where the signature, which is over the
        raw bytes, is wrong or old. The url_verification challenge has none, but is small and knows the token."""
        signed = "x-lark-signature" in headers
        if not (self._is_signed(headers, body) if signed else len(body) <= MAX_CHALLENGE_BYTES):
            raise ForgedRequest("signature")
        event = self._decrypt(body)
        header = event.get("header")
        token = (header if isinstance(header, dict) else event).get("token")
        if not hmac.compare_digest(str(token).encode(errors="replace"), self._token):
            raise ForgedRequest("token")
        if not signed and event.get("type") != "url_verification":
            raise ForgedRequest("signature")
        return event

    def _is_signed(self, headers: Mapping[str, str], body: bytes) -> bool:
        stamp, nonce = headers.get("x-lark-request-timestamp", ""), headers.get("x-lark-request-nonce", "")
        expected = hashlib.sha256((stamp + nonce).encode("latin-1", "replace") + self._key + body).hexdigest()
        signature = headers["x-lark-signature"].encode("latin-1", "replace")
        return bot_command.is_recent(stamp) and hmac.compare_digest(signature, expected.encode())

    def _decrypt(self, body: bytes) -> dict[str, object]:
        try:
            encrypted = base64.b64decode(json.loads(body)["encrypt"], validate=True)
            decryptor = Cipher(algorithms.AES(self._cipher), modes.CBC(encrypted[:16])).decryptor()
            padded = decryptor.update(encrypted[16:]) + decryptor.finalize()
            unpadder = PKCS7(128).unpadder()
            event = json.loads(unpadder.update(padded) + unpadder.finalize())
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise ForgedRequest("encryption") from error
        if not isinstance(event, dict):
            raise ForgedRequest("event")
        return event


def run(options: BotOptions) -> int:
    """Answer until a signal arrives. Raises UserError for a missing or wrong secret or an address that is taken."""
    app_id = bot_command.read_secret("FEISHU_APP_ID", "feishu_app_id")
    app_secret = bot_command.read_secret("FEISHU_APP_SECRET", "feishu_app_secret")
    base = bot_command.read_api_url("FEISHU_API_URL", API)
    if options.http:
        token = bot_command.read_secret("FEISHU_VERIFICATION_TOKEN", "feishu_verification_token")
        verifier = RequestVerifier(bot_command.read_secret("FEISHU_ENCRYPT_KEY", "feishu_encrypt_key"), token)
    client = Client(base, app_id, app_secret)
    dispatcher, bot_id = connect(client, build_pool(options), options)
    try:
        if options.http:
            serve_webhook(Webhook(dispatcher, verifier, bot_id), PATH, dispatcher, options.host, options.port, options.lang)
        else:
            from diagnose.surfaces.bots.bot_feishu_socket import serve_socket  # needs Feishu's own SDK, which webhooks do not

            serve_socket(dispatcher, partial(take, dispatcher, bot_id), base, app_id, app_secret, options)
    finally:
        dispatcher.close()
        client.close()
    return 0


def connect(client: Client, pool: WorkerPool, options: BotOptions) -> tuple[Dispatcher, str]:
    """The dispatcher, and the bot's own id. Raises UserError for secrets that Feishu refuses."""
    try:
        info = client.call("GET", "bot/v3/info").get("bot")
        bot_id = str(info.get("open_id")) if isinstance(info, dict) else ""
    except (ApiError, httpx.HTTPError, KeyError) as error:
        why = str(error) if isinstance(error, ApiError) else type(error).__name__
        name = "FEISHU_APP_ID, FEISHU_APP_SECRET"
        raise UserError(phrase("bot.not_let_in", platform="Feishu", why=why), "", phrase("bot.see_token", name=name)) from error
    return Dispatcher(Feishu(client), pool, options), bot_id


class Webhook:
    """Verifies a request, queues its message and responds at once."""

    def __init__(self, dispatcher: Dispatcher, verifier: RequestVerifier, bot_id: str) -> None:
        self.dispatcher, self.verifier, self.bot_id = dispatcher, verifier, bot_id

    def __call__(self, headers: Mapping[str, str], body: bytes) -> Reply:
        try:
            event = self.verifier.verify(headers, body)
        except ForgedRequest:
            return Reply(401, b'{"error": "not signed as agreed"}')
        if event.get("type") == "url_verification":
            return Reply(200, json.dumps({"challenge": str(event.get("challenge"))}).encode())
        told = take(self.dispatcher, self.bot_id, event)
        return Reply(200, json.dumps({} if told is None else toast(told), ensure_ascii=False).encode())


def take(dispatcher: Dispatcher, bot_id: str, event: Mapping[str, object]) -> str | None:
    """Queue the message of an event; what is said to whoever pressed a button, None for other events."""
    if (told := pressed(event)) is not None:
        return told
    message = parse_event(event, bot_id)
    if message is not None:
        dispatcher.submit(message)
    return None


# -- messages


def parse_event(event: Mapping[str, object], bot_id: str) -> Incoming | None:
    """The message of an event; None if it is not for the bot.

    Direct messages and mentions are always answered, a file in a group only if it holds a failure.
    """
    header, body = _dict(event.get("header")), _dict(event.get("event"))
    message, sender = _dict(body.get("message")), _dict(body.get("sender"))
    if header.get("event_type") != "im.message.receive_v1" or sender.get("sender_type") != "user" or _is_old(header):
        return None
    mentioned = any(_dict(_dict(mention).get("id")).get("open_id") == bot_id for mention in _list(message.get("mentions")))
    direct = message.get("chat_type") == "p2p"
    kind = str(message.get("message_type"))
    if not (direct or mentioned or kind == "file"):
        return None
    message_id = str(message.get("message_id"))
    thread = {key: str(message.get(key) or "") for key in ("root_id", "parent_id", "thread_id")}
    context = {**thread, "message": message_id, "in_thread": not direct or bool(thread["thread_id"])}
    author = str(_dict(sender.get("sender_id")).get("open_id") or "")
    return Incoming(message_id, parse_post(message_id, kind, message.get("content")), context, author, unprompted=not (direct or mentioned))


def pressed(event: Mapping[str, object]) -> str | None:
    """What is said to whoever pressed a button below an answer, once it is noted; None for other events."""
    if _dict(event.get("header")).get("event_type") != "card.action.trigger":
        return None
    value = _dict(_dict(_dict(event.get("event")).get("action")).get("value"))
    result = next((name for name in bot_command.BUTTONS if name in value), None)
    return bot_command.take_note(result or "failed", value.get(result) if result else None)


def _is_old(header: Mapping[str, object]) -> bool:
    """Whether the event may be a replayed copy."""
    created = str(header.get("create_time"))  # milliseconds
    return created.isascii() and created.isdigit() and time.time() - int(created[:16]) / 1000 > MAX_EVENT_AGE


def parse_post(message_id: str, kind: str, content: Any) -> Post:
    """The text and the file of a message."""
    try:
        body = _dict(json.loads(content))
    except (ValueError, TypeError, RecursionError):
        return Post("")
    if kind in ("file", "image"):
        key, media = ("file_key", "") if kind == "file" else ("image_key", "image/")
        return Post("", (File(str(body.get("file_name") or kind), (message_id, str(body.get(key))), media=media),))
    if kind == "text":
        return Post(MENTION.sub("", str(body.get("text"))))
    return Post("\n".join(_rich_text_lines(body)))


def _rich_text_lines(body: Mapping[str, object]) -> Iterator[str]:
    """Lines of rich text, or of the readable parts of a card."""
    title = body.get("title")
    if isinstance(title, str) and title:
        yield title
    for line in _list(body.get("content") or body.get("elements"))[:2000]:
        parts = line if isinstance(line, list) else [line]
        words = (_dict(part).get(TEXT_FIELDS.get(str(_dict(part).get("tag")), "")) for part in parts[:500])
        yield "".join(MENTION.sub("", word) for word in words if isinstance(word, str))


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


class Feishu:
    """The platform `feishu`."""

    name: bot_command.Name = "feishu"

    def __init__(self, client: Client) -> None:
        self.client = client

    def earlier_posts(self, message: Incoming) -> Sequence[Post]:
        """The messages that this one replies to, and its thread."""
        context = message.context
        items: dict[str, Mapping[str, object]] = {}
        for message_id in filter(None, dict.fromkeys((context["root_id"], context["parent_id"]))):
            items |= self._items(f"im/v1/messages/{message_id}")
        if context["thread_id"]:
            query = {
                "container_id_type": "thread",
                "container_id": context["thread_id"],
                "sort_type": "ByCreateTimeDesc",
                "page_size": "50",
            }
            items |= self._items("im/v1/messages", params=query)
        items.pop(context["message"], None)
        others = [item for item in items.values() if not item.get("deleted") and _dict(item.get("sender")).get("id") != self.client.app_id]
        others.sort(key=lambda item: str(item.get("create_time")).zfill(20))
        return [parse_post(str(item["message_id"]), str(item.get("msg_type")), _dict(item.get("body")).get("content")) for item in others]

    def _items(self, path: str, **options: object) -> dict[str, Mapping[str, object]]:
        """Messages by id; empty if they cannot be read."""
        try:
            items = self.client.call("GET", path, **options).get("items")
        except (ApiError, httpx.HTTPError, KeyError):
            return {}
        return {str(item["message_id"]): item for item in _list(items) if isinstance(item, dict) and "message_id" in item}

    def fetch(self, file: File, max_bytes: int) -> bytes:
        message_id, key = file.reference
        try:
            return self.client.download(message_id, key, max_bytes)
        except FileTooLarge as error:
            raise FetchError("too_large") from error
        except (ApiError, httpx.HTTPError, KeyError) as error:
            raise FetchError("not_fetched") from error

    def reply(self, message: Incoming, answer: Outgoing) -> None:
        try:
            self._send(message, "interactive", build_card(answer), "answer")
            if answer.patch:
                self._patch(message, answer)
        except (ApiError, httpx.HTTPError, KeyError) as error:
            raise SendError(str(error)) from error

    def _patch(self, message: Incoming, answer: Outgoing) -> None:
        """Send the patch as a file, which keeps every character; as a code block where files are not allowed."""
        try:
            key = self.client.upload("oomdoctor.patch", answer.patch.encode(errors="replace"))
            self._send(message, "file", {"file_key": key}, "patch")
        except (ApiError, httpx.HTTPError, KeyError):
            text = dialect(self.name).verbatim(answer.patch, "```diff")
            if len(json.dumps(text, ensure_ascii=False).encode(errors="replace")) > MAX_BLOCK_BYTES:
                text = phrase("bot.patch_too_long").to(answer.lang)
            self._send(message, "interactive", build_card(Outgoing(text, phrase("bot.patch").to(answer.lang))), "block")

    def _send(self, message: Incoming, kind: str, content: Mapping[str, object], part: str) -> None:
        """Reply in the thread, or plainly in a chat without threads."""
        message_id, in_thread = message.context["message"], message.context["in_thread"]
        try:
            self.client.reply(message_id, kind, content, in_thread, idempotency_key(message_id, part))
        except ApiError:
            if not in_thread:
                raise
            self.client.reply(message_id, kind, content, False, idempotency_key(message_id, part, "flat"))


def idempotency_key(*parts: str) -> str:
    """A key derived from the parts, so that Feishu drops a repeated reply."""
    return hashlib.sha256(" ".join(parts).encode(errors="replace")).hexdigest()[:40]


def build_card(answer: Outgoing) -> dict[str, object]:
    """A card with the answer; the list of chats shows its `summary`."""
    elements: list[dict[str, object]] = [{"tag": "markdown", "content": answer.text}]
    elements += [{"tag": "markdown", "content": note, "text_size": "notation"} for note in answer.notes]
    elements += [
        {
            "tag": "button",
            "text": {"tag": "plain_text", "content": phrase(f"remote.{words}").to(answer.lang)},
            "size": "small",
            "behaviors": [{"type": "callback", "value": {result: answer.tried}}],
        }
        for result, words in (bot_command.BUTTONS.items() if answer.tried else ())
    ]
    return {
        "schema": "2.0",
        "config": {"update_multi": True, "width_mode": "fill", "summary": {"content": html.unescape(answer.title)[:100]}},
        "body": {"elements": elements},
    }
