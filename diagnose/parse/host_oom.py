"""Host memory: what the kernel, schedulers, Ray, data loaders and CPU allocators say (grammars/host_oom.lark)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse import wording
from diagnose.parse.event import OtherProcess
from diagnose.parse.message import Message
from diagnose.units import Size

if TYPE_CHECKING:
    from diagnose.parse.wording import Statement

#: family, status, weight, phase where the statement alone says it.
_SAYS: dict[str, tuple[str, str, int, str]] = {
    "cgroup": ("cgroup_oom", "oom", 9, ""),
    "kernel": ("host_oom_killer", "oom", 8, ""),
    "slurm": ("slurm_oom", "oom", 7, ""),
    "k8s": ("k8s_oom", "oom", 7, ""),
    "oomd": ("systemd_oomd", "oom", 7, ""),
    "ray": ("ray_oom", "oom", 6, ""),
    "ray_workers": ("ray_oom", "oom", 5, ""),
    "ray_node": ("ray_oom", "oom", 5, ""),
    "cpu_allocator": ("cpu_allocator", "oom", 6, ""),
    "pinned": ("pinned_host", "oom", 6, ""),
    "numpy": ("python_memory", "oom", 6, ""),
    "bad_alloc": ("cpp_bad_alloc", "oom", 5, ""),
    "memory_error": ("python_memory", "oom", 4, ""),
    "worker_bus": ("dataloader_shm", "suspected", 4, "dataset"),
    "shm": ("dataloader_shm", "oom", 5, "dataset"),
    "bus": ("dataloader_shm", "suspected", 2, ""),
    "worker_killed": ("host_oom_killer", "suspected", 4, "dataset"),
    "killed": ("host_oom_killer", "suspected", 1, ""),
}

#: What is one death with different traces: merged where they follow each other.
KILLS = frozenset({"host_oom_killer", "cgroup_oom", "slurm_oom", "k8s_oom", "systemd_oomd", "ray_oom", "dataloader_shm"})

_RAY_GOES_ON = re.compile(r"Memory on the node|Ray killed this worker|Top \d+ memory users|PID\s+MEM|\d+\s+[\d.]+\s+\S+")


def goes_on(text: str, line: str) -> bool:
    """Ray's report runs over several lines: the node, the worker, the table of the largest processes."""
    return ("running low on memory" in text or "Memory on the node" in text) and _RAY_GOES_ON.match(line.strip()) is not None


def read(text: str) -> Message | None:
    """The message in a line; None where none of its words is one."""
    all_said = wording.statements("host_oom", wording.collapsed(text))
    leading = max((said.kind for said in all_said if said.kind in _SAYS), key=lambda kind: _SAYS[kind][2], default=None)
    if leading is None:
        return None
    family, status, weight, phase = _SAYS[leading]
    message = Message(family, status, weight=weight, phase=phase)
    for said in all_said:
        _learn(message, said)
    return message


def _learn(message: Message, said: Statement) -> None:
    words = said.words[0] if said.words else ""
    numbers = re.findall(r"\d+(?:\.\d+)?", words)
    match said.kind:
        case "kernel" | "cgroup":
            message.pid = int(numbers[0])
        case "anon":
            message.figures["process_in_use"] = Size.printed(numbers[0], "KiB")
        case "worker_killed" | "worker_bus":
            message.pid = int(numbers[0])
        case "cpu_allocator":
            message.figures["requested"] = Size.printed(numbers[0], "bytes")
        case "numpy":
            message.figures["requested"] = wording.size(words.removeprefix("Unable to allocate "))
        case "ray_node":
            name, pid, used = re.findall(r"=([^,=]+)", words)
            message.pid, message.said = int(pid), name
            message.figures["process_in_use"] = wording.size(used, binary=True)
        case "ray_used":
            message.figures["capacity"] = Size.printed(numbers[1], "GB", binary=True)
        case "ray_top":
            pid, used, name = words.split()
            message.processes += (OtherProcess(int(pid), Size.printed(used, "GB", binary=True), int(pid) == message.pid),)
            message.said = f"{message.said} {name}"
