"""What starting costs: CPU time of the command as a ratio to `python -c pass`, measured in the same run.

    python benchmarks/startup.py [--runs 9] [--check]

CPU time (user + system of the child) and the best of several runs, because other work may share the cores; wall time is
printed beside it. The bars are the project's: `--help` 10x, `explain` of a small log with a config to JSON 26x, to text 29x.
With --check the exit status is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

#: A small log and its config: the last lines of a job that died in the loss.
LOG = """\
[INFO|trainer.py:2369] 2026-01-05 10:00:00,000 >> ***** Running training *****
  0%|          | 0/100 [00:00<?, ?it/s]Traceback (most recent call last):
  File "/env/lib/python3.11/site-packages/transformers/trainer.py", line 3698, in training_step
    loss = self.compute_loss(model, inputs)
  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 3479, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 79.25 GiB of which 1.41 GiB \
is free. Process 4242 has 77.80 GiB memory in use. Of the allocated memory 70.51 GiB is allocated by PyTorch, and 5.51 GiB is \
reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting \
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.
"""
CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
template: qwen
cutoff_len: 4096
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
bf16: true
"""


class Measured(NamedTuple):
    cpu: float
    wall: float


def measure(command: list[str], folder: Path) -> Measured:
    """One run of a command in a folder: CPU and wall seconds. Raises CalledProcessError where it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measured(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall)


def best(command: list[str], folder: Path, runs: int) -> Measured:
    """The best CPU and the best wall time of several runs; a first run, which may fill caches, is not counted."""
    measure(command, folder)
    seen = [measure(command, folder) for _ in range(runs)]
    return Measured(min(one.cpu for one in seen), min(one.wall for one in seen))


def measured(runs: int) -> list[tuple[str, Measured, float | None]]:
    """What was run, what it cost, and the bar it has to meet."""
    tool = str(Path(sys.executable).with_name("oomdoctor"))
    explain = [tool, "explain", "small.log", "--config", "train.yaml"]
    commands: list[tuple[str, list[str], float | None]] = [
        ("python -c pass", [sys.executable, "-c", "pass"], None),
        ("oomdoctor --help", [tool, "--help"], 10.0),
        ("oomdoctor explain, JSON", [*explain, "--format", "json"], 26.0),
        ("oomdoctor explain, text", explain, 29.0),
        ("oomdoctor explain, Markdown", [*explain, "--format", "markdown"], None),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "small.log").write_text(LOG)
        (folder / "train.yaml").write_text(CONFIG)
        return [(label, best(command, folder, runs), bar) for label, command, bar in commands]


def main() -> int:
    asked = argparse.ArgumentParser(description="CPU time of starting, as a ratio to `python -c pass`")
    asked.add_argument("--runs", type=int, default=9)
    asked.add_argument("--check", action="store_true", help="fail where a bar is missed")
    options = asked.parse_args()
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""  # byte code is part of any installation
    rows = measured(options.runs)
    base, missed = rows[0][1], 0
    print(f"{'command':30} {'CPU ms':>8} {'ratio':>7} {'bar':>6} {'wall ms':>8}")
    for label, cost, bar in rows:
        ratio = cost.cpu / base.cpu
        over = bar is not None and ratio > bar
        missed += over
        limit = f"{bar:g}x" if bar else ""
        print(f"{label:30} {cost.cpu * 1000:8.1f} {ratio:6.1f}x {limit:>6} {cost.wall * 1000:8.1f}{'  over' if over else ''}")
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
