"""A job as a manifest or a scheduler's export lists it, and the shelf on which jobs and logs are joined without being held."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Self

from diagnose.cluster.find.job import About
from diagnose.record import field, fields, record


@record
class Listed:
    """One line of a list. `names`: what the names of its logs may say (a number, a pod). `part`: it is one of several equal pieces of
    the job (a pod, a component of a heterogeneous job), whose cards add up; not a step, whose cards are the job's."""

    id: str
    about: About
    logs: tuple[str, ...] = ()  # addresses
    guessed: tuple[str, ...] = ()  # where its log is if nobody moved it: missing ones are no fault
    configs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    part: bool = False
    said: str = ""  # what people call it


#: States that a job fails in; those of memory come first.
FAILED = ("OUT_OF_M", "OOMKILL", "FAIL", "EVICT", "ERROR", "NODE_FAIL", "BOOT_FAIL", "CRASH")


def weight(state: str) -> int:
    """How much a state says of a failure: of several pieces of a job the heaviest counts."""
    upper = state.upper()
    return next((len(FAILED) - at for at, word in enumerate(FAILED) if upper.startswith(word)), 0)


def failed(about: About) -> bool:
    """Whether a scheduler calls a job failed. A job that was cancelled, or is running, is not."""
    return weight(about.state) > 0 or (not about.state and bool(about.exit_code or about.signal))


def merged(one: Listed, other: Listed) -> Listed:
    """Two pieces of one job: steps, pods, components, or a record that came twice."""
    a, b = one.about, other.about
    add = other.part
    about = About(
        a.scheduler or b.scheduler,
        a.id or b.id,
        a.user or b.user,
        a.project or b.project,
        a.state if weight(a.state) >= weight(b.state) and a.state else b.state,
        a.reason or b.reason,
        a.exit_code or (a.exit_code if b.exit_code is None else b.exit_code),
        a.signal or b.signal,
        _sum(a.nodes, b.nodes) if add else _most(a.nodes, b.nodes),
        _sum(a.gpus, b.gpus) if add else _most(a.gpus, b.gpus),
        a.gpu or b.gpu,
        _least(a.submitted, b.submitted),
        _least(a.started, b.started),
        _most(a.ended, b.ended),
        _most(a.elapsed, b.elapsed),
        _most(a.memory_limit, b.memory_limit),
        _most(a.memory_used, b.memory_used),
        _most(a.restarts, b.restarts),
    )
    return Listed(
        one.id,
        about,
        _both(one.logs, other.logs),
        _both(one.guessed, other.guessed),
        _both(one.configs, other.configs),
        _both(one.names, other.names),
        one.part,
        one.said or other.said,
    )


def _both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _most(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else max(a, b)


def _least(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else min(a, b)


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


# -- on disk, so that millions may come in any order


_SCHEMA = """
CREATE TABLE jobs (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, listed TEXT NOT NULL);
CREATE TABLE names (name TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID;
CREATE TABLE logs (number INTEGER NOT NULL, log TEXT NOT NULL, config INTEGER NOT NULL);
"""


@record(frozen=False, eq=False)
class Shelf:
    """Jobs by their ids and names in a file without a name, which sqlite removes when it is closed."""

    _db: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(""))
    count: int = 0

    def __enter__(self) -> Self:
        self._db.executescript(_SCHEMA)
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def add(self, one: Listed) -> None:
        """A line of a list. One of a job that is known already becomes part of it."""
        known = self._db.execute("SELECT number, listed FROM jobs WHERE id = ?", (one.id,)).fetchone()
        if known is None:
            number = self._db.execute("INSERT INTO jobs (id, listed) VALUES (?, ?)", (one.id, packed(one))).lastrowid
            self.count += 1
        else:
            number = known[0]
            self._db.execute("UPDATE jobs SET listed = ? WHERE number = ?", (packed(merged(unpacked(known[1]), one)), number))
        names = (*one.names, *(f"log {log}" for log in (*one.logs, *one.guessed)))
        self._db.executemany(  # a name that two jobs have says nothing
            "INSERT INTO names VALUES (?, ?) ON CONFLICT DO UPDATE SET number = NULL WHERE number IS NOT excluded.number",
            [(name, number) for name in names],
        )

    def whose(self, names: Sequence[str]) -> int | None:
        """The number of the job that one of these names belongs to; None where none does, or several do."""
        found = {row[0] for name in names for row in self._db.execute("SELECT number FROM names WHERE name = ?", (name,))} - {None}
        return found.pop() if len(found) == 1 else None

    def put(self, number: int, logs: Sequence[str], configs: Sequence[str]) -> None:
        """Logs and configs that were found for a job."""
        rows = [*((number, log, 0) for log in logs), *((number, config, 1) for config in configs)]
        self._db.executemany("INSERT INTO logs VALUES (?, ?, ?)", rows)

    def ready(self) -> None:
        """After the last log was put."""
        self._db.execute("CREATE INDEX of ON logs (number)")

    def jobs(self) -> Iterator[tuple[Listed, list[str], list[str]]]:
        """Every job in the order in which they came, with the logs and configs that were found for it."""
        for number, listed in self._db.execute("SELECT number, listed FROM jobs ORDER BY number"):
            rows = self._db.execute("SELECT log, config FROM logs WHERE number = ? ORDER BY rowid", (number,)).fetchall()
            logs = [log for log, is_config in rows if not is_config]
            yield unpacked(listed), list(dict.fromkeys(logs)), list(dict.fromkeys(log for log, is_config in rows if is_config))


def packed(one: Listed) -> str:
    values = {name.name: getattr(one, name.name) for name in fields(Listed)}
    return json.dumps({**values, "about": [getattr(one.about, name.name) for name in fields(About)]})


def unpacked(text: str) -> Listed:
    values = json.loads(text)
    logs, guessed, configs, names = (tuple(values[name]) for name in ("logs", "guessed", "configs", "names"))
    return Listed(values["id"], About(*values["about"]), logs, guessed, configs, names, values["part"], values["said"])
