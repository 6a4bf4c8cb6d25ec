"""What a message of Slack says: its text as it was typed, what programs attached, its files."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from diagnose.surfaces.bots.bot_command import File, Incoming, Post

#: The pieces of <...> in a message: a mention, a link with or without its words.
ANGLED = re.compile(r"<([^<>\n|]{1,3000})(?:\|([^<>\n]{0,3000}))?>")


def incoming(event: Mapping[str, Any], key: str = "", quiet: bool = False, answer_at: str = "") -> Incoming:
    """An event or the message of a shortcut. The same message is the same however often and by whichever event it comes.
    `answer_at`: where whoever used a shortcut can be answered aside."""
    channel, stamp = str(event.get("channel")), str(event.get("ts"))
    where = {"channel": channel, "ts": stamp, "thread": str(event.get("thread_ts") or stamp), "answer_at": answer_at}
    return Incoming(key or f"{channel} {stamp}", post(event), where, str(event.get("user") or ""), quiet)


def post(message: Mapping[str, Any]) -> Post:
    """What a person or program wrote: the text, what programs put into attachments or blocks, and the files."""
    attached = message.get("attachments")
    parts = [message.get("text") or "\n".join(_texts(message.get("blocks")))]
    programs = [each for each in (attached if isinstance(attached, list) else ()) if isinstance(each, dict)]
    parts += [each.get("text") or each.get("fallback") for each in programs]
    files = message.get("files")
    kept = [each for each in (files if isinstance(files, list) else ()) if isinstance(each, dict) and each.get("mode") != "tombstone"]
    return Post(plain("\n".join(part for part in parts if isinstance(part, str))), tuple(map(file, kept)))


def file(told: Mapping[str, Any]) -> File:
    size = told.get("size")
    address = told.get("url_private_download") or told.get("url_private")
    where = {"id": str(told.get("id") or ""), "url": address if isinstance(address, str) else ""}
    return File(
        str(told.get("name") or told.get("title") or ""), where, size if isinstance(size, int) else 0, str(told.get("mimetype") or "")
    )


def plain(text: str) -> str:
    """Message text as it was typed: without mentions, links as their words, & < > as themselves."""

    def typed(found: re.Match[str]) -> str:
        inside, words = found[1], found[2]
        return "" if inside[0] in "@!" else words or inside

    return html.unescape(ANGLED.sub(typed, text))


def _texts(blocks: Any, depth: int = 6) -> Iterator[str]:
    """The words anywhere in blocks."""
    if isinstance(blocks, list) and depth:
        for each in blocks[:200]:
            yield from _texts(each, depth - 1)
    elif isinstance(blocks, dict) and depth:
        for name in ("text", "fields", "elements"):
            held = blocks.get(name)
            if isinstance(held, str):
                yield held
            elif held is not None:
                yield from _texts(held, depth)
