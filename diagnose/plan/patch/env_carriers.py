"""Programs that start the training elsewhere, so that an `export` in the script does not reach it: where each is told a variable.

Ray's workers get the `env_vars` of the runtime environment, containers their `-e`; srun hands everything on unless `--export` says
otherwise, Open MPI to the other nodes what `-x` names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.launch.flags import option_values
from diagnose.adapters.shell.shell_text import Chars, Command, Word, dialect_of
from diagnose.plan.patch.patch_places import line_start, newline
from diagnose.plan.patch.splice import Splice
from diagnose.record import record

_MENTIONED = re.compile(r"\b(?:ray|srun|docker|podman|nerdctl|mpirun|mpiexec)\b")
_AROUND = frozenset({"nohup", "sudo", "exec", "time", "env", "command", "setsid", "call"})
_CONTAINERS = ("docker", "podman", "nerdctl")


@record
class Carrier:
    """What carries a variable to the training: the option that names it in an edit, and the cuts that tell it. Without cuts it
    `holds` the variable already, or a `file` has to say it, or a text that only a running shell knows. `exported`: the script has
    to export it as well."""

    option: str
    cuts: tuple[Splice, ...] = ()
    file: str = ""
    exported: bool = False
    holds: bool = False


def carriers(text: str, name: str, value: str) -> list[Carrier]:
    """What carries a variable of a script to what it starts; empty where an `export` does."""
    from diagnose.adapters.launch.launch_command import command_launches  # the reader of shell is not for every start
    from diagnose.adapters.shell.shell_file import ShellReader

    if not _MENTIONED.search(text) or dialect_of(text) != "bash":
        return []
    found: list[Carrier] = []
    try:
        for command in ShellReader(text).read():
            words = _bare(command)
            if words and any(launch.program for launch in command_launches(command, text)):
                found += _of(words, text, name, value)
    except (Unreadable, RecursionError):
        return []
    return found


def _bare(command: Command) -> list[Word]:
    words = list(command.words)
    while words and words[0].text in _AROUND:
        words = words[1:]
    return words


def _of(words: Sequence[Word], text: str, name: str, value: str) -> Iterator[Carrier]:
    head = words[0].text
    if head == "ray" and (submit := next((word for word in words[1:4] if word.text == "submit"), None)):
        yield _ray(words, submit, text, name, value)
    elif head in _CONTAINERS and (run := next((word for word in words[1:3] if word.text in ("run", "exec")), None)):
        yield _option("-e", words, run.end, name, value)
    elif head in ("mpirun", "mpiexec") and any(word.text == "-x" for word in words):
        yield _option("-x", words, words[0].end, name, value)
    elif head == "srun":
        for word, start in option_values(words, "--export"):
            names = word.text[start:].split(",")
            if "ALL" not in names and word.chars is not None:
                yield _srun(word.chars, start, names, name)


def _option(option: str, words: Sequence[Word], at: int, name: str, value: str) -> Carrier:
    """A variable as an option of its own, after the word that wants it."""
    if any(word.text == name or re.match(rf"(?:-\w|--env=)?=?{name}=", word.text) for word in words):
        return Carrier(option, holds=True)
    return Carrier(option, (Splice(at, at, f" {option} {name}={shlex.quote(value)}"),))


def _srun(chars: Chars, start: int, names: Sequence[str], name: str) -> Carrier:
    """By its name alone, since commas part the list: its value is that of the script."""
    if any(one.partition("=")[0] == name for one in names):
        return Carrier("--export", holds=True)
    if names in (["NONE"], ["NIL"]):
        return Carrier("--export", (Splice(chars.starts[start], chars.ends[-1], name),), exported=True)
    return Carrier("--export", (Splice(chars.ends[-1], chars.ends[-1], f",{name}"),), exported=True)


# -- Ray


def _ray(words: Sequence[Word], submit: Word, text: str, name: str, value: str) -> Carrier:
    option = "--runtime-env-json"
    for word, start in option_values(words, "--runtime-env"):
        return Carrier("--runtime-env", file=word.text[start:] if word.sure else "")
    for word, start in option_values(words, option):
        return _in_json(word, start, text, name, value) or Carrier(option)
    said = f'{{"env_vars": {{"{name}": "{value}"}}}}'
    return Carrier(option, (Splice(submit.end, submit.end, f" {option}={shlex.quote(said)}"),))


def _in_json(word: Word, start: int, text: str, name: str, value: str) -> Carrier | None:
    """Into the object that stands there, in the quotes that the script writes it in; None where its places are not known."""
    from diagnose.adapters.formats.json_file import Reader

    chars = word.chars
    if chars is None or len(chars.starts) != len(word.text):
        return None
    try:
        leaves = Reader(word.text[start:]).leaves()
    except (Unreadable, RecursionError):
        return None
    if any(leaf.key == f"env_vars.{name}" for leaf in leaves):
        return Carrier("--runtime-env-json", holds=True)
    mark = word.text.find('"', start)
    escaped = text[chars.starts[mark] - 1] == "\\" if mark >= 0 else text[chars.starts[start] - 1] == '"'
    quote = '\\"' if escaped else '"'
    said = f"{quote}{name}{quote}: {quote}{value}{quote}"
    inside = [leaf for leaf in leaves if leaf.key.startswith("env_vars.")]
    block = next((leaf for leaf in leaves if leaf.key == "env_vars"), None)
    if inside:
        at = chars.ends[start + inside[-1].end - 1]
        cut = Splice(at, at, f",{_gap(text, chars, start, inside[-1])}{said}")
    elif block is not None:
        at = chars.ends[start + block.start]
        cut = Splice(at, at, said)
    else:
        at = chars.ends[word.text.index("{", start)]
        cut = Splice(at, at, f"{quote}env_vars{quote}: {{{said}}}" + (", " if leaves else ""))
    return Carrier("--runtime-env-json", (cut,))


def _gap(text: str, chars: Chars, start: int, leaf: Leaf) -> str:
    """What parts a new item from the one before it: a line of its own where that has one."""
    at = chars.starts[start + leaf.start]
    line = line_start(text, at)
    lead = re.compile(r"[ \t]*(?=\\?\")").match(text, line)
    first = lead is not None and re.compile(r"\\?\"[\w.-]+\\?\"\s*:\s*").match(text, lead.end())
    return newline(text) + lead[0] if lead is not None and first and first.end() >= at - 1 else " "
