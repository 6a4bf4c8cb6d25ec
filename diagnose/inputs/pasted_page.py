"""Configs that nobody named: those pasted into a page (fenced and indented blocks, bare YAML, JSON, commands), and which of all count."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.adapters.documents.framework_of_command import identify_programs
from diagnose.adapters.documents.open_config import open_document
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.job.guessed_settings import says_settings
from diagnose.adapters.schema import framework_tables, lexicon
from diagnose.facts import Notice, Witness, require_declared
from diagnose.inputs.caller_arguments import as_config, convert_each
from diagnose.parse.text.decoding import strip_markup
from diagnose.phrases import phrase
from diagnose.scan import job_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.adapters.documents.open_config import OpenDocument
    from diagnose.inputs.caller_arguments import Material
    from diagnose.parse.model.reading import Reading
    from diagnose.scan.log_scan import Scanned

LARGEST = 4 << 20  # bytes of a page; a larger text is a log
MARGIN = 32 << 10  # bytes at either end that are searched for a person's sentences
BLOCK, TEXT = 64 << 10, 192 << 10  # characters of one block, of all blocks of a page that are examined
BLOCKS, CONFIGS = 64, 8  # blocks examined and configs accepted of one page
MIN_KEYS = 3  # keys of an unfenced YAML block
HEREDOC = 400  # lines of a here-document outside a fence
OBJECT = 2000  # lines of an object of JSON outside a fence
LINE, MARKS = 16 << 10, 16  # characters of a line, and marks in them, behind which a command in a sentence is sought
VARIABLE_LINES = 12  # lines of variables before the program of a command

#: Signs of a human author: a heading (in Chinese: a few characters and a colon), bold text, a sentence in the first person, a question, a
#: line about memory as the title above a blank one.
_HUMAN = re.compile(
    rb"\A#{1,3} {1,3}[A-Za-z]|^[> ]{0,6}#{1,5} {1,3}[A-Z\xe0-\xef]"
    rb"|\A(?![^\n]{0,200}(?:\d\d:\d\d|Error|Exception|[\[\]{}|=>]))"
    rb"(?=[^\n]{0,200}(?:OOM|[Mm]emory|V?RAM|137|[Kk]illed"
    + "|显存|内存".encode()
    + rb"))[^\n ]{1,80}(?:(?: [^\n ]{1,80}){2}|[^\n]{0,80}[\xe3-\xe9][\x80-\xbf]{2})[^\n]{0,200}\n[ \t\r]{0,8}\n"
    rb"|\A(?:[Hh]ey|[Hh]i|yo|[Aa]nyone|[Ww]hy|[Hh]ow)[ ,][^\n]{20,2000}"
    rb"|\A#{1,2} {1,2}[`'\"][^\n]{0,200}(?:[\xe3-\xe9][\x80-\xbf]{2}|\?|[Mm]emory|OOM|[Kk]illed)"
    rb"|^[> ]{0,6}\*\*[^*\n]{2,80}\*\*"
    rb"|^(?:I|I'm|I've|My|Hi|Hello|We),? [a-z]|^[A-Z][a-z]{1,12} [^\[\]{}=|:\n]{8,200}\?{1,4}\s{0,4}$"
    rb"|^[^\[\]{}=|\n]{0,200}\b(?:I|I'm|I've|[Mm]y|[Hh]ere (?:is|are)|[Tt]hanks)\b[^\[\]{}=|\n]{0,200}$"
    rb"|^[\xe3-\xe9][\x80-\xbf]{2}(?:[\xe3-\xe9][\x80-\xbf]{2}|[A-Za-z0-9 ]){1,20}"
    + "：\r?$|如下|请问|请教|求助|大佬|大家好|谢谢|为什么|怎么(?:解决|办|回事|改)|如何解决|求解|我的|我用|我在|我们".encode(),
    re.MULTILINE,
)
_OPENS_FENCE = re.compile(r"[^`\n]{1,400}(`{3})$")  # at the end of a sentence
_QUOTE = re.compile(r"(?: {0,3}> ?){1,3}")
_FENCE = re.compile(r" {0,12}(`{3,}|~{3,})\s{0,4}([^`\n]*)$")
_LANGUAGE = re.compile(r"\{?\.?([\w+#-]{0,30})")
#: What stands behind the marks of a fence and is the first line of its text, not its language or title.
_TEXT_BEHIND_FENCE = re.compile(r"[^\n]*\\$|[\w./-]{1,80} [^\n]*-|[\w.]{1,120}=[^\s\"']|[a-z_][\w.-]{0,80}: ")
#: What HTML, the boards' BBCode and Jira show as it is written, and what ends it; a fold ends it too where its own end was forgotten.
PRE = re.compile(
    r"[^\n`]{0,400}?(?:<pre\b[^<>\n]{0,400}>(?:\s{0,8}<code\b[^<>\n]{0,400}>)?"
    r"|\[code(?:=[^\]\n]{0,40})?\]|\{(?:code|noformat)(?::[^{}\n]{0,80})?\}\s{0,8}$)",
    re.IGNORECASE,
)
PRE_END = re.compile(r"(?:</code>\s{0,8})?</pre>|</details>|\[/code\]|\{(?:code|noformat)\}", re.IGNORECASE)
_TAG_LINE = re.compile(
    r"\s*(?:</?(?:details|summary|p|div|b|br|hr|code|pre|h\d|strong)\b[^<>]{0,200}>\s*|[\w /:#-]{1,60}(?=</summary>)){1,8}$"
)
_KEY = re.compile(r"(?!\w{0,80}(?:\.\w{1,80}){0,8}(?:Error|Exception|Warning|Exit)\b)[a-z_][\w.-]{0,80}:(?: |$)")
_YAML_LINE = re.compile(r"\s+\S|- |-$|#|\s*$")
_SECTION = re.compile(r"\[[a-z_][\w.-]{0,80}\]\s*$")
#: The first line of a script without a fence, and the lines that may follow at its left edge.
_PYTHON = re.compile(r"(?:import [\w.]{1,80}(?: as \w{1,40})?(?:, ?[\w.]{1,80}){0,9}|from [\w.]{1,80} import [\w(*].{0,200})\s*$")
_PYTHON_LINE = re.compile(
    r"\s|$|#|import |from |def |class |@\w|if |for |while |with |try:|except\b|finally:|else:|elif |return\b|raise |assert |del |async "
    r"|[A-Za-z_][\w.\[\]'\", ]{0,120}(?:: ?[\w.\[\], |]{1,60})? ?[-+*/|&]?= ?[^\s=]|[A-Za-z_][\w.]{0,80}\(|[)\]}]|\"\"\"|\'\'\'"
)
_JSON = re.compile(r"\{\s*(?:$|\"|//)")
#: A call or a dict whose arguments stand below it, a line each: `args = TrainingArguments(`, `train_args = {`.
_OPENS_BRACKET = re.compile(r"(?:[A-Za-z_][\w.]{0,60} {0,4}= {0,4})?(?:[A-Za-z_][\w.]{0,60}\(|(?<=[= ])\{)\s*(?:#.*)?$")
_ARGUMENT = re.compile(r"\s*(?:[\"']?[A-Za-z_][\w.-]{0,60}[\"']? {0,4}[=:]|[\])}#,]|$)")
_TOML = re.compile(r"\[{1,2}[a-z_][\w.-]{0,80}\]{1,2}\s*$|[A-Za-z_][\w.-]{0,80} {0,8}=|#|\s|$")
#: The last setting of a file that was cut before the end of its value, or of its name.
_CUT = re.compile(r"\n(?:[A-Za-z_][\w.-]{0,80} {0,8}= {0,8}(?:'[^'\n]*|\"[^\"\n]*|\[[^\]\n]*)?| {0,16}(?:- )?[A-Za-z_][\w.-]{0,80})\s*\Z")
_LOG_LINE = re.compile(r"\d{1,2}:\d{2}:\d{2}|\b(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL)\b|^[\[(|+{}>]|^\s|^\S{0,40}=|^\$\S{1,60} =|%\|")
_INTRODUCES = re.compile(
    r"[:：]\s*$|^#|>\s*$|^\*\*|^(?:(?:yaml|json|bash|shell|python|toml|text|plaintext)?\s?(?:copy(?: code)?|复制(?:代码)?)?)$",
    re.IGNORECASE,
)
_OPTION = re.compile(r"\s{0,16}(?:--[A-Za-z]|\+{0,2}[A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,8}=)")
_OPTIONS = re.compile(r"(?:^|\s)--[A-Za-z]")
#: An option that its author made bold.
_BOLD = re.compile(r"^(\s{0,8})\*\*(--[A-Za-z][^*\n]{0,400})\*\*(?=\s*\\?\s*$)")
#: A line of code that is one string of a command: `f'++policy.train_global_batch_size=512 '`, `cmd += "--bf16 "`; and a line between such.
_STRING = re.compile(
    r"\s{0,40}(?:[A-Za-z_][\w.]{0,40} {0,4}\+?= {0,4})?[(\[]?\s{0,4}[fFrR]{0,2}([\"'])(?P<text>(?:(?!\1).){2,400})(?:\1|$)"
    r"[\s,+\\)\]]{0,8}(?:#.*)?$"
)
#: The first and the last line of such a string that holds a whole command.
_OPENED = re.compile(r"^(\s{0,40})['\"](?=(?:[A-Z_]{1,40}=\S{0,80} |python|torchrun|accelerate|deepspeed)[^\n]{2,400}\\\s*$)")
_CLOSED = re.compile(
    r"^(\s{0,40}(?:--[A-Za-z][^\n]{0,400}?\w(?=.\s*$)|[^\s\n]{1,400}?\w(?=.,)|--[A-Za-z][^\n]{0,400}?\w(?=.,)))['\"],?\s*$"
)
_BETWEEN_STRINGS = re.compile(r"\s*(?:[A-Za-z_][\w.]{0,40} {0,4}\+?= {0,4})?[(\[)\],]{0,2}\s*(?:#.*|\\)?$")
_PROGRAM = re.compile(r"\s{0,16}[\w./$-]{1,200}\.(?:py|sh)\s*$")
#: The prompt of a shell with somebody's name and machine, and a command behind it.
_PROMPTED = re.compile(r"\s{0,8}(?:\([\w.-]{1,60}\) ?){0,2}[\w.-]{1,60}@[\w.-]{1,80}[: ]\S{0,200} ?[#$%>] ")
_HEREDOC = re.compile(r"[^\n]{0,200}<<-? {0,2}(['\"]?)(\w{1,40})\1")
_WRITTEN = re.compile(
    r"(?:cat|tee)(?=[^\n]{0,200}<<)(?: {1,3}<<-? {0,2}(['\"]?)\w{1,40}\1)? {0,3}(?:>{1,2}|(?<=tee)) {0,3}(?P<name>[\w./~-]{1,120})"
    r"(?: {1,3}<<-? {0,2}(['\"]?)\w{1,40}\3)?[ ]{0,4}\n(?P<text>(?:(?!EOF$|EOL$|END$)[^\n]*(?:\n|$))*)(?:EOF|EOL|END)?",
    re.MULTILINE,
)
_SHOWN_FILE = re.compile(
    r"[^\n]{0,120}?(?:[#$%>] {0,2}|^)(?:vim?|nano|cat|less|more|type|bat|head|%%(?:writefile|file)) {1,4}"
    r"(?:-\S{1,8} )?([\w./\\~-]{1,200})\s*$"
)
_CONTINUED = re.compile(r"(?:\\|[ \t][\^`])[ \t]*$")
#: Where a sentence may go on with a command: behind a colon, or within backticks.
_QUOTES_COMMAND = re.compile(r"(?<!`)`(?!`)|[:：] {0,4}")
#: The language of a fence that was put into a line: `bash CUDA_VISIBLE_DEVICES=0 python train.py`.
_LANGUAGE_MARK = re.compile(
    r"(?:bash|sh|shell|console|python) {1,2}(?=[A-Z_][A-Z0-9_]{2,60}=|(?:python3?|torchrun|accelerate|deepspeed|vllm) )"
)
_HAS_OPTION = re.compile(r"\s(?:--?[A-Za-z]|\+{0,2}[A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,8}=|\S{1,200}\.(?:ya?ml|json|toml)\b)")
#: A full stop behind the last word of a command that a sentence holds, and the sentences that follow.
_END_OF_SENTENCE = re.compile(r"(?<=\w)\.(?:\s{1,4}[A-Z][^\n]*)?\s*$|(?<=[\w/])。[^\n]*$")
_ELLIPSIS = re.compile(r"(?<=\s)(?:…|\.{3})(?=\s|$)")
_FILE = re.compile(r"[\w.-]{1,80}\.(?:ya?ml|jsonc?|toml|sh|py)\b")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_TRACEBACK = "Traceback (most recent call last)"
_OUTPUT = re.compile(r"^(?:\$|\+|>>>) |\d\d:\d\d:\d\d|%\||" + re.escape(_TRACEBACK))
_NO_CONFIG = frozenset({"diff", "patch", "traceback", "pytb", "c", "cpp", "cuda", "html", "csv", "mermaid"})
_SHELLS = frozenset({"bash", "sh", "shell", "zsh", "console", "shellscript", "cmd", "bat", "powershell"})


@dataclass(slots=True)
class Block:
    """A block of a page: the number of its first line (from 1), its text, the language that its fence names."""

    line: int
    text: str
    language: str = ""
    fenced: bool = False
    named_file: str = ""  # the file that the lines above it name


def configs(log: Scanned) -> list[ConfigSource]:
    """The configs pasted into a page, named by block, with the page's line numbers; none for texts that only programs wrote."""
    return [source for _, source in _pasted(log) if source is not None]


def configs_and_others(log: Scanned) -> tuple[list[ConfigSource], list[Block]]:
    """The configs pasted into a page, and its blocks that are none."""
    found = list(_pasted(log))
    return [source for _, source in found if source is not None], [block for block, source in found if source is None]


def _pasted(log: Scanned) -> Iterator[tuple[Block, ConfigSource | None]]:
    """The blocks of a page, each with the config that it is."""
    if log.input.bytes > LARGEST or not is_page(log):
        return
    number = length = accepted = 0
    for excerpt in log.excerpts:
        lines = [_strip_quote(line) for line in excerpt.raw.decode("utf-8", "replace").split("\n")]
        for block in blocks(lines, excerpt.line, at_start=excerpt.offset == 0):
            number += 1
            length += len(block.text) if len(block.text) <= BLOCK else 0
            if number > BLOCKS or length > TEXT or accepted >= CONFIGS:
                return
            source = _parse_block(block, f"{log.input.name}#block-{number}")
            accepted += source is not None
            yield block, source


def configs_of_text(text: str, name: str) -> list[ConfigSource]:
    """The configs of a text that holds nothing else, whoever wrote it; `called` is the file that it names for each."""
    found = (_parse_block(block, name) for block in islice(blocks(text.split("\n")), BLOCKS))
    return [source for source in found if source is not None]


def is_page(log: Scanned) -> bool:
    """Whether a person wrote the text: blocks anywhere, sentences at either end, or a command at the start."""
    texts = [excerpt.raw for excerpt in log.excerpts]
    head = texts[0][:2000].decode("utf-8", "replace").split("\n") if texts else []
    if any(_is_command(head, at) for at in range(len(head)) if not at or _ends_sentences(head, at)):
        return True
    if any(
        sign in text
        for text in texts
        for sign in (
            b"```",
            b"~~~",
            b"<details",
            b"<summary",
            b"<pre",
            b"[code",
            b"{code",
            b"{noformat}",
            b"\n|---|",
            b"\n| --- |",
            b"\n|:--",
            b"\n| :--",
        )
    ):
        return True
    return bool(texts) and (_HUMAN.search(texts[0], 0, MARGIN) or _HUMAN.search(texts[-1][-MARGIN:])) is not None


def _ends_sentences(lines: Sequence[str], index: int) -> bool:
    """Whether a blank line stands above this one, and above that only lines of words, as people introduce a command."""
    above = [line for line in lines[:index] if line.strip()]
    return (
        not lines[index - 1].strip()
        and bool(above)
        and all(_is_prose(line) and line.count(" ") >= 3 and line[0].isalpha() for line in above)
    )


def _strip_quote(line: str) -> str:
    """A line without quotation marks (`>`), and without the backtick of a code span that continues over several lines; one behind a blank
    continues a command of PowerShell."""
    quote = _QUOTE.match(line) if line.lstrip().startswith(">") else None
    line = line[quote.end() :].rstrip("\r") if quote else line.rstrip("\r")
    if line.count("'") + line.count('"') == 1:  # a command of a list of strings goes on over several lines
        line = _OPENED.sub(r"\1 ", _CLOSED.sub(r"\1", line))
    return line.removeprefix("`").removesuffix("`") if line.count("`") == 1 and not line.endswith((" `", "\t`")) else line


def blocks(lines: Sequence[str], first: int = 1, at_start: bool = True) -> Iterator[Block]:
    """Yield the blocks of a page from top to bottom. `first`: the number of the first line."""
    previous = "" if at_start else "0:00:00"  # the last line before a block; a time stands for a log line
    lines = [_BOLD.sub(r"\1  \2", line) if "**--" in line else line for line in lines]
    index, last_mark = 0, max((at for at, line in enumerate(lines) if line.strip() == "```"), default=0)
    while index < len(lines):
        line = lines[index]
        if not line.strip():
            index += 1
            continue
        if start := _start_behind_colon(lines, index):
            lines = [*lines[:index], line[start:], *lines[index + 1 :]]
            line, previous = lines[index], ""
        fence = _FENCE.match(line)
        opens = fence or (_OPENS_FENCE.match(line.rstrip()) if index < last_mark else None)
        if opens:
            end, text = _fenced(lines, index + 1, opens[1])
            language, beginning = _behind_fence(fence[2].strip()) if fence else ("", [])
            yield Block(first + index + 1 - len(beginning), "\n".join([*beginning, *text]), language, True, _named_file(lines, index))
            index, previous = end, ""
            continue
        pre = PRE.match(line) if any(sign in line for sign in "<[{") else None
        if pre:
            end, text = _preformatted(lines, index, pre.end())
            yield Block(first + index, "\n".join(text), "", True, _named_file(lines, index))
            index, previous = end, ""
            continue
        is_separate = not index or not lines[index - 1].strip() or _INTRODUCES.search(lines[index - 1])
        has_options = line.lstrip(" ").startswith("--") and len(_OPTIONS.findall(line, 0, LINE)) >= MIN_KEYS
        begins = is_separate or start or has_options or line.rstrip() == "{" or _is_command(lines, index)
        end = _end_of_unfenced(lines, index) if begins and _is_prose(previous) else index
        if end > index:
            text, is_command = _rejoin_lines(lines[index:end]), _is_command(lines, index)
            while is_command and (following := _following_command(lines, end)):
                text += lines[end:following]
                end = max(_end_of_command(lines, following), following + 1)  # a sentence may begin like a command
                text += _rejoin_lines(lines[following:end])
            yield Block(first + index, "\n".join(text).rstrip(), named_file=_named_file(lines, index))
            index, previous = end, lines[end - 1]
            continue
        if not _OUTPUT.search(line) and (command := _quoted_command(line)):
            yield Block(first + index, command, named_file=_named_file(lines, index))
        previous = line
        index += 1


def _named_file(lines: Sequence[str], index: int) -> str:
    """The file named by the sentence before a block; empty if there are none or several. Tags between them do not count."""
    near = [line for line in lines[max(0, index - 6) : index] if line.strip()]
    above = [line for line in near if _FILE.search(line[:300]) or not _TAG_LINE.match(line)][-1:]
    names = set(_FILE.findall(above[0][:300])) if above and not _LOG_LINE.search(above[0]) else set()
    return str(names.pop()) if len(names) == 1 else ""


def _behind_fence(text: str) -> tuple[str, list[str]]:
    """(language, first lines of the block) by what stands behind a fence's marks: one line where a person began the text there."""
    language = str(_LANGUAGE.match(text)[1]).lower()  # type: ignore[index]  # it matches everything
    if not _TEXT_BEHIND_FENCE.match(text):
        return language, []
    return (language, [text[len(language) :].lstrip()]) if language in _SHELLS else ("", [text])


def _fenced(lines: Sequence[str], start: int, marks: str) -> tuple[int, Sequence[str]]:
    """(index behind a fence whose text begins at `start`, its lines). People also close one at the end of its last line. One that nobody
    closed ends where the next one opens, without the sentence that introduces that one."""
    for index in range(start, len(lines)):
        text = lines[index].strip()
        last = text.removesuffix(marks)
        if last not in ("", text) and marks not in last and not _closes_soon(lines, index + 1, marks):
            return index + 1, [*lines[start:index], lines[index].rstrip()[: -len(marks)]]
        if not text.startswith(marks):
            continue
        if not text.strip(marks[0]):
            return index + 1, lines[start:index]
        if _FENCE.match(lines[index]):
            return index, _without_introduction(lines[start:index])
    return len(lines), lines[start:]


def _closes_soon(lines: Sequence[str], start: int, marks: str) -> bool:
    """Whether the next line that is not blank closes a fence."""
    return next((line.strip() for line in lines[start : start + 3] if line.strip()), "") == marks


def _without_introduction(lines: Sequence[str]) -> Sequence[str]:
    """The lines without headings, tags and sentences at their end that introduce what follows."""
    end = len(lines)
    while end and (not lines[end - 1].strip() or _INTRODUCES.search(lines[end - 1])):
        end -= 1
    return lines[:end]


def _preformatted(lines: Sequence[str], index: int, column: int) -> tuple[int, list[str]]:
    """(index behind a `<pre>` whose text begins in that line and column, the lines that a browser shows of it)."""
    text: list[str] = []
    for number in range(index, len(lines)):
        line = lines[number][column if number == index else 0 :]
        end = PRE_END.search(line)
        text.append(strip_markup(line[: end.start()] if end else line))
        if end:
            return number + 1, text
    return len(lines), text


def _is_prose(line: str) -> bool:
    """Whether a person may have written this line; true for an empty one."""
    return not line.strip() or not _LOG_LINE.search(line)


def _end_of_unfenced(lines: Sequence[str], index: int) -> int:
    """The end of an unfenced block that begins at this line; `index` itself if none does."""
    line = lines[index]
    if _KEY.match(line):
        return _end_of_yaml(lines, index)
    if _PYTHON.match(line):
        return _end_of_lines(lines, index, _PYTHON_LINE)
    if _SECTION.match(line):
        return _end_of_lines(lines, index, _TOML)
    if _JSON.match(line):
        return _end_of_json(lines, index)
    if _OPENS_BRACKET.match(line):
        return _end_of_arguments(lines, index)
    if (line[:4].strip() or line.lstrip(" ").startswith("--")) and (
        end := _end_of_command(lines, index) or _end_of_heredoc(lines, index) or _end_of_overrides(lines, index)
    ):
        return end
    if _STRING.match(line) and (end := _end_of_strings(lines, index)):
        return end
    if _INDENTED.match(line) and index and not lines[index - 1].strip():
        end = index
        while end < len(lines) and (_INDENTED.match(lines[end]) or not lines[end].strip()):
            end += 1
        return end
    return index


def _end_of_command(lines: Sequence[str], index: int) -> int:
    """The end of the command that begins at this line, with the options below it, between which Markdown may put blank lines; 0: none."""
    command = _command().match("\n".join(lines[index : index + VARIABLE_LINES]).lstrip(" "))
    if command is None or (_joining().search(lines[index], 0, LINE) and not re.search(r"\s-", lines[index][:LINE])):
        return 0
    end = index + 1 + command[0].count("\n")
    while end < len(lines):
        following = next((at for at in range(end, min(end + 3, len(lines))) if lines[at].strip()), end)
        is_program = _PROGRAM.match(lines[following]) and _OPTION.match("".join(lines[following + 1 : following + 2]))
        if _OPTION.match(lines[following]) or is_program:
            end = following + 1
        elif _CONTINUED.search(lines[end - 1]) and following == end:
            end += 1
        else:
            break
    return end


def _following_command(lines: Sequence[str], end: int) -> int:
    """The beginning of the command that continues the script ending here, with nothing but lines of shell between them; 0: none does."""
    start = end
    while start < min(end + VARIABLE_LINES, len(lines)) and lines[start].strip():
        if _is_command(lines, start):
            return start
        if not _shell().match(lines[start]):
            break
        start += 1
    return 0


def _end_of_overrides(lines: Sequence[str], index: int) -> int:
    """The end of options or overrides without a program, one a line or all in one; 0 for fewer than make a block."""
    end, count = index, 0
    while end < len(lines) and _OPTION.match(lines[end]):
        count += max(1, len(_OPTIONS.findall(lines[end], 0, LINE)))
        end += 1
    return end if count >= MIN_KEYS else 0


def _end_of_strings(lines: Sequence[str], index: int) -> int:
    """The end of the lines of code that are one string of a command each; 0 for fewer options and overrides than make a block."""
    end = index
    while end < len(lines) and lines[end].strip() and (_STRING.match(lines[end]) or _BETWEEN_STRINGS.match(lines[end])):
        end += 1
    return end if _without_quotes("\n".join(lines[index:end])) else 0


def _without_quotes(text: str) -> str:
    """The command that lines of code hold a string each of, every word where it stood; "" for other text. What a field of an f-string
    stands for is not known, so that such an option is left out."""
    plain: list[str] = []
    count = 0
    for line in text.split("\n"):
        string = _STRING.match(line)
        if string is None and line.strip() and not _BETWEEN_STRINGS.match(line):
            return ""
        words = string["text"].removesuffix("\\") if string else ""
        count += _OPTION.match(words) is not None
        plain.append(f"{' ' * string.start('text')}{words} \\" if string and "{" not in words else " \\")
    return "\n".join(plain).rstrip(" \\\n") if count >= MIN_KEYS else ""


def _end_of_heredoc(lines: Sequence[str], index: int) -> int:
    """The end of a script that begins with a here-document: behind its lines those of shell, and what they indent; 0: none."""
    heredoc = _HEREDOC.match(lines[index])
    if heredoc is None or not _shell().match(lines[index]):
        return 0
    end = next((at + 1 for at in range(index + 1, min(len(lines), index + HEREDOC)) if lines[at].strip() == heredoc[2]), len(lines))
    last = end
    while end < len(lines) and (not lines[end].strip() or lines[end][:1] in " \t" or _shell().match(lines[end]) or _is_command(lines, end)):
        end += 1
        last = end if lines[end - 1].strip() else last
    return last


def _rejoin_lines(lines: Sequence[str]) -> list[str]:
    """The lines of a command with the trailing backslashes restored that Markdown removes outside fences: where most of them stand, one
    that is missing is the author's mistake."""
    start = _command().match("\n".join(lines[:VARIABLE_LINES]).lstrip(" "))
    if start is None or 2 * sum(_CONTINUED.search(line) is not None for line in lines) > len(lines):
        return list(lines)
    first, last = start[0].count("\n"), len(lines) - 1
    broken = [
        first <= at < last or (at < first and line.endswith("  ")) for at, line in enumerate(lines)
    ]  # a break of Markdown: two blanks
    return [f"{_CONTINUED.sub('', line).rstrip()} \\" if is_broken else line for is_broken, line in zip(broken, lines, strict=True)]


def _end_of_yaml(lines: Sequence[str], index: int) -> int:
    """The end of a YAML block. A comment at the left edge may be a heading: with the blank lines round it, it belongs to the block only
    where a key follows."""
    key_count, end, last, may_be_heading = 0, index, index, False
    while end < len(lines) and (_KEY.match(lines[end]) or _YAML_LINE.match(lines[end])):
        line = lines[end]
        end += 1
        if _KEY.match(line.lstrip()) and not (may_be_heading and line[0] in " \t"):
            key_count, last, may_be_heading = key_count + 1, end, False
        elif line.startswith("#"):
            may_be_heading = True
        elif line.strip() and may_be_heading:
            break
        elif line.strip():
            last = end
    return last if key_count >= MIN_KEYS else index


def _end_of_lines(lines: Sequence[str], index: int, may_follow: re.Pattern[str]) -> int:
    """The end of a script or a TOML file without a fence: at the first line that may not follow, or at a command. A comment, which a
    heading looks like, is not its last; a blank line and indented text behind one are the beginning of something else."""
    end = last = index
    while end < len(lines) and may_follow.match(lines[end]) and not _is_command(lines, end):
        line = lines[end]
        is_inside = line.strip() and line[0] in " \t"
        if is_inside and not lines[end - 1].strip() and any(above.startswith("#") for above in lines[last:end]):
            break
        end += 1
        last = end if line.strip() and not line.startswith("#") else last
    return last


def _end_of_json(lines: Sequence[str], index: int) -> int:
    """The end of an object of JSON: where as many braces are closed as were opened; `index` if that is nowhere before the next object."""
    depth = 0
    for end in range(index, min(len(lines), index + OBJECT)):
        if end > index and lines[end].startswith("{"):
            break
        depth += lines[end].count("{") - lines[end].count("}")
        if depth <= 0:
            return end + 1
    return index


def _end_of_arguments(lines: Sequence[str], index: int) -> int:
    """The end of a call or dict with an argument a line: where its brackets close, or where a text that was cut leaves off; `index` for
    fewer than make a block."""
    end, depth, count = index, 0, 0
    while end < min(len(lines), index + OBJECT) and (end == index or _ARGUMENT.match(lines[end])):
        depth += sum(lines[end].count(bracket) for bracket in "([{") - sum(lines[end].count(bracket) for bracket in ")]}")
        count += bool(lines[end].strip())
        end += 1
        if depth <= 0:
            break
    return end if count > MIN_KEYS else index


# -- which blocks are configs


def _parse_block(block: Block, name: str) -> ConfigSource | None:
    """The block as a config if the adapters recognise it, padded with blank lines to keep the page's line numbers."""
    source = _read_block(block, name)
    text = "" if source is not None else _without_quotes(block.text) or _CUT.sub("", block.text)
    return _read_block(replace(block, text=text), name) if text not in ("", block.text) else source


def _read_block(block: Block, name: str) -> ConfigSource | None:
    text = block.text if block.fenced else block.text.expandtabs(4)
    first, _, rest = text.partition("\n")
    shown = _SHOWN_FILE.match(first)
    if shown and not block.named_file:  # a terminal shows a file, or a notebook's cell writes it
        block, text = replace(block, named_file=shown[1].replace("\\", "/").rpartition("/")[2]), f"\n{rest}"
    text = dedent(text)
    written = _WRITTEN.fullmatch(text.rstrip())
    if written:  # a file that a here-document writes, with nothing behind it that would use it
        block, text = replace(block, named_file=written["name"].rpartition("/")[2]), f"\n{written['text']}"
    if not text.strip() or len(text) > BLOCK or block.language in _NO_CONFIG:
        return None
    padding = "\n" * (block.line - 1)
    if _TRACEBACK not in text:
        config = open_document(ConfigSource(name, f"{padding}{text}\n".encode("utf-8", "replace"), called=block.named_file))
        if not config.is_script or (not config.launches or all(launch.program == "cat" for launch in config.launches)):
            return config.source if is_config(config) else None
    text = _commands_only(text, block.language in _SHELLS)
    config = open_document(ConfigSource(name, f"{padding}{text}\n".encode("utf-8", "replace"), called=block.named_file))
    return config.source if text and config.form == "shell" and is_config(config) else None


def is_config(config: OpenDocument) -> bool:
    """Whether an opened config configures a run: a framework's keys or classes, a model's shape, or a command that trains."""
    if config.leaves and config.kind == "unknown" and all(notice.code == "config.unknown_kind" for notice in config.notices):
        return bool(lexicon.guesses(config.leaves).read)  # of a program that has no table
    if any(notice.level == "error" for notice in config.notices):
        return False
    if any(inner.kind in framework_tables.names() for inner in config.inside):  # written by a script whose command is not shown
        return True
    if config.form == "shell":
        programs = identify_programs(config.launches, config.text, config.source.name, "shell", None)
        return any(program.table is not None or (program.trains and program.launch.launcher) for program in programs)
    if config.form == "python" and config.kind == "python":
        return says_settings(config)
    return config.kind == "model" or config.kind in framework_tables.names()


def _commands_only(text: str, is_shell: bool) -> str:
    """The commands at the start of a text, without their output. Commands after a prompt do not count: they are read with the log."""
    commands: list[str] = []
    lines = text.split("\n")
    has_command = is_shell or text.lstrip().startswith("#!")
    delimiter = ""  # of the here-document that the line stands in
    begun = next((at for at in range(len(lines)) if _is_command(lines, at)), 0)  # a person may have written above it
    begun = begun if all(_is_prose(line) or not line.strip() or _PROMPTED.match(line) for line in lines[:begun]) else 0
    for index, line in enumerate(lines):
        if index < begun:
            commands.append("")
            continue
        inside, delimiter = delimiter, "" if line.strip() == delimiter else delimiter
        heredoc = _HEREDOC.match(line)
        delimiter = heredoc[2] if heredoc and not inside else delimiter
        continues = bool(commands) and _CONTINUED.search(commands[-1]) is not None
        begins = _is_command(lines, index) or _OPTION.match(line) is not None
        belongs = continues or begins or bool(inside) or not line.strip() or _shell().match(line)
        if not belongs and (not has_command or _OUTPUT.search(line)):
            break
        has_command = has_command or begins
        commands.append(line)
    return "\n".join(commands).rstrip() if has_command else ""


def _is_command(lines: Sequence[str], index: int) -> bool:
    """Whether a command begins at this line; lines of variables may precede the program."""
    return _command().match("\n".join(lines[index : index + VARIABLE_LINES]).lstrip()) is not None


def _quoted_command(line: str) -> str:
    """The command with options that stands in a sentence, between backticks or behind a colon; empty: none."""
    for mark in islice(_QUOTES_COMMAND.finditer(line, 0, LINE), MARKS):
        named = _LANGUAGE_MARK.match(line, mark.end())
        start = named.end() if named else mark.end()
        if _command().match(line, start) and _is_prose(line[: mark.start()]):
            command = line[start:].partition("`")[0] if mark[0] == "`" else _END_OF_SENTENCE.sub("", line[start:].rstrip("`"))
            if _HAS_OPTION.search(command):
                return _ELLIPSIS.sub(lambda left_out: " " * len(left_out[0]), command)
    return ""


def _start_behind_colon(lines: Sequence[str], index: int) -> int:
    """The column behind the colon of a sentence at which a command begins that goes on below; 0: none."""
    line = lines[index]
    if not _CONTINUED.search(line):
        return 0
    below = lines[index + 1 : index + VARIABLE_LINES]
    for mark in islice(_QUOTES_COMMAND.finditer(line, 1, LINE), MARKS):
        if mark[0] != "`" and _is_prose(line[: mark.start()]) and _command().match("\n".join([line[mark.end() :], *below])):
            return mark.end()
    return 0


@cache
def _command() -> re.Pattern[str]:
    """Pattern of the start of a command line: variables, then a program that starts training (rules/programs.yaml)."""
    programs = rule_files.table("programs")
    names = "|".join(map(re.escape, (*programs["commands"], *programs["launchers"], *programs["tools"])))
    folder = r"(?:[\w.~/\\:-]{1,200}[/\\])?"
    python = r"python[\d.]{0,6}(?:\.exe)? {1,8}(?:-m |-u |\S{1,200}\.py)"
    program = rf"{folder}(?:{names}) {{1,8}}(?=\S)|{folder}{python}|\./[\w./-]{{1,100}}\.py(?= )"
    prefix = r"(?:export |set |\$env:)?[A-Za-z_]\w{0,60} ?= ?\S{0,300}|nohup|sudo|env|time|uv run|poetry run|exec|call"
    return re.compile(rf"!?(?:(?:{prefix})(?: {{0,4}}[\\^`]?\n(?: {{0,16}}\n)? {{0,16}}| {{1,8}})){{0,15}}(?:{program})")


@cache
def _joining() -> re.Pattern[str]:
    """Pattern of words that join others in a sentence."""
    words = "|".join(rule_files.table("programs")["joining"])
    return re.compile(rf"\s(?:{words})(?=[\s:,.]|$)|[\u4e00-\u9fff]")


@cache
def _shell() -> re.Pattern[str]:
    """Pattern of a line of shell that may stand above or between commands, at a prompt or in a notebook."""
    programs = rule_files.table("programs")
    words = "|".join(map(re.escape, (*programs["others"], *programs["chores"])))
    return re.compile(rf"\s*(?:#|[!%$] ?(?=\S)|(?:{words})(?=[\s;]|$)|(?:\$env:)?[A-Za-z_]\w{{0,60}} ?=)", re.IGNORECASE)


def without_settings_of(configs: Sequence[ConfigSource], page: str, reading: Reading) -> Reading:
    """The reading without settings and commands in lines of configs pasted into this page: a config is weaker than a log, and its own
    reader knows which of its values count."""
    lines = {line for config in configs for line in _lines_of(config)}
    if not lines:
        return reading

    def is_of_log(place: Witness) -> bool:
        return place.source != page or place.line not in lines

    return reading._replace(
        facts=tuple(fact for fact in reading.facts if is_of_log(fact.witness) or not require_declared(fact.name).is_knob),
        commands=tuple(command for command in reading.commands if is_of_log(command.witness)),
        dumps=tuple(dump for dump in reading.dumps if all(map(is_of_log, dump.lines[:1]))),
    )


def _lines_of(config: ConfigSource) -> range:
    """The numbers of a page's lines that a config pasted into it takes up: blank lines keep its place."""
    text = config.data.rstrip(b"\n")
    return range(len(text) - len(text.lstrip(b"\n")) + 1, text.count(b"\n") + 2)


def select_configs(
    explicit: Sequence[Material | ConfigSource], candidates: Sequence[ConfigSource], reading: Reading
) -> tuple[list[ConfigSource], list[Notice]]:
    """Select among the configs found beside or inside the logs: those that adapters recognise, one of each kind, none of a kind that the
    caller passed explicitly. Of several the one that a command or another config names is preferred. Where a framework's configuration
    stands in several files, all that do not contradict each other are parts of it."""
    configs = [open_document(source) for source in candidates]
    configs = [config for config in configs if is_config(config)]
    if len(configs) > job_folder.CONFIGS:
        message = phrase("folder.many_configs", name=str(Path(configs[0].source.name).parent), count=len(configs))
        return [], [Notice("warning", "many_configs", message)]
    sources, _ = convert_each(as_config, [config for config in explicit if isinstance(config, (Path, ConfigSource, str, bytes))])
    opened = [open_document(source) for source in sources]
    texts = [command.text for command in reading.commands]
    texts += [config.text for config in [*configs, *opened]]

    def rank(config: OpenDocument) -> tuple[bool, bool, bool]:
        """Configs that a text names come first; after the others commands without an option, then options without their program."""
        quoted = bool(config.launches) and not any(launch.program for launch in config.launches)
        bare = bool(config.launches) and not any(launch.flags for launch in config.launches)
        return not any(Path(config.source.name).name in text for text in texts), quoted, bare

    configs.sort(key=rank)
    selected: list[ConfigSource] = []
    notices: list[Notice] = []
    for config in configs:
        if any(other.kind == config.kind and not _are_parts(config, other) for other in opened):
            message = phrase("folder.same_kind", name=config.source.name, kind=config.kind)
            notices.append(Notice("info", "config_not_used", message, Witness(config.source.name)))
        else:
            selected.append(config.source)
            opened.append(config)
    return selected, notices


def _are_parts(config: OpenDocument, other: OpenDocument) -> bool:
    """Whether two configs of one framework are parts of one configuration: it stands in several files, and no key has two values here."""
    if config.kind not in framework_tables.names() or not framework_tables.table(config.kind).in_parts:
        return False
    values = {leaf.key: leaf.text for leaf in other.leaves}
    return all(values.get(leaf.key, leaf.text) == leaf.text for leaf in config.leaves)
