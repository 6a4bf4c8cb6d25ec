"""Messages of schedulers, container runtimes and platforms about a job (grammars/scheduler_oom.lark)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose import families
from diagnose.parse.messages.host_oom import LONGEST
from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.lines import lines_above, lines_below
from diagnose.units import IMPOSSIBLE, Size, first_numbers, whole_number, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from diagnose.parse.text.grammar_statements import Statement
    from diagnose.parse.text.lines import Page

#: Why a job was stopped, by the word that its scheduler has for it.
_STOPS = {
    "TIME LIMIT": "time_limit",
    "TERM_RUNLIMIT": "time_limit",
    "TERM_CPULIMIT": "time_limit",
    "TERM_DEADLINE": "time_limit",
    "PREEMPTION": "preempted",
    "TERM_PREEMPT": "preempted",
    "NODE FAILURE": "node_failed",
    "JOB REQUEUE": "preempted",
    "TERM_OWNER": "cancelled",
    "TERM_ADMIN": "cancelled",
    "TERM_FORCE_OWNER": "cancelled",
    "TERM_FORCE_ADMIN": "cancelled",
}
#: These reasons explain a kill that nothing else explains.
STOPS = frozenset(_STOPS.values())

_MEMORY_VOLUME = lazy_compile(r"shm|memory", re.IGNORECASE)
_BLOCK = 60  # lines of a pod's or job's description round the word that says how it ended
_LIMIT = lazy_compile(r"^\s*\"?[Ll]imits\"?:(?:\s*\{)?\s*$|\"limits\": ?\{([^{}]{0,300})\}")
_LIMIT_ENDS = lazy_compile(r'\s*"?[Rr]equests"?:|\s*\}')
_MEMORY = lazy_compile(r"^\s*\"?memory\"?: {1,20}\"?(\d[\w.]{0,20})\"?,?\s*$")
_ENDS = lazy_compile(r"^\s*(?:\"?containerID\"?|Container ID):|^Name:\s")
_SEFF = lazy_compile(r"Memory (Utilized|Efficiency): ([\d.]{1,12})(?:% of ([\d.]{1,12}))? ([KMGT]B)")
_LSF = lazy_compile(r"(Max|Total Requested) Memory : {1,12}([\d.]{1,12}) ([KMGT]B)")
_STATE = lazy_compile(r'OOMKilled"?: ?(true|false)')
_HOST_CONFIG = lazy_compile(r'"Memory": (\d{1,20}),')


def goes_on(text: str, _line: str) -> bool:
    """A report of an eviction that was wrapped or has its message on the next line."""
    return re.search(r"Evicted\s*$|low on resource:\s*$|exceeds the limit\s*$", text[-80:]) is not None


def read(text: str) -> Message | None:
    """The message in a line; None where none of its words is one."""
    text = grammar_statements.collapse_blanks(text[:LONGEST])
    statements = [statement for statement in grammar_statements.parse_statements("scheduler_oom", text) if not _is_harmless(statement)]
    says = statement_specs("scheduler_oom")
    leading = max(
        (statement for statement in statements if statement.kind in says), key=lambda statement: says[statement.kind].weight, default=None
    )
    if leading is None:
        return None
    message = says[leading.kind].message(leading)
    for statement in statements:
        _add_statement(message, statement)
    return message


def _is_harmless(statement: Statement) -> bool:
    """Whether a message gives no reason: a step stopped because its task died; a container whose state says that it was not killed."""
    return statement.kind == "no_docker" or (
        statement.kind == "cancelled" and statement.words[0].startswith("STEP") and "DUE TO" not in statement.words[0]
    )


def _add_statement(message: Message, statement: Statement) -> None:
    words = statement.words[0] if statement.words else ""
    numbers = whole_numbers(words)
    match statement.kind:
        case "slurm_over" if ">" in words:
            used, limit = (_slurm_size(number, words) for number in first_numbers(words.rpartition("(")[2], 2))
            message.figures["process_in_use"], message.figures["capacity"] = used, limit
        case "step":
            message.helper = words.endswith("extern")
        case "slurm_tasks":
            message.tasks = parse_tasks(words)
            message.host = _one_host(words)
        case "pbs" | "sge" | "yarn":
            message.figures["process_in_use"], message.figures["capacity"] = _use_and_limit(statement.kind, words)
        case "condor":
            message.figures["capacity"] = _printed(first_numbers(words, 1)[0], "MiB")
        case "k8s_event" if numbers:
            message.family, message.pid = statement_specs("scheduler_oom")["k8s_process"].family, numbers[-1]
        case "evicted":  # the node was low, whatever the limit of the pod
            message.facts |= {"log.evicted": True, "host.limited": False}
        case "evicted_use":
            sizes = (message.figures.get("process_in_use"), parse_quantity(words.split()[2].rstrip(",")))  # of several containers
            message.figures["process_in_use"] = max(filter(None, sizes), key=lambda size: size.bytes, default=None)
        case "volume":
            name, limit = re.findall(r'volume "?([\w.-]+)"? exceeds the limit "?(\d[\w.]*\w|\d)', words)[0]
            if _MEMORY_VOLUME.search(name):
                message.facts["log.shm_limit"] = parse_quantity(limit)
            else:
                message.family, message.status, _, message.reason, *_ = statement_specs("scheduler_oom")["disk"]
        case "cancelled" | "lsf_other":
            message.reason = next((reason for word, reason in _STOPS.items() if word in words), "cancelled")


def _use_and_limit(kind: str, words: str) -> list[Size | None]:
    """The two sizes of a message of PBS (KiB), Grid Engine (bytes) or YARN (with their units)."""
    if kind == "yarn":
        sizes = re.findall(r"[\d.]+ [KMGT]?B(?= of| physical)", words)
        return [grammar_statements.parse_size(size, binary=True) for size in sizes]
    if kind == "pbs":
        return [_printed(number, "KiB") for number in first_numbers(words, 2)]
    return [_printed(number, "bytes") for number in first_numbers(re.sub(r"\.\d+", "", words.rpartition("(")[2]), 2)]


def _printed(number: int | None, unit: str) -> Size | None:
    return None if number is None else Size.printed(str(number), unit)


def _slurm_size(number: int | None, words: str) -> Size | None:
    """A size printed by Slurm: bytes in lines with StepId=, MB in slurmd's own line, KB in older releases, which alone name a
    job without its step; None where it may be either."""
    if words.startswith("Job ") and " > " not in words:
        return _printed(number, "MiB")
    if number is None or words.startswith("StepId=") or number >= 1 << 33:
        return _printed(number, "bytes")
    return _printed(number, "KiB") if number < 1 << (31 if words.startswith("Job ") else 28) else None


def parse_tasks(words: str) -> tuple[int, ...]:
    """Task numbers of `task 2` or `tasks 0-3,9`; at most 1024, and none where one range is longer."""
    listed = re.search(r"tasks? ([\d,-]+)", words)
    numbers: list[int] = []
    for part in listed[1].split(",") if listed else ():
        first, _, last = part.partition("-")
        begin, end = whole_number(first), whole_number(last or first)
        if begin is None or end is None or end - begin > 1024 or len(numbers) > 1024:
            return ()
        numbers += range(begin, end + 1)
    return tuple(numbers[:1024])


def _one_host(words: str) -> str:
    """The node, if the line names exactly one."""
    host = re.search(r"error: (\S+?): task", words)
    return host[1] if host and not set("[],") & set(host[1]) else ""


# -- what stands on other lines of the same report


def complete(message: Message, page: Page, index: int) -> Sequence[int] | None:
    """Add the limit and the use that the description of a job or pod prints on other lines. Returns the indexes of the lines used; None
    where they say that nothing was killed (the state of a container always has that key)."""
    line = page.line(index).text
    state = _STATE.search(line)
    docker, pod, slurm = (statement_specs("scheduler_oom")[kind].family for kind in ("docker", "k8s", "slurm"))
    if state is not None and families.of(message.family).container:
        if state[1] == "false":
            return None
        message.family = docker
    if message.family == slurm and "State" in line:
        return _usage_and_limit(message, page, index, _SEFF, 20)
    if "TERM_MEMLIMIT" in line:
        return _usage_and_limit(message, page, index, _LSF, 40)
    if message.family == pod and "OOMKilled" in line:
        return _pod_limit(message, page, index)
    if message.family == docker and "OOMKilled" in line:
        matches = [(at, match) for at, text in lines_below(page, index, 200) if (match := _HOST_CONFIG.search(text))]
        if len(matches) == 1 and int(matches[0][1][1]):
            message.figures["capacity"] = Size.printed(matches[0][1][1], "bytes")
            return [matches[0][0]]
    return ()


def _usage_and_limit(message: Message, page: Page, index: int, says: re.Pattern[str], reach: int) -> list[int]:
    """Use and limit from `seff` and `bjobs`, whose MB and GB are binary. The job's state may stand below them."""
    used = []
    for at, text in (*lines_below(page, index, reach), *lines_above(page, index, 6)):
        match = says.search(grammar_statements.collapse_blanks(text[:300]))
        if match is None:
            continue
        unit = match[match.lastindex or 0]
        if match[1] in ("Utilized", "Max"):
            message.figures.setdefault("process_in_use", grammar_statements.parse_size(f"{match[2]} {unit}", binary=True))
        else:
            limit = match[3] if match[1] == "Efficiency" else match[2]
            message.figures.setdefault("capacity", grammar_statements.parse_size(f"{limit} {unit}", binary=True))
        used.append(at)
    return used


def _pod_limit(message: Message, page: Page, index: int) -> list[int]:
    """The memory limit of the killed container. `kubectl describe` prints it below the state, an API object anywhere."""
    described = _limits(lines_below(page, index, _BLOCK), in_order=True)
    if not described:  # YAML and JSON: the specification, which stands above the state
        described = _limits(lines_above(page, index, 8 * _BLOCK), in_order=False)
    if not described:
        one_line = re.findall(r'"limits": ?\{[^{}]{0,300}?"memory": ?"(\w{1,20})"', page.line(index).text)
        described = [(index, text) for text in one_line]
    if len({text for _, text in described}) != 1 or page.cut_off.endswith(described[0][1]):
        return []  # another container's, or 640 of 640Gi
    message.figures["capacity"] = parse_quantity(described[0][1])
    return [described[0][0]]


def _limits(lines: Iterable[tuple[int, str]], in_order: bool) -> list[tuple[int, str]]:
    """Memory limits in these lines; where the lines are in order, only up to the next container."""
    own_lines: list[tuple[int, str]] = []
    for at, text in lines:
        if in_order and _ENDS.search(text):
            break
        own_lines.append((at, text))
    limits, inside = [], False
    for at, text in own_lines if in_order else reversed(own_lines):
        whole = _LIMIT.search(text)
        inside = (whole is not None and whole[1] is None) or (inside and not _LIMIT_ENDS.match(text))
        match = _MEMORY.match(text) if inside else re.search(r'"memory": ?"(\w+)"', whole[1]) if whole and whole[1] else None
        if match is not None:
            limits.append((at, match[1]))
    return limits


_QUANTITY_SCALE: dict[str, int | str] = {
    **{f"{letter}i": 1 << 10 * power for power, letter in enumerate("KMGTPE", start=1)},
    **{letter: 1000**power for power, letter in enumerate("kMGTPE", start=1)},
    "m": "0.001",
    "": 1,
}


def parse_quantity(text: str) -> Size | None:
    """The bytes of a Kubernetes quantity such as 64Gi, exact; None for anything else and for what no memory can have."""
    from decimal import Decimal  # few logs name such a quantity

    match = re.fullmatch(r"(\d{1,20}(?:\.\d{1,9})?)([A-Za-z]{0,2})", text)
    scale = _QUANTITY_SCALE.get(match[2]) if match else None
    if match is None or scale is None or Decimal(match[1]) * Decimal(scale) > IMPOSSIBLE:
        return None
    count = round(Decimal(match[1]) * Decimal(scale))
    return Size(count, count, count, text)
