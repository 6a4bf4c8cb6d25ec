"""Python as people paste it: excerpts that begin in the middle, lines of dots, calls that are cut off. Parsed as far as it goes."""

from __future__ import annotations

import ast
import re
from textwrap import dedent

from diagnose.adapters.python.script_calls import closing_brackets, parsed

#: Characters of one text, lines that may be put right in it, and characters that all attempts on one text may parse.
LARGEST, REPAIRS, EFFORT = 300_000, 40, 2_000_000
#: Part of a text's lines that may be left out as no Python; with more it is none.
_FOREIGN = 0.3
_PROMPT = re.compile(r"^(\s*)(?:>>>|\.\.\.|In \[\d{0,4}\]:)(?: |$)", re.MULTILINE)
_MAGIC = re.compile(r"^[ \t]*[!%][^\n]*", re.MULTILINE)  # lines of a notebook that are no Python
_OPENERS = re.compile(r"[^#]*:\s*(?:#.*)?$")


class Excerpt:
    """A parsed text: its tree, and the number (from 1) of the line of the text in which a line of the tree stands."""

    def __init__(self, tree: ast.Module, lines: list[str], origins: list[int]) -> None:
        self.tree = tree
        self._lines = lines
        self._origins = origins

    def line(self, number: int) -> int:
        return self._origins[number - 1] if 0 < number <= len(self._origins) else 0

    def text(self, number: int) -> str:
        """A line of the tree without indentation and comment signs round it."""
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""


def parse_excerpt(text: str) -> Excerpt | None:
    """The text as Python, lines that are none left out; None where most of it is none."""
    if len(text) > LARGEST:
        return None
    text = _MAGIC.sub("", dedent(_PROMPT.sub(r"\1", text).expandtabs(4)))
    lines = text.split("\n")
    origins = list(range(1, len(lines) + 1))
    _open_outer_blocks(lines, origins)
    filled = sum(bool(line.strip()) for line in lines)
    effort = dropped = 0
    for _ in range(REPAIRS):
        whole = "\n".join(lines)
        effort += len(whole)
        if effort > EFFORT:
            return None
        try:
            return Excerpt(parsed(whole), lines, origins)
        except SyntaxError as error:
            dropped += _repair(lines, origins, error)
        except (ValueError, RecursionError, MemoryError):
            return None
        if dropped > max(1, _FOREIGN * filled):
            return None
    return None


def _open_outer_blocks(lines: list[str], origins: list[int]) -> None:
    """Put a loop above an excerpt that begins deeper than it goes on, once for each indentation further out."""
    first = next((_indentation(line) for line in lines if line.strip()), 0)
    outer = sorted({_indentation(line) for line in lines if line.strip() and _indentation(line) < first})
    lines[:0] = [f"{' ' * width}while 1:" for width in outer]
    origins[:0] = [1] * len(outer)


def _repair(lines: list[str], origins: list[int], error: SyntaxError) -> int:
    """Put right the line at which the parser stopped. Returns the number of lines left out."""
    at = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    reason = error.msg or ""
    if "unexpected indent" in reason or "expected an indented block" in reason:
        before = next((i for i in range(at - 1, -1, -1) if lines[i].strip() and not lines[i].lstrip().startswith("#")), None)
        width = _indentation(lines[before]) if before is not None else 0
        opens = "unexpected indent" in reason
        place = at if opens else (before + 1 if before is not None else at)
        lines.insert(place, f"{' ' * width}if 1:" if opens else f"{' ' * (width + 1)}pass")
        origins.insert(place, origins[min(at, len(origins) - 1)])
        return 0
    if "was never closed" in reason or "unexpected EOF" in reason:
        closing = closing_brackets(lines)
        if closing:
            lines.append(closing)
            origins.append(origins[-1])
            return 0
    if "does not match any outer" in reason:
        above = [_indentation(line) for line in lines[:at] if line.strip()]
        width = min((w for w in above if w >= _indentation(lines[at])), default=0)
        if width != _indentation(lines[at]):
            lines[at] = " " * width + lines[at].lstrip()
            return 0
    opener = "if 1:" if _OPENERS.match(lines[at]) else "pass"
    while not lines[at].strip() and at:
        at -= 1
    lines[at] = f"{' ' * _indentation(lines[at])}{opener}" if lines[at].strip() not in ("pass", "if 1:") else ""
    return 1


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
