"""Amount, width and colour of the output: options of all renderers, and what a stream supports."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from typing import TextIO

#: Lines longer than this are hard to read, shorter ones hold nothing, whatever the terminal.
WIDEST, NARROWEST = 110, 40


class View(NamedTuple):
    """Amount and width of the output. `top`: number of remedies in full; `budget`, `rules`: show every term, every rule; `options`: name
    the options that tell more, which only a command that was typed can take; `reader`: somebody sits before it, who may come back and tell
    what helped."""

    width: int = 80
    colour: bool = False
    top: int = 3
    verbose: bool = False
    budget: bool = False
    rules: bool = False
    options: bool = True
    reader: bool = False


#: Eighty columns, no colour: a pipe.
PLAIN = View()


# -- of a stream


def stream_view(out: TextIO | None, top: int = 3, verbose: bool = False, budget: bool = False, rules: bool = False) -> View:
    """The view for a stream; 80 columns if it is no terminal and COLUMNS is not set."""
    return View(min(max(columns(out), NARROWEST), WIDEST), colourful(out), max(top, 0), verbose, budget, rules, reader=terminal(out))


def colourful(out: TextIO | None) -> bool:
    """Whether to use colour: on terminals that support it or if FORCE_COLOR is set (pagers, CI logs); NO_COLOR overrides both."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    return forced != "0" and (bool(forced) or (terminal(out) and os.environ.get("TERM") != "dumb"))


def terminal(out: TextIO | None) -> bool:
    """Whether a stream is a terminal; replacements of streams (notebooks, tests) may lack `isatty`."""
    try:
        return out is not None and out.isatty()
    except (AttributeError, ValueError):
        return False


def columns(out: TextIO | None) -> int:
    """The width by COLUMNS, else of the terminal. (shutil would do, but imports three compressors.)"""
    value = os.environ.get("COLUMNS", "")
    if value.isascii() and value.isdigit() and int(value[:6]) > 0:
        return int(value[:6])
    try:
        return os.get_terminal_size(out.fileno() if out is not None else -1).columns or 80
    except (AttributeError, OSError, ValueError):
        return 80
