"""What `oomdoctor run` costs: at the start of a command, and per byte of its output, against running it plainly.

    python benchmarks/run.py [--runs 15] [--megabytes 500] [--check]

Start: the wall time of `oomdoctor run -- true`, less that of `python -c pass` and of `true`, best of several, because other work may
share the cores; the bar is the project's, 50 ms. Output: a command that prints at 100 MB/s into a pipe, and at 20 MB/s on a
terminal, must take no longer (5 % are the clock's); how fast it could go is printed beside it, through a pipe and on a terminal.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

#: Bars: seconds at the start, and the share of time that 100 MB/s may take longer.
START, SLOWER = 0.050, 0.05

PACED = """
import os, sys, time
block = (b"step 12/500 loss 1.2345 " * 2731)[:65535] + b"\\n"
begun = time.monotonic()
for at in range({blocks}):
    os.write(1, block)
    ahead = begun + (at + 1) * 65536 / {pace} - time.monotonic()
    if ahead > 0: time.sleep(ahead)
"""
FLAT_OUT = 'import os\nblock = b"x" * 65535 + b"\\n"\nfor _ in range({blocks}): os.write(1, block)'


def timed(command: list[str], folder: Path, reader: bool = False, terminal: bool = False) -> float:
    """Wall seconds of a command; its output is thrown away, or read by us, or shown on a terminal that we read."""
    (folder / "kept.log").unlink(missing_ok=True)  # emptying a large file takes a while
    if not reader and not terminal:
        begun = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - begun
    ours, theirs = os.openpty() if terminal else os.pipe()
    drain = threading.Thread(target=_drained, args=(ours,))
    drain.start()
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        process.wait()
    took = time.perf_counter() - begun
    drain.join()
    os.close(ours)
    return took


def _drained(source: int) -> None:
    try:
        while os.read(source, 1 << 20):
            pass
    except OSError:  # so ends a terminal
        pass


def best(work: Callable[[], float], runs: int) -> float:
    work()
    return min(work() for _ in range(runs))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--runs", type=int, default=15)
    asked.add_argument("--megabytes", type=int, default=500)
    asked.add_argument("--folder", help="where the log goes (default: the folder for temporary files)")
    asked.add_argument("--check", action="store_true", help="fail where a bar is missed")
    options = asked.parse_args()
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""  # byte code is part of any installation
    tool = [str(Path(sys.executable).with_name("oomdoctor")), "run", "--log", "kept.log", "--"]
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        bare = best(lambda: timed([sys.executable, "-c", "pass"], folder), options.runs)
        plain = best(lambda: timed(["true"], folder), options.runs)
        ours = best(lambda: timed([*tool, "true"], folder), options.runs)
        start = ours - bare - plain
        print(f"start: python -c pass {bare * 1000:.1f} ms, true {plain * 1000:.1f} ms, run -- true {ours * 1000:.1f} ms")
        print(f"       overhead beyond the interpreter {start * 1000:.1f} ms (bar {START * 1000:.0f} ms)")

        blocks = options.megabytes * 1_000_000 // 65536
        flat = [sys.executable, "-c", FLAT_OUT.format(blocks=blocks)]
        slower = 0.0
        for label, terminal, pace in (("pipe", False, 100), ("terminal", True, 20)):  # few terminals take more
            paced = [sys.executable, "-c", PACED.format(blocks=blocks * pace // 100, pace=pace * 1e6)]
            seen = [best(partial(timed, words, folder, not terminal, terminal), 2) for words in (paced, [*tool, *paced])]
            fast = [best(partial(timed, words, folder, not terminal, terminal), 2) for words in (flat, [*tool, *flat])]
            size = blocks * 65536 / 1e6
            share = (seen[1] - bare) / seen[0] - 1
            slower = max(slower, share)
            print(f"{label}: at {pace} MB/s {seen[0]:.2f} s plainly, {seen[1]:.2f} s with run ({100 * share:+.1f} %)", end="; ")
            print(f"flat out {size / fast[0]:.0f} MB/s plainly, {size / fast[1]:.0f} MB/s with run")
    missed = start > START or slower > SLOWER
    print(f"bars: {'missed' if missed else 'met'}")
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
