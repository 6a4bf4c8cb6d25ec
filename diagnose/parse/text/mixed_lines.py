"""Separate messages that several processes wrote into one line, so that figures are assigned to the right one."""

from __future__ import annotations

import re

from diagnose.parse.text.lazy_re import lazy_compile

DEVICES = "CUDA|HIP|NPU|XPU|MLU|MUSA|GCU"
HEAD = lazy_compile(rf"(?:{DEVICES}) out of memory\.? Tried", re.IGNORECASE)

_SIZE = r"\d+(?:\.\d+)? ?(?:bytes|[KMGT]iB)"
#: A whole message, word for word: between two that run into each other only these words tell whose a figure is.
_WHOLE = lazy_compile(
    rf"(?:{DEVICES}) out of memory\. Tried to allocate {_SIZE}"
    rf"(?:\. (?:GPU|NPU|XPU) \d{{1,4}} has a total capaci?ty of {_SIZE} of which {_SIZE} is free\. "
    rf"(?:Process \d{{1,10}} has {_SIZE} memory in use\. ){{0,64}}"
    rf"(?:Including non-PyTorch memory, this process has {_SIZE} memory in use\. )?(?:{_SIZE} allowed; )?"
    rf"Of the allocated memory {_SIZE} is allocated by PyTorch,(?: with {_SIZE} allocated in private pools \(e\.g\., CUDA Graphs\),)?"
    rf" and {_SIZE} is reserved by PyTorch but unallocated\."
    rf"| \(\w{{3}} \d{{1,4}}; {_SIZE} total capacity; {_SIZE} already allocated; {_SIZE} free; {_SIZE} (?:reserved in total by PyTorch|cached)\))"  # noqa: E501
    r"(?: If reserved [^()]{1,240}(?:\(https?://[^\s()]{1,200}\)|_CONF))?"
    r"(?: (?=[^\n]{0,120}expandable[-_ ]segment)(?:(?!out of memory)[^\n]){0,900})?"  # torch 2.15 on its reserve
)
_ONCE = (
    "Tried to",
    "capac",
    "is free",
    "this process",
    "allocated memory",
    "by PyTorch, and",
    "already allocated",
    "in total by",
    "unalloc",
)
_NAMED = lazy_compile(r"(?:torch\.(?:cuda\.)?)?OutOfMemoryError: $|RuntimeError: $")  # the class before a message
#: Where another process's words begin inside a sentence, and what stands in each of them; where a number or its unit was torn.
_WORDS = lazy_compile(r"\w{0,20}OutOf|\w{0,20}ryErr|\brror: |Traceback")
_IN_WORDS = ("OutOf", "ryErr", "rror: ", "Traceback")
_FIGURE = lazy_compile(r"\d{1,7}(?:\.\d{0,2})? [KMGT]i?(?!i?B(?:\b|is free))\w|\d{1,7}\.\d{0,2}(?! ?[KMGT]i?B)[A-Za-z]")


def own_text(line_start: str, text: str) -> str | None:
    """The message at the start of a text, without other messages that were written into it; None where its figures may be those of another.

    Processes that share a terminal write into each other's lines. Messages that stand in the text unbroken are removed, innermost first,
    until the outer one is unbroken, too.
    """
    text = " ".join(text.split())
    others = [match.start() for match in HEAD.finditer(text, 12)] if _may_hold_others(text) else []
    own = text[: others[0]] if others else text  # what stands before the other one's first word is its own
    tear = _tear_position(own)
    torn = _is_torn(line_start) or _is_mixed(own[:tear])
    if not (others or tear is not None or torn):
        return text
    whole = _WHOLE.match(text) or _remove_others(text, others)
    if whole is not None:
        return whole[0]
    return None if torn else own[:tear]


def _may_hold_others(text: str) -> bool:
    """Whether another message may begin behind the text's first words; a quick test before the regular expression."""
    return "out of memory" in text[12:].lower()


def _tear_position(text: str) -> int | None:
    """Where another process's words break into a text, behind its first words; None where nothing does."""
    words = _WORDS.search(text, 12) if any(word in text for word in _IN_WORDS) else None
    figure = _FIGURE.search(text, 12)
    return min((match.start() for match in (words, figure) if match is not None), default=None)


def _remove_others(text: str, others: list[int]) -> re.Match[str] | None:
    """The outer message, once the messages at these places are removed; None where it does not become whole."""
    for start in reversed(others):
        inner = _WHOLE.match(text, start)
        if inner is None:
            break
        start -= len(named[0]) if (named := _NAMED.search(text[:start])) else 0
        text = f"{text[:start]}{text[inner.end() :]}"
        for candidate in (text, f"{text[:start]}{text[start:].lstrip()}", f"{text[:start]} {text[start:].lstrip()}"):
            whole = _WHOLE.match(" ".join(candidate.split()))
            if whole is not None:
                return whole
    return None


def _is_mixed(text: str) -> bool:
    """Whether a message repeats words that occur once in each."""
    sentence = re.split(r"\bIf (?:reserved|unallocated|you)", text, maxsplit=1)[0]
    return any(sentence.count(words) > 1 for words in _ONCE)


def _is_torn(line_start: str) -> bool:
    """Whether a message begins earlier in the same line and is incomplete there."""
    line = line_start.rpartition("\n")[2]
    return HEAD.search(line) is not None and HEAD.search(_WHOLE.sub("", " ".join(line.split()))) is not None


def deduplicate_exception(name: str) -> str:
    """An exception class without its repetition, where two processes wrote it one right after the other."""
    half = len(name) // 2
    return name[:half] if half and name[:half] == name[half:] else name


def without_others(text: str) -> str:
    """A text without the complete messages that stand in it behind its own first words."""
    if not _may_hold_others(text) or not HEAD.search(text, 12):
        return text
    for foreign in reversed(list(_WHOLE.finditer(text, 12))):
        named = _NAMED.search(text[: foreign.start()])
        text = text[: named.start() if named else foreign.start()] + text[foreign.end() :]
    return text
