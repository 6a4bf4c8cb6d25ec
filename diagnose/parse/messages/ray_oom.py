"""Ray: its memory monitor, with the table of the largest processes, and its object store (grammars/ray_oom.lark). Its GB are binary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse.frames import phases
from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.event import OtherProcess
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import Size, whole_number

if TYPE_CHECKING:
    from diagnose.parse.text.grammar_statements import Statement

_OPENS = lazy_compile(
    r"running low on memory|address the out of memory issue|emory on the node|MEM\(GB\)|RayOutOfMemoryError|ObjectStoreFullError"
)
_GOES_ON = lazy_compile(
    r"Task was killed|Memory on the node|Ray killed this worker|Top \d+ memory users|The top \d+ memory|More than \d|PID\s+MEM"
    r"|\d+\s+[\d.]+(?:GiB|GB)?\s+\S+|Failed to put object|Object size is|In addition, up to|[\w .]{0,60}memory usage threshold|\s*$"
)


def goes_on(text: str, line: str) -> bool:
    """Whether the report continues: node, worker, table of the largest processes."""
    return _OPENS.search(text[:4000]) is not None and _GOES_ON.match(line.strip()) is not None


def read(text: str) -> Message | None:
    """The message in these lines; None where none of its words is one."""
    text = "\n".join(grammar_statements.collapse_blanks(line) for line in text.split("\n"))
    statements = grammar_statements.parse_statements("ray_oom", text)
    says = statement_specs("ray_oom")
    leading = max(
        (statement for statement in statements if statement.kind in says), key=lambda statement: says[statement.kind].weight, default=None
    )
    if leading is None or (leading.kind == "table" and "ray::" not in text):
        return None
    message = says[leading.kind].message(leading)
    for statement in statements:
        _add_statement(message, statement)
    message.phase = phases.phase_of_call(message.said) or phases.phase_of_call(_largest(message))
    return message


def _largest(message: Message) -> str:
    """The process that holds most, named after the method that it runs. Ray kills the newest task, whatever the others hold."""
    sizes = [(process.in_use.bytes, process.name) for process in message.processes if process.in_use is not None]
    return max(sizes)[1] if sizes else ""


def _add_statement(message: Message, statement: Statement) -> None:
    words = statement.words[0] if statement.words else ""
    match statement.kind:
        case "node":
            message.host = re.sub(r".*IP: ([\w.:]+),", r"\1", words)
        case "task":
            name, pid, used = re.findall(r"name=(.*), pid=(\d+), memory used=(.+)", words)[0]
            message.pid = message.killed["ray"] = whole_number(pid) or 0
            message.said = name
            message.figures["process_in_use"] = grammar_statements.parse_size(used, binary=True)
        case "used" | "old_used":
            message.figures["capacity"] = grammar_statements.parse_size(re.findall(r"[\d.]+(?= ?GB)", words)[-1] + " GB", binary=True)
        case "object":
            message.figures["requested"] = Size.printed(next(iter(re.findall(r"\d+", words)), ""), "bytes")
        case "row":
            match = re.match(r"(\d+) ([\d.]+)(?:GiB|GB)? (\S+)", words)
            if match is not None and re.fullmatch(r"\d{1,9}(\.\d{1,6})?", match[2]):
                pid = whole_number(match[1]) or 0
                process_size = Size.printed(match[2], "GB", binary=True)
                message.processes += (OtherProcess(pid, process_size, pid == message.pid, match[3]),)
                if pid == message.pid or not message.said:  # the others have roles of their own
                    message.said = f"{message.said} {match[3]}"
