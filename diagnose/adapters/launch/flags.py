"""Words of a command to its options: `--key value`, `--key=value`, `key=value` overrides, and the words that are neither."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnose.adapters.shell.shell_text import Word
from diagnose.record import record

_NUMBER = re.compile(r"-\d|-\.\d")
_TAKEN_OUT = re.compile(r"~[A-Za-z_][\w.@-]*(?:=|$)")
_OVERRIDE = re.compile(r"(\+{0,2})([A-Za-z_][\w./@-]*)=")


@record
class Flag:
    """An option as given: `key` as written without a value, `name` as the program knows it, `value` None for a bare flag.

    `start:end` is the value (start == end: right after a bare flag); `at` is where the option stands, `used` where the command
    uses the value when it is written elsewhere.
    """

    key: str
    name: str
    value: str | None
    start: int
    end: int
    at: int
    sure: bool = True
    items: tuple[str, ...] = ()
    used: tuple[int, int] | None = None


def flags_of(words: Sequence[Word], source: str) -> tuple[tuple[Flag, ...], tuple[Word, ...]]:
    """Options with their values, overrides, and the rest."""
    flags: list[Flag] = []
    files: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.text.startswith("-") and not _NUMBER.match(word.text) and len(word.text) > 1:
            key, equals, value = word.text.partition("=")
            if equals:
                flags.append(_assigned(word, key, value, source))
                continue
            values: list[Word] = []
            while (
                index < len(words)
                and (not words[index].text.startswith("-") or _NUMBER.match(words[index].text))
                and not (values and (_OVERRIDE.match(words[index].text) or _TAKEN_OUT.match(words[index].text)))
            ):
                if words[index].text.strip() or not words[index].text:  # a blank that a backslash protects is a slip
                    values.append(words[index])
                index += 1
            flags.append(_flag(word, values))
        elif _TAKEN_OUT.match(word.text):  # Hydra's and torchtune's way to take a key out
            flags.append(
                Flag(word.text.partition("=")[0], word.text[1:].partition("=")[0], "null", word.end, word.end, word.start, word.sure)
            )
        elif override := _OVERRIDE.match(word.text):
            flags.append(_assigned(word, override[1] + override[2], word.text[override.end() :], source))
        elif word.text.strip():
            files.append(word)
    return tuple(flags), tuple(files)


def _assigned(word: Word, key: str, value: str, source: str) -> Flag:
    start, end, used = _place(word, len(word.text) - len(value), source)
    return Flag(key, named(key), value, start, end, word.start, word.sure, (), used)


def _place(word: Word, offset: int, source: str) -> tuple[int, int, tuple[int, int] | None]:
    """Where the text of a word from an offset on is written, and (if that is at a variable) where the command uses it."""
    home = word.home(offset) if word.sure else None
    chars = word.chars
    equals = chars.at[offset - 1] if chars is not None and 0 < offset <= len(chars.at) else -1
    if not offset:
        begin, end = word.start, word.end
    elif source[equals : equals + 1] == "=" and word.start <= equals < word.end:
        quote = source[word.start : word.start + 1]
        quoted = quote in ("'", '"') and source[word.end - 1 : word.end] == quote  # the whole of it: the option ends behind its quote
        begin, end = equals + 1, word.end - quoted
        if quoted and home is None:
            return begin, end, (begin, word.end)
    elif chars is not None and offset < len(chars.at):
        begin, end = chars.at[offset], chars.to[-1]
    else:
        begin = end = word.end
    if home is not None:
        return home.start, home.end, (begin, end)
    return begin, end, (begin, word.end) if begin <= end < word.end else None  # the quote that closes the word ends the option


def _flag(word: Word, values: list[Word]) -> Flag:
    if not values:
        return Flag(word.text, named(word.text), None, word.end, word.end, word.start, word.sure)
    text = " ".join(value.text for value in values)
    items = tuple(value.text for value in values) if len(values) > 1 else ()
    sure = word.sure and all(value.sure for value in values)
    start, end, used = _place(values[0], 0, "") if len(values) == 1 else (values[0].start, max(values[0].start, values[-1].end), None)
    return Flag(word.text, named(word.text), text, start, end, word.start, sure, items, used)


def named(key: str) -> str:
    """An option's name as the program knows it: `--per-device-train-batch-size` is `per_device_train_batch_size`."""
    return key.lstrip("-+").replace("-", "_")
