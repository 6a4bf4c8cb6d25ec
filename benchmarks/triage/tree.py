"""A tree of failed and healthy jobs as a cluster leaves them, with the truth about each. Everything comes from a seed.

    python benchmarks/triage/tree.py OUT [--jobs 10000] [--total 3GiB] [--configs 0.0] [--seed 7]

Under OUT: `jobs/` with the logs, `manifest.jsonl` (who ran each job, on how many cards, when), and `truth.jsonl`, a row a job: its
path, its logs, the mistake that it repeats, and the root failure: log, line, family, rank, and figures as printed (null: it did not fail).

Jobs fail for one of a few dozen mistakes: the same traceback and the same request on the same card, in half of the jobs with the very
same figures, and some before their first step. Most jobs are one file; some are a file per rank in a folder, some are compressed. A log
is a stretch of its mistake's own healthy run, which is written once, and the failure.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from job import CARDS, Failure, Log
from logs import parse_size

MISTAKES = 40
KINDS = ("torch", "torch", "torch", "torch 1", "torch", "cublas", "torch", "kill", "engine", "torch", "xla")
USERS, PROJECTS = 60, 9
RUN = 1 << 20  # bytes of a mistake's healthy run, of which jobs take stretches
SMALLEST, LARGEST = 20 << 10, 1 << 20
FAILED, RANKED, PACKED, EARLY = 0.6, 0.05, 0.05, 0.2  # shares of the jobs: that fail, with a file per rank, compressed; dead at once
BEGUN = 1_790_000_000  # when the first job began
RANKS = 4

CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: {tuning}
template: qwen
cutoff_len: {length}
per_device_train_batch_size: {batch}
gradient_accumulation_steps: 8
bf16: true
"""


@dataclass
class Mistake:
    """One mistake that jobs repeat: its seed makes its model, card, traceback and request."""

    number: int
    kind: str
    card: str
    frames: int
    run: bytes  # what a healthy job of its kind prints after it began

    def dice(self, more: str = "") -> random.Random:
        return random.Random(f"mistake {self.number} {more}")


class _Hand:
    """A log in memory whose dice are a mistake's: what a job prints at its beginning and its end is that of all who make it."""

    def __init__(self, mistake: Mistake, seed: int) -> None:
        self.made = io.BytesIO()
        self.log = Log(self.made, seed)
        self.mistake = mistake
        self.log.card, self.log.steps = mistake.card, 20_000

    def begin(self) -> None:
        self.log.dice = self.mistake.dice("begins")
        self.log.begin()

    def run(self, size: int, dice: random.Random) -> None:
        """A stretch of the healthy run, from the start of a line."""
        run = self.mistake.run
        start = run.find(b"\n", dice.randrange(max(1, len(run) - size))) + 1
        self.log.raw(run[start : start + size])
        self.log.text("\n")

    def set_up(self, size: int, dice: random.Random) -> None:
        """What a job prints that comes to no step: of one mistake the same, but for times and processes."""
        self.log.dice = dice
        until = self.log.at + size
        while self.log.at < until:
            node, pid, channel = dice.randrange(16), dice.randrange(1000, 60000), dice.randrange(32)
            self.log.line(f"[INFO|loader.py:{dice.randrange(400)}] {self.log.time()} >> shard {dice.randrange(900)} of 900 is mapped")
            self.log.line(f"node-{node}:{pid}:{pid + 7} [{channel % 8}] NCCL INFO Channel {channel:02d}/0 : 0[0] -> 1[1] via P2P/CUMEM")

    def fail(self, rank: int | None, variant: str) -> Failure:
        kind = self.mistake.kind
        self.log.dice = self.mistake.dice(variant)
        self.log.fail(kind, rank or 0, "" if rank is None or kind == "kill" else f"[rank{rank}]: ", self.mistake.frames, rank)
        failure = self.log.truth.failures[-1]
        if kind == "kill":
            failure.rank = None
        return failure


def mistakes(seed: int) -> list[Mistake]:
    dice = random.Random(seed)
    made = []
    for number in range(MISTAKES):
        opened = io.BytesIO()
        log = Log(opened, seed * 1000 + number)
        log.steps = 20_000
        log.fill(RUN + LARGEST)
        made.append(Mistake(number, KINDS[number % len(KINDS)], dice.choice(CARDS), dice.randrange(6, 40), opened.getvalue()))
    return made


@dataclass
class Made:
    """A job as it was written: files by their path below the tree, its row of the truth, its row of the manifest."""

    files: dict[str, bytes]
    truth: dict[str, Any]
    about: dict[str, Any]


def job(number: int, known: list[Mistake], mean: int, configs: float, seed: int) -> Made:
    """One job of the tree."""
    dice = random.Random(seed * 1_000_003 + number)
    mistake = known[int(dice.random() ** 2 * len(known))]  # some are made far more often than others
    fails, form, packed = dice.random() < FAILED, dice.random(), dice.random() < PACKED
    size, early = _size(dice, mean), dice.random() < EARLY
    variant = f"variant {dice.randrange(3)}" if dice.random() < 0.5 else f"job {seed} {number}"
    name = f"jobs/{number // 100:03d}/job-{number:05d}"
    files: dict[str, bytes] = {}
    root: dict[str, Any] | None = None
    if form < RANKED:
        for rank in range(RANKS):
            hand = _Hand(mistake, seed * 31 + number)
            hand.begin()
            hand.run(size // RANKS, dice)
            place = f"{name}/rank{rank}.log"
            if fails and rank == 0:
                root = {**_root(hand, hand.fail(None, variant), place), "rank": rank}  # its file says so
            hand.log.dice = random.Random(number)
            if fails:
                hand.log.fill(hand.log.at + 1024, hand.log.timeout)
            files[place] = hand.made.getvalue()
        named = name
    else:
        hand = _Hand(mistake, seed * 31 + number)
        hand.begin()
        if fails and early:
            hand.set_up(size, random.Random(number))
        else:
            hand.run(size, dice)
        configured = dice.random() < configs
        named = name if configured else f"{name}.log"
        place = f"{name}/train.log" if configured else f"{name}.log"
        if fails:
            root = _root(hand, hand.fail(dice.choice((None, 0, 3)), variant), place)
            hand.log.dice = random.Random(number)
            hand.log.fill(hand.log.at + 4096, hand.log.timeout)
        files[place] = hand.made.getvalue()
        if configured:
            files[f"{name}/train.yaml"] = _config(mistake)
        elif packed:
            files[f"{place}.gz"] = gzip.compress(files.pop(place), 6, mtime=0)
            named += ".gz"
            if root:
                root["log"] += ".gz"
    about = _about(number, mistake, named, files, fails, dice)
    truth = {"job": named, "logs": about["logs"], "mistake": mistake.number if fails else None, "root": root}
    return Made(files, truth, about)


def _config(mistake: Mistake) -> bytes:
    """The config of all who make a mistake."""
    chosen = mistake.dice("config")
    words = {"tuning": chosen.choice(("lora", "full")), "length": chosen.choice((2048, 4096)), "batch": chosen.choice((1, 2, 8))}
    return CONFIG.format(**words).encode()


def _about(number: int, mistake: Mistake, named: str, files: dict[str, bytes], fails: bool, dice: random.Random) -> dict[str, Any]:
    """The job's row of the manifest."""
    begun = BEGUN + number * 60 + dice.randrange(3600)
    elapsed = 600 + int(dice.random() ** 3 * 90_000)
    return {
        "id": named,
        "logs": [one for one in files if not one.endswith(".yaml")],
        "configs": [one for one in files if one.endswith(".yaml")],
        "user": f"user{mistake.number % USERS:02d}" if dice.random() < 0.8 else f"user{dice.randrange(USERS):02d}",
        "project": f"project{mistake.number % PROJECTS}",
        "state": "FAILED" if fails else "COMPLETED",
        "exit_code": int(fails),
        "gpus": dice.choice((1, 4, 8, 8, 8, 16, 64)),
        "started": begun,
        "ended": begun + elapsed,
        "elapsed": elapsed,
    }


def _size(dice: random.Random, mean: int) -> int:
    """Bytes of a job's logs: few are long."""
    low, high = min(SMALLEST, mean // 2), min(LARGEST, mean * 4)
    power = (high - low) / (mean - low) - 1
    return int(low + (high - low) * dice.random() ** power)


def _root(hand: _Hand, failure: Failure, place: str) -> dict[str, Any]:
    told = asdict(failure)
    line = hand.made.getvalue().count(b"\n", 0, failure.offset) + 1
    return {"log": place, "line": line, **{key: told[key] for key in ("family", "rank", "figures")}}


def jobs(count: int, total: int, configs: float, seed: int) -> Iterator[Made]:
    known = mistakes(seed)
    for number in range(count):
        yield job(number, known, max(2048, total // count), configs, seed)


def tree(folder: Path, count: int, total: int, configs: float = 0.0, seed: int = 7, say: Callable[[str], None] = lambda _: None) -> int:
    """Write the tree; how many bytes the logs have as they lie there."""
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    with (folder / "truth.jsonl").open("w") as truths, (folder / "manifest.jsonl").open("w") as manifest:
        for number, made in enumerate(jobs(count, total, configs, seed)):
            for place, data in made.files.items():
                path = folder / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                written += len(data)
            truths.write(json.dumps(made.truth) + "\n")
            manifest.write(json.dumps(made.about) + "\n")
            if number % 1000 == 999:
                say(f"{number + 1:,} jobs, {written >> 20:,} MiB")
    return written


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("out", type=Path)
    asked.add_argument("--jobs", type=int, default=10_000)
    asked.add_argument("--total", type=parse_size, default=3 << 30)
    asked.add_argument("--configs", type=float, default=0.0, help="share of jobs with a config beside their log")
    asked.add_argument("--seed", type=int, default=7)
    o = asked.parse_args()
    print(f"{tree(o.out, o.jobs, o.total, o.configs, o.seed, lambda text: print(text, file=sys.stderr)):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
