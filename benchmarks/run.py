"""What `oomdoctor run` costs: at the start of a command, and per byte of its output, against running it plainly.

    python benchmarks/run.py [--runs 15] [--megabytes 500] [--check]

Start: the wall time of `oomdoctor run -- true`, less that of `python -c pass` and of `true`, best of several, because other work may
share the cores; the bar is the project's, 90 ms. Output: a command prints at 100 MB/s into a pipe, and at 20 MB/s on a terminal.
While it runs, by its own clock, it must take no longer (1 % is the clock's); what we add around it, from before its start to after
its end, may be 1 % more than around `true`. How fast it could go is printed beside it.
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

#: Bars: seconds at the start, and the share of time that printing may take longer.
START, SLOWER = 0.090, 0.01

#: MB/s that are printed on each way: few terminals take more.
PACES = {"pipe": 100, "terminal": 20}

#: Where the paced command leaves how many seconds it took.
CLOCK = "seconds"

PACED = """
import os, sys, time
block = (b"step 12/500 loss 1.2345 " * 2731)[:65535] + b"\\n"
begun = time.monotonic()
for at in range({blocks}):
    os.write(1, block)
    ahead = begun + (at + 1) * 65536 / {pace} - time.monotonic()
    if ahead > 0: time.sleep(ahead)
open({clock!r}, "w").write(str(time.monotonic() - begun))
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


def paced(command: list[str], folder: Path, terminal: bool) -> tuple[float, float]:
    """Seconds of a paced command by its own clock, and those around it, of the best of three runs of each."""
    seen = []
    for _ in range(3):
        whole = timed(command, folder, not terminal, terminal)
        seen.append((float((folder / CLOCK).read_text()), whole))
    return min(own for own, _ in seen), min(whole - own for own, whole in seen)


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
        slower = max(printed(label, tool, folder, ours - plain, options.megabytes) for label in PACES)
    missed = start > START or slower > SLOWER
    print(f"bars: {'missed' if missed else 'met'}")
    return 1 if missed and options.check else 0


def printed(label: str, tool: list[str], folder: Path, around_true: float, megabytes: int) -> float:
    """Print what output costs on one way; the share of time that it took longer, while the command ran or around it."""
    terminal, pace = label == "terminal", PACES[label]
    blocks = megabytes * 1_000_000 // 65536
    script = [sys.executable, "-c", PACED.format(blocks=blocks * pace // 100, pace=pace * 1e6, clock=CLOCK)]
    plain, around_plain = paced(script, folder, terminal)
    ours, around = paced([*tool, *script], folder, terminal)
    more = around - around_plain - around_true
    print(f"{label} at {pace} MB/s: the command took {plain:.3f} s plainly, {ours:.3f} s with run ({100 * (ours / plain - 1):+.2f} %)")
    print(f"       around it {1000 * more:+.0f} ms ({100 * more / plain:+.2f} %) beyond what run takes around true")
    flat = [sys.executable, "-c", FLAT_OUT.format(blocks=blocks)]
    fast = [best(partial(timed, words, folder, not terminal, terminal), 2) for words in (flat, [*tool, *flat])]
    size = blocks * 65536 / 1e6
    print(f"       flat out {size / fast[0]:.0f} MB/s plainly, {size / fast[1]:.0f} MB/s with run")
    return max(ours / plain - 1, more / plain)


if __name__ == "__main__":
    sys.exit(main())
