"""The traceback that ends in a message: its frames, from the same process's lines above (grammars/traceback.lark)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from diagnose.parse import wording
from diagnose.parse.event import Frame
from diagnose.parse.lines import BAR, same_stream

if TYPE_CHECKING:
    from diagnose.parse.lines import Page, Prefix

REACH = 2000  # lines that are looked through upwards, those of other processes included
PATIENCE = 3  # lines of the same process that may stand between traceback and message

_HEAD = re.compile(r"Traceback \(most recent call last\)|RayTaskError|Original Traceback")
_PLACE = re.compile(r'\s*File "[^"]+", line \d+|[│|]\s+\S+\.py:\d+|\s*(?:File )?[^\s:"\']+\.py(?::\d+,?)? in ')
_CELL = re.compile(r"([^\s:\"']+\.py) in (\w+)\(")  # a notebook's frame as IPython before 8 wrote it, without its line
_ARROW = re.compile(r"-{1,4}> ?(\d{1,9})(?: |$)")  # the source line that failed
_BESIDE = re.compile(r"\s*\d{1,9}(?: |$)")  # those around it
_RICH_SOURCE = re.compile(r"^\s*(?:❱|-{1,4}>)?\s*\d+\s*(?:│\s*)?")
_FRAME = re.compile(r'\s*(?:File )?"?([^"\n]+?)"?(?:, line |:)(\d+)(?:,? in (.+))?$')
_RAY_TASK = re.compile(r"RayTaskError\([\w.]+\):\s*ray::(?P<actor>\w+)[\w.:]*\(\) \(pid=(?P<pid>\d{1,9}), ip=(?P<host>[\w.:]+)")


class Traceback(NamedTuple):
    """Frames, innermost last; for each the line of the log (its index on the page) where the frame and where its statement stands."""

    frames: tuple[Frame, ...] = ()
    places: tuple[int, ...] = ()
    actor: str = ""
    pid: int | None = None
    host: str = ""
    head: int = 0  # the line that names actor, pid and host


def above(page: Page, index: int, prefix: Prefix, same_line: str = "") -> Traceback:
    """The traceback that ends at a line of the page; without frames where there is none.

    `same_line`: what stands before the message in its own line, where someone wrote the whole traceback into one.
    """
    if _PLACE.search(same_line):
        return Traceback(*_frames([(index, line) for line in same_line.split("\n")]))
    lines: list[tuple[int, str]] = []
    seen_frame, strange, head = False, 0, 0
    task: re.Match[str] | None = None
    for at in range(index - 1, max(-1, index - 1 - REACH), -1):
        line = page.line(at)
        if not same_stream(line.prefix, prefix) or not line.text.strip():
            continue
        if _HEAD.search(line.text):
            task, head = _RAY_TASK.search(line.text), at
            break
        lines.append((at, line.text))
        if _PLACE.match(line.text):
            seen_frame, strange = True, 0
        elif not line.text.startswith((" ", "│", "\t", "|")):
            strange += 1
            if strange > PATIENCE or (seen_frame and strange > 1) or BAR.search(line.text):
                break
    if not seen_frame:
        return Traceback()
    frames, places = _frames(list(reversed(lines)))
    if task is None:
        return Traceback(frames, places)
    return Traceback(frames, places, task["actor"], int(task["pid"]), task["host"], head)


def _frames(lines: list[tuple[int, str]]) -> tuple[tuple[Frame, ...], tuple[int, ...]]:
    boxed = any("│" in text for _, text in lines)
    texts = [_unboxed(text) if boxed else text for _, text in lines]
    texts = _of_notebook(texts) if any(_ARROW.match(text) for text in texts) else texts
    frames, places = [], []
    for said in wording.statements("traceback", "\n".join(texts)):
        frame = _frame(said.words) if said.kind == "frame" else None
        if frame is not None:
            frames.append(frame)
            places.append(lines[said.line - 1][0])
    return tuple(frames), tuple(places)


def _frame(words: tuple[str, ...]) -> Frame | None:
    match = _FRAME.match(words[0])
    if match is None:
        return None
    statement = words[1].strip() if len(words) > 1 else ""
    return Frame(match[1], int(match[2][:9]), (match[3] or "").strip(), _RICH_SOURCE.sub("", statement).strip())


def _of_notebook(texts: list[str]) -> list[str]:
    """IPython's lines with the failing one alone as the statement of its frame, and its number where the place has none."""
    plain: list[str] = []
    number = "0"
    for text in reversed(texts):  # the arrow stands below its place
        arrow, cell = _ARROW.match(text), _CELL.match(text)
        number = arrow[1] if arrow else number
        plain.append("" if _BESIDE.match(text) else f'File "{cell[1]}", line {number}, in {cell[2]}' if cell else text)
    return plain[::-1]


def _unboxed(text: str) -> str:
    """A line of rich's box without its borders; of a source line without its number only where it is the one that failed."""
    text = text.strip()
    text = text[1:] if text[:1] in ("│", "|") else text
    text = text[:-1].rstrip() if text[-1:] in ("│", "|") else text
    return "" if re.match(r"\s*\d+\s*│", text) or set(text) <= set("╭╮╰╯─ ") else text
