"""Where a launcher ends and its program begins: torchrun, deepspeed, accelerate, python, and runners such as `tune run`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from diagnose import rule_files
from diagnose.adapters.launch.flags import Flag
from diagnose.adapters.shell.first_word import PYTHON, TORCHRUN, starts_program
from diagnose.adapters.shell.shell_text import Word

_MODULE = ("-m", "--module")
#: Options of torchrun that take no value.
_VALUELESS = frozenset({"standalone", "no_python", "run_path"})


def skip_options(words: list[Word]) -> list[Word]:
    """Of words behind unknown options those from the first that looks like a program on, else from the image of a container."""
    for index, word in enumerate(words):
        mounts = ":/" in word.text  # a folder of the host and its place in the container, which may be called like a program
        if not mounts and (starts_program(word.text) or word.text.rpartition("/")[2] == "env"):
            return words[index:]
        if re.match(r"[A-Za-z_]\w*=", word.text) and not (index and re.fullmatch(r"--?[A-Za-z][\w-]*", words[index - 1].text)):
            return words[index:]
    return next((words[index:] for index, word in enumerate(words) if is_image(word.text)), [])


def is_image(text: str) -> bool:
    """Whether it is the image of a container whose entry point is a program that we know; a tag counts as far as the table says one."""
    name = text.rpartition("/")[2]
    images = rule_files.table("programs")["images"]
    return any(name.startswith(image) if ":" in image else name.partition(":")[0] == image for image in images)


def is_one_of(program: str, programs: Iterable[str]) -> bool:
    """Whether a program is listed, by name with sub-command or by the end of its path."""
    return any(f"{program} ".startswith(f"{one} ") or program.endswith(f"/{one}") for one in programs)


def trains_nothing(program: str) -> bool:
    """Whether a program of a trainer only evaluates, generates, serves or converts: its options are others than those of training."""
    return is_one_of(program, rule_files.table("programs")["untrained"])


def split_launcher(words: list[Word]) -> tuple[str, list[Word], list[Word]]:
    """The launcher, its options, and the words from the program on."""
    head = words[0].text
    if PYTHON.match(head):
        program = words[1:]
        while program and program[0].text.startswith("-") and program[0].text not in _MODULE:
            program = program[1:]
        if len(program) > 1 and program[0].text in _MODULE:
            module = program[1].text
            if module in rule_files.table("programs")["watching"]:
                return split_launcher([words[0], *_watched(program[2:])])
            if TORCHRUN.match(module):
                return "torchrun", *split_options(program[2:])
            if module.startswith("accelerate.commands.launch"):
                return "accelerate", *split_options(program[2:])
            if module.startswith("deepspeed.launcher."):  # what `deepspeed` starts and prints as `cmd = ...`
                return "deepspeed", *split_options(program[2:])
        return "python", [], program
    if TORCHRUN.match(head):
        return "torchrun", *split_options(words[1:])
    if head.endswith("deepspeed"):
        return "deepspeed", *split_options(words[1:])
    if head.endswith("accelerate") and len(words) > 1 and words[1].text == "launch":
        return "accelerate", *split_options(words[2:])
    return "", [], words


def _watched(words: list[Word]) -> list[Word]:
    """The program that a debugger or profiler runs, behind options of its own."""
    return next((words[index:] for index, word in enumerate(words) if word.text in _MODULE or word.text.endswith(".py")), [])


def runner_length(words: list[Word]) -> int:
    """How many words make up a runner such as `tune run`, behind which a launcher's options may follow; 0: none."""
    runners = rule_files.table("programs")["runners"]
    return next((size for size in (2, 1) if len(words) > size and joined_text(words[:size]) in runners), 0)


def joined_text(words: list[Word]) -> str:
    return " ".join(word.text for word in words)


def split_options(words: list[Word]) -> tuple[list[Word], list[Word]]:
    """A launcher's options and the words behind them. An option takes a value unless a script, a module or an option follows."""
    index = 0
    while index < len(words):
        text = words[index].text
        if text in _MODULE and index + 1 < len(words) and "." in words[index + 1].text and "=" not in text:
            return words[:index], words[index:]
        if not text.startswith("-"):
            if not _is_options_variable(words[index:]):
                return words[:index], words[index:]
            index += 1
            continue
        following = words[index + 1].text if index + 1 < len(words) else "-"
        valueless = text in _MODULE or text.lstrip("-").replace("-", "_") in _VALUELESS
        takes_value = "=" not in text and not following.startswith("-") and not following.endswith((".py", ".sh")) and not valueless
        index += 2 if takes_value else 1
    return words, []


def _is_options_variable(words: list[Word]) -> bool:
    """Whether the first word is an unknown variable before the program, in which scripts keep the launcher's options."""
    following = words[1].text if len(words) > 1 else ""
    return is_variable(words[0]) and (following.endswith((".py", ".sh")) or following.startswith("$") or following in _MODULE)


def variable_flag(word: Word) -> Flag:
    """A variable among a launcher's options, which may hold any option."""
    return Flag(word.text, word.text, None, word.start, word.end, word.start, False)


def is_variable(word: Word) -> bool:
    return not word.sure and word.text.startswith("$")


def split_program(words: list[Word]) -> tuple[str, list[Word]]:
    """The name of the program and the words behind it."""
    if words[0].text in _MODULE and len(words) > 1:
        return words[1].text, words[2:]
    head = words[0].text.rpartition("/")[2] if "/" in words[0].text and not words[0].text.endswith(".py") else words[0].text
    if head in rule_files.table("programs")["commands"]:
        size = 1
        while size < min(3, len(words)) and re.fullmatch(r"[a-z][a-z_-]*(?:_v\d)?", words[size].text):
            size += 1
        return " ".join([head, *(word.text for word in words[1:size])]), words[size:]
    return words[0].text, words[1:]
