"""The lines round a message: many reports of a death put its figures on lines of their own, above or below the words that name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from diagnose.parse.text.lines import Page


def above(page: Page, index: int, reach: int) -> Iterator[tuple[int, str]]:
    """The lines above one, from the nearest up: index and text."""
    for at in range(index - 1, max(-1, index - 1 - reach), -1):
        yield at, page.line(at).text


def below(page: Page, index: int, reach: int) -> Iterator[tuple[int, str]]:
    """The lines below one, in order: index and text."""
    for at in range(index + 1, min(len(page), index + 1 + reach)):
        yield at, page.line(at).text
