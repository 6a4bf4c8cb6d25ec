"""A year of a large cluster, from what one job and one GiB of logs were measured to cost.

    python benchmarks/triage/simulate.py FIGURES.json [--jobs 5000000] [--bytes 20TB] [--failed 0.15] [--seed 7]

FIGURES.json is what bench.py wrote (`--json`). Jobs arrive day by day, fewer at weekends, their logs of sizes that differ by orders of
magnitude; every night one run reads what is new, looks at all that is known, and stores it. Printed are the first run over the whole
archive and the nights, on one machine and on Ray: processor time, hours, what bounds them, memory, and the size of the database.

Measured: processor time to find, read, diagnose and store, by job and by GiB; time for a job that is known already; bytes of database.
Assumed, and printed as such: cores, what disks and networks deliver, how many failures differ, what Ray adds to a job.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

GIB = 1 << 30
DAYS = 365


@dataclass(frozen=True)
class Costs:
    """Seconds of processors, and bytes. A job's own cost is that of its head and its end; what is between them costs by size."""

    healthy: float  # to read a job that did not fail
    failed: float  # to read one that did
    diagnosis: float
    configured: float  # the diagnosis of one with a config
    gib: float  # to search a GiB
    stored: float  # what the whole run takes beyond reading and diagnosing: finding, storing, grouping
    known: float  # for a job that is known and has not changed
    row: float  # bytes of database for a job
    peak: float  # bytes of memory of all processes, with two workers
    worker: float  # bytes of one more worker
    sample: float  # bytes of the logs that the costs of a job were measured with


@dataclass(frozen=True)
class Machine:
    """What reads: cores over all machines, and bytes a second that its storage delivers to all of them."""

    name: str
    cores: int
    bandwidth: float
    per_job: float = 0.0  # seconds of a core that the engine adds to a job


@dataclass(frozen=True)
class Night:
    jobs: int
    failed: int
    size: float


def costs(figures: dict[str, Any]) -> Costs:
    if figures["again"]["reused"] != figures["jobs"]:
        raise SystemExit("the second run of these figures was none over known jobs: measure again")
    plain, whole = figures["cost"]["plain"], figures["whole"]
    jobs = figures["jobs"]
    failed = plain["failed"]["jobs"] / (plain["failed"]["jobs"] + plain["healthy"]["jobs"])
    read = failed * plain["failed"]["read"] + (1 - failed) * plain["healthy"]["read"]
    return Costs(
        healthy=plain["healthy"]["read"],
        failed=plain["failed"]["read"],
        diagnosis=plain["failed"]["diagnosis"],
        configured=figures["cost"]["configured"]["failed"]["diagnosis"],
        gib=figures["gib"],
        stored=max(0.0, (whole["cpu"] - figures["start"]) / jobs - read - failed * plain["failed"]["diagnosis"]),
        known=max(0.0, figures["again"]["cpu"] - figures["start_known"]) / jobs,
        row=whole["store"] / jobs,
        peak=whole["peak"],
        worker=whole["peak"] / 4,  # two workers, the process that forks them, and the one that stores
        sample=figures["bytes"] / jobs,
    )


def nights(jobs: int, size: float, share: float, seed: int) -> Iterator[Night]:
    """What every day leaves behind. Sizes are log-normal: the mean is given, half of the logs are shorter than a seventh of it."""
    dice = random.Random(seed)
    weights = [(0.45 if day % 7 in (5, 6) else 1.0) * dice.uniform(0.8, 1.2) for day in range(DAYS)]
    scale = jobs / sum(weights)
    for weight in weights:
        count = round(weight * scale)
        mean = sum(dice.lognormvariate(-2.0, 2.0) for _ in range(2000)) / 2000  # e^(-2 + 2^2 / 2) = 1
        yield Night(count, round(count * share * dice.uniform(0.7, 1.3)), count * size / jobs * mean)


def busy(night: Night, cost: Costs, known: int, differing: float, configs: float) -> tuple[float, float]:
    """Seconds of processors of one run: of all workers, and of the one process that finds and stores."""
    diagnosis = (1 - configs) * cost.diagnosis + configs * cost.configured
    own = night.failed * (cost.failed + differing * diagnosis) + (night.jobs - night.failed) * cost.healthy
    beyond = max(0.0, night.size - night.jobs * cost.sample)
    return own + beyond / GIB * cost.gib, night.jobs * cost.stored + known * cost.known


def hours(night: Night, spent: tuple[float, float], machine: Machine) -> tuple[float, str]:
    """How long a run takes, and what bounds it: the slowest of what goes on at once."""
    workers, one = spent
    took = {
        "processors": (workers + night.jobs * machine.per_job) / machine.cores,
        "storage": night.size / machine.bandwidth,
        "the process that stores": one,
    }
    bound = max(took, key=lambda word: took[word])
    return took[bound] / 3600, bound


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("figures", type=Path)
    asked.add_argument("--jobs", type=int, default=5_000_000)
    asked.add_argument("--terabytes", type=float, default=20.0, help="logs of the year")
    asked.add_argument("--failed", type=float, default=0.15, help="share of jobs that fail of memory")
    asked.add_argument("--differing", type=float, default=0.7, help="share of failures whose diagnosis no other one answers")
    asked.add_argument("--configs", type=float, default=0.3, help="share of failed jobs with a config")
    asked.add_argument("--cores", type=int, default=16, help="of the one machine")
    asked.add_argument("--disk", type=float, default=500.0, help="MB/s that its storage delivers")
    asked.add_argument("--ray", type=int, default=128, help="cores of the Ray cluster")
    asked.add_argument("--store", type=float, default=2500.0, help="MB/s that the object store delivers to it")
    asked.add_argument("--ray-job", type=float, default=0.002, help="seconds of a core that Ray adds to a job")
    asked.add_argument("--seed", type=int, default=7)
    o = asked.parse_args()
    cost = costs(json.loads(o.figures.read_text()))
    print(f"{o.jobs:,} jobs, {o.terabytes:g} TB of logs in a year; {o.failed:.0%} of the jobs fail of memory\n")
    told(cost, o)
    year = list(nights(o.jobs, o.terabytes * 1e12, o.failed, o.seed))
    machines = [
        Machine(f"one machine, {o.cores} cores, {o.disk:g} MB/s", o.cores, o.disk * 1e6),
        Machine(f"Ray, {o.ray} cores, {o.store:g} MB/s", o.ray, o.store * 1e6, o.ray_job),
    ]
    for machine in machines:
        simulated(year, cost, machine, o)
    return 0


def told(cost: Costs, o: argparse.Namespace) -> None:
    """What was measured and what is assumed."""
    print("measured, seconds of one core:")
    size = f"each with {cost.sample / 1e3:,.0f} KB of logs"
    print(f"  a healthy job {cost.healthy * 1e3:.2f} ms, a failed one {cost.failed * 1e3:.2f} ms, {size}; a further GiB {cost.gib:.2f} s")
    print(f"  a diagnosis {cost.diagnosis * 1e3:.2f} ms, with a config {cost.configured * 1e3:.2f} ms")
    print(f"  to find, store and group a job {cost.stored * 1e3:.2f} ms; to see that nothing has changed {cost.known * 1e3:.2f} ms")
    print(f"  {cost.row:,.0f} bytes of database a job; {cost.peak / 1e6:,.0f} MB of memory with two workers")
    print("assumed:")
    shares = f"{o.differing:.0%} of the failures need a diagnosis of their own, {o.configs:.0%} have a config"
    print(f"  {shares}; Ray adds {o.ray_job * 1e3:g} ms a job")
    print("  half of the jobs have less than a seventh of the mean log; weekends bring less than half of a working day\n")


def simulated(year: list[Night], cost: Costs, machine: Machine, o: argparse.Namespace) -> None:
    whole = Night(sum(night.jobs for night in year), sum(night.failed for night in year), sum(night.size for night in year))
    every = busy(whole, cost, 0, o.differing, o.configs)
    took, bound = hours(whole, every, machine)
    known = 0
    lasted = []
    used = 0.0
    for night in year:
        spent = busy(night, cost, known, o.differing, o.configs)
        used += sum(spent)
        lasted.append(hours(night, spent, machine))
        known += night.jobs
    recent = hours(year[-1], busy(year[-1], cost, 0, o.differing, o.configs), machine)[0]
    minutes = sorted(60 * one for one, _ in lasted)
    bounds = [word for _, word in lasted]
    print(machine.name)
    print(f"  the whole year in one run: {sum(every) / 3600:,.0f} core hours, {took:,.1f} hours, bound by {bound}")
    print(f"  a night: median {median(minutes):.1f} minutes, longest {minutes[-1]:.1f}; the last {60 * lasted[-1][0]:.1f}, of which")
    looking = 60 * (lasted[-1][0] - recent)
    print(f"    {looking:.1f} to see that {known - year[-1].jobs:,} known jobs have not changed (none with --since 2d)")
    nightly = ", ".join(f"{word} in {bounds.count(word)} nights" for word in dict.fromkeys(bounds))
    print(f"    bound by {nightly}; {used / 3600:,.0f} core hours in all")
    memory = cost.peak + max(0, (machine.cores if machine.per_job == 0 else 16) - 2) * cost.worker
    print(f"  memory: {memory / 1e9:.1f} GB {'in all' if machine.per_job == 0 else 'on each machine of 16 cores, beside Ray itself'}")
    print(f"  database after the year: {known * cost.row / 1e9:.1f} GB\n")


if __name__ == "__main__":
    sys.exit(main())
