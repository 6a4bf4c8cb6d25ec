"""What triage costs, as ratios to `rg` over the same tree and as processor time per job, and whether it finds what is there.

    python benchmarks/triage/bench.py [--jobs 10000] [--total 3GiB] [--runs 3] [--curve 1000,10000,50000] [--json FILE] [--check]
                                      [--tree DIR] [--work DIR]

Makes a tree (tree.py) in a temporary folder, or takes the one in DIR, and prints, each against its bar:
finding and parsing alone on triage's own pool of workers to `rg -j2` with the same literals; processor time of a job by what it holds;
the whole tree with database, groups and report; the memory of all processes together; the root failures that were found; the curve
over numbers of jobs (trees of equal, small logs, so that only the number differs). Needs ripgrep. With --check the exit status is 1
where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from logs import parse_size, single
from triage import measured, probes, tree

from diagnose import rule_files

WORKERS = 2
LONG = 256 << 20  # bytes of a log whose reading costs by size, not by job
SMALL = 40 << 10  # bytes of a job's logs in the trees of the curve
MIB = 1 << 20


class Bar(NamedTuple):
    """What was measured, and the most that it may be."""

    label: str
    value: float
    most: float
    unit: str = ""

    @property
    def missed(self) -> bool:
        return self.value > self.most


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--jobs", type=int, default=10_000)
    asked.add_argument("--total", type=parse_size, default=3 << 30)
    asked.add_argument("--runs", type=int, default=3)
    asked.add_argument("--curve", default="1000,10000,50000", help="numbers of jobs, parted by commas; empty: none")
    asked.add_argument("--tree", type=Path, help="a tree that tree.py made")
    asked.add_argument("--work", type=Path, help="where trees and databases are made (default: the system's temporary folder)")
    asked.add_argument("--json", type=Path, help="write all figures to a file")
    asked.add_argument("--check", action="store_true", help="fail where a bar is missed")
    options = asked.parse_args()
    if shutil.which("rg") is None:
        print("rg was not found (Debian: apt install ripgrep)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-triage-", dir=options.work) as name:
        figures = bench(Path(name), options)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if options.check and any(bar["missed"] for bar in figures["bars"]) else 0


def bench(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures; printed as they come."""
    top = options.tree or folder / "tree"
    if options.tree is None:
        tree.tree(top, options.jobs, options.total, say=progress)
    truth = [json.loads(line) for line in (top / "truth.jsonl").open()]
    size = sum(path.stat().st_size for path in (top / "jobs").rglob("*.log*"))
    figures: dict[str, Any] = {"jobs": len(truth), "bytes": size, "cores": os.cpu_count()}
    print(f"{len(truth):,} jobs, {size / MIB:,.0f} MiB of logs, {os.cpu_count()} cores; literals given to rg:")
    literals = folder / "literals.txt"
    literals.write_text("".join(f"{anchor}\n" for anchor in rule_files.table("messages")["anchors"]))
    print(", ".join(map(repr, literals.read_text().splitlines())), "\n")

    figures |= reading(top, literals, options.runs)
    figures["cost"] = cost(folder, top)
    figures["gib"] = long(folder)
    figures["start"], figures["start_known"] = start(folder)
    figures["whole"] = whole = triage(top, folder)
    figures["again"] = again = triage(top, folder, anew=False)
    again["reused"] = reused(folder / "triage.duckdb")
    if again["reused"] != len(truth):
        print(f"only {again['reused']:,} jobs were known already: a rule was changed while this ran, and the figure says nothing")
    found = roots(folder / "triage.duckdb", top, truth)
    figures["roots"] = {"right": found, "of": len(truth)}
    bars = [
        Bar("finding and parsing, wall to rg -j2", figures["read"]["wall"] / figures["rg"]["wall"], 3.0, "x"),
        Bar("the same, processor time to rg -j2", figures["read"]["cpu"] / figures["rg"]["cpu"], 3.0, "x"),
        *per_job(figures["cost"]),
        Bar("the whole tree, wall", whole["wall"] * 10_000 / len(truth), 60.0, "s per 10,000 jobs"),
        Bar("the whole tree, memory of all processes", whole["peak"] / 1e6, 600.0, "MB"),
        Bar("report", whole["report"] / MIB, 10.0, "MiB"),
        Bar("jobs whose root failure is not the truth's", len(truth) - found, 0.0),
    ]
    print()
    show(bars)
    if options.curve:
        figures["curve"] = curve(folder, [int(count) for count in options.curve.split(",")])
        first, *others = figures["curve"]
        grown = [
            Bar(f"processor time per job, {one['jobs']:,} to {first['jobs']:,}", one["each"] / first["each"], 1.2, "x") for one in others
        ]
        show(grown)
        bars += grown
    figures["bars"] = [{**bar._asdict(), "missed": bar.missed} for bar in bars]
    return figures


def progress(text: str) -> None:
    print(text, file=sys.stderr)


def show(bars: list[Bar]) -> None:
    for bar in bars:
        print(f"{bar.label:48} {bar.value:9.2f} {bar.unit:18} at most {bar.most:g}{'  MISSED' if bar.missed else ''}")
    print()


def reading(top: Path, literals: Path, runs: int) -> dict[str, Any]:
    """rg, and finding and parsing alone, in turn."""
    script = literals.with_name("read.py")
    script.write_text(probes.READ)  # worker processes import the program that starts them
    commands = {
        "rg": ["rg", f"-j{WORKERS}", "-a", "-F", "-c", "-f", str(literals), str(top / "jobs")],
        "read": [sys.executable, str(script), str(top / "jobs"), str(WORKERS)],
    }
    done: dict[str, list[measured.Run]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            done[name].append(measured.run(command))
    made = {
        name: {"wall": median(one.wall for one in each), "cpu": median(one.cpu for one in each), "peak": max(one.peak for one in each)}
        for name, each in done.items()
    }
    for name, one in made.items():
        print(f"{name:48} {one['wall']:9.2f} s wall {one['cpu']:9.2f} s of processors {one['peak'] / 1e6:7.0f} MB")
    return made


def cost(folder: Path, top: Path) -> dict[str, Any]:
    """Processor seconds of a job, by what it holds: the tree's jobs, and some with a config beside their log."""
    configured = folder / "configured"
    tree.tree(configured, 160, 160 * SMALL, configs=1.0)
    script = folder / "cost.py"
    script.write_text(probes.COST)
    rows = {}
    for name, where, count in (("plain", top, 800), ("configured", configured, 160)):
        run = measured.run([sys.executable, str(script), str(where / "jobs"), str(count)])
        if run.status:
            raise SystemExit(run.out)
        rows[name] = json.loads(run.out.splitlines()[-1])
        for kind, one in rows[name].items():
            times = f"{one['read'] * 1e3:9.2f} ms to read {one['diagnosis'] * 1e3:9.2f} ms to diagnose"
            print(f"{name} job, {kind:34} {times} ({one['jobs']} jobs)")
    return rows


def long(folder: Path) -> float:
    """Processor seconds for a GiB of one log."""
    where = folder / "long" / "job.log"
    single(where, LONG, "none")
    where.with_name("job.log.truth.json").unlink()
    script = folder / "long.py"
    script.write_text(probes.LONG_COST)
    run = measured.run([sys.executable, str(script), str(where)])
    shutil.rmtree(where.parent)
    if run.status:
        raise SystemExit(run.out)
    each = float(run.out.splitlines()[-1]) * (1 << 30) / LONG
    print(f"{'a long log, by size':48} {each:9.2f} s of processors for a GiB")
    return each


def per_job(rows: dict[str, Any]) -> Iterator[Bar]:
    yield Bar("diagnosis of a failed job without a config", rows["plain"]["failed"]["diagnosis"] * 1e3, 10.0, "ms")
    yield Bar("diagnosis of a failed job with a config", rows["configured"]["failed"]["diagnosis"] * 1e3, 150.0, "ms")
    yield Bar("diagnosis of a job that did not fail", max(0.0, rows["plain"]["healthy"]["diagnosis"] * 1e3), 1.0, "ms")


def start(folder: Path) -> tuple[float, float]:
    """Processor seconds of a run over a single job, and of one more when it is known (which starts no worker): what starting costs."""
    tree.tree(folder / "single", 1, SMALL)
    spent = []
    for what, anew in (("a single job, with what starting costs", True), ("the same, nothing new", False)):
        made = triage(folder / "single", folder, lambda _: None, anew)
        print(f"{what:48} {made['wall']:9.2f} s wall {made['cpu']:9.2f} s of processors")
        spent.append(float(made["cpu"]))
    return spent[0], spent[1]


def triage(top: Path, folder: Path, say: Callable[..., None] = print, anew: bool = True) -> dict[str, Any]:
    """The whole of it, as a person starts it; not anew: once more, when nothing has changed."""
    store, report = folder / "triage.duckdb", folder / "report.html"
    if anew:
        store.unlink(missing_ok=True)
    tool = str(Path(sys.executable).with_name("oomdoctor"))
    command = [tool, "triage", str(top / "jobs"), "--store", str(store), "--out", str(report), "--jobs", str(WORKERS)]
    run = measured.run(command)
    if run.status not in (0, 1):
        raise SystemExit(run.out)
    made = {"wall": run.wall, "cpu": run.cpu, "peak": run.peak, "store": store.stat().st_size, "report": report.stat().st_size}
    times = f"{run.wall:9.2f} s wall {run.cpu:9.2f} s of processors {run.peak / 1e6:7.0f} MB"
    say(f"{'the whole tree' if anew else 'once more, nothing new':48} {times}; database {made['store'] / MIB:.1f} MiB")
    return made


def roots(store: Path, top: Path, truth: list[dict[str, Any]]) -> int:
    """The jobs whose root failure is the truth's: log, line, family, rank and request as printed; and those rightly found healthy."""
    import duckdb

    rows = duckdb.connect(str(store), read_only=True).execute(
        "select e.source, e.line, e.family, e.rank, e.requested, j.logs from jobs j left join events e on e.job = j.job and e.root"
    )
    found: dict[str, tuple[Any, ...]] = {}
    for source, line, family, rank, requested, logs in rows.fetchall():
        for log in logs:
            found[str(Path(log).relative_to(top.resolve()) if Path(log).is_absolute() else log)] = (source, line, family, rank, requested)
    right = 0
    for row in truth:
        source, line, family, rank, requested = found.get(row["logs"][0], (None,) * 5)
        root = row["root"]
        if root is None:
            right += row["logs"][0] in found and source is None
        else:
            told = (root["line"], root["family"], root["rank"])
            right += source is not None and str(source).endswith(root["log"]) and (line, family, rank) == told and asks(root, requested)
    return right


def reused(store: Path) -> int:
    """The jobs that the last run took as they were."""
    import duckdb

    row = duckdb.connect(str(store), read_only=True).execute("select reused from runs order by run desc limit 1").fetchone()
    return int(row[0]) if row else 0


def asks(root: dict[str, Any], requested: int | None) -> bool:
    from diagnose.units import size_of

    printed = size_of(root["figures"]["requested"]) if "requested" in root["figures"] else None
    return (None if printed is None else printed.bytes) == requested


def curve(folder: Path, counts: list[int]) -> list[dict[str, Any]]:
    """The whole of it over trees that differ only in the number of their jobs."""
    rows = []
    for count in counts:
        top = folder / f"curve-{count}"
        tree.tree(top, count, count * SMALL)
        made = triage(top, folder, lambda _: None)
        shutil.rmtree(top)
        rows.append({"jobs": count, "each": made["cpu"] / count, **made})
        times = f"{made['wall']:8.1f} s wall, {made['cpu']:8.1f} s of processors, {made['cpu'] / count * 1e3:6.2f} ms a job"
        print(f"{count:7,} jobs of {SMALL >> 10} KiB {times}, {made['peak'] / 1e6:5.0f} MB")
    return rows


if __name__ == "__main__":
    sys.exit(main())
