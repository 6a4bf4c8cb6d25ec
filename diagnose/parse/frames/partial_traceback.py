"""Frames of an incomplete traceback, where none stand above the message: a list below it, the beginning of another process's traceback,
or one line of source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.parse.frames.tracebacks import Traceback, frames_in_lines
from diagnose.parse.model.event import Frame
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.lines import lines_above, lines_below, same_stream

if TYPE_CHECKING:
    from diagnose.parse.text.lines import Page, Prefix

LISTED = 200  # frames of a list that are read
APART = 3  # lines between the message and its list
LONGEST = 400  # characters of a line of source
BOXED = 8  # lines of source in a box of rich, and what it shows below

#: pybind11 writes the frames below the words of a Python error that passed through C++, the innermost first.
_LIST = lazy_compile(r"\s*At:\s*$")
_LISTED = lazy_compile(r"\s{1,8}(\S[^()\n]{0,400})\((\d{1,9})\): ([\w.<>]{1,200})$")

#: The lower edge of a box that rich draws round a traceback, and the line of source in it that failed.
_EDGE = lazy_compile(r"\s*╰─+╯\s*$")
_MARKED = lazy_compile(r"\s*│?\s*❱\s*\d{1,9}\s*[│|]([^❱]{1,400}?)│?\s*$")

#: A call, an index or an assignment: prose has none without a blank.
_CODE = lazy_compile(r"\w[(\[]|\w\.\w{1,60}$|\s[-+*/@|&]?=\s|\s@\s")
#: What no line of source that failed is: a comment, what a shell was given.
_NO_CODE = lazy_compile(r"#|[$%>] |.*\s--[a-z]")
_HEAD = lazy_compile(r"\s{0,12}(?=Traceback \(most recent call last\):\s*$)")
#: What Python prints between a traceback and that of the exception raised from it.
_CHAINED = lazy_compile(r"The above exception was the direct cause of|During handling of the above exception")
_FENCE = lazy_compile(r"\s*(?:`{1,8}\w*\s*$|~~~|</)")
_ENDS = lazy_compile(r"(?:\w+\.){0,8}\w*(?:Error|Exception|Interrupt|Exit)\b|During handling|The above exception")


#: A statement that a sentence quotes: an assignment or what is returned.
_QUOTED = lazy_compile(r"`((?:[\w.]{1,60} = |return )[^`]{1,300})`|[\"“]((?:[\w.]{1,60} = |return )[^\"”]{1,300})[\"”]")

#: The name of an exception whose words stand in the next line.
_NAMED = lazy_compile(r"\s*(?:\w+\.){0,4}\w*(?:Error|Exception):?\s*$")


def frames_listed_below(page: Page, index: int, prefix: Prefix) -> Traceback:
    """The frames, innermost last, of the list that pybind11 prints below a message; empty without one."""
    frames: list[Frame] = []
    places: list[int] = []
    begun = False
    for at, text in lines_below(page, index, APART + LISTED):
        if not same_stream(page.line(at).prefix, prefix):
            continue
        frame = _LISTED.match(text) if begun else None
        if frame is not None:
            frames.append(Frame(frame[1], int(frame[2]), frame[3], ""))
            places.append(at)
        elif begun or at - index > APART:
            break
        else:
            begun = _LIST.match(text) is not None
    return Traceback(tuple(reversed(frames)), tuple(reversed(places)))


def cut_off_frames(page: Page, index: int) -> Traceback:
    """The frames of a traceback that begins just below a message: of another process that reported the same failure, if it ends, cut off,
    before its exception; of the one that was raised from the message's, if Python says so."""
    lines: list[tuple[int, str]] = []
    head, begins, chained, margin = None, index, False, ""  # the margin: pages indent what programs print
    for at, line in lines_below(page, index, APART + LISTED):
        text = line.removeprefix(margin)
        if lines and (_FENCE.match(text) or not text.strip()):
            break
        if not lines and at - begins > APART:
            return Traceback()
        if not lines and _CHAINED.match(text):
            begins, chained = at, True
        if lines and _ENDS.match(text) and chained:
            break
        if not lines and (head := _HEAD.match(line)):
            margin, text = head[0], line[head.end() :]
        if lines or head:
            lines.append((at, text))
        if lines and (_ENDS.match(text) or at - index == APART + LISTED):
            return Traceback()
    return frames_in_lines(lines[1:])


def source_line_above(page: Page, index: int, prefix: Prefix) -> str:
    """The line just above a message, if it may be the source line that failed; "" where another process wrote it. The name of a host may
    stand before it, which only the message shows to be one."""
    for at, text in lines_above(page, index, APART):
        if _EDGE.match(text):
            return _marked_line(page, at)
        if text.strip(" ^~") and not _NAMED.match(text):
            line = text.strip().removeprefix(f"{prefix.host}: ").strip() if prefix.host else text.strip()
            return line.strip("`") if same_stream(page.line(at).prefix, prefix) else ""
    return ""


def code_in(line: str) -> str:
    """The source in a line above a message: the whole line, or the statement that a sentence quotes; "" if neither is code."""
    if is_code(line):
        return line
    quoted = _QUOTED.search(line) if len(line) < LONGEST else None
    return "" if quoted is None else quoted[1] or quoted[2]


def is_code(line: str) -> bool:
    """Whether a line may be one of source, not of prose, a shell or a log."""
    return (
        len(line) < LONGEST and _CODE.search(line) is not None and _NO_CODE.match(line) is None and not line.endswith((".", "!", "?", "。"))
    )


def _marked_line(page: Page, edge: int) -> str:
    """The line marked as failed in the box of rich that ends at this line; "" where that part is missing."""
    lines = (_MARKED.match(text) for _, text in lines_above(page, edge, BOXED))
    return next((match[1].strip() for match in lines if match), "")
