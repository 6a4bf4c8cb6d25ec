"""A command to what it launches: launcher, program, flags."""

from __future__ import annotations

import re

from diagnose import shipped
from diagnose.adapters.shell_file import Command, Reader, Word
from diagnose.record import record

_WRAPPERS = frozenset(
    {
        "nohup",
        "sudo",
        "exec",
        "time",
        "stdbuf",
        "env",
        "command",
        "eval",
        "setsid",
        "xvfb-run",
        "poetry",
        "uv",
        "pdm",
        "run",
        "apptainer",
        "singularity",
        "docker",
    }
)
_SPREADS = frozenset({"srun", "mpirun", "mpiexec", "torchx", "pdsh", "ssh"})
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*$")
_TORCHRUN = re.compile(r"(?:.*/)?torchrun$|torch\.distributed\.(?:run|launch)$")
_NUMBER = re.compile(r"-\d|-\.\d")
_OVERRIDE = re.compile(r"(\+{0,2})([A-Za-z_][\w./@-]*)=")
_MODULE = ("-m", "--module")


@record
class Flag:
    """An option as given: `key` as written without a value, `name` as the program knows it, `value` None for a bare flag.

    `start:end` is the value (start == end: right after a bare flag); `at` is where the option stands.
    """

    key: str
    name: str
    value: str | None
    start: int
    end: int
    at: int
    sure: bool = True
    items: tuple[str, ...] = ()


@record
class Launch:
    """What one command starts. `launcher` is torchrun, deepspeed, accelerate, python, ray or empty; `program` the script,
    module or sub-command; `spread` says that another tool (srun, mpirun) starts several of it."""

    launcher: str
    launcher_flags: tuple[Flag, ...]
    program: str
    flags: tuple[Flag, ...]
    files: tuple[Word, ...]
    env: dict[str, Word]
    start: int
    program_at: int
    end: int
    spread: bool = False
    orphan: bool = False


def launches(text: str) -> list[Launch]:
    """Every command of a script (or of one echoed line) that carries flags or starts a program; assignments alone as well."""
    found = []
    for command in Reader(text).read():
        found += _of(command, text)
    return found


def _of(command: Command, text: str) -> list[Launch]:
    words = list(command.words)
    if words[0].text == "export":
        return [Launch("", (), "export", (), (), command.env, command.start, command.start, command.start)]
    if len(words) > 2 and words[0].text in ("bash", "sh") and words[1].text in ("-c", "-lc"):
        inner, shift = words[2], words[2].end - 1 - len(words[2].text)
        return [_moved(launch, shift, command) for launch in launches(inner.text)]
    env, spread, ray = dict(command.env), False, False
    while words:
        head = words[0].text
        if head == "ray" and "submit" in [word.text for word in words[:4]]:
            dashes = next((i for i, word in enumerate(words) if word.text == "--"), None)
            words, ray = words[(dashes + 1 if dashes is not None else len(words)) :], True
        elif head in _SPREADS:
            words, spread = _past_options(words[1:]), True
        elif assigned := re.match(r"([A-Za-z_]\w*)=", head):  # after env, sudo, srun
            env[assigned[1]] = Word(head[assigned.end() :], words[0].start + assigned.end(), words[0].end, words[0].sure)
            words = words[1:]
        elif head in _WRAPPERS or (head.startswith("-") and len(words) < len(command.words)):  # options of the wrapper just taken off
            words = words[1:]
        else:
            break
    if not words:
        return [Launch("", (), "", (), (), env, command.start, command.start, command.start)] if env else []
    if words[0].text.startswith("-"):
        flags, files = _flags(words, text)
        return [Launch("", (), "", flags, files, env, command.start, words[0].start, words[-1].end, orphan=True)]
    launcher, before, rest = _launcher(words)
    if ray:
        launcher = "ray"
    if not rest:
        return []
    program, args = _program(rest)
    flags, files = _flags(args, text)
    return [Launch(launcher, _flags(before, text)[0], program, flags, files, env, command.start, rest[0].start, rest[-1].end, spread)]


def _moved(launch: Launch, shift: int, outer: Command) -> Launch:
    """A launch read inside a quoted string, in the offsets of the whole script."""

    def move(flag: Flag) -> Flag:
        return Flag(flag.key, flag.name, flag.value, flag.start + shift, flag.end + shift, flag.at + shift, flag.sure, flag.items)

    def shifted(word: Word) -> Word:
        return Word(word.text, word.start + shift, word.end + shift, word.sure)

    env = {**outer.env, **{name: shifted(word) for name, word in launch.env.items()}}
    flags, before = tuple(map(move, launch.flags)), tuple(map(move, launch.launcher_flags))
    files = tuple(map(shifted, launch.files))
    return Launch(
        launch.launcher,
        before,
        launch.program,
        flags,
        files,
        env,
        launch.start + shift,
        launch.program_at + shift,
        launch.end + shift,
        launch.spread,
    )


def _past_options(words: list[Word]) -> list[Word]:
    """What follows the options of a launcher whose options we do not know: the first word that looks like a program."""
    for index, word in enumerate(words):
        if (
            _PYTHON.match(word.text)
            or _TORCHRUN.match(word.text)
            or word.text in ("accelerate", "deepspeed", "bash", "env", "axolotl", "trl")
        ):
            return words[index:]
        if "=" in word.text and not word.text.startswith("-"):
            return words[index:]
    return []


def _launcher(words: list[Word]) -> tuple[str, list[Word], list[Word]]:
    """The launcher, its own words, and the words from the program on."""
    head = words[0].text
    if _PYTHON.match(head):
        rest = words[1:]
        while rest and rest[0].text.startswith("-") and rest[0].text not in _MODULE:
            rest = rest[1:]
        if len(rest) > 1 and rest[0].text in _MODULE:
            if _TORCHRUN.match(rest[1].text):
                return "torchrun", *_split(rest[2:])
            if rest[1].text.startswith("accelerate.commands.launch"):
                return "accelerate", *_split(rest[2:])
            return "python", [], rest
        return "python", [], rest
    if _TORCHRUN.match(head):
        return "torchrun", *_split(words[1:])
    if head.endswith("deepspeed"):
        return "deepspeed", *_split(words[1:])
    if head.endswith("accelerate") and len(words) > 1 and words[1].text == "launch":
        return "accelerate", *_split(words[2:])
    return "", [], words


def _split(words: list[Word]) -> tuple[list[Word], list[Word]]:
    """A launcher's options and the rest. Its options take a value unless the next word is a script, a module or an option."""
    index = 0
    while index < len(words):
        text = words[index].text
        if text in _MODULE and index + 1 < len(words) and "." in words[index + 1].text and "=" not in text:
            return words[:index], words[index:]
        if not text.startswith("-"):
            return words[:index], words[index:]
        following = words[index + 1].text if index + 1 < len(words) else "-"
        takes = "=" not in text and not following.startswith("-") and not following.endswith((".py", ".sh")) and text not in _MODULE
        index += 2 if takes else 1
    return words, []


def _program(words: list[Word]) -> tuple[str, list[Word]]:
    """The name of what runs and the words after it."""
    if words[0].text in _MODULE and len(words) > 1:
        return words[1].text, words[2:]
    head = words[0].text.rpartition("/")[2] if "/" in words[0].text and not words[0].text.endswith(".py") else words[0].text
    if head in shipped.table("programs")["commands"]:
        size = 1
        while size < min(3, len(words)) and re.fullmatch(r"[a-z][a-z_-]*", words[size].text):
            size += 1
        return " ".join([head, *(word.text for word in words[1:size])]), words[size:]
    return words[0].text, words[1:]


def _flags(words: list[Word], source: str) -> tuple[tuple[Flag, ...], tuple[Word, ...]]:
    """Options with their values, `key=value` overrides, and the words that are neither."""
    flags: list[Flag] = []
    files: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.text.startswith("-") and not _NUMBER.match(word.text) and len(word.text) > 1:
            key, equals, value = word.text.partition("=")
            if equals:
                start = _after_equals(word, source)
                flags.append(Flag(key, named(key), value, start, word.end, word.start, word.sure))
                continue
            values: list[Word] = []
            while (
                index < len(words)
                and (not words[index].text.startswith("-") or _NUMBER.match(words[index].text))
                and not (values and _OVERRIDE.match(words[index].text))
            ):
                values.append(words[index])
                index += 1
            flags.append(_flag(word, values))
        elif override := _OVERRIDE.match(word.text):
            name = override[2]
            start = _after_equals(word, source)
            flags.append(Flag(override[1] + name, named(name), word.text[override.end() :], start, word.end, word.start, word.sure))
        else:
            files.append(word)
    return tuple(flags), tuple(files)


def _after_equals(word: Word, source: str) -> int:
    """Where the value of `key=value` starts as written."""
    equals = source.find("=", word.start, word.end)
    return word.end if equals < 0 else equals + 1


def _flag(word: Word, values: list[Word]) -> Flag:
    if not values:
        return Flag(word.text, named(word.text), None, word.end, word.end, word.start, word.sure)
    text = " ".join(value.text for value in values)
    items = tuple(value.text for value in values) if len(values) > 1 else ()
    return Flag(word.text, named(word.text), text, values[0].start, values[-1].end, word.start, all(value.sure for value in values), items)


def named(key: str) -> str:
    """An option's name as the program knows it: `--per-device-train-batch-size` is `per_device_train_batch_size`."""
    return key.lstrip("-+").replace("-", "_")
