"""The command `bot`, and the types that all chat platforms share.

A platform is a module `bot_NAME.py` with a function `run(BotOptions) -> int` and an implementation of `Platform`; its markup is an entry
of rules/chats.yaml. It parses messages, fetches files from its own hosts and sends answers; `bot_dispatcher.py` does the rest.
"""

from __future__ import annotations

import importlib
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from diagnose import notebook
from diagnose.errors import UserError
from diagnose.phrases import Lang, phrase
from diagnose.surfaces.server import serve_command

Name = Literal["slack", "feishu"]

#: Seconds that the timestamp of a signed request may lie from now.
MAX_SKEW = 300
#: Platforms whose socket is a module of its own (`bot_NAME_socket.py`), with the extra that it needs.
SOCKETS: dict[str, Literal["feishu-socket"]] = {"feishu": "feishu-socket"}
#: Characters of what a button sends.
MAX_VALUE = 1000
#: The buttons below an answer, each with its words in rules/phrases/remote.yaml.
BUTTONS: dict[notebook.Result, str] = {"worked": "it_worked", "failed": "it_failed"}


@dataclass(slots=True)
class BotOptions:
    """Options of the command. `max_mib`: MiB of all files of one question; `http`: webhooks instead of a socket."""

    platform: Name
    http: bool = False
    host: str = "127.0.0.1"
    port: int = 8082
    workers: int | None = None
    timeout: float = 30.0
    max_mib: int = 16
    redact: bool = True
    lang: Lang = "en"


@dataclass(slots=True)
class File:
    """A file of a message. `reference` is what the platform needs to fetch it; `size` in bytes as declared, 0 if unknown."""

    name: str
    reference: Any
    size: int = 0
    media: str = ""


@dataclass(slots=True)
class Post:
    """One message: its text without markup, and its files."""

    text: str
    files: tuple[File, ...] = ()


@dataclass(slots=True)
class Incoming:
    """A message to answer. Messages with the same `key` are deliveries of one message. `context` is what the platform needs to reply.
    `unprompted`: the bot was not addressed, so it answers only a memory failure."""

    key: str
    post: Post
    context: Any
    author: str = ""
    unprompted: bool = False


@dataclass(slots=True)
class Outgoing:
    """An answer in the platform's markup, within its length limit. `title` is for notifications, `notes` are sentences below the text,
    `patch` is plain text. `tried`: what the buttons below it send (`tried_value`), empty without buttons."""

    text: str
    title: str = ""
    notes: tuple[str, ...] = ()
    patch: str = ""
    lang: Lang = "en"
    tried: str = ""


class FetchError(Exception):
    """A file cannot be fetched; the message is a key of rules/phrases/bot.yaml."""


class SendError(Exception):
    """The platform refused an answer; the message is for the log."""


class Platform(Protocol):
    """What the dispatcher needs of a chat platform."""

    name: Name

    def earlier_posts(self, message: Incoming) -> Sequence[Post]:
        """Earlier messages of the thread, oldest first; empty without a thread or the right to read it."""

    def fetch(self, file: File, max_bytes: int) -> bytes:
        """Download a file of at most `max_bytes` from the platform's own hosts. Raises FetchError."""

    def reply(self, message: Incoming, answer: Outgoing) -> None:
        """Send the answer into the thread of the message. Raises SendError."""


def bot(options: BotOptions) -> int:
    """Answer messages until a signal to stop. Raises UserError if the bot cannot start."""
    socket = None if options.http else SOCKETS.get(options.platform)
    try:
        module = importlib.import_module(f"diagnose.surfaces.bots.bot_{options.platform}")
        if options.http or socket:
            importlib.import_module(f"diagnose.surfaces.bots.{'bot_http' if options.http else f'bot_{options.platform}_socket'}")
    except ImportError as error:
        raise serve_command.missing_extra(socket or options.platform, error, f"bot {options.platform}") from error
    status: int = module.run(options)
    return status


def read_secret(name: str, meaning: str) -> str:
    """A secret from an environment variable. Raises UserError that names the variable if it is not set."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise UserError(phrase("bot.no_token", name=name), "", phrase(f"bot.{meaning}"))
    return value


def tried_value(lang: Lang, job: str, remedies: Sequence[str]) -> str:
    """What a button sends: enough to note what became of an answer, whenever it is pressed. Empty without advice."""
    return " ".join((lang, job, *remedies)) if job and remedies else ""


def take_note(result: notebook.Result, value: object) -> str:
    """Note what a button says; the sentence for whoever pressed it. What is no value of ours is not noted."""
    lang, job, *remedies = value.split() if isinstance(value, str) and len(value) < MAX_VALUE and len(value.split()) > 2 else ("en", "", "")
    kept = None
    if notebook.JOB.fullmatch(job) and set(remedies) <= set(notebook.remedies()):
        with suppress(OSError):
            kept = notebook.write(job, remedies, result)
    return phrase("remote.noted" if kept else "remote.not_noted").to("zh" if lang == "zh" else "en")


def is_recent(timestamp: str) -> bool:
    """Whether the seconds since 1970 that a request was signed with are about now: an older one may be a replayed copy."""
    return timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 15 and abs(time.time() - int(timestamp)) <= MAX_SKEW


def read_api_url(name: str, default: str) -> str:
    """The URL of the platform's API: the default, or the one that the operator set. Raises UserError for an invalid one."""
    url = os.environ.get(name, "").strip().rstrip("/") or default
    if not re.fullmatch(r"https://[\w.-]+(:\d+)?(/[\w./-]*)?|http://(127\.0\.0\.1|localhost|\[::1\]):\d+(/[\w./-]*)?", url):
        raise UserError(phrase("bot.bad_address", name=name), "", phrase("bot.want_address"))
    return url
