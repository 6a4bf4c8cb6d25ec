"""A command to what it launches: launcher, program, flags."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnose import rule_files
from diagnose.adapters.launch.flags import Flag, flags_of, named
from diagnose.adapters.launch.forwarded_env import handed_on
from diagnose.adapters.launch.launch_branches import settled
from diagnose.adapters.shell.shell_file import Command, Reader, Word
from diagnose.adapters.shell.shell_text import Chars, Written
from diagnose.record import record, replace

__all__ = ["Flag", "Launch", "launches", "named", "of_command", "script"]

_WRAPPERS = frozenset(
    {"nohup", "sudo", "exec", "time", "stdbuf", "env", "command", "setsid", "xvfb-run", "poetry", "uv", "pdm", "run"}
    | {"nice", "ionice", "taskset", "numactl", "unbuffer", "call", "start"}
)
#: Tools that start what stands after options that we do not know; of these several processes.
_CARRIERS = frozenset(
    {"docker", "podman", "nerdctl", "apptainer", "singularity", "enroot", "kubectl"}
    | {"conda", "micromamba", "pixi", "timeout", "nsys", "ncu", "script"}
)
_SPREADS = frozenset({"srun", "mpirun", "mpiexec", "torchx", "pdsh", "ssh"})
_SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh"})
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*(?:\.exe)?$")
_TORCHRUN = re.compile(r"(?:.*/)?torchrun$|torch\.distributed\.(?:run|launch)$")
_OVERRIDE = re.compile(r"(?:\+{1,2}|~)?[A-Za-z_]\w*(?:\.\w+)+=")  # to a shell the name of a program, which nobody has
_MODULE = ("-m", "--module")
#: torchrun's options that take no value, whatever follows.
_ALONE = frozenset({"standalone", "no_python", "run_path"})
_DEEPEST = 4


@record
class Launch:
    """What one command starts. `launcher` is torchrun, deepspeed, accelerate, python, ray or empty; `program` the script,
    module or sub-command; `spread` says that another tool (srun, mpirun) starts several of it; `maybe` in which arms of which
    branches it stands."""

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
    maybe: tuple[tuple[int, int], ...] = ()


def launches(text: str) -> list[Launch]:
    """Every command of a script (or of one echoed line) that carries flags or starts a program; assignments alone as well."""
    return script(text)[0]


def script(text: str) -> tuple[list[Launch], list[Written]]:
    """What a script starts, and the files that it writes."""
    reader = Reader(text)
    found = [launch for command in reader.read() for launch in of_command(command, text)]
    return settled(found), reader.files


def of_command(command: Command, text: str, depth: int = 0) -> list[Launch]:
    """What one command starts: several where it hands a text to another shell."""
    if command.words[0].text == "export":
        return [Launch("", (), "export", (), (), command.env, command.start, command.start, command.start, maybe=command.maybe)]
    peeled = _peeled(command)
    words, env = peeled.words, peeled.env
    if peeled.inner is not None:
        inside = _inside(peeled.inner, depth + 1) if depth < _DEEPEST else []
        return [_moved(launch, peeled.inner, command, env, peeled.spread) for launch in inside]
    if not words:
        return [Launch("", (), "", (), (), env, command.start, command.start, command.start, maybe=command.maybe)] if env else []
    if words[0].text.startswith("-") or _OVERRIDE.match(words[0].text):
        flags, files = flags_of(words, text)
        return [Launch("", (), "", flags, files, env, command.start, words[0].start, words[-1].end, False, True, command.maybe)]
    runner = _runner(words)
    launcher, before, rest = ("", [], words[runner:]) if runner else _launcher(words)
    if runner and rest and rest[0].text.startswith("-"):
        launcher, (before, rest) = rule_files.table("programs")["runners"][_text(words[:runner])], _split(rest)
    if not rest:
        return []
    program, args = _program(rest)
    if runner:
        program = f"{_text(words[:runner])} {program}"
    flags, files = flags_of(args, text)
    held = [word for at, word in enumerate(before) if _variable(word) and not (at and before[at - 1].text.startswith("-"))]
    own = (*flags_of([word for word in before if word not in held], text)[0], *map(_open, held))
    launcher = "ray" if peeled.ray else launcher
    end = rest[-1].end
    return [Launch(launcher, own, program, flags, files, env, command.start, rest[0].start, end, peeled.spread, False, command.maybe)]


@record(frozen=False)
class _Peeled:
    """A command without what stands around it: `inner` is the text where it is one that another shell reads."""

    words: list[Word]
    env: dict[str, Word]
    spread: bool = False
    ray: bool = False
    inner: Chars | None = None


def _peeled(command: Command) -> _Peeled:
    made = _Peeled(list(command.words), dict(command.env))
    while made.words and made.inner is None:
        words, head = made.words, made.words[0].text
        if head == "ray" and "submit" in [word.text for word in words[:4]]:
            dashes = next((i for i, word in enumerate(words) if word.text == "--"), None)
            made.env |= handed_on(words[:dashes])
            made.words, made.ray = words[(dashes + 1 if dashes is not None else len(words)) :], True
        elif head in _SPREADS or head in _CARRIERS:
            made.env |= handed_on(words)
            made.words, made.spread = _past_options(words[1:]), made.spread or head in _SPREADS
        elif (inner := _text_of(words)) is not None:
            made.inner = inner
        elif assigned := re.match(r"([A-Za-z_]\w*)=", head):  # after env, sudo, srun
            word = words[0]
            made.env[assigned[1]] = Word(head[assigned.end() :], word.start + assigned.end(), word.end, word.sure)
            made.words = words[1:]
        elif head in _WRAPPERS or (head.startswith("-") and len(words) < len(command.words)):  # options of the wrapper just taken off
            made.words = words[2 if head in rule_files.table("programs")["valued"] else 1 :]
        else:
            break
    return made


# -- a text that another shell reads


def _text_of(words: Sequence[Word]) -> Chars | None:
    """The text that `bash -c TEXT` or `eval TEXT` runs."""
    if words[0].text == "eval" and len(words) > 1:
        whole = Chars()
        for word in words[1:]:
            if whole.text:
                whole.put(" ", whole.to[-1:], whole.to[-1:])
            whole.join(word.chars or Chars(word.text, [word.start] * len(word.text), [word.end] * len(word.text)))
        return whole
    if words[0].text in _SHELLS and len(words) > 2:
        index = next((i for i, word in enumerate(words[1:4], 1) if re.fullmatch(r"-[a-z]*c", word.text)), None)
        return words[index + 1].chars if index is not None and index + 1 < len(words) else None
    return None


def _inside(chars: Chars, depth: int) -> list[Launch]:
    if not chars.text:
        return []
    reader = Reader(chars.text)
    return [launch for command in reader.read() for launch in of_command(command, chars.text, depth)]


def _moved(launch: Launch, chars: Chars, outer: Command, env: dict[str, Word], spread: bool) -> Launch:
    """A launch read inside a text, in the offsets of the whole script."""

    def span(start: int, end: int) -> tuple[int, int]:
        if end > start:
            return chars.at[start], chars.to[end - 1]
        at = chars.to[start - 1] if start else chars.at[0]
        return at, at

    def move(flag: Flag) -> Flag:
        start, end = span(flag.start, flag.end)
        used = span(*flag.used) if flag.used is not None else None
        return replace(flag, start=start, end=end, at=span(flag.at, flag.at + 1)[0], used=used)

    def shifted(word: Word) -> Word:
        return Word(word.text, *span(word.start, word.end), word.sure)

    flags, before = tuple(map(move, launch.flags)), tuple(map(move, launch.launcher_flags))
    inner = {**env, **{name: shifted(word) for name, word in launch.env.items()}}
    return replace(
        launch,
        launcher_flags=before,
        flags=flags,
        files=tuple(map(shifted, launch.files)),
        env=inner,
        start=span(launch.start, launch.start + 1)[0],
        program_at=span(launch.program_at, launch.program_at + 1)[0],
        end=span(launch.end, launch.end)[1],
        spread=spread or launch.spread,
        maybe=(*outer.maybe, *launch.maybe),
    )


# -- launchers


def _past_options(words: list[Word]) -> list[Word]:
    """What follows the options of a launcher whose options we do not know: the first word that looks like a program, else the
    image of a container that starts one."""
    commands = rule_files.table("programs")["commands"]
    for index, word in enumerate(words):
        name = word.text.rpartition("/")[2]
        if _PYTHON.match(word.text) or _TORCHRUN.match(word.text) or name in ("deepspeed", "env", *_SHELLS) or name in commands:
            return words[index:]
        if re.match(r"[A-Za-z_]\w*=", word.text) and not (index and words[index - 1].text in ("-e", "--env")):
            return words[index:]
    images = rule_files.table("programs")["images"]
    return next((words[i:] for i, word in enumerate(words) if word.text.rpartition("/")[2].partition(":")[0] in images), [])


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
            if rest[1].text.startswith("deepspeed.launcher."):  # what `deepspeed` itself starts and prints as `cmd = ...`
                return "deepspeed", *_split(rest[2:])
            return "python", [], rest
        return "python", [], rest
    if _TORCHRUN.match(head):
        return "torchrun", *_split(words[1:])
    if head.endswith("deepspeed"):
        return "deepspeed", *_split(words[1:])
    if head.endswith("accelerate") and len(words) > 1 and words[1].text == "launch":
        return "accelerate", *_split(words[2:])
    return "", [], words


def _runner(words: list[Word]) -> int:
    """How many words say that a launcher's options may follow, and then what to run (`tune run`)."""
    runners = rule_files.table("programs")["runners"]
    return next((size for size in (2, 1) if len(words) > size and _text(words[:size]) in runners), 0)


def _text(words: list[Word]) -> str:
    return " ".join(word.text for word in words)


def _split(words: list[Word]) -> tuple[list[Word], list[Word]]:
    """A launcher's options and the rest. Its options take a value unless the next word is a script, a module or an option."""
    index = 0
    while index < len(words):
        text = words[index].text
        if text in _MODULE and index + 1 < len(words) and "." in words[index + 1].text and "=" not in text:
            return words[:index], words[index:]
        if not text.startswith("-"):
            if not _holds_options(words[index:]):
                return words[:index], words[index:]
            index += 1
            continue
        following = words[index + 1].text if index + 1 < len(words) else "-"
        alone = text in _MODULE or text.lstrip("-").replace("-", "_") in _ALONE
        takes = "=" not in text and not following.startswith("-") and not following.endswith((".py", ".sh")) and not alone
        index += 2 if takes else 1
    return words, []


def _holds_options(words: list[Word]) -> bool:
    """Whether the first word is a variable of unknown content that stands before the program: what a script keeps options in."""
    following = words[1].text if len(words) > 1 else ""
    return _variable(words[0]) and (following.endswith((".py", ".sh")) or following.startswith("$") or following in _MODULE)


def _open(word: Word) -> Flag:
    """A variable among a launcher's options: it may hold any option."""
    return Flag(word.text, word.text, None, word.start, word.end, word.start, False)


def _variable(word: Word) -> bool:
    return not word.sure and word.text.startswith("$")


def _program(words: list[Word]) -> tuple[str, list[Word]]:
    """The name of what runs and the words after it."""
    if words[0].text in _MODULE and len(words) > 1:
        return words[1].text, words[2:]
    head = words[0].text.rpartition("/")[2] if "/" in words[0].text and not words[0].text.endswith(".py") else words[0].text
    if head in rule_files.table("programs")["commands"]:
        size = 1
        while size < min(3, len(words)) and re.fullmatch(r"[a-z][a-z_-]*(?:_v\d)?", words[size].text):
            size += 1
        return " ".join([head, *(word.text for word in words[1:size])]), words[size:]
    return words[0].text, words[1:]
