"""Renders a scheduler's record of a job's end as log lines that the parser knows: of `seff`, slurmstepd and `kubectl describe`.

A log may end without a message, or with a kill by an unknown sender, which the scheduler's state explains. grammars/scheduler_oom.lark and
grammars/launcher_oom.lark read these lines in any log.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal

from diagnose.cluster.find.job import About, has_failed
from diagnose.scan.source import Source

#: States and reasons that say that memory ran out.
_SLURM_OOM = re.compile(r"OUT_OF_ME(?:MORY|\+)?$", re.IGNORECASE)
_KUBERNETES_OOM = re.compile(r"OOMKill(?:ed|ing)$", re.IGNORECASE)
_EVICTED = re.compile(r"low on resource: memory", re.IGNORECASE)
_GB = 1 << 30

#: States in which Slurm ended a job for reasons of its own, as slurmstepd writes them (src/slurmd/slurmstepd/req.c).
_CANCEL_REASONS = {"TIMEOUT": "TIME LIMIT", "PREEMPTED": "PREEMPTION", "NODE_FAIL": "NODE FAILURE", "REQUEUED": "JOB REQUEUE"}

#: The exit codes that a shell and a runtime make of SIGKILL.
_SIGKILL_CODES = (128 + 9, -9)


def memory_state(about: About) -> Literal["slurm", "kubernetes", "evicted", ""]:
    """Which form of state or reason means out of memory; empty for others."""
    if _SLURM_OOM.match(about.state):
        return "slurm"
    if _KUBERNETES_OOM.match(about.state):
        return "kubernetes"
    return "evicted" if _EVICTED.search(about.reason) else ""


def scheduler_log(about: About) -> Source | None:
    """The scheduler's record as a log; None if it is neither about memory nor explains a kill."""
    kind = memory_state(about)
    if kind:
        lines = {"slurm": _slurm_lines, "kubernetes": _kubernetes_lines, "evicted": _eviction_lines}[kind](about)
    elif is_scheduler_kill(about):
        lines = [_cancel_line(about)]
    elif _is_unexplained_kill(about):
        lines = _kubernetes_lines(about) if about.scheduler == "kubernetes" else _slurm_lines(about)
    else:
        return None
    return Source(f"{about.scheduler or 'scheduler'}:{about.id}", data=("\n".join(lines) + "\n").encode(errors="replace"))


def is_scheduler_kill(about: About) -> bool:
    """Whether the scheduler killed the job for reasons of its own, which explains the kills in its log."""
    return about.state.upper() in _CANCEL_REASONS


def _is_unexplained_kill(about: About) -> bool:
    """Whether a job was ended by SIGKILL from an unknown sender. (A pod's message may name one: a deadline, a node shutdown.)"""
    is_sigkill = about.signal == 9 or about.exit_code in _SIGKILL_CODES
    return is_sigkill and has_failed(about) and (not about.reason or about.scheduler == "slurm")


def _cancel_line(about: About) -> str:
    time = "Unknown" if about.ended is None else datetime.fromtimestamp(about.ended, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"slurmstepd: error: *** JOB {about.id} CANCELLED AT {time} DUE TO {_CANCEL_REASONS[about.state.upper()]} ***"


def _slurm_lines(about: About) -> list[str]:
    """Lines as `seff` prints them."""
    is_oom = _SLURM_OOM.match(about.state)
    state = f"OUT_OF_MEMORY (exit code {about.exit_code or 0})" if is_oom else f"FAILED (exit code {_SIGKILL_CODES[0]})"
    lines = [f"Job ID: {about.id}", f"State: {state}"]
    if about.memory_used is not None:
        lines.append(f"Memory Utilized: {about.memory_used / _GB:.2f} GB")
        if about.memory_limit:
            share = about.memory_used / about.memory_limit
            lines.append(f"Memory Efficiency: {share:.2%} of {about.memory_limit / _GB:.2f} GB")
    return lines


def _kubernetes_lines(about: About) -> list[str]:
    """Lines as `kubectl describe` prints them."""
    lines = [f"Name: {about.id}", "    Last State: Terminated", f"      Reason: {about.state}"]
    if about.exit_code is not None:
        lines.append(f"      Exit Code:    {about.exit_code}")
    if about.memory_limit:
        lines += ["    Limits:", f"      memory: {about.memory_limit}"]
    return lines


def _eviction_lines(about: About) -> list[str]:
    return [f"Name: {about.id}", "Status: Failed", "Reason: Evicted", f"Message: {about.reason[:1000]}"]
