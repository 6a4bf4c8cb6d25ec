"""A command to what it launches: launcher, program, flags, environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from diagnose import rule_files
from diagnose.adapters.launch.flags import Flag, forwarded_variables, parse_flags
from diagnose.adapters.launch.launchers import (
    is_image,
    is_variable,
    joined_text,
    runner_length,
    skip_options,
    split_launcher,
    split_options,
    split_program,
    variable_flag,
)
from diagnose.adapters.shell.first_word import SHELLS
from diagnose.adapters.shell.shell_file import ShellReader
from diagnose.adapters.shell.shell_text import Chars, Command, Word

_WRAPPERS = frozenset(
    {
        "nohup",
        "sudo",
        "exec",
        "time",
        "stdbuf",
        "env",
        "command",
        "setsid",
        "xvfb-run",
        "poetry",
        "uv",
        "pdm",
        "run",
        "pipenv",
        "hatch",
        "rye",
        "caffeinate",
    }
    | {"nice", "ionice", "taskset", "numactl", "unbuffer", "call", "start"}
)
#: Tools that run a program which follows options unknown to us; the second set starts several processes of it.
_RUN_TOOLS = frozenset(
    {"docker", "podman", "nerdctl", "apptainer", "singularity", "enroot", "kubectl"}
    | {"conda", "micromamba", "pixi", "timeout", "nsys", "ncu", "script", "screen", "tmux", "uvx", "systemd-run", "bsub", "flock", "watch"}
)
_PARALLEL_TOOLS = frozenset({"srun", "mpirun", "mpiexec", "torchx", "pdsh", "ssh", "jsrun", "flux", "horovodrun", "prun"})
_OVERRIDE = re.compile(r"(?:\+{1,2}|~)?[A-Za-z_]\w*(?:\.\w+)+=")  # a shell would take it for a program
_COMMAND = re.compile(r"\s*[^\s-]\S*\s(?:.*\s)?(?:--?\w|\S+\.(?:py|sh)\b)", re.DOTALL)  # a program with an option or a script
_MAX_SHELL_DEPTH = 4


@dataclass(slots=True)
class Launch:
    """What one command starts.

    `launcher` is torchrun, deepspeed, accelerate, python, ray or empty, `program` the script, module or sub-command, `files` the
    words that belong to no option. `spread`: srun, mpirun or the like starts several processes of it. `orphan`: options without
    a program. `branches` are the arms of branches that the command stands in.
    """

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
    branches: tuple[tuple[int, int], ...] = ()


def launches(text: str) -> list[Launch]:
    """Every command of a script, or of an echoed line, that has options, starts a program or only assigns variables."""
    return read_script(text)[0]


def read_script(text: str) -> tuple[list[Launch], ShellReader]:
    """What a script starts, and its reader, which knows the files that it writes and how its lines and quotes end."""
    reader = ShellReader(text)
    result = [launch for command in reader.read() for launch in command_launches(command, text)]
    return _reconcile_branches(result), reader


def command_launches(command: Command, text: str, depth: int = 0) -> list[Launch]:
    """What one command starts: several launches where it passes a text to another shell."""
    if not command.words:  # variables that a comment or a blank cut off from their command
        return [Launch("", (), "", (), (), command.env, command.start, command.start, command.start, orphan=True)]
    if command.words[0].text == "export":
        return [Launch("", (), "export", (), (), command.env, command.start, command.start, command.start, branches=command.branches)]
    unwrapped = _unwrap(command)
    words, env = unwrapped.words, unwrapped.env
    if unwrapped.inner is not None:
        nested = _nested_launches(unwrapped.inner, depth + 1) if depth < _MAX_SHELL_DEPTH else []
        return [_map_offsets(launch, unwrapped.inner, command, env, unwrapped.spread) for launch in nested]
    if not words:
        return [Launch("", (), "", (), (), env, command.start, command.start, command.start, branches=command.branches)] if env else []
    if words[0].text in rule_files.table("programs")["making"]:
        texts = [chars for word in words[1:] if (chars := _text_of_variable(word)) is not None] if depth < _MAX_SHELL_DEPTH else []
        made = [(chars, launch) for chars in texts for launch in _nested_launches(chars, depth + 1)]
        return [_map_offsets(_of_list(launch), chars, command, env, unwrapped.spread) for chars, launch in made]
    if words[0].text.startswith("-") or _OVERRIDE.match(words[0].text):
        flags, files = parse_flags(words, text)
        return [Launch("", (), "", flags, files, env, command.start, words[0].start, words[-1].end, False, True, command.branches)]
    size = runner_length(words)
    launcher, options, program_words = ("", [], words[size:]) if size else split_launcher(words)
    if size and program_words and program_words[0].text.startswith("-"):
        launcher = rule_files.table("programs")["runners"][joined_text(words[:size])]
        options, program_words = split_options(program_words)
    if not program_words:
        return []
    program, arguments = split_program(program_words)
    if size:
        program = f"{joined_text(words[:size])} {program}"
    flags, files = parse_flags(arguments, text)
    if flags and all(flag.name in rule_files.table("programs")["asking"] and flag.value is None for flag in flags):
        return []  # it prints that and ends
    variables = [word for i, word in enumerate(options) if is_variable(word) and not (i and options[i - 1].text.startswith("-"))]
    launcher_flags = (*parse_flags([word for word in options if word not in variables], text)[0], *map(variable_flag, variables))
    launcher = "ray" if unwrapped.ray else launcher
    span = command.start, program_words[0].start, program_words[-1].end
    return [Launch(launcher, launcher_flags, program, flags, files, env, *span, unwrapped.spread, False, command.branches)]


@dataclass(slots=True)
class _Unwrapped:
    """A command without its wrappers; `inner` is the text that another shell reads."""

    words: list[Word]
    env: dict[str, Word]
    spread: bool = False
    ray: bool = False
    inner: Chars | None = None


def _unwrap(command: Command) -> _Unwrapped:
    """The command without nohup, env, srun, docker and the like, with the variables that these pass on."""
    result = _Unwrapped(list(command.words), dict(command.env))
    while result.words and result.inner is None:
        words, head = result.words, result.words[0].text
        if head == "ray" and "submit" in [word.text for word in words[:4]]:
            separator = next((index for index, word in enumerate(words) if word.text == "--"), None)
            result.env |= forwarded_variables(words[:separator])
            result.words, result.ray = words[(separator + 1 if separator is not None else len(words)) :], True
        elif (inner := _shell_text(words)) is not None:
            result.inner = inner
        elif head in _PARALLEL_TOOLS or head in _RUN_TOOLS:
            result.env |= forwarded_variables(words)
            result.words, result.spread = skip_options(words[1:]), result.spread or head in _PARALLEL_TOOLS
        elif assignment := re.match(r"([A-Za-z_]\w*)=", head):  # after env, sudo, srun
            word = words[0]
            result.env[assignment[1]] = Word(head[assignment.end() :], word.start + assignment.end(), word.end, word.sure)
            result.words = words[1:]
        elif command.words[0].text in rule_files.table("programs")["prefixing"] and (prefix := re.match(r"[\w.-]+:(?=[A-Za-z])", head)):
            word = words[0]
            result.words = [Word(head[prefix.end() :], word.start + prefix.end(), word.end, word.sure), *words[1:]]
        elif head in _WRAPPERS or (head.startswith("-") and len(words) < len(command.words)):  # options of the wrapper before it
            result.words = words[2 if head in rule_files.table("programs")["valued"] else 1 :]
        else:
            break
    return result


# -- a text that another shell reads


def _shell_text(words: Sequence[Word]) -> Chars | None:
    """The text that `bash -c TEXT` or `eval TEXT` runs."""
    if words[0].text == "eval" and len(words) > 1:
        whole = Chars()
        for word in words[1:]:
            if whole.text:
                whole.append(" ", whole.ends[-1:], whole.ends[-1:])
            whole.extend(word.chars or Chars(word.text, [word.start] * len(word.text), [word.end] * len(word.text)))
        return whole
    if words[0].text in SHELLS and len(words) > 2:
        index = next((position for position, word in enumerate(words[1:4], 1) if re.fullmatch(r"-[a-z]*c", word.text)), None)
        text = next((word for word in words[index + 1 :] if word.text != "--"), None) if index is not None else None
        return text.chars if text is not None else None
    if words[0].text in rule_files.table("programs")["handing"]:
        return next((chars for word in words[1:] if (chars := _handed_text(word)) is not None), None)
    return None


def _handed_text(word: Word) -> Chars | None:
    """The words of a command in one quoted word, or in the value of an option (`--wrap='python train.py'`)."""
    begin = match.end() if (match := re.match(r"--?[\w-]+=", word.text)) else 0
    if word.chars is None or len(word.chars.starts) != len(word.text) or not _COMMAND.match(word.text, begin):
        return None
    return Chars(word.text[begin:], word.chars.starts[begin:], word.chars.ends[begin:], word.sure)


def _text_of_variable(word: Word) -> Chars | None:
    """The options or the command that `make NAME='...'` puts into a recipe."""
    name = re.match(r"[A-Za-z_]\w*=(?=\s*--?[a-zA-Z]|.*\s--?[a-zA-Z])", word.text, re.DOTALL)
    if name is None or word.chars is None or len(word.chars.starts) != len(word.text):
        return None
    begin = name.end()
    return Chars(word.text[begin:], word.chars.starts[begin:], word.chars.ends[begin:], word.sure)


def _of_list(launch: Launch) -> Launch:
    """Options whose program is named elsewhere."""
    return replace(launch, launcher="list", orphan=False) if launch.orphan else launch


def words_launches(words: Sequence[Word], env: dict[str, Word], text: str) -> list[Launch]:
    """The launch that the words of a list describe; options without a program belong to one named elsewhere."""
    if not words or not (is_image(words[0].text) or any(word.text.startswith("-") or "=" in word.text for word in words)):
        return []
    launches = command_launches(Command(tuple(words), env, words[0].start), text)
    return [_of_list(launch) for launch in launches]


def text_launches(chars: Chars, env: dict[str, Word]) -> list[Launch]:
    """What a text that a file of another form hands to a shell starts, in the offsets of the file."""
    outer = Command((), {}, 0)
    whole = _with_variables(chars, env)
    return _reconcile_branches([_map_offsets(launch, whole, outer, env, False) for launch in _nested_launches(whole, 1)])


def _with_variables(chars: Chars, env: dict[str, Word]) -> Chars:
    """A text behind assignments of the variables that the file sets, as far as it uses them."""
    whole = Chars()
    for name, word in env.items():
        is_used = f"${name}" in chars.text or f"${{{name}" in chars.text
        if is_used and word.sure and word.text and not set("'\n") & set(word.text):
            whole.add(f"{name}='", word.start, word.start)
            whole.add(word.text, word.start, word.end)
            whole.add("'\n", word.end, word.end)
    whole.extend(chars)
    return whole


def text_words(chars: Chars) -> list[Word]:
    """The words of such a text as a shell splits it, if it is one command; else the text as one word."""
    commands = ShellReader(chars.text).read() if chars.text else []
    if len(commands) != 1 or commands[0].env:
        return [Word(chars.text, chars.starts[0], chars.ends[-1], chars.sure, chars)] if chars.text else []
    return [_moved_word(word, chars) for word in commands[0].words if word.end > word.start]


def _moved_word(word: Word, chars: Chars) -> Word:
    """A word of a nested text in the offsets of the file."""
    start, end = chars.starts[word.start], chars.ends[word.end - 1]
    if word.chars is None or len(word.chars.starts) != len(word.text) or not word.text:
        return Word(word.text, start, end, word.sure)
    starts, ends = [chars.starts[at] for at in word.chars.starts], [chars.ends[max(at - 1, 0)] for at in word.chars.ends]
    return Word(word.text, start, end, word.sure, Chars(word.text, starts, ends, word.sure))


def _nested_launches(chars: Chars, depth: int) -> list[Launch]:
    if not chars.text:
        return []
    reader = ShellReader(chars.text)
    return [launch for command in reader.read() for launch in command_launches(command, chars.text, depth)]


def _map_offsets(launch: Launch, chars: Chars, outer: Command, env: dict[str, Word], spread: bool) -> Launch:
    """A launch read from a nested text, in the offsets of the script."""

    def span(start: int, end: int) -> tuple[int, int]:
        if end > start:
            return chars.starts[start], chars.ends[end - 1]
        offset = chars.ends[start - 1] if start else chars.starts[0]
        return offset, offset

    def map_flag(flag: Flag) -> Flag:
        start, end = span(flag.start, flag.end)
        used = span(*flag.used) if flag.used is not None else None
        return replace(flag, start=start, end=end, pos=span(flag.pos, flag.pos + 1)[0], used=used)

    def map_word(word: Word) -> Word:
        return Word(word.text, *span(word.start, word.end), word.sure)

    flags, launcher_flags = tuple(map(map_flag, launch.flags)), tuple(map(map_flag, launch.launcher_flags))
    env_words = {**env, **{name: map_word(word) for name, word in launch.env.items()}}
    return replace(
        launch,
        launcher_flags=launcher_flags,
        flags=flags,
        files=tuple(map(map_word, launch.files)),
        env=env_words,
        start=span(launch.start, launch.start + 1)[0],
        program_at=span(launch.program_at, launch.program_at + 1)[0],
        end=span(launch.end, launch.end)[1],
        spread=spread or launch.spread,
        branches=(*outer.branches, *launch.branches),
    )


# -- launches in different arms of a branch


def _reconcile_branches(launches: list[Launch]) -> list[Launch]:
    """Mark unsure the flags on which launches in exclusive arms of a branch disagree: which arm runs is unknown."""
    branched = [launch for launch in launches if launch.branches and starts_program(launch)]
    result = []
    for launch in launches:
        alternatives = _alternatives(launch, branched)
        if not alternatives:
            result.append(launch)
            continue
        flags = tuple(_agreed_flag(flag, [rival.flags for rival in alternatives]) for flag in launch.flags)
        launcher_flags = tuple(_agreed_flag(flag, [rival.launcher_flags for rival in alternatives]) for flag in launch.launcher_flags)
        result.append(replace(launch, flags=flags, launcher_flags=launcher_flags))
    return result


def _alternatives(launch: Launch, branched: Sequence[Launch]) -> list[Launch]:
    """The launches that run instead of this one, in another arm of its branch."""
    if not launch.branches or not starts_program(launch):
        return []
    return [rival for rival in branched if rival is not launch and _are_exclusive(launch.branches, rival.branches)]


def starts_program(launch: Launch) -> bool:
    """Whether a launch starts a program by a launcher, or one of those in rules/programs.yaml."""
    return bool(launch.launcher) or launch.program.partition(" ")[0] in rule_files.table("programs")["commands"]


def _are_exclusive(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> bool:
    """Whether two launches stand in different arms of one branch."""
    arms = dict(second)
    return any(block in arms and arms[block] != arm for block, arm in first)


def _agreed_flag(flag: Flag, alternatives: Sequence[Sequence[Flag]]) -> Flag:
    """The flag, unsure unless all alternatives hold it with the same value."""
    counterparts = [next((counterpart for counterpart in flags if counterpart.name == flag.name), None) for flags in alternatives]
    return (
        flag
        if all(counterpart is not None and counterpart.sure and counterpart.value == flag.value for counterpart in counterparts)
        else replace(flag, sure=False)
    )
