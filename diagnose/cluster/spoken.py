"""What a scheduler says of a job's memory, as the lines that people know: `seff` of Slurm, `kubectl describe` of Kubernetes.

A log that just ends says nothing; its job's state does. grammars/scheduler_oom.lark reads these lines wherever they stand.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.source import Source

if TYPE_CHECKING:
    from diagnose.cluster.job import About

#: States, folded, that say that memory ran out.
_SLURM = re.compile(r"OUT_OF_ME(?:MORY|\+)?$", re.IGNORECASE)
_KUBERNETES = re.compile(r"OOMKill(?:ed|ing)$", re.IGNORECASE)
_EVICTED = re.compile(r"low on resource: memory", re.IGNORECASE)
_GB = 1 << 30


def of_memory(about: About) -> str:
    """Which words a state belongs to that says that memory ran out: slurm, kubernetes, evicted; empty for any other."""
    if _SLURM.match(about.state):
        return "slurm"
    if _KUBERNETES.match(about.state):
        return "kubernetes"
    return "evicted" if _EVICTED.search(about.reason) else ""


def spoken(about: About) -> Source | None:
    """The scheduler's words as a log of their own; None where it does not speak of memory."""
    kind = of_memory(about)
    if not kind:
        return None
    lines = {"slurm": _slurm, "kubernetes": _kubernetes, "evicted": _evicted}[kind](about)
    return Source(f"{about.scheduler or 'scheduler'}:{about.id}", data=("\n".join(lines) + "\n").encode(errors="replace"))


def _slurm(about: About) -> list[str]:
    lines = [f"Job ID: {about.id}", f"State: OUT_OF_MEMORY (exit code {about.exit_code or 0})"]
    if about.memory_used is not None:
        lines.append(f"Memory Utilized: {about.memory_used / _GB:.2f} GB")
        if about.memory_limit:
            share = about.memory_used / about.memory_limit
            lines.append(f"Memory Efficiency: {share:.2%} of {about.memory_limit / _GB:.2f} GB")
    return lines


def _kubernetes(about: About) -> list[str]:
    lines = [f"Name: {about.id}", "    Last State: Terminated", "      Reason: OOMKilled"]
    if about.exit_code is not None:
        lines.append(f"      Exit Code: {about.exit_code}")
    if about.memory_limit:
        lines += ["    Limits:", f"      memory: {about.memory_limit}"]
    return lines


def _evicted(about: About) -> list[str]:
    return [f"Name: {about.id}", "Status: Failed", "Reason: Evicted", f"Message: {about.reason[:1000]}"]
