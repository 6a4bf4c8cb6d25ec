"""A database of jobs filled by hand with real diagnoses of the corpus: for the tests of groups and reports, at any number of jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
from cases import SHARED, diagnosed
from sweep import share

from diagnose.cluster.report.group_summaries import summarize
from diagnose.cluster.report.report_files import write_html
from diagnose.cluster.store.digests import digest
from diagnose.cluster.store.group_fingerprint import fingerprint
from diagnose.cluster.store.result_tables import MIGRATIONS
from diagnose.phrases import Text

#: Cases of the corpus by how often they happen on this cluster; what stands first is the mistake of the week.
CASES = {
    "checkpointing-switched-off": 34, "adapters-do-not-shrink-activations": 6, "llamafactory-6800": 14, "axolotl-2143": 9,
    "killed-while-offloading": 8, "a-reference-model-beside-the-policy": 6, "trl-3172": 5, "openrlhf-392": 4, "slurm-kills-the-step": 4,
    "the-longest-sample-of-the-epoch": 4, "fsdp-offload-and-killed": 3, "evaluation-has-a-batch-of-its-own": 2, "every-rank-on-card-0": 1,
}  # fmt: skip

#: Monday, 18 November 2024, 06:00 UTC; and a week.
MONDAY, WEEK = 1_731_909_600.0, 7 * 86400
USERS = ("amber", "bao", "chen", "dmitri", "esther", "farid")


class Held:
    """A database in memory that answers as the store does."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})  # many small queries, beside other workers
        for statement in MIGRATIONS[1]:
            self.connection.execute(statement)

    def query(self, sql: str, params: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        done = self.connection.execute(sql, list(params))
        while rows := done.fetchmany(1000):
            yield from rows

    def add_error(self, fault: str, message: Text, job: str | None = None) -> None:
        self.add("errors", "job, fault, message_en, message_zh", [(job, fault, message.en, message.zh)])

    def add(self, table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
        """Rows, column by column: a hundred times as fast as one by one."""
        if rows:
            values = ", ".join("unnest(?)" for _ in rows[0])
            self.connection.execute(
                f"insert into {table} ({columns}) select {values}", [list(column) for column in zip(*rows, strict=True)]
            )


@cache
def kept(case: str) -> tuple[str, str]:
    """The digest and the fingerprint of a case."""
    return digest(diagnosed(case)), fingerprint(diagnosed(case))


#: The columns that `cluster` fills, in order.
COLUMNS = """job, run, name, status, family, phase, headline_en, headline_zh, diagnosis, fingerprint, requested, shortage, capacity,
  scheduler, scheduler_id, "user", project, gpus, gpu, ended, elapsed, gpu_seconds, first_run, last_run"""


def cluster(jobs: int = 200, failing: float = 0.5, runs: int = 2) -> Held:
    """So many jobs of a week, of which a part failed; most have a scheduler that says what they cost."""
    held = Held()
    wheel = [case for case, weight in CASES.items() for _ in range(weight)]
    rows: list[tuple[Any, ...]] = []
    found: dict[str, str] = {}
    for number in range(jobs):
        failed = number % 100 < failing * 100
        case = wheel[(number * 7919) % len(wheel)]
        text, named = kept(case) if failed else ("{}", "")
        told = json.loads(text)
        key = f"{case}-{number % 50}" if failed else None
        if key:
            found[key] = text
        rows.append((*identity(number, runs), *verdict(told, key, named, number), *scheduled(number), first(number, runs), runs))
    held.add("jobs", COLUMNS, rows)
    held.add("diagnoses", "diagnosis, digest", list(found.items()))
    held.add("runs", "run, started, ended", [(number, MONDAY, MONDAY) for number in range(1, runs + 1)])
    lost = "/scratch/runs/bao/llm-lost/train.log"
    told = (runs, lost, "unreadable", f"{lost}: permission denied", f"{lost}：没有权限", MONDAY)
    held.add("errors", "run, job, fault, message_en, message_zh, seen", [told])
    return held


#: Failures in a report that is too long to be read: twenty thousand in a sweep.
THOUSANDS = share(20_000)


@cache
def report_of_thousands() -> Path:
    """The folder of a report of THOUSANDS of failures, made once for all workers."""
    folder = Path(os.environ[SHARED]) / "thousands"
    if not folder.exists():
        # Written beside it and renamed: who makes it second has made the same.
        partial = folder.with_suffix(f".{os.getpid()}")
        partial.mkdir()
        store = cluster(THOUSANDS, failing=1.0)
        write_html(store, summarize(store), partial / "report.html")
        with suppress(OSError):
            partial.rename(folder)
    return folder


def first(number: int, runs: int) -> int:
    """One job of ten is new."""
    return 1 if number % 10 else runs


def identity(number: int, runs: int) -> tuple[Any, ...]:
    return f"/scratch/runs/{USERS[number % 6]}/llm-{number:05}/train.log", first(number, runs), ""


def verdict(told: dict[str, Any], key: str | None, named: str, number: int) -> tuple[Any, ...]:
    event, said = told.get("event") or {}, told.get("headline", {})
    asked, free = event.get("requested"), event.get("free")
    lacked = None if asked is None or free is None else asked - free + (number % 5 << 28)
    about = (told.get("status", "none"), told.get("family", ""), told.get("phase", ""), said.get("en", ""), said.get("zh", ""))
    return *about, key, named, asked, lacked, event.get("capacity")


def scheduled(number: int) -> tuple[Any, ...]:
    """What Slurm says of eight jobs in nine; of a quarter of them not how long they ran."""
    if number % 9 == 0:
        return "", str(number), "", "", None, "", None, None, None
    gpus, elapsed = 8 * (1 + number % 4), 600.0 + (number * 7907) % 40000
    who = ("slurm", str(number), USERS[number % 6], ("alignment", "pretraining", "vision")[number % 3])
    cost = gpus * elapsed if number % 4 else None
    return *who, gpus, ("H100-80GB", "A100-80GB")[number % 2], MONDAY + (number * 104729) % WEEK, elapsed, cost
