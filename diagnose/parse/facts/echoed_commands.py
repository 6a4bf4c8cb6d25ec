"""Launch commands that the log echoes, and how many processes they start."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.facts import Fact
from diagnose.parse.model.reading import Command
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from diagnose.facts import Value
    from diagnose.parse.text.lines import Page

REACH = 256 << 10
_SEVERAL = 3  # options that tell a command from a sentence that names a program
LONGEST = 64  # lines that one command may be written over

#: These are texts, compiled when a log holds the word of a launcher.
_BEFORE = r"(?:export )?(?:\w+=\S* +)*(?:(?:nohup|sudo|exec|env|time|bash|sh|uv run) )*\S*"
#: `set -x`, a shell prompt (its names masked, perhaps), one of Windows, the DeepSpeed launcher's own echo, what bash says of a command
#: that was killed.
_ECHO = (
    r"(?:\S{1,200}: line \d{1,9}: {1,8}\d{1,10} Killed {1,40}|\++ "
    r"|(?:\([\w.-]+\) ?)?(?:[\w.<>-]+@[\w.<>-]+:[^\s$#]*[$#] |(?:PS [^>\n]{1,200}|[A-Z]:\\[^>\n]{0,200})> ?)"
    r"|(?:\d\d?:\d\d(?::\d\d)? )?[$#❯%] |.*?\bcmd = )(?=\S)"
)
_PER_NODE = r"(?:--nproc[-_]per[-_]node|--num[-_]gpus|--n_gpus_per_node|NPROC_PER_NODE)[ =](\d{1,5})\b"
_ALL = r"(?:--num[-_]processes|-np|--ntasks)[ =](\d{1,6})\b"
_NODES = r"(?:--nnodes|--num[-_]nodes|NNODES)[ =](\d{1,5})\b"


@lru_cache(maxsize=256)
def _program_pattern(words: frozenset[bytes]) -> re.Pattern[bytes]:
    """The places in a line that may start a program, as far as their words stand in the log."""
    return re.compile(b"|".join(text for text, word in _places().items() if word in words))


@cache
def _places() -> dict[bytes, bytes]:
    """The places that may start a program (rules/programs.yaml), each with a literal to search for before the pattern."""
    return {text.encode(): next(filter(None, re.split(r"\\b|[(\\\[]", text))).encode() for text in rule_files.table("programs")["echoed"]}


@cache
def _programs() -> str:
    programs = rule_files.table("programs")
    names = (*programs["commands"], *programs["launchers"], *programs["tools"])
    return "|".join(map(re.escape, names)) + r"|python[\d.]*|\./[\w./-]{1,200}\.py"


@cache
def _command_pattern() -> re.Pattern[str]:
    """The start of a command: environment variables, wrappers (srun, nohup), the program."""
    return re.compile(rf"{_BEFORE}(?:{_programs()}|ALLOC_CONF=\S*)(?: |$)")


def _pasted(text: str) -> re.Match[str] | None:
    """The start of a command without a prompt. Variables set before a program give it away, since no output begins so."""
    return _pasted_pattern().match(text) if text.partition("=")[0].isupper() else None


@cache
def _pasted_pattern() -> re.Pattern[str]:
    return re.compile(rf"(?=(?:[A-Z][A-Z0-9_]*=\S+ +)+(?:{_programs()}) )")


def _printed(text: str) -> re.Match[str] | None:
    """The start of a line that a program prints of what it launches: a launcher and several options, nothing before them."""
    return re.match(r"(?=(?:accelerate launch|torchrun|deepspeed) )", text) if text.count(" --") >= _SEVERAL else None


#: How DeepSpeed's launcher lists what it started on this node, and what ended; before it the host, where there are several
#: (deepspeed/launcher/launch.py, multinode_runner.py).
_LISTED = lazy_compile(
    rb"^(?P<host>[^\s\[]{1,200}: )?[^\n]{0,80}\[launch\.py:\d{1,5}:(?:main\] process \d{1,10} spawned with command: |sigkill_handler\] )"
    rb"\[(?P<words>['\"][^\n]{1,65536}['\"])\]",
    re.MULTILINE,
)
_RAISED = lazy_compile(rb"CalledProcessError: Command '\[(?P<words>['\"][^\n]{1,65536}['\"])\]' ")
_ITEM = lazy_compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")


def read_commands(pages: Sequence[Page]) -> list[Command]:
    """The commands echoed in the head of the logs, in order; without one, the last that DeepSpeed's launcher lists."""
    return _find_commands(pages) or _launcher_command(pages) or _failed_command(pages)


def _failed_command(pages: Iterable[Page]) -> list[Command]:
    """The command in the exception that Python raises where a process fails: `Command '['python', 'train.py']' returned ...`."""
    for page in pages:
        if page.excerpt.spots.has(b"CalledProcessError") and (match := _RAISED.search(page.excerpt.raw)):
            text = shlex.join(quoted or plain for quoted, plain in _ITEM.findall(match["words"].decode("utf-8", "replace")))
            return [Command(text, page.witness(page.excerpt.offset + match.start()))]
    return []


def _launcher_command(pages: Iterable[Page]) -> list[Command]:
    """The command of the highest local rank, the last that DeepSpeed's launcher lists, turned back into a command of the launcher."""
    for page in pages:
        matches = list(_LISTED.finditer(page.excerpt.raw)) if page.excerpt.spots.has(b"[launch.py:") else []
        if matches:
            words = [quoted or plain for quoted, plain in _ITEM.findall(matches[-1]["words"].decode("utf-8", "replace"))]
            text = _rebuild_command(words, alone=matches[-1]["host"] is None)
            return [Command(text, page.witness(page.excerpt.offset + matches[-1].start()))] if text else []
    return []


def _rebuild_command(words: Sequence[str], *, alone: bool) -> str:
    """The launcher's command from that of one of its processes: interpreter, script (or -m and a module), local rank, script arguments."""
    program = list(words[1:])
    if program[:1] == ["-u"]:
        del program[0]
    module = program[:1] == ["-m"]
    arguments = [word for word in program[module:] if not word.startswith("--local_rank=")]
    ranks = [word.removeprefix("--local_rank=") for word in words if word.startswith("--local_rank=")]
    counted = [f"--num_gpus={int(ranks[0][:4]) + 1}"] if alone and ranks and ranks[0].isdigit() else []
    return shlex.join(["deepspeed", *counted, *(["--module"] if module else []), *arguments]) if arguments else ""


def _find_commands(pages: Iterable[Page]) -> list[Command]:
    commands: list[Command] = []
    done: set[tuple[str, int]] = set()  # lines, which may hold many of these words
    for page in pages:
        if page.excerpt.offset >= REACH:
            continue
        words = frozenset(page.excerpt.spots.among(frozenset(_places().values())))
        places = sorted(at for word in words for at in page.excerpt.spots.places(word))
        for at in places:
            if _program_pattern(words).match(page.excerpt.raw, at, REACH) is None:
                continue
            index = page.index(page.excerpt.offset + at)
            if (page.source, page.number(index)) in done:
                continue
            done.add((page.source, page.number(index)))
            text = page.line(index).text
            echo = re.match(_ECHO, text) or _pasted(text) or _printed(text)
            if echo is None or not _command_pattern().match(text[echo.end() :]):
                continue
            commands.append(Command(_join_continued(page, index, echo.end()), page.witness(page.excerpt.offset + page.bounds(index)[0])))
    return commands


#: Signs that continue a command in bash, cmd and PowerShell.
_CONTINUES = ("\\", " ^", " `")


def _join_continued(page: Page, index: int, start: int) -> str:
    """A command with the lines that backslashes join to it, whatever its length."""
    begin, end = page.bounds(index)
    raw = page.excerpt.raw[begin:end].decode("utf-8", "replace").rstrip("\r")
    text = page.line(index).text[start:]
    text = raw[raw.find(text[:40]) :] if text[:40] and text[:40] in raw else text
    for number in range(index + 1, min(index + LONGEST, len(page))):
        if not text.rstrip().endswith(_CONTINUES):
            break
        text = text.rstrip()[:-1] + re.sub(r"^> ?", "", page.line(number).text)
    return text


def facts(commands: Iterable[Command]) -> Iterator[Fact]:
    """What the launcher's options say: the number of processes on all nodes, allocator settings."""
    emitted: set[str] = set()
    for command in commands:
        for name, value in (*_world(command.text), *_allocator(command.text)):
            if name not in emitted:
                emitted.add(name)
                yield Fact(name, value, "log", command.witness)


def _world(text: str) -> Iterator[tuple[str, Value]]:
    everything, per_node, nodes = re.search(_ALL, text), re.search(_PER_NODE, text), re.search(_NODES, text)
    world = int(everything[1]) if everything else int(per_node[1]) * (int(nodes[1]) if nodes else 1) if per_node else 0
    if world:
        yield "parallel.world", world


def _allocator(text: str) -> Iterator[tuple[str, Value]]:
    setting = re.search(r"\bPYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF=['\"]?([\w:.,]+)", text)
    options = dict(option.split(":", 1) for option in setting[1].split(",") if ":" in option) if setting else {}
    if "expandable_segments" in options:
        yield "alloc.expandable_segments", options["expandable_segments"].lower() == "true"
    if options.get("max_split_size_mb", "").isdigit():
        yield "alloc.max_split_size", Size.exactly(int(options["max_split_size_mb"][:9]) << 20)
    if re.fullmatch(r"0?\.\d+|1(\.0+)?", options.get("garbage_collection_threshold", "")):
        yield "alloc.gc_threshold", float(options["garbage_collection_threshold"])


_OPTION = b"--world_info="
_CODED = lazy_compile(rb"([A-Za-z0-9+/_-]{8,65536}={0,2})(?![A-Za-z0-9+/_=-])")


def world_info_facts(pages: Sequence[Page]) -> Iterator[Fact]:
    """Numbers of processes and nodes from the first readable --world_info option; none where it is cut off or malformed."""
    for page in pages:
        for at in page.excerpt.spots.places(_OPTION)[:4]:
            cards = _cards_per_host(page.excerpt.raw, at + len(_OPTION))
            if cards:
                place = page.witness(page.excerpt.offset + at)
                yield Fact("parallel.world", sum(cards), "log", place)
                yield Fact("parallel.nodes", len(cards), "log", place)
                return


def _cards_per_host(raw: bytes, at: int) -> list[int]:
    """The number of cards of every host."""
    coded = _CODED.match(raw, at)
    if coded is None:
        return []
    from base64 import urlsafe_b64decode  # few logs name their hosts so: not loaded at start

    try:
        hosts = json.loads(urlsafe_b64decode(coded[1]))
    except (ValueError, RecursionError):  # of base64, of UTF-8 and of JSON
        return []
    if not isinstance(hosts, dict) or not all(isinstance(slots, list) for slots in hosts.values()):
        return []
    return [len(slots) for slots in hosts.values()]
