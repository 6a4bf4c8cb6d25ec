"""What reading a large log costs, as ratios to `rg` with the same literals on the same file, run by run in turn.

    python benchmarks/scan.py [--size 1GiB] [--runs 5] [--check] [--log FILE]

Makes a log whose job dies at the end (benchmarks/logs.py) and prints, with the file of literals that both search for:
the scan alone, the whole answer, the first answer at a terminal, and the scan without the compiled search. Needs ripgrep.
With --check the exit status is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from logs import parse_size, single

from diagnose import rule_files

#: The high-water mark of this program's own memory; what the system says of a child counts its parent's as well.
PEAK = """
from pathlib import Path
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""
SCAN = """
import sys
from pathlib import Path
from diagnose.scan import memory_words as search
from diagnose.scan.log_scan import scan
from diagnose.scan.source import Source
if "plain" in sys.argv:
    search.is_fast = lambda: False
scan(Source.file(Path(sys.argv[1])))
"""
GLANCE = """
import sys, time
from pathlib import Path
from diagnose.surfaces.terminal import quick_preview as glance
from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions
before = time.process_time()
answer = glance.preview_headline(Path(sys.argv[1]), AnswerInputs(), DisplayOptions())
print(time.process_time() - before)
print(answer)
"""


class Run(NamedTuple):
    wall: float
    cpu: float
    out: str


def run(command: list[str]) -> Run:
    """One run of a command; raises CalledProcessError where it fails."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1):
            raise subprocess.CalledProcessError(child.returncode, command)
        out.seek(0)
        return Run(wall, used.ru_utime + used.ru_stime, out.read(1 << 16).decode("utf-8", "replace"))


def in_turn(commands: dict[str, list[str]], runs: int) -> dict[str, list[Run]]:
    """Several runs of each, one after the other, so that what else the machine does falls on all."""
    for command in commands.values():
        run(command)
    done: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            done[name].append(run(command))
    return done


def main() -> int:
    asked = argparse.ArgumentParser(description="reading a large log, as ratios to rg")
    asked.add_argument("--size", type=parse_size, default=1 << 30)
    asked.add_argument("--runs", type=int, default=5)
    asked.add_argument("--log", type=Path, help="a log to read instead of a made one")
    asked.add_argument("--check", action="store_true", help="fail where a bar is missed")
    options = asked.parse_args()
    rg = shutil.which("rg")
    if rg is None:
        print("rg was not found (Debian: apt install ripgrep)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        literals = folder / "literals.txt"
        literals.write_text("".join(f"{anchor}\n" for anchor in rule_files.table("messages")["anchors"]))
        log = options.log or folder / "job.log"
        if options.log is None:
            single(log, options.size)
        small = folder / "small.log"
        with log.open("rb") as whole:
            whole.seek(-min(log.stat().st_size, 64 << 10), 2)
            small.write_bytes(whole.read())
        python, tool = sys.executable, str(Path(sys.executable).with_name("oomdoctor"))
        done = in_turn(
            {
                "python -c pass": [python, "-c", "pass"],
                "cat": ["sh", "-c", 'cat "$0" >/dev/null', str(log)],
                "rg": [rg, "-a", "-F", "-b", "-o", "--no-mmap", "-f", str(literals), str(log)],
                "scan": [python, "-c", SCAN, str(log)],
                "explain": [tool, "explain", str(log), "--format", "json"],
                "explain its end": [tool, "explain", str(small), "--format", "json"],
                "scan, plain": [python, "-c", SCAN, str(log), "plain"],
                "first answer": [python, "-c", GLANCE, str(log)],
            },
            options.runs,
        )
        held = [int(run([python, "-c", code, str(log)]).out) for code in (PEAK, SCAN + PEAK)]
        return report(done, log.stat().st_size, literals, held[1] - held[0], options.check)


def report(done: dict[str, list[Run]], size: int, literals: Path, held: int, check: bool) -> int:
    """Print what was measured; `held` is the scan's memory over that of a bare interpreter, in KiB."""
    walls = {name: median(one.wall for one in runs) for name, runs in done.items()}
    mib = size / (1 << 20)
    print(f"{size:,} bytes; literals given to both:")
    print(", ".join(repr(line) for line in literals.read_text().splitlines()))
    print(f"\n{'':18} {'wall s':>8} {'MiB/s':>8} {'x rg':>6}")
    for name, wall in walls.items():
        print(f"{name:18} {wall:8.3f} {mib / wall:8,.0f} {wall / walls['rg']:6.2f}")
    first = median(float(one.out.split("\n")[0]) for one in done["first answer"])
    bars = [
        ("rg reaches 2 GiB/s on these literals", mib / walls["rg"] / 1024, 2.0, False),
        ("scan, wall to rg", walls["scan"] / walls["rg"], 1.3, True),
        ("scan, peak MiB over the interpreter", held / 1024, 40.0, True),
        ("explain less its start, wall to rg", (walls["explain"] - walls["explain its end"]) / walls["rg"], 1.5, True),
        ("first answer, CPU s beyond start-up", first, 0.3, True),
        ("scan without the compiled search, MiB/s", mib / (walls["scan, plain"] - walls["python -c pass"]), 200.0, False),
    ]
    print()
    missed = 0
    for label, value, bar, most in bars:
        over = value > bar if most else value < bar
        missed += over
        print(f"{label:42} {value:8.2f}  {'at most' if most else 'at least'} {bar:g}{'  MISSED' if over else ''}")
    return 1 if missed and check else 0


if __name__ == "__main__":
    sys.exit(main())
