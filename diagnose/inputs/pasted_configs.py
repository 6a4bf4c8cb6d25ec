"""Configs inside a page that a person wrote: fenced and indented blocks, bare YAML, JSON and commands between the prose."""

from __future__ import annotations

import re
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.documents.started_programs import identify_programs
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.schema import framework_tables
from diagnose.record import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.adapters.documents.open_config import OpenDocument
    from diagnose.scan.log_scan import Scanned

LARGEST = 4 << 20  # bytes of a page: what is larger is a log
ENDS = 32 << 10  # bytes at either end in which sentences of a person are looked for
BLOCK = 128 << 10  # characters of one block
BLOCKS, CONFIGS = 64, 8  # blocks of a page that are looked at; configs that are taken from it
FEW = 3  # keys at least of a bare block
LEAD = 12  # lines of variables before the program of a command

#: Signs that a person wrote here: a heading (in Chinese: a few characters and a colon), an emphasis, a sentence about oneself.
_HUMAN = re.compile(
    rb"^[> ]{0,6}#{1,5} {1,3}[A-Z\xe0-\xef]|^[> ]{0,6}\*\*[^*\n]{2,80}\*\*"
    rb"|^[^\[\]{}=|\n]{0,200}\b(?:I|I'm|I've|[Mm]y|[Hh]ere (?:is|are)|[Tt]hanks)\b[^\[\]{}=|\n]{0,200}$"
    rb"|^[\xe3-\xe9][\x80-\xbf]{2}(?:[\xe3-\xe9][\x80-\xbf]{2}|[A-Za-z0-9 ]){1,20}"
    + "：$|如下|请问|请教|求助|大佬|大家好|谢谢|为什么|我的|我用|我在|我们".encode(),
    re.MULTILINE,
)
_QUOTE = re.compile(r"(?: {0,3}> ?){1,3}")
_FENCE = re.compile(r"( {0,12})(`{3,}|~{3,}) {0,4}([\w+#.-]{0,30})[^`\n]{0,80}$")
_KEY = re.compile(r"(?!\w{0,80}(?:\.\w{1,80}){0,8}(?:Error|Exception|Warning|Exit)\b)[a-z_][\w.-]{0,80}:(?: |$)")
_GOES_ON = re.compile(r"\s+\S|- |-$|#|\s*$")
_SECTION = re.compile(r"\[[a-z_][\w.-]{0,80}\]\s*$")
_TOML = re.compile(r"\[{1,2}[a-z_][\w.-]{0,80}\]{1,2}\s*$|[A-Za-z_][\w.-]{0,80} {0,8}=|#|\s|$")
_MACHINE = re.compile(r"\d{1,2}:\d{2}:\d{2}|\b(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL)\b|^[\[(|+{}>]|^\s|^\S{0,40}=|%\|")
_OPENS = re.compile(r"[:：]\s*$|^#|>\s*$|^\*\*")
_SHELL = re.compile(r"\s*(?:#|export |set |cd |source |module |conda |[A-Za-z_]\w{0,60}=|done|fi|for |if )")
_OPTION = re.compile(r"\s{0,16}--[A-Za-z]")
_FILE = re.compile(r"[\w.-]{1,80}\.(?:ya?ml|jsonc?|toml|sh|py)\b")
_TRACEBACK = "Traceback (most recent call last)"
_PRINTED = re.compile(r"^(?:\$|\+|>>>) |\d\d:\d\d:\d\d|%\||" + re.escape(_TRACEBACK))
_NO_CONFIG = frozenset({"diff", "patch", "traceback", "pytb", "c", "cpp", "cuda", "html", "csv", "mermaid"})
_SHELLS = frozenset({"bash", "sh", "shell", "zsh", "console", "shellscript", "cmd", "bat", "powershell"})


@record
class Block:
    """Lines of a page that stand apart: the first one's number (from 1), the text, and the language that its fence names."""

    line: int
    text: str
    language: str = ""
    fenced: bool = False
    called: str = ""  # the file that the lines above it name


def configs(one: Scanned) -> list[ConfigSource]:
    """The configs in a page, named after their block, their lines numbered as in the page; none in what no person wrote."""
    if one.input.bytes > LARGEST or not _is_page([excerpt.raw for excerpt in one.excerpts]):
        return []
    found: list[ConfigSource] = []
    number = 0
    for excerpt in one.excerpts:
        lines = [_unquoted(line) for line in excerpt.raw.decode("utf-8", "replace").split("\n")]
        for block in blocks(lines, excerpt.line, at_start=excerpt.offset == 0):
            number += 1
            if number > BLOCKS or len(found) >= CONFIGS:
                return found
            source = _recognised(block, f"{one.input.name}#block-{number}")
            if source is not None:
                found.append(source)
    return found


def _is_page(texts: Sequence[bytes]) -> bool:
    """Whether a person wrote round what a program printed: blocks anywhere, sentences at either end, or first of all the command."""
    if texts and _starts(texts[0][:2000].decode("utf-8", "replace").split("\n"), 0):
        return True
    if any(sign in text for text in texts for sign in (b"```", b"~~~", b"<details", b"<summary")):
        return True
    return bool(texts) and (_HUMAN.search(texts[0], 0, ENDS) or _HUMAN.search(texts[-1][-ENDS:])) is not None


def _unquoted(line: str) -> str:
    """A line without the marks of a quotation, and without the backtick of a code span that goes on over several lines."""
    quote = _QUOTE.match(line) if line.lstrip().startswith(">") else None
    line = line[quote.end() :].rstrip("\r") if quote else line.rstrip("\r")
    return line.removeprefix("`").removesuffix("`") if line.count("`") == 1 else line


def blocks(lines: Sequence[str], first: int = 1, at_start: bool = True) -> Iterator[Block]:
    """What stands apart on a page, from top to bottom. `first` is the number of the first line."""
    before = "" if at_start else "0:00:00"  # the last line of prose, or of anything else
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if fence:
            end = _end_of_fence(lines, at + 1, fence[2])
            yield Block(first + at + 1, "\n".join(lines[at + 1 : end]), fence[3].lower(), True, _called(lines, at))
            at, before = end + 1, ""
            continue
        apart = not at or not lines[at - 1].strip() or _OPENS.search(lines[at - 1])
        end = _end_of_bare(lines, at) if apart and _is_prose(before) else at
        if end > at:
            yield Block(first + at, "\n".join(_continued(lines[at:end])).rstrip(), called=_called(lines, at))
            at, before = end, lines[end - 1]
            continue
        before = line if line.strip() else before
        at += 1


def _called(lines: Sequence[str], at: int) -> str:
    """The file that the sentence before a block names, if it names one."""
    above = [line for line in lines[max(0, at - 3) : at] if line.strip()][-1:]
    names = set(_FILE.findall(above[0][:300])) if above and not _MACHINE.search(above[0]) else set()
    return str(names.pop()) if len(names) == 1 else ""


def _end_of_fence(lines: Sequence[str], start: int, marks: str) -> int:
    for at in range(start, len(lines)):
        text = lines[at].strip()
        if text.startswith(marks) and not text.strip(marks[0]):
            return at
    return len(lines)


def _is_prose(line: str) -> bool:
    """Whether a person may have written this line (nothing at all: the page begins)."""
    return not line.strip() or not _MACHINE.search(line)


def _end_of_bare(lines: Sequence[str], at: int) -> int:
    """Where a block without a fence ends that begins here; `at` where none does."""
    line = lines[at]
    if _KEY.match(line):
        return _end_of_yaml(lines, at)
    if _SECTION.match(line):
        end = at + 1
        while end < len(lines) and _TOML.match(lines[end]):
            end += 1
        return end
    if line.rstrip() == "{":
        closing = next((end for end in range(at + 1, min(len(lines), at + 2000)) if lines[end][:1] not in ("", " ", "\t")), len(lines))
        return closing + 1 if closing < len(lines) and lines[closing].rstrip() == "}" else at
    if _starts(lines, at) and line[:1].strip():
        end = at + 1
        while end < len(lines) and (lines[end - 1].rstrip().endswith("\\") or _OPTION.match(lines[end])):
            end += 1
        return end
    if line.startswith(("    ", "\t")) and at and not lines[at - 1].strip():
        end = at
        while end < len(lines) and (lines[end].startswith(("    ", "\t")) or not lines[end].strip()):
            end += 1
        return end
    return at


def _continued(lines: Sequence[str]) -> list[str]:
    """The lines of a command joined again by the backslashes that Markdown takes from the ends of lines outside a fence."""
    if not _starts(lines, 0):
        return list(lines)
    following = [*lines[1:], ""]
    return [
        f"{line.rstrip()} \\" if _OPTION.match(after) and not line.rstrip().endswith("\\") else line
        for line, after in zip(lines, following, strict=True)
    ]


def _end_of_yaml(lines: Sequence[str], at: int) -> int:
    keys, end, last = 0, at, at
    while end < len(lines) and (_KEY.match(lines[end]) or _GOES_ON.match(lines[end])):
        keys += bool(_KEY.match(lines[end]))
        end += 1
        last = end if lines[end - 1].strip() else last
    return last if keys >= FEW else at


# -- which of them are configs


def _recognised(block: Block, name: str) -> ConfigSource | None:
    """The block as a config, if it is one that the adapters know. Blank lines before it keep its lines where they are on the page."""
    text = dedent(block.text if block.fenced else block.text.expandtabs(4))
    if not text.strip() or len(text) > BLOCK or block.language in _NO_CONFIG:
        return None
    lead = "\n" * (block.line - 1)
    if _TRACEBACK not in text:
        one = open_document(ConfigSource(name, f"{lead}{text}\n".encode("utf-8", "replace"), called=block.called))
        if one.form != "shell":
            return one.source if is_config(one) else None
    text = _commands_only(text, block.language in _SHELLS)
    one = open_document(ConfigSource(name, f"{lead}{text}\n".encode("utf-8", "replace"), called=block.called))
    return one.source if text and one.form == "shell" and is_config(one) else None


def is_config(one: OpenDocument) -> bool:
    """Whether what was opened configures a run: keys or classes that a framework knows, a model's shape, a command that trains."""
    if any(notice.level == "error" for notice in one.notices):
        return False
    if one.form == "shell":
        begun = identify_programs(one.launches, one.text, one.source.name, "shell", None)
        return any(start.table is not None or (start.trains and start.launch.launcher) for start in begun)
    return one.kind == "model" or one.kind in framework_tables.names()


def _commands_only(text: str, is_shell: bool) -> str:
    """The commands that a text begins with, without what they printed. A prompt's echo is none: it is read where logs are."""
    kept: list[str] = []
    lines = text.split("\n")
    started = is_shell or text.lstrip().startswith("#!")
    for at, line in enumerate(lines):
        goes_on = bool(kept) and kept[-1].rstrip().endswith("\\")
        starts = _starts(lines, at)
        fits = goes_on or starts or not line.strip() or _SHELL.match(line)
        if not fits and (not started or _PRINTED.search(line)):
            break
        started = started or starts
        kept.append(line)
    return "\n".join(kept).rstrip() if started else ""


def _starts(lines: Sequence[str], at: int) -> bool:
    """Whether a command begins in this line; its variables may stand in lines of their own before the program."""
    return _command().match("\n".join(lines[at : at + LEAD]).lstrip()) is not None


@cache
def _command() -> re.Pattern[str]:
    """How a command line begins: variables, then a program that starts a training run (rules/programs.yaml)."""
    programs = rule_files.table("programs")
    names = "|".join(map(re.escape, (*programs["commands"], *programs["launchers"])))
    runs = rf"(?:{names}) {{1,8}}(?=\S)|python[\d.]{{0,6}} {{1,8}}(?:-m |-u |\S{{1,200}}\.py)"
    before = r"[A-Za-z_]\w{0,60}=\S{0,300}|nohup|sudo|env|time|uv run|exec"
    return re.compile(rf"(?:export |set )?(?:(?:{before})(?: {{1,8}}| ?\\\n {{0,16}})){{0,15}}(?:{runs})")
