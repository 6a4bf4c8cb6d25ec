"""A preliminary answer for a large log, from its beginning and end alone."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose.phrases import phrase
from diagnose.pipeline import explain
from diagnose.scan import memory_words
from diagnose.scan.log_scan import HEAD
from diagnose.surfaces.terminal import console

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions

LARGE = 256 << 20  # below, the whole answer is there in the time that reading the first one takes
STEP = 4 << 20  # the end is looked at in pieces of this size, backwards
FAR = 64 << 20  # and no further


def say(logs: Sequence[object], asked: AnswerInputs, shown: DisplayOptions) -> None:
    """Print the preliminary answer on standard error if a terminal waits for a large log. Only the whole log tells which failure was
    first."""
    if not sys.stderr.isatty() or len(logs) != 1 or not isinstance(logs[0], Path) or _size(logs[0]) < LARGE:
        return
    headline = preview_headline(logs[0], asked, shown)
    if headline:
        console.warn(phrase("cli.first_glance", answer=headline).to(shown.lang))


def preview_headline(path: Path, asked: AnswerInputs, shown: DisplayOptions) -> str:
    """The headline from both ends of a log; empty if they show no failure."""
    try:
        text = ends(path)
    except OSError:
        return ""  # the whole reading says what is wrong with it
    diagnosis = explain(text, **asked.options(), trial=asked.trial)
    return shown.masked(diagnosis).verdict.headline.to(shown.lang) if diagnosis.verdict.event is not None else ""


def ends(path: Path) -> bytes:
    """The beginning of a file and its end, the latter from a block without failures on that precedes blocks with failures."""
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        head = _read(file, 0, min(HEAD, size))
        start, tail, found = size, b"", False
        while start > len(head) and size - start < FAR:
            begin = max(len(head), start - STEP)
            piece = _read(file, begin, start - begin)
            view = memoryview(piece)
            speaks = any(
                name.endswith("_oom")
                for _, _, name in memory_words.literals_near(view, memory_words.anchors().find(view), memory_words.literals().longest)
            )
            start, tail = begin, piece + tail
            if found and not speaks:
                break
            found = found or speaks
    return head + b"\n" + tail


def _read(file: BinaryIO, start: int, count: int) -> bytes:
    file.seek(start)
    return file.read(count)


def _size(path: Path) -> int:
    try:
        state = path.stat()
    except (OSError, ValueError):
        return 0
    return state.st_size if stat.S_ISREG(state.st_mode) else 0
