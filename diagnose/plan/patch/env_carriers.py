"""Set an environment variable for a training that another program starts, where an `export` in the script does not reach it.

Ray passes the `env_vars` of its runtime environment to workers, a container gets `-e`, srun passes everything on unless `--export`
lists names, Open MPI passes to other nodes what `-x` names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diagnose.adapters.formats import json_file
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.launch.flags import option_values
from diagnose.adapters.launch.launch_command import command_launches
from diagnose.adapters.shell.shell_file import ShellReader
from diagnose.adapters.shell.shell_text import Chars, Command, Word, dialect_of
from diagnose.plan.patch.patch_places import Splice, line_start, newline

#: Programs that start a training elsewhere, and words that may stand before a command.
_STARTERS = re.compile(r"\b(?:ray|srun|docker|podman|nerdctl|mpirun|mpiexec)\b")
_WRAPPERS = frozenset({"nohup", "sudo", "exec", "time", "env", "command", "setsid", "call"})
_CONTAINERS = ("docker", "podman", "nerdctl")


@dataclass(slots=True)
class Carrier:
    """An option that passes a variable to the training, and the splices that add the variable to it.

    Without splices the option passes the variable already (`is_set`), reads it from `file`, or has a value that only a running shell
    knows. `needs_export`: the script has to export the variable as well.
    """

    option: str
    splices: tuple[Splice, ...] = ()
    file: str = ""
    needs_export: bool = False
    is_set: bool = False


def carriers(text: str, name: str, value: str) -> list[Carrier]:
    """The options by which a script passes a variable to what it starts; empty where an `export` does."""
    if not _STARTERS.search(text) or dialect_of(text) != "bash":
        return []
    result: list[Carrier] = []
    try:
        for command in ShellReader(text).read():
            words = _without_wrappers(command)
            if words and any(launch.program for launch in command_launches(command, text)):
                result += _command_carriers(words, text, name, value)
    except (Unreadable, RecursionError):
        return []
    return result


def _without_wrappers(command: Command) -> list[Word]:
    words = list(command.words)
    while words and words[0].text in _WRAPPERS:
        words = words[1:]
    return words


def _command_carriers(words: Sequence[Word], text: str, name: str, value: str) -> Iterator[Carrier]:
    program = words[0].text
    if program == "ray" and (submit := next((word for word in words[1:4] if word.text == "submit"), None)):
        yield _ray_carrier(words, submit, text, name, value)
    elif program in _CONTAINERS and (run := next((word for word in words[1:3] if word.text in ("run", "exec")), None)):
        yield _option_carrier("-e", words, run.end, name, value)
    elif program in ("mpirun", "mpiexec") and any(word.text == "-x" for word in words):
        yield _option_carrier("-x", words, words[0].end, name, value)
    elif program == "srun":
        for word, start in option_values(words, "--export"):
            names = word.text[start:].split(",")
            if "ALL" not in names and word.chars is not None:
                yield _srun_carrier(word.chars, start, names, name)


def _option_carrier(option: str, words: Sequence[Word], at: int, name: str, value: str) -> Carrier:
    """A variable as an option of its own (`-e NAME=VALUE`), inserted at offset `at`."""
    if any(word.text == name or re.match(rf"(?:-\w|--env=)?=?{name}=", word.text) for word in words):
        return Carrier(option, is_set=True)
    return Carrier(option, (Splice(at, at, f" {option} {name}={shlex.quote(value)}"),))


def _srun_carrier(chars: Chars, start: int, names: Sequence[str], name: str) -> Carrier:
    """By its name alone, because a value with commas would break the list: srun then passes the script's value."""
    if any(variable.partition("=")[0] == name for variable in names):
        return Carrier("--export", is_set=True)
    if names in (["NONE"], ["NIL"]):
        return Carrier("--export", (Splice(chars.starts[start], chars.ends[-1], name),), needs_export=True)
    return Carrier("--export", (Splice(chars.ends[-1], chars.ends[-1], f",{name}"),), needs_export=True)


# -- Ray


def _ray_carrier(words: Sequence[Word], submit: Word, text: str, name: str, value: str) -> Carrier:
    option = "--runtime-env-json"
    for word, start in option_values(words, "--runtime-env"):
        return Carrier("--runtime-env", file=word.text[start:] if word.sure else "")
    for word, start in option_values(words, option):
        return _json_carrier(word, start, text, name, value) or Carrier(option)
    block = f'{{"env_vars": {{"{name}": "{value}"}}}}'
    return Carrier(option, (Splice(submit.end, submit.end, f" {option}={shlex.quote(block)}"),))


def _json_carrier(word: Word, start: int, text: str, name: str, value: str) -> Carrier | None:
    """Into an existing JSON object, with quotes escaped as the script escapes them; None where the object cannot be read or located."""
    chars = word.chars
    if chars is None or len(chars.starts) != len(word.text):
        return None
    try:
        leaves = json_file.Reader(word.text[start:]).leaves()
    except (Unreadable, RecursionError):
        return None
    if any(leaf.key == f"env_vars.{name}" for leaf in leaves):
        return Carrier("--runtime-env-json", is_set=True)
    first_quote = word.text.find('"', start)
    escaped = text[chars.starts[first_quote] - 1] == "\\" if first_quote >= 0 else text[chars.starts[start] - 1] == '"'
    quote = '\\"' if escaped else '"'
    item = f"{quote}{name}{quote}: {quote}{value}{quote}"
    variables = [leaf for leaf in leaves if leaf.key.startswith("env_vars.")]
    block = next((leaf for leaf in leaves if leaf.key == "env_vars"), None)
    if variables:
        at = chars.ends[start + variables[-1].end - 1]
        splice = Splice(at, at, f",{_item_separator(text, chars, start, variables[-1])}{item}")
    elif block is not None:
        at = chars.ends[start + block.start]
        splice = Splice(at, at, item)
    else:
        at = chars.ends[word.text.index("{", start)]
        splice = Splice(at, at, f"{quote}env_vars{quote}: {{{item}}}" + (", " if leaves else ""))
    return Carrier("--runtime-env-json", (splice,))


def _item_separator(text: str, chars: Chars, start: int, leaf: Leaf) -> str:
    """What separates a new item from the one before it: a line break and its indentation if that has a line of its own, else a space."""
    at = chars.starts[start + leaf.start]
    line = line_start(text, at)
    indent = re.compile(r"[ \t]*(?=\\?\")").match(text, line)
    key = indent is not None and re.compile(r"\\?\"[\w.-]+\\?\"\s*:\s*").match(text, indent.end())
    return newline(text) + indent[0] if indent is not None and key and key.end() >= at - 1 else " "
