"""Code that people paste into a page: in fences, indented, or between backticks in a sentence; what it shows becomes facts (rules/code)."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from diagnose.inputs import pasted_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from diagnose.facts import Fact
    from diagnose.scan.log_scan import Scanned

BLOCKS, TEXT = 60, 128 << 10  # texts read of one page, and their characters
WIDTH = 1000  # characters read of a line
_SHORTEST = 6  # characters of code between backticks
_FENCED = re.compile(r"^[> ]{0,12}(`{3,}|~{3,})")
_SPAN = re.compile(r"(?<!`)`(?!`)([^`\n]{1,400}|[^`]{1,1500})`(?!`)")
#: A line that begins code without a fence, and the lines that may follow it.
_BARE = re.compile(
    r"[ \t]{0,16}(?:import [\w.]+|from [\w.]+ import|for .{1,120}\bin\b.{1,120}:|while .{1,120}:|with .{1,200}:|def \w+\(|class \w+|@\w"
    r"|[A-Za-z_][\w.\[\]]{0,60}(?:, ?[A-Za-z_]\w{0,40}){0,4} ?[-+*/]?= ?[\w\['\"({-]|[A-Za-z_][\w.]{0,80}\()"
)
_CALL = re.compile(r"[ \t]{0,16}[A-Za-z_][\w.]{0,80}[^\n]{0,40}?\([^\n]{0,300}\)\s*$")
_FOLLOWS = re.compile(r"\s+\S|\s*$|#|[)\]}]|else:|elif |try:|except|finally:|if .{1,200}:|return\b|del |print\b")
#: Words by which a sentence says that the code beside it is the cure, or somebody's advice, and not what failed.
_CURE = re.compile(
    r"(?i)\b(?:instead|replac\w{1,3}|chang(?:ed|ing|e) (?:it|this|that|the|to|from|line)|fix(?:ed|es)\b|solv(?:ed|es)|workaround|corrected"
    r"|(?:this|that|it|which|version|code) (?:now )?works|works (?:fine|now|well)|suggest\w{0,3}|should (?:be|use|call|add|have)|now I use"
    r"|I changed|patched|you (?:can|could|need|must|should))|改成|改为|换成|解决|建议|应该|试试|正常"
)


def facts(page: Scanned) -> list[Fact]:
    """What the code of a page shows, with the page's lines; nothing where only programs wrote the text."""
    if page.input.bytes > pasted_page.LARGEST or not pasted_page.is_page(page):
        return []
    texts = list(_texts(page))
    if not texts:
        return []
    from diagnose.adapters.python import code_patterns  # readers of Python (ast): few pages hold code

    beside = "\n".join(text for _, text in texts)
    return [fact for line, text in texts for fact in code_patterns.facts(text, page.input.name, line, "log", beside)]


def _texts(page: Scanned) -> Iterator[tuple[int, str]]:
    """Each text that may be code with the number of its first line, but for what a sentence calls the cure."""
    size = count = 0
    for excerpt in page.excerpts:
        lines = [line[:WIDTH] for line in excerpt.raw[:TEXT].decode("utf-8", "replace").replace("\r", "").split("\n")]
        unquoted = [line.lstrip("> ") if line.startswith(">") else line for line in lines]
        plain = _outside_fences(unquoted)
        blocks = ((block.line, block.text) for block in pasted_page.blocks(unquoted, excerpt.line, at_start=excerpt.offset == 0))
        for line, text in chain(_not_cures(blocks, plain, excerpt.line), _bare(plain, excerpt.line), _spans(plain, excerpt.line)):
            size, count = size + len(text), count + 1
            if size > TEXT or count > BLOCKS:
                return
            yield line, text


def _not_cures(texts: Iterable[tuple[int, str]], plain: list[str], first: int) -> Iterator[tuple[int, str]]:
    """The texts but for those that the sentence above them calls the cure."""
    above, at = "", 0
    for line, text in texts:  # from top to bottom
        while at < min(line - first, len(plain)):
            above, at = plain[at] if plain[at].strip() else above, at + 1
        if not _CURE.search(above):
            yield line, text


def _bare(plain: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Code that nothing sets off from the sentences round it: runs of two lines and more, or a line that is a whole call."""
    at = 0
    while at < len(plain):
        end = at
        while end < len(plain) and (_BARE.match(plain[end]) or (end > at and _FOLLOWS.match(plain[end]))):
            end += 1
        if sum(bool(line.strip()) for line in plain[at:end]) > 1 or _CALL.match(plain[at]):
            yield first + at, "\n".join(plain[at:end])
        at = max(end, at + 1)


def _outside_fences(lines: list[str]) -> list[str]:
    """The lines, those of fenced blocks empty."""
    fence, plain = "", []
    for line in lines:
        mark = _FENCED.match(line)
        closes = mark is not None and bool(fence) and mark[1].startswith(fence)
        plain.append("" if fence or mark else line)
        fence = "" if closes else fence or (mark[1] if mark else "")
    return plain


def _spans(plain: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Code between single backticks, which may go on over several lines, but for what its own sentence calls the cure."""
    text = "\n".join(plain)
    for span in _SPAN.finditer(text):
        before = text.rfind("\n", 0, span.start()) + 1
        behind = text.find("\n", span.end())
        around = text[before : span.start()] + text[span.end() : behind if behind >= 0 else len(text)]
        if len(span[1]) >= _SHORTEST and not _CURE.search(around):
            yield first + text.count("\n", 0, span.start()), span[1].strip("\n")
