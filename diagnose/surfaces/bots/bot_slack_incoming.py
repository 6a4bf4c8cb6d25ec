"""Parses messages of Slack: text without markup, attachments of apps, files."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

from diagnose.surfaces.bots.bot_command import File, Incoming, Post

#: <...> in a message: a mention, or a link with or without a label.
ANGLE_MARKUP = re.compile(r"<([^<>\n|]{1,3000})(?:\|([^<>\n]{0,3000}))?>")


def parse_event(event: Mapping[str, object], key: str = "", unprompted: bool = False, answer_at: str = "") -> Incoming:
    """The message of an event or a shortcut. Without `key`, channel and timestamp identify it, whichever event delivers it.
    `answer_at`: URL for an ephemeral answer to the user of a shortcut."""
    channel, stamp = str(event.get("channel")), str(event.get("ts"))
    context = {"channel": channel, "ts": stamp, "thread": str(event.get("thread_ts") or stamp), "answer_at": answer_at}
    return Incoming(key or f"{channel} {stamp}", parse_post(event), context, str(event.get("user") or ""), unprompted)


def parse_post(message: Mapping[str, object]) -> Post:
    """The text, including attachments and blocks of apps, and the files."""
    attached = message.get("attachments")
    parts = [message.get("text") or "\n".join(_texts(message.get("blocks")))]
    attachments = [item for item in (attached if isinstance(attached, list) else ()) if isinstance(item, dict)]
    parts += [item.get("text") or item.get("fallback") for item in attachments]
    files = message.get("files")
    usable = [item for item in (files if isinstance(files, list) else ()) if isinstance(item, dict) and item.get("mode") != "tombstone"]
    return Post(plain_text("\n".join(part for part in parts if isinstance(part, str))), tuple(map(parse_file, usable)))


def parse_file(info: Mapping[str, object]) -> File:
    size = info.get("size")
    address = info.get("url_private_download") or info.get("url_private")
    reference = {"id": str(info.get("id") or ""), "url": address if isinstance(address, str) else ""}
    return File(
        str(info.get("name") or info.get("title") or ""), reference, size if isinstance(size, int) else 0, str(info.get("mimetype") or "")
    )


def plain_text(text: str) -> str:
    """Text as it was typed: no mentions, links as their labels, entities unescaped."""

    def as_typed(match: re.Match[str]) -> str:
        inside, words = match[1], match[2]
        return "" if inside[0] in "@!" else words or inside

    return html.unescape(ANGLE_MARKUP.sub(as_typed, text))


def _texts(blocks: object, depth: int = 6) -> Iterator[str]:
    """All text in nested blocks."""
    if isinstance(blocks, list) and depth:
        for block in blocks[:200]:
            yield from _texts(block, depth - 1)
    elif isinstance(blocks, dict) and depth:
        for name in ("text", "fields", "elements"):
            value = blocks.get(name)
            if isinstance(value, str):
                yield value
            elif value is not None:
                yield from _texts(value, depth)
