"""The command `bot`: what every chat bot does, whatever the platform. A message comes in, an answer goes out in its thread.

A platform is a module `bot_NAME.py` with a function `run(Asked) -> int` and a class that is a `Platform`; how it writes is an entry of
rules/chats.yaml. It says what was written and attached, fetches files from its own hosts, and sends; `bot_dispatcher.py` does the rest.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from diagnose.errors import UserError
from diagnose.phrases import Lang, phrase
from diagnose.record import record
from diagnose.surfaces.server import serve_command

Name = Literal["slack", "feishu"]


@record
class BotOptions:
    """The options of the command. `max_mib`: of all files of one question together; `http`: webhooks instead of a socket."""

    platform: Name
    http: bool = False
    host: str = "127.0.0.1"
    port: int = 8082
    workers: int | None = None
    timeout: float = 30.0
    max_mib: int = 16
    redact: bool = True
    lang: Lang = "en"


@record
class File:
    """A file as a message names it; `where` is the platform's. Size in bytes as declared, 0 where it is not."""

    name: str
    reference: Any
    size: int = 0
    media: str = ""


@record
class Post:
    """One message: its words as they were typed, and its files."""

    text: str
    files: tuple[File, ...] = ()


@record
class Incoming:
    """A message to answer. `key` names it: what has the same key is the same message again. `where` is the platform's.
    `quiet`: nobody asked; answered only where it holds a failure of memory. `who` wrote it."""

    key: str
    post: Post
    context: Any
    author: str = ""
    unprompted: bool = False


@record
class Outgoing:
    """An answer in the platform's own writing, within its limit; `title` for a notification; `notes` stand below, each a sentence;
    `patch` is plain."""

    text: str
    title: str = ""
    notes: tuple[str, ...] = ()
    patch: str = ""
    lang: Lang = "en"


class FetchError(Exception):
    """A file that cannot be had; the text is the name of a sentence of rules/phrases/bot.yaml."""


class SendError(Exception):
    """An answer that the platform does not take; the text is for our log."""


class Platform(Protocol):
    name: Name

    def earlier_posts(self, message: Incoming) -> Sequence[Post]:
        """What was said in the thread before, oldest first; empty where there is no thread or it cannot be read."""

    def fetch(self, file: File, max_bytes: int) -> bytes:
        """The file, of at most so many bytes, from the platform's own hosts. Raises Unfetched."""

    def reply(self, message: Incoming, answer: Outgoing) -> None:
        """Send it into the thread. Raises Unsent."""


def bot(options: BotOptions) -> int:
    """Answer until told to stop. Raises UserError where that cannot begin."""
    try:
        module = importlib.import_module(f"diagnose.surfaces.bots.bot_{options.platform}")
        if options.http:
            importlib.import_module("diagnose.surfaces.bots.bot_http")
    except ImportError as error:
        raise serve_command.missing_extra(options.platform, error, f"bot {options.platform}") from error
    status: int = module.run(options)
    return status


def read_secret(name: str, meaning: str) -> str:
    """A token, from the environment only. Raises UserError that names the variable."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise UserError(phrase("bot.no_token", name=name), "", phrase(f"bot.{meaning}"))
    return value


def read_api_url(name: str, default: str) -> str:
    """The address of the platform's API: its own, or the one that the operator set. Never what a message says."""
    url = os.environ.get(name, "").strip().rstrip("/") or default
    if not re.fullmatch(r"https://[\w.-]+(:\d+)?(/[\w./-]*)?|http://(127\.0\.0\.1|localhost|\[::1\]):\d+(/[\w./-]*)?", url):
        raise UserError(phrase("bot.bad_address", name=name), "", phrase("bot.want_address"))
    return url
