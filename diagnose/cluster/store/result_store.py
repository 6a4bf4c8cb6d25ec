"""The database of results: one file, written in whole batches, so that what stands in it is true at any moment."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from diagnose.cluster.cluster_errors import refusals
from diagnose.cluster.store import result_rows
from diagnose.cluster.store.bloom_filter import Perhaps
from diagnose.cluster.store.database import Database
from diagnose.cluster.store.result import Brought, Result
from diagnose.cluster.store.result_rows import Row
from diagnose.phrases import Text
from diagnose.record import NamedTuple
from diagnose.version import __version__

if TYPE_CHECKING:
    import duckdb

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


NEVER = Was("", "")


class Store(Database):
    """An open database of runs and results. `was` and `brought` may be called from any thread, all else by the one that opened it."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__(path, connection)
        self._cursor = connection.cursor()  # for questions beside a write
        self._lock = threading.Lock()
        self._made: Perhaps | None = None  # the diagnoses that are there; read when the first is asked for
        self.run = 0
        self.basis = ""

    def close(self) -> None:
        self._cursor.close()
        super().close()

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
        with self._lock, refusals(self.path):
            if same not in self._there():  # every failed job asks, and a query takes as long as to store it
                return None
            found = self._cursor.execute("select digest, fingerprint from diagnoses where diagnosis = ?", [same]).fetchone()
        if found is None:
            return None
        headline = json.loads(found[0])["headline"]
        return Brought(Text(headline["en"], headline["zh"]), found[1] or "")

    def _there(self) -> Perhaps:
        if self._made is None:
            self._made = Perhaps()
            rows = self._cursor.execute("select diagnosis from diagnoses")
            while some := rows.fetchmany(1024):
                for (same,) in some:
                    self._made.add(same)
        return self._made

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
        self._insert("errors", result_rows.errors(results, self.run, time()))
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
        self._insert("jobs", [result_rows.job(result, self.run, first.get(result.job.id, self.run)) for result in results])
        self._insert("events", [row for result in results for row in result_rows.events(result)])

    def _diagnoses(self, results: Sequence[Result]) -> None:
        made = {result.same: result for result in results}
        for table in ("causes", "remedies", "diagnoses"):
            self._execute(f"delete from {table} where diagnosis in (select unnest(?::varchar[]))", list(made))
        told = {same: json.loads(result.digest) for same, result in made.items()}
        mine: Row = {"tool": __version__, "rules": self.basis}
        rows = [{"diagnosis": same, "digest": one.digest, "fingerprint": one.fingerprint or None} | mine for same, one in made.items()]
        self._insert("diagnoses", rows)
        with self._lock:
            if self._made is not None:
                for same in made:
                    self._made.add(same)
        self._insert(
            "causes", [row for same, digest in told.items() for row in result_rows.listed(same, digest["causes"], result_rows.CAUSE)]
        )
        self._insert(
            "remedies", [row for same, digest in told.items() for row in result_rows.listed(same, digest["remedies"], result_rows.REMEDY)]
        )
        parts = {result.fingerprint: told[same]["parts"] for same, result in made.items() if result.fingerprint}
        there = self._names("fingerprint", "groups", list(parts))
        self._insert("groups", [result_rows.group(name, of, self.run) for name, of in parts.items() if name not in there])
