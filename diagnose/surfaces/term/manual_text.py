"""Blocks of the manual as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from diagnose.manual.blocks import Block, Grid, Heading, Items, plain
from diagnose.render.parts.layout import Page, cells, pad

#: No first column of a grid takes more than this share of the line.
FIRST_COLUMN_SHARE = 3
#: What underlines a heading, by its level.
UNDERLINES = " =-"


def render_blocks(blocks: Iterable[Block], width: int, colour: bool = False) -> str:
    """The same content as the page, without its marks: links are their words."""
    page = Page(width, colour)
    for block in blocks:
        page.gap()
        if isinstance(block, Heading):
            _heading(page, plain(block.text), block.level)
        elif isinstance(block, Items):
            for text in block.texts:
                page.say(plain(text), "- ", "  ")
        elif isinstance(block, Grid):
            _grid(page, block)
        else:
            page.say(plain(block.text))
    return page.text()


def _heading(page: Page, text: str, level: int) -> None:
    page.say(text, style="heading" if level < len(UNDERLINES) else "bold")
    if level < len(UNDERLINES):
        page.row(UNDERLINES[level] * min(cells(text), page.width))


def _grid(page: Page, grid: Grid) -> None:
    """The first column beside the others, which share the rest of the line."""
    rows = [[plain(cell).replace("\n", "; ") for cell in row] for row in (grid.head, *grid.rows)]
    first = min(max(cells(row[0]) for row in rows), page.width // FIRST_COLUMN_SHARE)
    for index, row in enumerate(rows):
        others = " | ".join(cell or "-" for cell in row[1:]).removesuffix(" | -").removesuffix(" | -")
        prefix = f"{pad(row[0], first)}  "
        if cells(row[0]) > first:  # a line of its own
            page.say(row[0])
            prefix = " " * (first + 2)
        page.say(others, prefix, " " * (first + 2), "" if index else "dim")
