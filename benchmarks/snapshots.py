"""Speed and memory of reading a memory snapshot of about a gigabyte: `python benchmarks/snapshots.py [MEGABYTES]`.

The file is written as Python's pickler writes what torch hands it (protocol 4, batches of 1,000, shared tracebacks): segments of
2 MiB to some GiB with their blocks, then the history of one card, most of it allocations and their release with the traceback of
one of some thousand places.
"""

from __future__ import annotations

import pickle
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MIB = 2**20
PLACES = 4000


def frames(rng: random.Random, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One traceback, its frames shared with others."""
    return [known[int(rng.random() ** 2 * len(known))] for _ in range(rng.randint(15, 60))]


def tracebacks(rng: random.Random) -> list[list[dict[str, Any]]]:
    files = [f"/usr/lib/python3.11/site-packages/package/module_{number}.py" for number in range(300)]
    known = [{"filename": rng.choice(files), "line": rng.randint(1, 3000), "name": f"function_{rng.randint(0, 2000)}"} for _ in range(8000)]
    return [frames(rng, known) for _ in range(PLACES)]


def segment(rng: random.Random, address: int, stacks: list[list[dict[str, Any]]]) -> dict[str, Any]:
    sizes = [rng.choice((512, 4096, MIB, 20 * MIB, 64 * MIB)) for _ in range(rng.randint(1, 60))]
    blocks, at = [], address
    for size in sizes:
        state = rng.choice(("active_allocated", "active_allocated", "inactive"))
        requested = size - rng.randint(0, 511) if state != "inactive" else 0
        blocks.append({"address": at, "size": size, "requested_size": requested, "state": state, "frames": rng.choice(stacks)})
        at += size
    taken = sum(size for size, block in zip(sizes, blocks, strict=True) if block["state"] != "inactive")
    return {
        "device": 0,
        "address": address,
        "total_size": at - address,
        "allocated_size": taken,
        "active_size": taken,
        "requested_size": taken,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": rng.choice(stacks),
        "blocks": blocks,
    }


def entries(rng: random.Random, stacks: list[list[dict[str, Any]]], count: int) -> Iterator[dict[str, Any]]:
    """The history of one card, ending in a failure."""
    start = 1_750_000_000_000_000
    for number in range(count):
        action = ("alloc", "free_requested", "free_completed")[number % 3]
        yield {
            "action": action,
            "addr": 0x7F0000000000 + number % 5000 * 512,
            "size": 512 * (1 + number // 3 % 9000),
            "stream": 0,
            # torch makes the text anew for every entry
            "time_us": start + 7 * number,
            "compile_context": "".join(["N", "/A"]),
            "user_metadata": "",
            "frames": stacks[number // 3 % PLACES],
        }
    yield {"action": "oom", "device_free": 300 * MIB, "size": 4 * 2**30 + 512, "stream": 0, "time_us": start, "frames": stacks[0]}


def write(path: Path, megabytes: float) -> None:
    """A snapshot of about so many megabytes (an entry of the history takes 85 bytes)."""
    rng = random.Random(0)
    stacks = tracebacks(rng)
    segments = [segment(rng, 0x7F0000000000 + number * 2**32, stacks) for number in range(2000)]
    history = list(entries(rng, stacks, max(1, int(megabytes * 1e6 / 85))))
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False}
    with path.open("wb") as file:
        pickle.dump({"segments": segments, "device_traces": [history], "allocator_settings": settings}, file, 4)


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapshot.pickle")
        import subprocess

        subprocess.run([sys.executable, __file__, "--write", str(path), str(megabytes)], check=True)
        size = path.stat().st_size
        from diagnose.scan.source import Source
        from diagnose.snapshot.snapshot_reader import read

        start = time.perf_counter()
        found = read(Source.file(path))
        took = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"{size / 1e6:.0f} MB in {took:.1f} s: {size / 1e6 / took:.1f} MB/s, peak {peak / 1e6:.0f} MB, {found}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]), float(sys.argv[3]))
    else:
        main()
