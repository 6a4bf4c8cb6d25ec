"""What a message of Slack says: its text as it was typed, what programs attached, its files."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from diagnose.surfaces.bots.bot_command import File, Incoming, Post

#: The pieces of <...> in a message: a mention, a link with or without its words.
ANGLE_MARKUP = re.compile(r"<([^<>\n|]{1,3000})(?:\|([^<>\n]{0,3000}))?>")


def parse_event(event: Mapping[str, Any], key: str = "", unprompted: bool = False, answer_at: str = "") -> Incoming:
    """An event or the message of a shortcut. The same message is the same however often and by whichever event it comes.
    `answer_at`: where whoever used a shortcut can be answered aside."""
    channel, stamp = str(event.get("channel")), str(event.get("ts"))
    context = {"channel": channel, "ts": stamp, "thread": str(event.get("thread_ts") or stamp), "answer_at": answer_at}
    return Incoming(key or f"{channel} {stamp}", parse_post(event), context, str(event.get("user") or ""), unprompted)


def parse_post(message: Mapping[str, Any]) -> Post:
    """What a person or program wrote: the text, what programs put into attachments or blocks, and the files."""
    attached = message.get("attachments")
    parts = [message.get("text") or "\n".join(_texts(message.get("blocks")))]
    attachments = [item for item in (attached if isinstance(attached, list) else ()) if isinstance(item, dict)]
    parts += [item.get("text") or item.get("fallback") for item in attachments]
    files = message.get("files")
    usable = [item for item in (files if isinstance(files, list) else ()) if isinstance(item, dict) and item.get("mode") != "tombstone"]
    return Post(plain_text("\n".join(part for part in parts if isinstance(part, str))), tuple(map(parse_file, usable)))


def parse_file(info: Mapping[str, Any]) -> File:
    size = info.get("size")
    address = info.get("url_private_download") or info.get("url_private")
    reference = {"id": str(info.get("id") or ""), "url": address if isinstance(address, str) else ""}
    return File(
        str(info.get("name") or info.get("title") or ""), reference, size if isinstance(size, int) else 0, str(info.get("mimetype") or "")
    )


def plain_text(text: str) -> str:
    """Message text as it was typed: without mentions, links as their words, & < > as themselves."""

    def as_typed(match: re.Match[str]) -> str:
        inside, words = match[1], match[2]
        return "" if inside[0] in "@!" else words or inside

    return html.unescape(ANGLE_MARKUP.sub(as_typed, text))


def _texts(blocks: Any, depth: int = 6) -> Iterator[str]:
    """The words anywhere in blocks."""
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
