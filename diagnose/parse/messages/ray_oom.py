"""Ray: its memory monitor with the table of the largest processes, and its object store (grammars/ray_oom.lark). Its GB are binary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse.frames import phases
from diagnose.parse.messages.message_spec import sayings
from diagnose.parse.model.event import OtherProcess
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import later
from diagnose.units import Size

if TYPE_CHECKING:
    from diagnose.parse.text.grammar_statements import Statement

_OPENS = later(r"running low on memory|emory on the node|RayOutOfMemoryError|ObjectStoreFullError")
_GOES_ON = later(
    r"Task was killed|Memory on the node|Ray killed this worker|Top \d+ memory users|The top \d+ memory|More than \d|PID\s+MEM"
    r"|\d+\s+[\d.]+(?:GiB|GB)?\s+\S+|Failed to put object|Object size is|In addition, up to|[\w .]{0,60}memory usage threshold|\s*$"
)


def goes_on(text: str, line: str) -> bool:
    """The report runs over several lines: the node, the worker, the table of the largest processes."""
    return _OPENS.search(text[:4000]) is not None and _GOES_ON.match(line.strip()) is not None


def read(text: str) -> Message | None:
    """The message in these lines; None where none of its words is one."""
    text = "\n".join(grammar_statements.collapsed(line) for line in text.split("\n"))
    all_said = grammar_statements.statements("ray_oom", text)
    says = sayings("ray_oom")
    leading = max((said for said in all_said if said.kind in says), key=lambda said: says[said.kind].weight, default=None)
    if leading is None:
        return None
    message = says[leading.kind].message(leading)
    for said in all_said:
        _learn(message, said)
    message.phase = phases.of_words(message.said) or phases.of_words(_largest(message))
    return message


def _largest(message: Message) -> str:
    """The process that holds most, under the name of the method that it runs: Ray ends the newest task, whatever the others do."""
    held = [(other.in_use.bytes, other.name) for other in message.processes if other.in_use is not None]
    return max(held)[1] if held else ""


def _learn(message: Message, said: Statement) -> None:
    words = said.words[0] if said.words else ""
    match said.kind:
        case "node":
            message.host = re.sub(r".*IP: ([\w.:]+),", r"\1", words)
        case "task":
            name, pid, used = re.findall(r"name=(.*), pid=(\d+), memory used=(.+)", words)[0]
            message.pid = message.killed["ray"] = int(pid)
            message.said = name
            message.figures["process_in_use"] = grammar_statements.size(used, binary=True)
        case "used" | "old_used":
            message.figures["capacity"] = grammar_statements.size(re.findall(r"[\d.]+(?= ?GB)", words)[-1] + " GB", binary=True)
        case "object":
            message.figures["requested"] = Size.printed(re.findall(r"\d+", words)[0], "bytes")
        case "row":
            shown = re.match(r"(\d+) ([\d.]+)(?:GiB|GB)? (\S+)", words)
            if shown is not None and re.fullmatch(r"\d{1,9}(\.\d{1,6})?", shown[2]):
                pid = int(shown[1])
                held = Size.printed(shown[2], "GB", binary=True)
                message.processes += (OtherProcess(pid, held, pid == message.pid, shown[3]),)
                if pid == message.pid or not message.said:  # the others have roles of their own
                    message.said = f"{message.said} {shown[3]}"
