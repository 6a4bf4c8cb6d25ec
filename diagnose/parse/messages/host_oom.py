"""Host memory: messages of the kernel, of userspace killers (systemd-oomd, earlyoom), data loaders and allocators
(grammars/host_oom.lark)."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from diagnose import families
from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import IMPOSSIBLE, Size, whole_number, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from diagnose.parse.text.grammar_statements import Statement
    from diagnose.parse.text.lines import Page

LARGEST_HOST = 32 << 40  # bytes that the largest servers hold
LONGEST = 1600  # characters that are read: of a message that was found in a longer line what stands round it

#: Raised in the process that failed, whose traceback stands above; all else is written by someone who watched.
_RAISED = frozenset({"shm_file", "shm_disk", "segment", "worker_bus", "worker_killed", "worker_gone", "mapping", "mapped", "shm"})


def capacity_of(family: str) -> str:
    """Name of the fact that a message of this family means by capacity: the card's, the node's, or that of a container or job."""
    if families.of(family).limited:
        return "log.container_limit"
    return "host.ram" if families.of(family).kill else "log.capacity"


#: A wrapped numpy message, the second line of the old kernel's kill, torch's shared memory file.
_GOES_ON = (
    (lazy_compile(r"sacrifice child\s*$"), lazy_compile(r"Killed process \d")),
    (
        lazy_compile(r"MemoryError:\s*$|Unable to allocate[^\n]{0,80}$|with shape \([\d, ]{0,100}$"),
        lazy_compile(r"\s*(Unable|for an|\(|\d|and data type|shape|data)"),
    ),
    (lazy_compile(r"(due to|and swap used|memory used)\s*$"), lazy_compile(r"\s*(memory|swap|\()")),
)


def goes_on(text: str, line: str) -> bool:
    """Whether a line belongs to the message above it."""
    return any(ends.search(text[-200:]) and begins.search(line[:200]) for ends, begins in _GOES_ON)


def read(text: str) -> Message | None:
    """The message in a line; None where none of its words is one."""
    statements = grammar_statements.parse_statements("host_oom", grammar_statements.collapse_blanks(text[:LONGEST]))
    says = statement_specs("host_oom")
    leading = max(
        (statement for statement in statements if statement.kind in says), key=lambda statement: says[statement.kind].weight, default=None
    )
    if leading is None:
        return None
    message = says[leading.kind].message(leading)
    message.raised = leading.kind in _RAISED
    for statement in statements:
        _add_statement(message, statement)
    message.doubt_request()
    requested = message.figures.get("requested")
    if requested is not None and requested.low > LARGEST_HOST:
        message.facts["log.request_overflow"], message.reason = True, message.reason or "request_overflow"
    if leading.kind == "kernel":  # of a limit it says "Memory cgroup out of memory"
        message.facts["host.limited"] = False
    _weigh(message, leading, text)
    return message


def complete(message: Message, page: Page, index: int) -> Sequence[int]:
    """Add what the kernel's report says above the line that names the killed process. Returns the indexes of the lines used."""
    if "kernel" not in message.killed:
        return ()
    from diagnose.parse.messages import host_kernel  # few logs are a kernel's: not loaded at start

    return host_kernel.complete(message, page, index)


def _add_statement(message: Message, statement: Statement) -> None:
    words = statement.words[0] if statement.words else ""
    numbers = [1 << 64 if number is None else number for number in whole_numbers(words)]  # more than any memory has
    if statement.kind == "shape" or ((row := statement_specs("host_oom").get(statement.kind)) is not None and row.asks):
        if numbers:
            message.figures["requested"] = _requested_size(message.figures.get("requested"), statement.kind, words, numbers)
        return
    match statement.kind:
        case "kernel" | "cgroup" | "killed_process":
            comm = re.search(r"\(([^()]+)\)$", words)
            pid = re.search(r"process (\d+)", words, re.IGNORECASE)
            message.pid = message.killed["kernel"] = (whole_number(pid[1]) if pid else None) or 0
            message.said = comm[1] if comm else message.said
        case "constraint" if len(statement.words) > 1:
            message.pid = message.killed["kernel"] = whole_number(statement.words[1][4:]) or 0
            message.family = statement_specs("host_oom")["cgroup"].family if words.endswith("MEMCG") else message.family
        case "anon":
            message.figures["process_in_use"] = Size.printed(str(numbers[0]), "KiB")
        case "shmem" if numbers[0]:
            message.figures["process_in_use"] = _sum(message.figures.get("process_in_use"), Size.printed(str(numbers[0]), "KiB"))
        case "oomd_total":
            message.figures["capacity"] = Size.printed(str(numbers[1]), "bytes")
        case "earlyoom":
            message.pid = message.killed["kernel"] = numbers[0]
            message.figures["process_in_use"] = Size.printed(str(numbers[-1]), "MiB")
        case "worker_killed" | "worker_bus" | "worker_gone" if len(numbers) == 1:  # of several one died, and no word which
            message.pid = message.killed["loader"] = numbers[0]
        case "worker_killed" | "worker_bus" if not numbers:  # its number was taken out
            message.killed["loader"] = 0


def _requested_size(printed_size: Size | None, kind: str, words: str, numbers: Sequence[int]) -> Size | None:
    """The size that an allocator was asked for; computed from an array's shape where it is printed rounded."""
    if kind == "shape":
        exact = _array_size(words)
        agrees = exact is not None and (printed_size is None or exact in printed_size)
        return Size(exact, exact, exact, printed_size.text if printed_size else "") if exact is not None and agrees else printed_size
    if kind == "numpy":
        printed = words.removeprefix("Unable to allocate ").removesuffix(" for an array")
        size = grammar_statements.parse_size(printed)
        return size and Size(size.low, size.high, size.bytes, printed)
    if kind in ("cpu_allocator_old", "mapped_old"):  # an integer division cut the rest off
        whole = numbers[0] << 30
        return Size(whole, whole + (1 << 30) - 1, whole, words.rpartition(" to ")[2].partition(" ")[2]) if whole < 1 << 50 else None
    count = numbers[0 if kind == "mapped" else -1] if numbers else -1
    return None if count < 0 or "allocate -" in words else Size.printed(str(count), "bytes")


def _sum(left: Size | None, right: Size | None) -> Size | None:
    total = left + right if left is not None and right is not None else left or right
    return total if total is None or total.bytes <= IMPOSSIBLE else None


def _array_size(text: str) -> int | None:
    """The bytes of an array of this shape and numpy type; None for types whose name does not tell their size."""
    shape, _, named = text.partition(")")
    kind = re.search(r"(?:dtype\('|data type )([<>|=]?[A-Za-z]+)(\d*)", named)
    if kind is None:
        return None
    letter, digits = kind[1].lstrip("<>|="), whole_number(kind[2]) or 0
    size = {"bool": 1, "object": 8, "datetime": 8, "timedelta": 8, "U": digits * 4, "S": digits, "V": digits}.get(letter)
    if size is None and letter in ("int", "uint", "float", "complex") and digits in (8, 16, 32, 64, 96, 128, 192, 256):
        size = digits // 8
    count = prod(number if number is not None else IMPOSSIBLE for number in whole_numbers(shape))
    return count * size if size and count * size <= 2**50 else None


def _weigh(message: Message, leading: Statement, text: str) -> None:
    """A mapped file of torch's own is shared memory."""
    if leading.kind == "mapped" and "/torch_" in text:
        message.family = statement_specs("host_oom")["shm_file"].family


# -- which traces are of one death


def same_death(first: Message, second: Message) -> bool:
    """Whether two reports are of one kill. Kernel, scheduler and launcher each report it once; two reports of one kind that name different
    processes are two kills. Process ids of different reporters are not compared: a container numbers its own."""
    return all(second.killed.get(witness, who) == who for witness, who in first.killed.items())


def same_number(first: Message, second: Message) -> bool:
    """Whether two reports give the same process id and number processes alike (both inside the container, or both outside)."""
    return not set(first.killed.values()).isdisjoint(second.killed.values())


def settle(deaths: Sequence[Message]) -> None:
    """Drop the ranks where several processes died and the kernel's process ids are not the launcher's: nothing tells which is which."""
    if sum("kernel" in death.killed for death in deaths) < 2:
        return
    for death in deaths:
        numbers = [death.killed.get(witness) for witness in ("kernel", "launcher")]
        if None not in numbers and numbers[0] != numbers[1]:
            death.rank = death.local_rank = None


def join_traces(first: Message, second: Message) -> None:
    """Add figures and evidence of a second report of the same kill to the first."""
    first.killed = {**second.killed, **first.killed}
    limits = families.of(first.family).limited, families.of(second.family).limited
    for name, size in second.figures.items():
        if first.family == second.family or (name == "capacity" and all(limits)) or (name == "process_in_use" and first.pid == second.pid):
            first.figures.setdefault(name, size)
    for name, value in second.facts.items():
        first.facts.setdefault(name, value)
    if any(limits):  # a scheduler counts kills of either kind
        first.facts.pop("host.limited", None)
    first.pid = first.pid or second.pid
    first.host = first.host or second.host
    first.said = first.said or second.said
    first.processes = first.processes or second.processes
    if second.rank is not None or second.local_rank is not None:  # a launcher knows ranks, a scheduler numbers its own tasks
        first.rank = second.rank if first.rank is None else first.rank
        first.local_rank = second.local_rank if first.local_rank is None else first.local_rank
    first.tasks = first.tasks or (second.tasks if second.status == "oom" else ())
