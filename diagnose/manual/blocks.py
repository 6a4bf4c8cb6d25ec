"""What a page is made of, before anyone decides whether it becomes Markdown or lines of a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from diagnose.record import record


@record
class Heading:
    level: int
    text: str
    anchor: str = ""  # what stands behind # in an address; empty: nobody links here


@record
class Paragraph:
    text: str


@record
class Items:
    texts: tuple[str, ...]


@record
class Grid:
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


#: Texts inside blocks are Markdown in a line: `code`, *names*, [words](address), and \ before a sign that means itself.
Block: TypeAlias = "Heading | Paragraph | Items | Grid"

BREAK = "<br>"  # a new line in an item or a cell


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks as a Markdown page."""
    return "\n\n".join(_written(block) for block in blocks) + "\n"


def _written(block: Block) -> str:
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
    """A text of a rule as it stands: nothing in it is Markdown but its own `code`."""
    parts = text.split("`")
    return "`".join(part if index % 2 else _ESCAPED.sub(r"\\\g<0>", part) for index, part in enumerate(parts))


_ESCAPED = re.compile(r"[*<\\]|(?<!\w)_|_(?!\w)")


def code(text: str) -> str:
    """A text as code; empty for nothing. A backtick in it is kept by doubling the marks round it."""
    if not text:
        return ""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def link(text: str, address: str) -> str:
    return f"[{text}]({address})"


def plain(text: str) -> str:
    """The text of a block as a terminal shows it: words without their marks."""
    parts = re.split(r"(``.*?``|`[^`]*`)", _LINK.sub(_linked, text))
    return "".join(part.strip("`").strip() if index % 2 else _unmarked(part) for index, part in enumerate(parts))


#: [words](address), with the name of the page and what stands behind #.
_LINK = re.compile(r"\[([^\]]*)\]\((?:[^)]*/)?([^)/#]*?)(\.md)?(?:#([^)]*))?\)")


def _linked(match: re.Match[str]) -> str:
    """The words of a link; of a rule or word also its name, which `rules show` takes."""
    words, page, manual, anchor = match.groups()
    name = anchor or page
    return f"{words} ({name})" if manual and name.lower() not in words.lower() else words


def _unmarked(text: str) -> str:
    held = re.sub(r"<(https?://[^>]*)>", r"\1", text.replace(BREAK, "\n"))
    return re.sub(r"\\(.)|\*", lambda match: match[1] or "", held)
