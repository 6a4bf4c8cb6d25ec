"""What a scheduler says of how a job ended, as the lines that people know: `seff` and slurmstepd of Slurm, `kubectl describe`.

A log that just ends says nothing, and one in which a process was killed not by whom; its job's state does. grammars/scheduler_oom.lark
and grammars/launcher_oom.lark read these lines wherever they stand.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from diagnose.cluster.find.job_index import failed
from diagnose.scan.source import Source

if TYPE_CHECKING:
    from diagnose.cluster.find.job import About

#: States, folded, that say that memory ran out.
_SLURM = re.compile(r"OUT_OF_ME(?:MORY|\+)?$", re.IGNORECASE)
_KUBERNETES = re.compile(r"OOMKill(?:ed|ing)$", re.IGNORECASE)
_EVICTED = re.compile(r"low on resource: memory", re.IGNORECASE)
_GB = 1 << 30

#: States in which Slurm ended a job for reasons of its own, as slurmstepd writes them (src/slurmd/slurmstepd/req.c).
_ENDED = {"TIMEOUT": "TIME LIMIT", "PREEMPTED": "PREEMPTION", "NODE_FAIL": "NODE FAILURE", "REQUEUED": "JOB REQUEUE"}

#: What a shell and a runtime make of SIGKILL.
_KILLED = (128 + 9, -9)


def of_memory(about: About) -> str:
    """Which words a state belongs to that says that memory ran out: slurm, kubernetes, evicted; empty for any other."""
    if _SLURM.match(about.state):
        return "slurm"
    if _KUBERNETES.match(about.state):
        return "kubernetes"
    return "evicted" if _EVICTED.search(about.reason) else ""


def spoken(about: About) -> Source | None:
    """The scheduler's words as a log of their own; None where they say nothing of memory, nor who killed the job."""
    kind = of_memory(about)
    if kind:
        lines = {"slurm": _slurm, "kubernetes": _kubernetes, "evicted": _evicted}[kind](about)
    elif ended(about):
        lines = [_cancelled(about)]
    elif _killed(about):
        lines = _kubernetes(about) if about.scheduler == "kubernetes" else _slurm(about)
    else:
        return None
    return Source(f"{about.scheduler or 'scheduler'}:{about.id}", data=("\n".join(lines) + "\n").encode(errors="replace"))


def ended(about: About) -> bool:
    """Whether the scheduler ended the job for reasons of its own: then the kills in its log are the scheduler's."""
    return about.state.upper() in _ENDED


def _killed(about: About) -> bool:
    """Whether a job failed by SIGKILL and nobody says who sent it. (A pod's message does: of a deadline, of a node that is shut down.)"""
    by_signal = about.signal == 9 or about.exit_code in _KILLED
    return by_signal and failed(about) and (not about.reason or about.scheduler == "slurm")


def _cancelled(about: About) -> str:
    when = "Unknown" if about.ended is None else datetime.fromtimestamp(about.ended, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"slurmstepd: error: *** JOB {about.id} CANCELLED AT {when} DUE TO {_ENDED[about.state.upper()]} ***"


def _slurm(about: About) -> list[str]:
    state = f"OUT_OF_MEMORY (exit code {about.exit_code or 0})" if _SLURM.match(about.state) else f"FAILED (exit code {_KILLED[0]})"
    lines = [f"Job ID: {about.id}", f"State: {state}"]
    if about.memory_used is not None:
        lines.append(f"Memory Utilized: {about.memory_used / _GB:.2f} GB")
        if about.memory_limit:
            share = about.memory_used / about.memory_limit
            lines.append(f"Memory Efficiency: {share:.2%} of {about.memory_limit / _GB:.2f} GB")
    return lines


def _kubernetes(about: About) -> list[str]:
    lines = [f"Name: {about.id}", "    Last State: Terminated", f"      Reason: {about.state}"]
    if about.exit_code is not None:
        lines.append(f"      Exit Code:    {about.exit_code}")
    if about.memory_limit:
        lines += ["    Limits:", f"      memory: {about.memory_limit}"]
    return lines


def _evicted(about: About) -> list[str]:
    return [f"Name: {about.id}", "Status: Failed", "Reason: Evicted", f"Message: {about.reason[:1000]}"]
