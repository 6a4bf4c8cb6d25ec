"""Words of a command to its options: `--key value`, `--key=value`, `key=value` overrides, variables forwarded by an option."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diagnose.adapters.formats.config_value import Unreadable
from diagnose.adapters.formats.json_file import Reader
from diagnose.adapters.shell.shell_text import Word

_ENV_OPTION = re.compile(r"(?:--env=|-e=)?([A-Z_][A-Z0-9_]*)=")
_NUMBER = re.compile(r"-\d|-\.\d")
_DELETION = re.compile(r"~[A-Za-z_][\w.@-]*(?:=|$)")
#: A variable that a command may keep further options in (`$EXTRA`, `"$@"`), and a script: no further value of the option before them.
_NO_VALUE = re.compile(r"[\"']?\$\{?[@*]|\$(?:\w+|\{\w+\})(?:\s|$)")
_OVERRIDE = re.compile(r"(\+{0,2})([A-Za-z_][\w./@-]*)=")
#: An override even where it is the first word behind an option: --cfg-options train_dataloader.batch_size=2, --multirun a.b=1.
_DOTTED = re.compile(r"[a-z_]\w*(?:\.[A-Za-z_]\w*)+=")


@dataclass(slots=True)
class Flag:
    """An option: `key` as written without a value, `name` as the program knows it, `value` None for a bare flag.

    `start:end` are the offsets of the value (start == end: right behind a bare flag), `pos` that of the option; `items` are the
    values where there are several. `used` is where the command uses the value, if it is written elsewhere.
    """

    key: str
    name: str
    value: str | None
    start: int
    end: int
    pos: int
    sure: bool = True
    items: tuple[str, ...] = ()
    used: tuple[int, int] | None = None


def parse_flags(words: Sequence[Word], source: str) -> tuple[tuple[Flag, ...], tuple[Word, ...]]:
    """Options with their values, and the words that are neither."""
    flags: list[Flag] = []
    positionals: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.text.startswith("-") and not _NUMBER.match(word.text) and len(word.text) > 1:
            key, equals, value = word.text.partition("=")
            if equals:
                flags.append(_assigned_flag(word, key, value, source))
                continue
            values: list[Word] = []
            while (
                index < len(words)
                and (not words[index].text.startswith("-") or _NUMBER.match(words[index].text))
                and not _DOTTED.match(words[index].text)
                and not (values and (_OVERRIDE.match(words[index].text) or _DELETION.match(words[index].text)))
                and not (values and _ends_values(words[index], source))
            ):
                if words[index].text.strip() or not words[index].text:  # an escaped blank is a typing mistake
                    values.append(words[index])
                index += 1
            flags.append(_option_flag(word, values))
        elif _DELETION.match(word.text):  # how Hydra and torchtune delete a key
            flags.append(
                Flag(word.text.partition("=")[0], word.text[1:].partition("=")[0], "null", word.end, word.end, word.start, word.sure)
            )
        elif override := _OVERRIDE.match(word.text):
            flags.append(_assigned_flag(word, override[1] + override[2], word.text[override.end() :], source))
        elif word.text.strip():
            positionals.append(word)
    return tuple(flags), tuple(positionals)


def _ends_values(word: Word, source: str) -> bool:
    """Whether a word behind an option's first value is none of its values."""
    is_open = _NO_VALUE.match(source, word.start) is not None and (
        not word.sure or source[word.start : word.start + 3].strip("\"'${")[:1] in "@*"
    )
    return is_open or word.text.endswith(".py")


def _assigned_flag(word: Word, key: str, value: str, source: str) -> Flag:
    start, end, used = _value_place(word, len(word.text) - len(value), source)
    return Flag(key, flag_name(key), value, start, end, word.start, word.sure, (), used)


def _value_place(word: Word, offset: int, source: str) -> tuple[int, int, tuple[int, int] | None]:
    """Offsets of a word's text from `offset` on, and, if it is written in a variable, where the command uses it."""
    definition = word.edit_site(offset) if word.sure else None
    chars = word.chars
    equals = chars.starts[offset - 1] if chars is not None and 0 < offset <= len(chars.starts) else -1
    if not offset:
        start, end = word.start, word.end
    elif source[equals : equals + 1] == "=" and word.start <= equals < word.end:
        quote = source[word.start : word.start + 1]
        quoted = quote in ("'", '"') and source[word.end - 1 : word.end] == quote  # the whole option, which ends behind the quote
        start, end = equals + 1, word.end - quoted
        if quoted and definition is None:
            return start, end, (start, word.end)
    elif chars is not None and offset < len(chars.starts):
        start, end = chars.starts[offset], chars.ends[-1]
    else:
        start = end = word.end
    if definition is not None:
        return definition.start, definition.end, (start, end)
    return start, end, (start, word.end) if start <= end < word.end else None  # a closing quote belongs to the option, not to the value


def _option_flag(word: Word, values: list[Word]) -> Flag:
    if not values:
        return Flag(word.text, flag_name(word.text), None, word.end, word.end, word.start, word.sure)
    text = " ".join(value.text for value in values)
    items = tuple(value.text for value in values) if len(values) > 1 else ()
    sure = word.sure and all(value.sure for value in values)
    start, end, used = _value_place(values[0], 0, "") if len(values) == 1 else (values[0].start, max(values[0].start, values[-1].end), None)
    return Flag(word.text, flag_name(word.text), text, start, end, word.start, sure, items, used)


def flag_name(key: str) -> str:
    """The name of an option as the program knows it: `--per-device-train-batch-size` is per_device_train_batch_size."""
    return key.lstrip("-+").replace("-", "_")


# -- variables that options forward


def forwarded_variables(words: Sequence[Word]) -> dict[str, Word]:
    """Variables that a command forwards to a container, the nodes of a job or the workers of a Ray cluster.

    They stand in `-e X=1` and `--env X=1` of containers, `--export=ALL,X=1` of srun and
    `--runtime-env-json '{"env_vars": {"X": "1"}}'` of `ray job submit`.
    """
    env = {}
    for word in words[1:]:
        if assignment := _ENV_OPTION.match(word.text):
            env[assignment[1]] = Word(word.text[assignment.end() :], word.start + assignment.end(), word.end, word.sure)
    for word, start in option_values(words, "--export"):
        env |= dict(_export_values(word, start))
    for word, start in option_values(words, "--runtime-env-json"):
        env |= dict(_runtime_env_values(word, start))
    return env


def option_values(words: Sequence[Word], option: str) -> Iterator[tuple[Word, int]]:
    """The words that hold the values of an option, and where in the word each value begins."""
    for index, word in enumerate(words):
        if word.text == "--":
            return
        if word.text.startswith(f"{option}="):
            yield word, len(option) + 1
        elif word.text == option and index + 1 < len(words):
            yield words[index + 1], 0


def _export_values(word: Word, start: int) -> Iterator[tuple[str, Word]]:
    for item in re.finditer(r"([A-Za-z_]\w*)=([^,]+)", word.text[start:]):
        if word.chars is not None:
            yield item[1], word.chars.word(start + item.start(2), start + item.end(2))


def _runtime_env_values(word: Word, start: int) -> Iterator[tuple[str, Word]]:
    chars = word.chars
    if chars is None or len(chars.starts) != len(word.text):
        return
    try:
        leaves = Reader(word.text[start:]).leaves()
    except (Unreadable, RecursionError):
        return
    for leaf in leaves:
        block, _, name = leaf.key.rpartition(".")
        first, last = start + leaf.start + 1, start + leaf.end - 1
        if block == "env_vars" and leaf.text and word.text[first:last] == leaf.text:
            yield name, chars.word(first, last)
