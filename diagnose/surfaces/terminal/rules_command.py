"""The commands on rules (list, show, check, docs), and the manual rendered for a terminal."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from diagnose.manual import manual_pages, rule_index
from diagnose.manual.blocks import Block, Grid, Heading, Items, plain
from diagnose.phrases import Lang, phrase
from diagnose.render.parts.words import bracketed
from diagnose.render.parts.wrapping import Page, cells, pad
from diagnose.surfaces.terminal import console

#: The first column of a table takes at most one part in so many of the line.
FIRST_COLUMN_SHARE = 3
#: What underlines a heading, by its level.
UNDERLINES = " =-"


def listing(folders: Sequence[str], lang: Lang) -> int:
    """A paragraph per rule: id, title, and its cause or remedy in brackets."""
    view = console.view()
    page = Page(view.width, view.colour)
    for entry in rule_index.load_index([Path(folder) for folder in folders]).entries:
        page.say(f"{manual_pages.title_of(entry, lang)}{bracketed(entry.word, lang)}", f"{entry.id}  ", "    ")
    console.say(page.text())
    return 0


def show(name: str, folders: Sequence[str], lang: Lang) -> int:
    """The manual's article on a rule, or on all rules of a cause or remedy. Raises UserError if there is none."""
    paths = [Path(folder) for folder in folders]
    blocks = manual_pages.article(name, lang, paths)
    if not blocks:
        near = difflib.get_close_matches(name, rule_index.load_index(paths).names(), 1)
        raise console.trouble("no_such_rule", hint="did_you_mean" if near else "list_rules", name=repr(name), near="".join(near))
    view = console.view()
    console.say(render_blocks(blocks, view.width, view.colour))
    return 0


def docs(folder: str, folders: Sequence[str], lang: Lang) -> int:
    """Write the manual into a folder. Raises UserError."""
    with console.write_errors(folder):
        count = manual_pages.write(Path(folder), [Path(name) for name in folders])
    console.say(phrase("cli.docs_written", count=count, folder=folder).to(lang))
    return 0


def check(folders: Sequence[str], lang: Lang) -> int:
    """Print the faults of rule files; exit status 0 if there are none, else 1."""
    from diagnose.vet import rule_check  # a tenth of a second that the other commands need not wait

    faults = rule_check.check([Path(folder) for folder in folders])
    for fault in faults:
        console.say(fault.to(lang))
    if faults:
        console.warn(phrase("cli.rules_faults", count=len(faults)).to(lang))
        return 1
    count = len(rule_index.load_index([Path(folder) for folder in folders]).entries)
    console.say(phrase("cli.rules_clean", count=count).to(lang))
    return 0


# -- the manual as text


def render_blocks(blocks: Iterable[Block], width: int, colour: bool = False) -> str:
    """Manual blocks as plain text of `width` columns: no markup, links as their text."""
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
    """A table: first column padded, the others wrapped together in the remaining width."""
    rows = [[plain(cell).replace("\n", "; ") for cell in row] for row in (grid.head, *grid.rows)]
    first = min(max(cells(row[0]) for row in rows), page.width // FIRST_COLUMN_SHARE)
    for index, row in enumerate(rows):
        others = " | ".join(cell or "-" for cell in row[1:]).removesuffix(" | -").removesuffix(" | -")
        prefix = f"{pad(row[0], first)}  "
        if cells(row[0]) > first:  # a line of its own
            page.say(row[0])
            prefix = " " * (first + 2)
        page.say(others, prefix, " " * (first + 2), "" if index else "dim")
