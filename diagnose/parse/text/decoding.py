"""Undo what tools do to a log's text: colours, entities, markup, JSON strings, lost line ends. All functions return a copy."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_COLOUR = lazy_compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[78=>]")
#: The same with its first character written out, or lost by a copy through a terminal or a web page;
#: a word in brackets that begins with an m is none.
_LEFTOVER = lazy_compile(
    r"(?:(?:\^\[|#033|#x1[bB]|\\u001[bB]|\\x1[bB]|\\033|\\e|\u241b)\[[0-9;?]{0,20}[A-Za-z]"
    r"|\[(?!m[a-z][\w.:]{0,60}\])(?:(?:\d|0\d|[2349]\d|10\d|38;[25](?:;\d{1,3}){1,3});){0,4}"
    r"(?:[0-57-9]|0\d|[2349]\d|10\d|38;5;\d{1,3})?m(?! ?\d))"
)
_LOOKS_COLOURED = lazy_compile(r"\[[0-9;?]{0,20}[mKAHJ]")

_ODD = lazy_compile(
    "[\u00a0\u00ad\u200b-\u200f\u2000-\u200a\u2010-\u2015\u2018-\u201f\u202f\u205f\u2060\u3000-\u3002\ufeff\uff01-\uff5e\uff61]"
)
_PLAIN: dict[int, str] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms of ASCII
    **dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF), ""),
    **dict.fromkeys(range(0x2010, 0x2016), "-"),
    **dict.fromkeys(range(0x2018, 0x201C), "'"),
    **dict.fromkeys(range(0x201C, 0x2020), '"'),
    0x3001: ",",
    0x3002: ".",
    0xFF61: ".",
}
_FLAG = lazy_compile(r"(?<!\S)[\u2013\u2014](?=[A-Za-z])")  # what an editor made of the two dashes of an option

_ENTITY = lazy_compile(r"&(?:amp;)?(?:#(\d{1,6})|#[xX]([0-9a-fA-F]{1,5})|(gt|lt|amp|quot|apos|nbsp));")
_ENTITIES = {"gt": ">", "lt": "<", "amp": "&", "quot": '"', "apos": "'", "nbsp": " "}
_TAG = lazy_compile(r"</?(?:span|pre|code|div|p|b|i|em|strong|font|a|td|tr|li|blockquote)(?: [^<>\n]{0,300})?>|<br ?/?>")
_MARKDOWN = lazy_compile(r"\\([_*\[\]<>#`~|])")
_DRIVE = lazy_compile(r"[A-Za-z]:\\|(?:^|[\s\"'])\.{1,2}\\")  # a path of Windows: its backslashes are no markup

#: Keys of a logger's record that hold what was printed, and those that hold the traceback beside it.
_SAID = ("log", "message", "msg", "event", "text", "textPayload", "MESSAGE", "line", "content", "body", "evalue", "short_message")
_BESIDE = ("exception", "exc_info", "exc_text", "traceback", "stack_trace", "stack", "stacktrace", "full_message")
_INSIDE = ("jsonPayload", "fields", "record", "error", "data", "labels")
_OPEN = lazy_compile(r'"([\w.@/ -]{1,60})"\s{0,4}:\s{0,4}"((?:[^"\\]|\\.)*)$', re.DOTALL)
_ITEM = lazy_compile(r'^\s{0,200}(?:\[\s{0,4}\d{1,9}\.\d{1,12},\s{0,4}"o",\s{0,4})?"((?:[^"\\]|\\.)*)$', re.DOTALL)
_ARRAY = lazy_compile(r'"(?:traceback|text)"\s{0,4}:\s{0,4}\[\s{0,4}"')
_BETWEEN = lazy_compile(r'(?<!\\)",\s{0,40}"')
_CLOSE = lazy_compile(r'(?<!\\)(?:\\\\){0,40}"')
_JSON = lazy_compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_NESTED = lazy_compile(r'\\"|\\n(?= {2}\S|Traceback|(?:\w{1,60}\.){0,8}\w{0,60}Error: )')  # a string in a string; not a path of Windows
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_ONE_LINE = lazy_compile(r'(?: {1,8}|/n {0,8})(?=File "[^"\n]{1,400}", line \d)|(?<=\(most recent call last\):)/n')
_PLACE_THEN = lazy_compile(r'(File "[^"\n]{1,400}", line \d{1,9}, in [\w.<>]{1,120})(?:/n| )\s{0,8}(?=\S)')
_RAISED = lazy_compile(r"(?:/n|[ \t])((?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception): )")


class Record(NamedTuple):
    """The text inside a line that is a JSON value. `said`: rank and process id by name; `stream`: of a container runtime; `open`: the text
    continues in that stream's next line."""

    text: str
    said: dict[str, str]
    stream: str = ""
    open: bool = False


def may_be_coloured(text: str) -> bool:
    """Whether a text may hold terminal colours."""
    return "\x1b" in text or ("[" in text and _LOOKS_COLOURED.search(text) is not None)


def strip_colours(text: str) -> str:
    """The text without terminal colours, also those whose escape character was written out or lost."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return _LEFTOVER.sub("", text) if "[" in text and _LOOKS_COLOURED.search(text) else text


def to_plain_text(text: str) -> str:
    """The text with entities, markup, full-width forms and typographic blanks and quotation marks turned back into the characters that were
    printed."""
    if "&" in text:
        text = _ENTITY.sub(_entity, text)
    if "<" in text and ("</" in text or "<br" in text or "<span" in text):
        text = _TAG.sub(lambda tag: "\n" if tag[0].startswith("<br") else "", text)
    if "\\" in text and _MARKDOWN.search(text) and not _DRIVE.search(text):
        text = _MARKDOWN.sub(r"\1", text)
    if not text.isascii() and _ODD.search(text):
        text = _FLAG.sub("--", text).translate(_PLAIN)
    return text


def strip_markup(text: str) -> str:
    """The text that a browser shows of a line of HTML: without tags, entities decoded."""
    return _ENTITY.sub(_entity, _TAG.sub("", text) if "<" in text else text) if "<" in text or "&" in text else text


def _entity(match: re.Match[str]) -> str:
    if match[3]:
        return _ENTITIES[match[3]]
    code = int(match[1]) if match[1] else int(match[2], 16)
    return chr(code) if 32 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else " "


def undouble_quotes(text: str, *, whole: bool) -> str:
    """The text of a row of a CSV file, where quotation marks are doubled; `whole`: the opening mark was a prefix and is gone, so that the
    last one ends the text."""
    if not whole:
        return text.replace('""', '"') if re.search(r'""[^",\n]{1,400}""', text) else text
    inner = text.rstrip()
    return (inner[:-1] if inner.endswith('"') and len(inner) - len(inner.rstrip('"')) != 2 else text).replace('""', '"')


# -- JSON


def may_be_json(text: str) -> bool:
    """Whether a line looks like a JSON value, perhaps behind a prefix."""
    return text.endswith(("}", "]", '"', "},", '",', "}\r", "\n")) and ('{"' in text[:200] or text.lstrip()[:1] in ("[", '"'))


def parse_record(text: str) -> Record | None:
    """The text of a line that a container runtime, logger, notebook or terminal recorder wrote as JSON; None for any other line."""
    body = text.strip().rstrip(",")
    if len(body) < 4 or body[0] + body[-1] not in ("{}", "[]", '""'):
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, str):
        return Record(data.rstrip("\n"), {})
    if isinstance(data, list):
        recorded = len(data) == 3 and data[1] == "o" and isinstance(data[2], str)
        return Record(data[2].rstrip("\r\n"), {}, "o", not data[2].endswith("\n")) if recorded else None
    return _record_of_dict(data) if isinstance(data, dict) else None


def _record_of_dict(data: dict[str, Any]) -> Record | None:
    log, stream = data.get("log"), data.get("stream")
    if isinstance(log, str) and isinstance(stream, str):  # a container runtime's: nothing else stands in it
        return Record(log.rstrip("\n"), {}, stream, not log.endswith("\n"))
    inner = [data, *(data[key] for key in _INSIDE if isinstance(data.get(key), dict))]
    message_text = next((piece[key] for key in _SAID for piece in inner if isinstance(piece.get(key), str)), None)
    beside = next((piece[key] for key in _BESIDE for piece in inner if isinstance(piece.get(key), str)), None)
    if message_text is None and beside is None:
        return None
    process = {}
    for name in ("rank", "local_rank", "pid"):
        value = next((piece[name] for piece in inner if name in piece), None)
        if isinstance(value, (int, str)) and str(value).isdecimal() and len(str(value)) < 10:
            process[name] = str(value)
    return Record("\n".join(part.rstrip("\n") for part in (message_text, beside) if part is not None), process)


def json_string_end(line_start: str) -> str | None:
    """The decoded text of the JSON string in which `line_start`, a line up to some place, ends; None where it ends in none.

    In an array of lines (a notebook's traceback) the items before it are its lines.
    """
    if '"' not in line_start:
        return None
    array = _ARRAY.search(line_start)
    if array is not None:
        return unquote(_BETWEEN.sub(r"\\n", line_start[array.end() :]))
    opening = _OPEN.search(line_start[-_REACH:]) if line_start.lstrip()[:1] in ("{", "[", '"', "}") or '": "' in line_start else None
    if opening is not None:
        return unquote(opening[2])
    item = _ITEM.match(line_start)
    return unquote(item[1]) if item is not None else None


_REACH = 16384


def split_at_quote(text: str) -> tuple[str, str]:
    """The text, which begins inside a JSON string, as (the decoded rest of that string, what follows its closing quotation mark)."""
    end = _CLOSE.search(text)
    return (unquote(text[: end.end() - 1]), text[end.end() :]) if end else (unquote(text), "")


def unquote(text: str) -> str:
    """Decode the escapes of a JSON string, also of strings nested in it."""
    text = _JSON.sub(_character, text)
    for _ in range(2):
        if "\\" not in text or not _NESTED.search(text):
            break
        text = _JSON.sub(_character, text)
    return text


def _character(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
    return _LETTERS.get(match[2], match[2])


# -- lost line ends


def unescape(text: str) -> str:
    r"""The text of a message that was printed inside a string: `\n` is a line end there."""
    if "\\n" in text or "/n" in text:
        text = text.replace("\\\\n", "\n").replace("\\n", "\n").replace('\\"', '"')
        text = re.sub(r"(?<=:)/n(?= {1,8}File )|/n(?= {2,8}\S)|/n(?=(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception): )", "\n", text)
    return text


def restore_lines(text: str) -> str:
    """The lines of a traceback that was pasted as one line; any other text as it is."""
    if "\n" in text or 'File "' not in text or "Traceback (" not in text:
        return text
    lines = _PLACE_THEN.sub(r"\1\n    ", _ONE_LINE.sub("\n  ", text))
    *_, last = [None, *_RAISED.finditer(lines)]
    return lines if last is None else f"{lines[: last.start()]}\n{lines[last.start(1) :]}"


def line_states(text: str) -> Iterator[str]:
    """What a terminal showed on this line one after another: the non-empty parts between carriage returns."""
    return (part for part in text.split("\r") if part.strip())
