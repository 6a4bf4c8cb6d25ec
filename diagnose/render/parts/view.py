"""How much of an answer is shown, how wide and in which colours: what every renderer is given, and what a stream allows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

#: Lines longer than this are hard to read, shorter ones hold nothing, whatever the terminal.
WIDEST, NARROWEST = 110, 40


@dataclass(slots=True)
class View:
    """How much is shown and how wide. `top`: remedies shown in full; `budget`, `rules`: every term, every rule."""

    width: int = 80
    colour: bool = False
    top: int = 3
    verbose: bool = False
    budget: bool = False
    rules: bool = False


#: Eighty columns, no colour: a pipe.
PLAIN = View()


# -- of a stream


def stream_view(out: TextIO | None, top: int = 3, verbose: bool = False, budget: bool = False, rules: bool = False) -> View:
    """The view of a stream; 80 columns where it is no terminal and COLUMNS does not say."""
    return View(min(max(columns(out), NARROWEST), WIDEST), colourful(out), max(top, 0), verbose, budget, rules)


def colourful(out: TextIO | None) -> bool:
    """Colour only on a terminal that wants it, or where FORCE_COLOR asks for it (a pager, a CI's log); NO_COLOR has the last word."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return forced != "0" and (bool(forced) or (terminal(out) and os.environ.get("TERM") != "dumb"))


def terminal(out: TextIO | None) -> bool:
    """Whether somebody sits there; what stands in for a stream (a notebook's, a test's) need not know the question."""
    try:
        return out is not None and out.isatty()
    except (AttributeError, ValueError):
        return False


def columns(out: TextIO | None) -> int:
    """What COLUMNS says, else the width of the terminal.

    (The shutil that could tell brings three compressors along.)
    """
    value = os.environ.get("COLUMNS", "")
    if value.isascii() and value.isdigit() and int(value[:6]) > 0:
        return int(value[:6])
    try:
        return os.get_terminal_size(out.fileno() if out is not None else -1).columns or 80
    except (AttributeError, OSError, ValueError):
        return 80
