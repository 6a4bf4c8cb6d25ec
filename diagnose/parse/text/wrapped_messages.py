"""Put messages together that a terminal or a box wrapped, even in mid-word: where such a message begins and how it continues."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from diagnose.parse.text.mixed_lines import DEVICES, without_others
from diagnose.parse.text.prefixes import NOBODY, same_stream

if TYPE_CHECKING:
    from diagnose.parse.model.message import Message
    from diagnose.parse.text.lines import Page
    from diagnose.parse.text.mixed_lines import DEVICES, without_others
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.prefixes import Prefix
from diagnose.records import NamedTuple

JOINED = 16  # lines that one message may be wrapped into
LONGEST = 4000  # characters of a message that are parsed
BACK = 4  # lines in which the head of a message may stand before its first figure
#: The second part of a message, which tells of one whose head was torn. It stands in rules/messages.yaml by itself.
INSIDE = "Tried to allocate"

#: The same without its blanks, wherever line ends were put into it, and the class before it.
_SQUEEZED = lazy_compile(
    rf"((?:\w{{1,60}}\.){{0,8}}\w{{0,60}}(?:Error|Exception|outofmemoryerror))?:?((?:{DEVICES}|MPSbackend)outofmemory)[.,:]?$",
    re.IGNORECASE,
)
#: An exception class that says what the head of a message would.
_CLASS = lazy_compile(r"OutOfMemoryError\s*[:：]\s*$")
#: The body of an allocator's message: nobody else writes a request and a card's capacity so. People quote it without its head.
_BODY = lazy_compile(
    rf"{INSIDE} [\d.]{{1,12}} ?(?:bytes|[KMGT]iB)"
    r"(?: \((GPU|NPU|XPU|MLU) \d{1,4}; [\d.]{1,12} ?[KMGT]iB total|\. (GPU|NPU|XPU|MLU) \d{1,4}(?: has a total|\s{0,8}$)|\.?\s{0,8}$)"
)
#: The class without a message: above the traceback of a notebook, in a class of Ray, at the end of a log, in a field of a report, whose
#: label and message a translator may have changed.
_BARE = lazy_compile(r"\s{2,}Traceback \(most recent|\):|:?\s*$")
_ALONE = lazy_compile(
    r"^\s*(?:torch\.(?:cuda\.)?)?OutOf$|RayTaskError\(OutOf$|^[-*•\s]{0,8}[^\W\d][^\n.:：]{1,30}[:：][*\s]{0,4}torch\.(?:cuda\.)?OutOf$"
)
_QUALIFIER = lazy_compile(r"(?:torch\.(?:cuda\.)?)?OutOf$")
_DEVICE = lazy_compile(r"(?:^|\W)([A-Za-z]{2,6}|MPS backend)\s{0,8}$")  # also of a device that has no literal of its own
_FOUND = lazy_compile(
    rb"(?:CUDA|HIP|NPU|XPU|MLU|MUSA|GCU|MPS backend) out of memory|out of memory\. Tried to allocate"
)  # by the search itself
_HEAD_AHEAD = lazy_compile(rf"\W{{0,12}}((?:{DEVICES}|MPS backend)\s{{0,8}}out\s{{0,8}}of\s{{0,8}}memory)", re.IGNORECASE)

#: Words of messages that are never halves of others: a line that ends or begins with one was wrapped at a blank.
_WORDS = frozenset(
    re.findall(
        r"\w+",
        "out of memory tried to allocate gpu has a total capacity which is free including non pytorch this process in use allocated by"
        " and reserved but unallocated if large try setting already allowed the cached",
    )
)
_BORDER = lazy_compile(r"^\s{0,80}[|│┃]\s?|\s*[|│┃]\s*$")
_DECIMAL = lazy_compile(r"(?<![\d.,])(\d{1,3}(?:[.\u2019' ]\d{3})*|\d{1,7}),(\d{1,2})(?=\s?(?:[KMGT]i?B|bytes)\b)")
_THOUSANDS = lazy_compile(r"(?<![\d.,])(\d{1,3}(?:,\d{3})+)(\.\d{1,3})?(?=\s?([KMGT]i?B|bytes)\b)")


class MessageReader(Protocol):
    """A module of parse/messages: whether a line continues a message, and what a message says."""

    def goes_on(self, text: str, line: str, /) -> bool: ...
    def read(self, text: str, /) -> Message | None: ...


class Place(NamedTuple):
    """Where a message begins; `before` and `after`: its line's text up to there, from there on; `row`: index of the line that `after` ends
    in."""

    offset: int
    row: int
    prefix: Prefix
    before: str
    after: str


# -- where it begins


def message_place(page: Page, offset: int) -> Place | None:
    """The place of the message at a hit, also where the hit is inside it and its head stands in lines above; None where a hit inside a
    message has no head."""
    prefix, line_start, line_rest = page.around(offset)
    index = page.index(offset)
    words = re.match(rf"{INSIDE}|out of memory", line_rest, re.IGNORECASE)
    if words is None:
        return Place(offset, index, prefix, line_start, line_rest)
    inside = words[0] == INSIDE
    device = None if inside else _DEVICE.search(line_start)
    if device is not None and device[1].upper() in DEVICES.split("|"):
        return Place(_find(page, index, offset, device[1]), index, prefix, line_start[: device.start(1)], f"{device[1]} {line_rest}")
    head = _head_above(page, index, prefix, line_start if inside else f"{line_start}{words[0]}")
    if head is None:
        if device is not None:
            return Place(_find(page, index, offset, device[1]), index, prefix, line_start[: device.start(1)], f"{device[1]} {line_rest}")
        body = _BODY.match(line_rest) if inside else None
        if body is not None or (inside and _CLASS.search(line_start)):
            named = next(filter(None, body.groups()), "") if body is not None else ""
            begin = "out of memory" if named in ("", "GPU") else f"{named} out of memory"
            return Place(offset, index, prefix, line_start, f"{begin}. {line_rest}")
        return None if inside else Place(offset, index, prefix, line_start, line_rest)
    line_index, prefix, name, device_words = head
    message_rest = f". {line_rest}" if inside else line_rest[words.end() :]
    begins = _find(page, line_index, offset, device_words[:4])
    return Place(begins, index, prefix, f"{name}: " if name else "", _restore_blanks(device_words) + message_rest)


def _head_above(page: Page, index: int, prefix: Prefix, line_start: str) -> tuple[int, Prefix, str, str] | None:
    """The head of a message ("CUDA out of memory") that `line_start` ends with, even when lines cut it: (index of its first line, who wrote
    that, exception class, head without blanks)."""
    pieces = [(index, line_start)]
    for above in range(index - 1, max(-1, index - 1 - 8 * BACK), -1):
        if len(pieces) > BACK:
            break
        line = page.line(above)
        if prefix == NOBODY and above == pieces[0][0] - 1:
            prefix = line.prefix  # a console cut its line
        if same_stream(line.prefix, prefix) and line.text.strip():
            pieces.insert(0, (above, _strip_box(line.text)[-200:]))
    squeezed = ["".join(text.split()) for _, text in pieces]
    text = "".join(squeezed)[-400:]
    head = _SQUEEZED.search(text) if "outofmemory" in text[-12:].lower() else None
    if head is None:
        return None
    remaining = len(head[0]) - (head.start(2) - head.start())  # characters of the head and behind it
    line_index = index
    for (line_index, _), text in zip(reversed(pieces), reversed(squeezed), strict=True):  # noqa: B007
        if remaining <= len(text):
            break
        remaining -= len(text)
    return line_index, prefix, head[1] or "", head[2]


def _restore_blanks(head: str) -> str:
    """The head with blanks between its words again."""
    return re.sub(r"(?i)\s*(out)\s*(of)\s*(memory)$", r" \1 \2 \3", head)


def _find(page: Page, index: int, limit: int, word: str) -> int:
    """Offset of the last occurrence of a word, or of a beginning of it, in a line before `limit`; of the line's start if there is none."""
    start, end = page.bounds(index)
    end = min(end, limit - page.excerpt.offset)
    for length in range(len(word), 0, -1):
        at = page.excerpt.raw.rfind(word[:length].encode(), start, end)
        if at >= 0:
            return page.excerpt.offset + at
    return page.excerpt.offset + start


def place_behind_class(page: Page, offset: int) -> Place | None:
    """The place of a message behind the exception class OutOfMemoryError, where a line cut or unusual blanks hide the head from the search;
    None where the search finds it itself."""
    at = offset - page.excerpt.offset
    if _FOUND.search(page.excerpt.raw, at, at + 160):
        return None
    prefix, line_start, line_rest = page.around(offset)
    index = page.index(offset)
    text, starts = line_rest.removeprefix("MemoryError"), [(0, index)]
    head_match = _HEAD_AHEAD.match(text)
    if head_match is None and _BARE.match(text) and _ALONE.search(line_start):
        return Place(offset - len("OutOf"), index, prefix, _QUALIFIER.sub("", line_start), "OutOfMemoryError")
    for below in range(index + 1, min(index + 1 + BACK, len(page))):
        if head_match is not None or page.line(below).prefix not in (prefix, NOBODY):
            break
        starts.append((len(text), below))
        text += _strip_box(page.line(below).text)
        head_match = _HEAD_AHEAD.match(text)
    if head_match is None:
        return None
    line_index = max((start, line) for start, line in starts if start <= head_match.start(1))[1]
    begins = page.excerpt.raw.find(head_match[1][0].encode(), at if line_index == index else page.starts[line_index])
    head = f"{line_start}MemoryError{text[: head_match.start(1)]}"
    return Place(
        page.excerpt.offset + begins,
        starts[-1][1],
        prefix,
        head,
        _restore_blanks("".join(head_match[1].split())) + text[head_match.end() :],
    )


# -- how it goes on


def join_wrapped(text: str, page: Page, index: int, prefix: Prefix, reader: MessageReader, *, to_the_end: bool = False) -> str:
    """The whole text of a message: its line and those it was wrapped into, with numbers as torch prints them. `to_the_end`: with a number
    that the end of the text may have cut."""
    text, *further = text.split("\n")
    text = _END.sub("", text) if text.rstrip()[-1:] in _BORDERS else text
    count = blanks = 0
    for line in chain(further, page.following(index, prefix)):
        if text.endswith(line.strip() or "\n"):
            continue  # the line end was the raw index of device 10
        if not line.strip():
            blanks += 1
            if blanks > 1:
                break
            continue
        line = _strip_box(line)
        so_far = without_others(" ".join(text.split()))
        on = reader.goes_on(so_far, line.lstrip(".:, ")) or _is_cut(text, line) or reader.goes_on(so_far, _tail(text) + line)
        if count == JOINED or len(text) > LONGEST or not on:
            break
        text += _seam(text, line, reader) + line
        count, blanks = count + 1, 0
    number = _LAST_NUMBER.search(text[-26:])
    if number is not None and not to_the_end and page.cut_off.endswith(number[0]):
        text = text[: number.start() - min(26, len(text))]  # its other digits, or its unit, may be missing
    return normalise_numbers(text[:LONGEST], getattr(reader, "PARTED_BYTES", False))


_LAST_NUMBER = lazy_compile(r"\d[\d.,]{0,24}$")
_END = lazy_compile(r"\s{2,}[|│┃]\s*$")
_BORDERS = frozenset("|│┃")


def _strip_box(line: str) -> str:
    """The line without the borders of a box."""
    return _BORDER.sub("", line) if line.lstrip()[:1] in ("|", "│", "┃") else line


def _tail(text: str) -> str:
    """The letters at the end of a text: perhaps the first half of a word."""
    word = re.search(r"[A-Za-z]{1,20}$", text[-21:])
    return word[0] if word else ""


def _start(line: str) -> str:
    """The letters at the start of a line: perhaps the second half of a word."""
    word = re.match(r"[A-Za-z]{1,20}", line)
    return word[0] if word else ""


def _is_cut(text: str, line: str) -> bool:
    """Whether two lines cut a word of a message in two."""
    first, second = _tail(text).lower(), _start(line).lower()
    return bool(first and second) and first + second in _WORDS and not (first in _WORDS and second in _WORDS)


def _seam(text: str, line: str, reader: MessageReader) -> str:
    """What to join two lines with: "" where a console cut a number or a word, else a line end."""
    last_character, first_character = text[-1:], line[:1]
    if not last_character or last_character.isspace() or not first_character or first_character.isspace():
        return "\n"
    if first_character.isdigit() and (last_character.isdigit() or re.search(r"\d\.$", text[-8:])):
        return ""
    if first_character in ";,.:)":
        return ""
    if not (last_character.isalpha() and first_character.isalpha()):
        return "\n"
    if re.search(r"\d ?[KMGTb]\w{0,3}$", text[-12:]) and re.match(r"i?B\b|y?t?es\b", line):
        return ""  # a unit
    if _is_cut(text, line):
        return ""
    first, second = _tail(text).lower(), _start(line).lower()
    if first in _WORDS and second in _WORDS:
        return "\n"
    return "" if _parsed_length(reader.read(text + line)) > _parsed_length(reader.read(f"{text}\n{line}")) else "\n"


def _parsed_length(message: Message | None) -> tuple[int, int]:
    """How much of a message its grammar understood, to compare two ways of joining it."""
    if message is None:
        return (-1, 0)
    figures = sum(size is not None for size in message.figures.values())
    return (figures + len(message.processes) + (message.gpu is not None), -message.unread)


def normalise_numbers(text: str, parted_bytes: bool = False) -> str:
    """The text with sizes as torch prints them: decimal commas as points, thousands not parted. "1,500 GiB" could mean either and becomes
    "?".

    `parted_bytes`: the message itself parts the thousands of bytes; these are left as printed.
    """
    if "," not in text or not re.search(r"\d,\d", text):
        return text
    text = _DECIMAL.sub(lambda size: f"{re.sub(r'[^0-9]', '', size[1])}.{size[2]}", text)
    return _THOUSANDS.sub(lambda size: size[0] if parted_bytes and size[3] == "bytes" else _join_thousands(size), text)


def _join_thousands(size: re.Match[str]) -> str:
    if size[3][0] in "GT" and not size[2]:  # 1,500 GiB: a card of 1.5 or of 1500
        return "?"
    return size[1].replace(",", "") + (size[2] or "")
