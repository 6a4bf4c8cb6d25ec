"""`oomdoctor bot feishu`: messages to the bot in Feishu or Lark, through the signed and encrypted webhook of an event subscription.

Read at open.feishu.cn: event subscription (url_verification, X-Lark-Signature, AES-256-CBC of `encrypt`), im.message.receive_v1,
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
from typing import TYPE_CHECKING, Any

import httpx
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.surfaces.bots import bot_command
from diagnose.surfaces.bots.bot_command import Asked, File, Incoming, Outgoing, Post, Unfetched, Unsent
from diagnose.surfaces.bots.bot_desk import Desk, crew_of
from diagnose.surfaces.bots.bot_feishu_api import Client, Refused, TooLarge

if TYPE_CHECKING:
    from diagnose.surfaces.bots.bot_http import Reply
    from diagnose.surfaces.server.worker_pool import Crew

API = "https://open.feishu.cn"
PATH = "/feishu/events"
#: Seconds after which an event is too old to answer: Feishu sends again for about seven hours.
OLD = 24 * 3600
#: Bytes of a patch that a card holds beside what is always there, where it cannot be a file: a card has 30 KB.
BLOCK = 20_000
#: What stands for a person in a text.
MENTION = re.compile(r"@_(?:user_\d{1,4}|all)\b ?")
#: Parts of rich text with words, and where they have them.
WORDED = {
    "text": "text",
    "a": "text",
    "code_block": "text",
    "md": "text",
    "markdown": "content",
    "plain_text": "content",
    "lark_md": "content",
}


class Forged(Exception):
    """A request that is not Feishu's."""


class Seal:
    """What proves that a request is Feishu's: the signature with the Encrypt Key, the encryption with it, and the Verification Token."""

    def __init__(self, key: str, token: str) -> None:
        self._key, self._token = key.encode(), token.encode()
        self._cipher = hashlib.sha256(self._key).digest()

    def opened(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """The event. Raises Forged. The question whether the address is ours comes without a signature."""
        event = self._decrypted(body)
        header = event.get("header")
        token = (header if isinstance(header, dict) else event).get("token")
        if not hmac.compare_digest(str(token).encode(errors="replace"), self._token):
            raise Forged("token")
        if event.get("type") != "url_verification":
            said = headers.get("x-lark-request-timestamp", "") + headers.get("x-lark-request-nonce", "")
            wanted = hashlib.sha256(said.encode("latin-1", "replace") + self._key + body).hexdigest()
            if not hmac.compare_digest(headers.get("x-lark-signature", "").encode("latin-1", "replace"), wanted.encode()):
                raise Forged("signature")
        return event

    def _decrypted(self, body: bytes) -> dict[str, Any]:
        try:
            sealed = base64.b64decode(json.loads(body)["encrypt"], validate=True)
            reader = Cipher(algorithms.AES(self._cipher), modes.CBC(sealed[:16])).decryptor()
            padded = reader.update(sealed[16:]) + reader.finalize()
            pad = PKCS7(128).unpadder()
            event = json.loads(pad.update(padded) + pad.finalize())
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise Forged("encryption") from error
        if not isinstance(event, dict):
            raise Forged("event")
        return event


def run(asked: Asked) -> int:
    """Answer until a signal comes. Raises UserError where a secret is missing or wrong, or nothing can listen."""
    from diagnose.surfaces.bots.bot_http import listen

    app_id = bot_command.secret("FEISHU_APP_ID", "feishu_app_id")
    app_secret = bot_command.secret("FEISHU_APP_SECRET", "feishu_app_secret")
    token = bot_command.secret("FEISHU_VERIFICATION_TOKEN", "feishu_verification_token")
    seal = Seal(bot_command.secret("FEISHU_ENCRYPT_KEY", "feishu_encrypt_key"), token)
    client = Client(bot_command.service("FEISHU_API_URL", API), app_id, app_secret)
    desk, hook = made(client, seal, crew_of(asked), asked)
    try:
        listen(hook, PATH, desk, asked.host, asked.port, asked.lang)
    finally:
        desk.close()
        client.close()
    return 0


def made(client: Client, seal: Seal, crew: Crew, asked: Asked) -> tuple[Desk, Hook]:
    """The desk, and what takes requests. Raises UserError for secrets that Feishu does not take."""
    try:
        told = client.call("GET", "bot/v3/info").get("bot")
        me = str(told.get("open_id")) if isinstance(told, dict) else ""
    except (Refused, httpx.HTTPError, KeyError) as error:
        why = str(error) if isinstance(error, Refused) else type(error).__name__
        name = "FEISHU_APP_ID, FEISHU_APP_SECRET"
        raise UserError(phrase("bot.not_let_in", platform="Feishu", why=why), "", phrase("bot.see_token", name=name)) from error
    desk = Desk(Feishu(client), crew, asked)
    return desk, Hook(desk, seal, me)


class Hook:
    """Takes a request and answers at once."""

    def __init__(self, desk: Desk, seal: Seal, me: str) -> None:
        self.desk, self.seal, self.me = desk, seal, me

    def __call__(self, headers: Mapping[str, str], body: bytes) -> Reply:
        from diagnose.surfaces.bots.bot_http import Reply

        try:
            event = self.seal.opened(headers, body)
        except Forged:
            return Reply(401, b'{"error": "not signed as agreed"}')
        if event.get("type") == "url_verification":
            return Reply(200, json.dumps({"challenge": str(event.get("challenge"))}).encode())
        came = incoming(event, self.me)
        if came is not None:
            self.desk.take(came)
        return Reply(200, b"{}")


# -- messages


def incoming(event: Mapping[str, Any], me: str) -> Incoming | None:
    """The message of an event; None where it is not for us.

    A direct message and a mention are always answered, a file in a group where it holds a failure.
    """
    header, told = _dict(event.get("header")), _dict(event.get("event"))
    message, sender = _dict(told.get("message")), _dict(told.get("sender"))
    if header.get("event_type") != "im.message.receive_v1" or sender.get("sender_type") != "user" or _is_old(header):
        return None
    mentioned = any(_dict(_dict(each).get("id")).get("open_id") == me for each in _list(message.get("mentions")))
    direct = message.get("chat_type") == "p2p"
    kind = str(message.get("message_type"))
    if not (direct or mentioned or kind == "file"):
        return None
    name = str(message.get("message_id"))
    there = {key: str(message.get(key) or "") for key in ("root_id", "parent_id", "thread_id")}
    where = {**there, "message": name, "in_thread": not direct or bool(there["thread_id"])}
    who = str(_dict(sender.get("sender_id")).get("open_id") or "")
    return Incoming(name, post(name, kind, message.get("content")), where, who, quiet=not (direct or mentioned))


def _is_old(header: Mapping[str, Any]) -> bool:
    """An old event is a copy that somebody sends again."""
    made = str(header.get("create_time"))  # milliseconds
    return made.isascii() and made.isdigit() and time.time() - int(made[:16]) / 1000 > OLD


def post(message: str, kind: str, content: Any) -> Post:
    """A message's words and file."""
    try:
        told = _dict(json.loads(content))
    except (ValueError, TypeError, RecursionError):
        return Post("")
    if kind in ("file", "image"):
        key, media = ("file_key", "") if kind == "file" else ("image_key", "image/")
        return Post("", (File(str(told.get("file_name") or kind), (message, str(told.get(key))), media=media),))
    if kind == "text":
        return Post(MENTION.sub("", str(told.get("text"))))
    return Post("\n".join(_lines(told)))


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    """The lines of rich text, and of what can be read of a card."""
    title = told.get("title")
    if isinstance(title, str) and title:
        yield title
    for line in _list(told.get("content") or told.get("elements"))[:2000]:
        parts = line if isinstance(line, list) else [line]
        words = (_dict(part).get(WORDED.get(str(_dict(part).get("tag")), "")) for part in parts[:500])
        yield "".join(MENTION.sub("", word) for word in words if isinstance(word, str))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class Feishu:
    """The platform, through our client."""

    name: bot_command.Name = "feishu"

    def __init__(self, client: Client) -> None:
        self.client = client

    def earlier(self, came: Incoming) -> Sequence[Post]:
        """What the message replies to, and its thread."""
        where = came.where
        held: dict[str, Mapping[str, Any]] = {}
        for name in filter(None, dict.fromkeys((where["root_id"], where["parent_id"]))):
            held |= self._items(f"im/v1/messages/{name}")
        if where["thread_id"]:
            newest = {"container_id_type": "thread", "container_id": where["thread_id"], "sort_type": "ByCreateTimeDesc", "page_size": "50"}
            held |= self._items("im/v1/messages", params=newest)
        held.pop(where["message"], None)
        theirs = [each for each in held.values() if not each.get("deleted") and _dict(each.get("sender")).get("id") != self.client.app_id]
        theirs.sort(key=lambda each: str(each.get("create_time")).zfill(20))
        return [post(str(each["message_id"]), str(each.get("msg_type")), _dict(each.get("body")).get("content")) for each in theirs]

    def _items(self, path: str, **options: Any) -> dict[str, Mapping[str, Any]]:
        """Messages by their names; none where they cannot be read."""
        try:
            found = self.client.call("GET", path, **options).get("items")
        except (Refused, httpx.HTTPError, KeyError):
            return {}
        return {str(each["message_id"]): each for each in _list(found) if isinstance(each, dict) and "message_id" in each}

    def fetch(self, file: File, most: int) -> bytes:
        message, key = file.where
        try:
            return self.client.download(message, key, most)
        except TooLarge as error:
            raise Unfetched("too_large") from error
        except (Refused, httpx.HTTPError, KeyError) as error:
            raise Unfetched("not_fetched") from error

    def reply(self, came: Incoming, said: Outgoing) -> None:
        try:
            self._send(came, "interactive", card(said), "answer")
            if said.patch:
                self._patch(came, said)
        except (Refused, httpx.HTTPError, KeyError) as error:
            raise Unsent(str(error)) from error

    def _patch(self, came: Incoming, said: Outgoing) -> None:
        """As a file, which keeps every character; where files may not be sent, as a block of code."""
        try:
            key = self.client.upload("oomdoctor.patch", said.patch.encode(errors="replace"))
            self._send(came, "file", {"file_key": key}, "patch")
        except (Refused, httpx.HTTPError, KeyError):
            text = f"```diff\n{said.patch.replace('```', chr(39) * 3)}\n```"
            if len(json.dumps(text, ensure_ascii=False).encode(errors="replace")) > BLOCK:
                text = phrase("bot.patch_too_long").to(said.lang)
            self._send(came, "interactive", card(Outgoing(text, phrase("bot.patch").to(said.lang))), "block")

    def _send(self, came: Incoming, kind: str, content: Mapping[str, Any], part: str) -> None:
        """In the thread; where a chat has none, as a plain reply."""
        message, in_thread = came.where["message"], came.where["in_thread"]
        try:
            self.client.reply(message, kind, content, in_thread, once(message, part))
        except Refused:
            if not in_thread:
                raise
            self.client.reply(message, kind, content, False, once(message, part, "flat"))


def once(*parts: str) -> str:
    """The same for the same parts, so that a reply that is sent again arrives once."""
    return hashlib.sha256(" ".join(parts).encode(errors="replace")).hexdigest()[:40]


def card(said: Outgoing) -> dict[str, Any]:
    """A card with the answer; `summary` is what the list of chats shows."""
    elements = [{"tag": "markdown", "content": said.text}]
    elements += [{"tag": "markdown", "content": note, "text_size": "notation"} for note in said.notes]
    return {
        "schema": "2.0",
        "config": {"update_multi": True, "width_mode": "fill", "summary": {"content": html.unescape(said.title)[:100]}},
        "body": {"elements": elements},
    }
