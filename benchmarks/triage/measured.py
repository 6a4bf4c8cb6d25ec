"""What a command and all processes that it starts take: wall time, processor time, and the memory that they hold together."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

EVERY = 0.1  # seconds between two looks at memory


class Run(NamedTuple):
    """Seconds of wall and processor time, the largest sum of memory (bytes, shared pages divided among those who share them), status."""

    wall: float
    cpu: float
    peak: int
    status: int
    out: str


def run(command: Sequence[str], folder: Path | None = None) -> Run:
    """One run of a command. Processor time is that of all its processes, as the kernel counts them: of those that it waited for at their
    end, of others (a server that forks workers is nobody's child) when they were looked at last."""
    watch = _Watch()
    begun, before = time.perf_counter(), os.times()
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    thread = threading.Thread(target=watch.look, args=(child.pid,), daemon=True)
    thread.start()
    out, _ = child.communicate()
    wall = time.perf_counter() - begun
    watch.ended = True
    thread.join()
    after = os.times()
    waited = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(wall, max(waited, sum(watch.cpu.values())), watch.peak, child.returncode, out[-4000:])


class _Watch:
    def __init__(self) -> None:
        self.cpu: dict[int, float] = {}
        self.peak = 0
        self.ended = False

    def look(self, root: int) -> None:
        while not self.ended:
            held = 0
            for pid in _family(root):
                held += _held(pid)
                used = _cpu(pid)
                if used is not None:
                    self.cpu[pid] = used
            self.peak = max(self.peak, held)
            time.sleep(EVERY)


def _family(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            stat = _read(Path(entry.path) / "stat")
            if stat:
                parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def _cpu(pid: int) -> float | None:
    stat = _read(Path(f"/proc/{pid}/stat"))
    if not stat:
        return None
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _held(pid: int) -> int:
    """The proportional share of memory that a process holds."""
    rollup = _read(Path(f"/proc/{pid}/smaps_rollup"))
    return next((int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:")), 0)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""
