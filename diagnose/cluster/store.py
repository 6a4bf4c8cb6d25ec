"""The database of results: one file, written in whole batches, so that what stands in it is true at any moment."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from diagnose import __version__
from diagnose.cluster import schema, tables
from diagnose.cluster.engine import Brought
from diagnose.cluster.perhaps import Perhaps
from diagnose.cluster.refused import refusals, trouble
from diagnose.cluster.result import Result
from diagnose.cluster.tables import Row
from diagnose.phrases import Text
from diagnose.record import NamedTuple

if TYPE_CHECKING:
    import duckdb

#: Bytes of memory that the database may use; more goes to temporary files beside it.
MEMORY = "128MB"

#: Jobs that runs with the arguments of this one found before, and this one did not.
GONE = """update jobs set gone = true where last_run <> $1 and not gone and last_run in
    (select run from runs where arguments::varchar = (select arguments::varchar from runs where run = $1))"""
REUSED = """update jobs set last_run = ?, stamp = s.stamp, modified = coalesce(s.modified, jobs.modified), gone = false
    from (select unnest(?::varchar[]) as job, unnest(?::varchar[]) as stamp, unnest(?::double[]) as modified) s where jobs.job = s.job"""
IN_USE = "(select diagnosis from jobs where diagnosis is not null)"


class Was(NamedTuple):
    """How a job was when it was read last."""

    stamp: str
    content: str


class Store:
    """An open database. All methods may be called from any thread; `query` is for the thread that opened it."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self._connection = connection
        self._cursor = connection.cursor()  # for questions beside a write
        self._lock = threading.Lock()
        self._known_types: dict[str, dict[str, str]] = {}
        self._made: Perhaps | None = None  # the diagnoses of a database that had none before this run
        self.run = 0
        self.basis = ""

    @classmethod
    def open(cls, path: Path) -> Store:
        """The database in a file, made or brought up to date. Raises Complaint where that cannot be."""
        try:
            import duckdb  # noqa: F401 - told at once where it is missing
        except ImportError as error:
            raise trouble("no_duckdb", hint="install_triage") from error
        if not path.exists() or (path.is_file() and not path.stat().st_size):
            cls._make(path)
        store = cls(path, connected(path))
        try:
            with refusals(path):
                store._migrate()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def _make(cls, path: Path) -> None:
        """A database without rows. It is made beside and then given its name, so that there is a whole one or none."""
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            store = cls(beside, connected(beside, path))
            try:
                with refusals(path):
                    store._migrate()
            finally:
                store.close()
            if path.exists() and path.stat().st_size:  # another run was quicker
                return
            beside.replace(path)
        except OSError as error:
            raise trouble("store_closed", where=str(path), hint="check_store", why=error.strerror or str(error)) from error
        finally:
            for left in (beside, beside.with_name(f"{beside.name}.wal")):
                left.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; what was stored is in it."""
        self._cursor.close()
        self._connection.close()

    def query(self, sql: str, params: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, a few at a time."""
        with refusals(self.path):
            found = self._connection.execute(sql, list(params))
            while rows := found.fetchmany(1024):
                yield from rows

    # -- the schema

    def _migrate(self) -> None:
        held = self.version()
        if held > schema.VERSION:
            raise trouble("newer_store", where=str(self.path), hint="newer_tool", version=held, ours=schema.VERSION)
        if held == 0 and self._one("select count(*) from information_schema.tables where table_schema = 'main'")[0]:
            raise trouble("foreign_store", where=str(self.path), hint="other_store")
        for version in range(held + 1, schema.VERSION + 1):
            with self._whole():
                for statement in schema.MIGRATIONS[version]:
                    self._connection.execute(statement)
                self._execute("insert or replace into meta values ('schema', ?), ('tool', ?)", str(version), __version__)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A transaction: all of it or nothing."""
        import duckdb

        self._connection.begin()
        try:
            yield
            self._connection.commit()
        except BaseException:
            with suppress(duckdb.Error):  # one that failed to commit is over already
                self._connection.rollback()
            raise

    def version(self) -> int:
        """The version of the tables; 0 where there are none."""
        if not self._one("select count(*) from information_schema.tables where table_name = 'meta'")[0]:
            return 0
        found = self._connection.execute("select value from meta where key = 'schema'").fetchone()
        return int(found[0]) if found else 0

    def _one(self, sql: str, params: Sequence[object] = ()) -> tuple[Any, ...]:
        found: tuple[Any, ...] | None = self._execute(sql, *params).fetchone()
        assert found is not None
        return found

    # -- runs

    def begin(self, basis: str, engine: str, arguments: Mapping[str, object]) -> bool:
        """Open a run; whether the one before it was cut off. `basis` stands for the tool, its rules and the options."""
        with refusals(self.path), self._whole():
            cut = self._one("select count(*) from runs where state = 'running'")[0]
            self._connection.execute("update runs set state = 'killed' where state = 'running'")
            self.run, self.basis = self._one("select coalesce(max(run), 0) + 1 from runs")[0], basis
            row = [self.run, time(), None, "running", __version__, basis, engine, json.dumps(arguments, ensure_ascii=False), 0, 0, 0, 0]
            self._connection.execute(f"insert into runs values ({', '.join('?' * len(row))})", row)
            self._execute("insert or replace into meta values ('tool', ?)", __version__)
            self._made = None if self._one("select count(*) from diagnoses")[0] else Perhaps()
        return bool(cut)

    def end(self, state: str, whole: bool = False) -> None:
        """Close the run: done, stopped or failed. `whole`: it has seen all that there is, so what an earlier run with the same arguments
        found and this one did not is gone."""
        with refusals(self.path), self._whole():
            self._execute("update runs set state = ?, ended = ? where run = ?", state, time(), self.run)
            if whole:
                self._execute(GONE, self.run)
            if state == "done":
                for table in ("causes", "remedies", "diagnoses"):
                    self._connection.execute(f"delete from {table} where diagnosis not in {IN_USE}")

    def forget(self) -> None:
        """As if the run had never been."""
        with refusals(self.path), self._whole():
            self._execute("delete from runs where run = ?", self.run)

    def notified(self, fingerprint: str) -> None:
        """Note that somebody was told of a group."""
        with refusals(self.path), self._whole():
            self._execute("update groups set notified = ? where fingerprint = ?", time(), fingerprint)

    def failed(self, fault: str, message: Text) -> None:
        """Note an error that is no job's."""
        row: Row = {"run": self.run, "job": None, "fault": fault, "message_en": message.en, "message_zh": message.zh, "seen": time()}
        with refusals(self.path), self._whole():
            self._insert("errors", [row])

    # -- what is known

    def was(self, jobs: Sequence[str]) -> dict[str, Was]:
        """How these jobs were when they were read last with the same tool, rules and options. What could not be read, all of it or a part,
        is read again."""
        sql = """select j.job, j.stamp, j.content from jobs j join runs r using (run) where r.rules = ? and j.status <> 'unread'
            and j.job in (select unnest(?::varchar[])) and not exists (from errors e where e.job = j.job and e.run = j.run)"""
        with self._lock, refusals(self.path):
            rows = self._cursor.execute(sql, [self.basis, list(jobs)]).fetchall()
        return {job: Was(stamp, content) for job, stamp, content in rows}

    def brought(self, same: str) -> Brought | None:
        """What the diagnosis of this key says of every job that it answers."""
        if self._made is not None and same not in self._made:  # every failed job asks, and a query takes as long as to store it
            return None
        with self._lock, refusals(self.path):
            found = self._cursor.execute("select digest, fingerprint from diagnoses where diagnosis = ?", [same]).fetchone()
        if found is None:
            return None
        headline = json.loads(found[0])["headline"]
        return Brought(Text(headline["en"], headline["zh"]), found[1] or "")

    # -- results

    def add(self, results: Sequence[Result]) -> None:
        """Store a batch, all of it or nothing. A job's rows are replaced as a whole; one that can no longer be read keeps what it had."""
        with refusals(self.path), self._whole():
            self._add(list({result.job.id: result for result in results}.values()))

    def _add(self, results: Sequence[Result]) -> None:
        reused = [result for result in results if result.reused]
        unread = [result for result in results if result.error is not None]
        read = [result for result in results if not result.reused and result.error is None]
        there = self._names("job", "jobs where status <> 'unread'", [result.job.id for result in unread])
        self._reuse(reused)
        self._diagnoses([result for result in read if result.digest])
        self._jobs([*read, *(result for result in unread if result.job.id not in there)])
        fingerprints = list({result.fingerprint for result in read if result.fingerprint})
        self._execute("update groups set last_run = ? where fingerprint in (select unnest(?::varchar[]))", self.run, fingerprints)
        self._insert("errors", tables.errors(results, self.run, time()))
        counted = "update runs set found = found + ?, read = read + ?, reused = reused + ?, failed = failed + ? where run = ?"
        self._execute(counted, len(results), len(read), len(reused), sum(result.failed for result in read), self.run)

    def _reuse(self, results: Sequence[Result]) -> None:
        rows = [(result.job.id, result.stamp, result.modified) for result in results]
        names, stamps, times = zip(*rows, strict=True) if rows else ((), (), ())
        self._execute(REUSED, self.run, list(names), list(stamps), list(times))

    def _jobs(self, results: Sequence[Result]) -> None:
        names = [result.job.id for result in results]
        first = dict(self._execute("select job, first_run from jobs where job in (select unnest(?::varchar[]))", names).fetchall())
        for table in ("events", "jobs"):
            self._execute(f"delete from {table} where job in (select unnest(?::varchar[]))", names)
        self._insert("jobs", [tables.job(result, self.run, first.get(result.job.id, self.run)) for result in results])
        self._insert("events", [row for result in results for row in tables.events(result)])

    def _diagnoses(self, results: Sequence[Result]) -> None:
        made = {result.same: result for result in results}
        for table in ("causes", "remedies", "diagnoses"):
            self._execute(f"delete from {table} where diagnosis in (select unnest(?::varchar[]))", list(made))
        told = {same: json.loads(result.digest) for same, result in made.items()}
        mine: Row = {"tool": __version__, "rules": self.basis}
        rows = [{"diagnosis": same, "digest": one.digest, "fingerprint": one.fingerprint or None} | mine for same, one in made.items()]
        self._insert("diagnoses", rows)
        if self._made is not None:
            for same in made:
                self._made.add(same)
        self._insert("causes", [row for same, digest in told.items() for row in tables.listed(same, digest["causes"], tables.CAUSE)])
        self._insert("remedies", [row for same, digest in told.items() for row in tables.listed(same, digest["remedies"], tables.REMEDY)])
        parts = {result.fingerprint: told[same]["parts"] for same, result in made.items() if result.fingerprint}
        there = self._names("fingerprint", "groups", list(parts))
        self._insert("groups", [tables.group(name, of, self.run) for name, of in parts.items() if name not in there])

    # -- statements

    def _execute(self, sql: str, *params: object) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(sql, list(params))

    def _names(self, column: str, table: str, names: list[str]) -> set[str]:
        """Those of some names that a table has."""
        rows = self._execute(f"select {column} from (from {table}) where {column} in (select unnest(?::varchar[]))", names)
        return {name for (name,) in rows.fetchall()}

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows by columns: one statement whatever their number."""
        if not rows:
            return
        types = self._types(table)
        columns = list(rows[0])
        listed = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join(f"unnest(?::{types[column]}[])" for column in columns)
        self._execute(f"insert into {table} ({listed}) select {values}", *([row[column] for row in rows] for column in columns))

    def _types(self, table: str) -> dict[str, str]:
        if table not in self._known_types:
            rows = self._execute("select column_name, data_type from information_schema.columns where table_name = ?", table)
            self._known_types[table] = dict(rows.fetchall())
        return self._known_types[table]


def connected(path: Path, called: Path | None = None) -> duckdb.DuckDBPyConnection:
    """An open file. Raises Complaint where it is none of ours; `called`: what the complaint calls it."""
    import duckdb

    with refusals(called or path):
        return duckdb.connect(str(path), config={"memory_limit": MEMORY, "threads": 2, "autoinstall_known_extensions": False})
