"""Blocks of a manual page, independent of the output (Markdown or terminal), and the Markdown writer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(slots=True)
class Heading:
    """A headline of a page."""

    level: int
    text: str
    anchor: str = ""  # fragment of links to this heading; empty: none link here


@dataclass(slots=True)
class Paragraph:
    """A paragraph of a page."""

    text: str


@dataclass(slots=True)
class Items:
    """A list with bullets."""

    texts: tuple[str, ...]


@dataclass(slots=True)
class Grid:
    """A table: its head, and its rows of as many cells."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


#: Texts inside blocks are inline Markdown: `code`, *names*, [words](address), \ before a literal sign.
Block: TypeAlias = "Heading | Paragraph | Items | Grid"

BREAK = "<br>"  # line break in an item or a cell


def markdown(blocks: Iterable[Block]) -> str:
    """Render blocks as a Markdown page."""
    return "\n\n".join(_block_markdown(block) for block in blocks) + "\n"


def _block_markdown(block: Block) -> str:
    if isinstance(block, Heading):
        anchor = f'<a id="{block.anchor}"></a>\n\n' if block.anchor else ""
        return f"{anchor}{'#' * block.level} {block.text}"
    if isinstance(block, Items):
        return "\n".join(f"- {text}" for text in block.texts)
    if isinstance(block, Grid):
        rows = (block.head, ("---",) * len(block.head), *block.rows)
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return block.text


def quoted(text: str) -> str:
    """Escape a text of a rule for Markdown, except its own `code`."""
    parts = text.split("`")
    return "`".join(part if index % 2 else _ESCAPED.sub(r"\\\g<0>", part) for index, part in enumerate(parts))


_ESCAPED = re.compile(r"[*<\\]|(?<!\w)_|_(?!\w)")


def code(text: str) -> str:
    """A text as inline code, backticks in it included; empty for an empty text."""
    if not text:
        return ""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def link(text: str, address: str) -> str:
    return f"[{text}]({address})"


def plain(text: str) -> str:
    """The text of a block without Markdown marks, for terminals."""
    parts = re.split(r"(``.*?``|`[^`]*`)", _LINK.sub(_link_text, text))
    return "".join(part.strip("`").strip() if index % 2 else _strip_marks(part) for index, part in enumerate(parts))


#: [words](address): the words, the page's name, ".md", the fragment.
_LINK = re.compile(r"\[([^\]]*)\]\((?:[^)]*/)?([^)/#]*?)(\.md)?(?:#([^)]*))?\)")


def _link_text(match: re.Match[str]) -> str:
    """The words of a link, with the name of the rule or word that it leads to, as `rules show` takes it."""
    words, page, is_manual, anchor = match.groups()
    name = anchor or page
    return f"{words} ({name})" if is_manual and name.lower() not in words.lower() else words


def _strip_marks(text: str) -> str:
    without_urls = re.sub(r"<(https?://[^>]*)>", r"\1", text.replace(BREAK, "\n"))
    return re.sub(r"\\(.)|\*", lambda match: match[1] or "", without_urls)
