"""Jobs listed in manifests and scheduler exports, and an index on disk that joins them with logs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Self

from diagnose.cluster.find.coerce import largest, smallest
from diagnose.cluster.find.job import About, state_severity


@dataclass(slots=True)
class JobRecord:
    """One record of a list of jobs.

    `aliases`: texts that names of its logs may contain (a number, a pod). `is_part`: one of several equal parts of a job (a pod, a
    component of a heterogeneous job), whose cards add up; false for a step, which uses the job's cards.
    """

    id: str
    about: About
    logs: tuple[str, ...] = ()  # addresses
    default_logs: tuple[str, ...] = ()  # where the scheduler writes by default: a missing one is no fault
    configs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    is_part: bool = False
    name: str = ""  # for people


def merge(first: JobRecord, second: JobRecord) -> JobRecord:
    """Merge two records of one job: steps, pods, components, or a repetition."""
    a, b = first.about, second.about
    about = About(
        scheduler=a.scheduler or b.scheduler,
        id=a.id or b.id,
        user=a.user or b.user,
        project=a.project or b.project,
        state=a.state if state_severity(a.state) >= state_severity(b.state) and a.state else b.state,
        reason=a.reason or b.reason,
        exit_code=a.exit_code or (a.exit_code if b.exit_code is None else b.exit_code),
        signal=a.signal or b.signal,
        nodes=_sum(a.nodes, b.nodes) if second.is_part else largest((a.nodes, b.nodes)),
        gpus=_sum(a.gpus, b.gpus) if second.is_part else largest((a.gpus, b.gpus)),
        gpu=a.gpu or b.gpu,
        submitted=smallest((a.submitted, b.submitted)),
        started=smallest((a.started, b.started)),
        ended=largest((a.ended, b.ended)),
        elapsed=largest((a.elapsed, b.elapsed)),
        memory_limit=largest((a.memory_limit, b.memory_limit)),
        memory_used=largest((a.memory_used, b.memory_used)),
        restarts=largest((a.restarts, b.restarts)),
    )
    return JobRecord(
        first.id,
        about,
        _union(first.logs, second.logs),
        _union(first.default_logs, second.default_logs),
        _union(first.configs, second.configs),
        _union(first.aliases, second.aliases),
        first.is_part,
        first.name or second.name,
    )


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _sum(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


_SCHEMA = """
CREATE TABLE jobs (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, record TEXT NOT NULL);
CREATE TABLE aliases (alias TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID;
CREATE TABLE logs (number INTEGER NOT NULL, log TEXT NOT NULL, config INTEGER NOT NULL);
"""


@dataclass(slots=True, eq=False)
class JobIndex:
    """Job records by id and alias in a temporary sqlite file, removed on closing; holds millions, added in any order."""

    _db: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(""))
    count: int = 0

    def __enter__(self) -> Self:
        self._db.executescript(_SCHEMA)
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def add(self, record: JobRecord) -> None:
        """Add a record, merging it with earlier ones of the job."""
        known = self._db.execute("SELECT number, record FROM jobs WHERE id = ?", (record.id,)).fetchone()
        if known is None:
            number = self._db.execute("INSERT INTO jobs (id, record) VALUES (?, ?)", (record.id, to_json(record))).lastrowid
            self.count += 1
        else:
            number = known[0]
            self._db.execute("UPDATE jobs SET record = ? WHERE number = ?", (to_json(merge(from_json(known[1]), record)), number))
        aliases = (*record.aliases, *(f"log {log}" for log in (*record.logs, *record.default_logs)))
        self._db.executemany(  # an alias of two jobs identifies neither
            "INSERT INTO aliases VALUES (?, ?) ON CONFLICT DO UPDATE SET number = NULL WHERE number IS NOT excluded.number",
            [(alias, number) for alias in aliases],
        )

    def number_of(self, aliases: Sequence[str]) -> int | None:
        """The number of the job with these aliases; None if there is none or several."""
        numbers = {row[0] for alias in aliases for row in self._db.execute("SELECT number FROM aliases WHERE alias = ?", (alias,))} - {None}
        return numbers.pop() if len(numbers) == 1 else None

    def add_logs(self, number: int, logs: Sequence[str], configs: Sequence[str]) -> None:
        """Record the logs and configs of a job."""
        rows = [*((number, log, 0) for log in logs), *((number, config, 1) for config in configs)]
        self._db.executemany("INSERT INTO logs VALUES (?, ?, ?)", rows)

    def finish(self) -> None:
        """Index the logs; call between the last `add_logs` and `jobs`."""
        self._db.execute("CREATE INDEX of ON logs (number)")

    def jobs(self) -> Iterator[tuple[JobRecord, list[str], list[str]]]:
        """Every job with its logs and configs, in the order of first addition."""
        for number, text in self._db.execute("SELECT number, record FROM jobs ORDER BY number"):
            rows = self._db.execute("SELECT log, config FROM logs WHERE number = ? ORDER BY rowid", (number,)).fetchall()
            logs = [log for log, is_config in rows if not is_config]
            yield from_json(text), list(dict.fromkeys(logs)), list(dict.fromkeys(log for log, is_config in rows if is_config))


def to_json(record: JobRecord) -> str:
    values = {field.name: getattr(record, field.name) for field in fields(JobRecord)}
    return json.dumps({**values, "about": [getattr(record.about, field.name) for field in fields(About)]})


def from_json(text: str) -> JobRecord:
    values = json.loads(text)
    logs, default_logs, configs, aliases = (tuple(values[name]) for name in ("logs", "default_logs", "configs", "aliases"))
    return JobRecord(values["id"], About(*values["about"]), logs, default_logs, configs, aliases, values["is_part"], values["name"])
