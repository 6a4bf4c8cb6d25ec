"""The database of runs and results: one file, written in batches, consistent at any time."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from diagnose.cluster.cluster_errors import database_errors, is_about_file
from diagnose.cluster.store import group_fingerprint, result_tables
from diagnose.cluster.store.database import Database
from diagnose.cluster.store.result import DiagnosisSummary, Result, unread_result
from diagnose.cluster.store.result_tables import Row
from diagnose.errors import log_crash
from diagnose.phrases import Text, phrase
from diagnose.records import NamedTuple
from diagnose.version import __version__

if TYPE_CHECKING:
    import duckdb

#: Marks jobs that earlier runs with the arguments of this one found, and this one did not.
MARK_GONE = """update jobs set gone = true where last_run <> $1 and not gone and last_run in
    (select run from runs where arguments::varchar = (select arguments::varchar from runs where run = $1))"""
UPDATE_REUSED = """update jobs set last_run = ?, stamp = s.stamp, modified = coalesce(s.modified, jobs.modified), gone = false
    from (select unnest(?::varchar[]) as job, unnest(?::varchar[]) as stamp, unnest(?::double[]) as modified) s where jobs.job = s.job"""
USED_DIAGNOSES = "(select diagnosis from jobs where diagnosis is not null)"

#: Bits of the Bloom filter (2 MiB): with a million keys one unknown key in seventy is taken for a known one.
BLOOM_BITS = 1 << 24


class LastRead(NamedTuple):
    """Identifies the inputs of a job as read last; empty for a new job."""

    stamp: str
    content: str


NEVER_READ = LastRead("", "")


class BloomFilter:
    """Keys that were added, with two hashes. `False` is certain and saves a database look-up."""

    def __init__(self) -> None:
        self._bits = bytearray(BLOOM_BITS // 8)

    def add(self, key: str) -> None:
        for position in _bit_positions(key):
            self._bits[position >> 3] |= 1 << (position & 7)

    def __contains__(self, key: str) -> bool:
        return all(self._bits[position >> 3] & 1 << (position & 7) for position in _bit_positions(key))


def _bit_positions(key: str) -> tuple[int, int]:
    digest = int.from_bytes(blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest())
    return digest % BLOOM_BITS, (digest >> 32) % BLOOM_BITS


class Store(Database):
    """The open database. `last_read` and `diagnosis_summary` may be called from any thread, other methods only from the thread that
    opened it."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__(path, connection)
        self._cursor = connection.cursor()  # for queries of other threads during a write
        self._lock = threading.Lock()
        self._known_diagnoses: BloomFilter | None = None  # filled on first use
        self.run = 0
        self.basis = ""

    def close(self) -> None:
        self._cursor.close()
        super().close()

    # -- runs

    def begin_run(self, basis: str, engine: str, arguments: Mapping[str, object]) -> bool:
        """Record a new run; returns whether an earlier one was interrupted. `basis`: hash of version, rules and options."""
        with database_errors(self.path), self._transaction():
            unfinished = self._first_row("select count(*) from runs where state = 'running'")[0]
            self._connection.execute("update runs set state = 'killed' where state = 'running'")
            self.run, self.basis = self._first_row("select coalesce(max(run), 0) + 1 from runs")[0], basis
            told = json.dumps(arguments, ensure_ascii=False).encode(errors="replace").decode()  # a path need not be UTF-8
            row = [self.run, time(), None, "running", __version__, basis, engine, told, 0, 0, 0, 0]
            self._connection.execute(f"insert into runs values ({', '.join('?' * len(row))})", row)
            self._execute("insert or replace into meta values ('tool', ?)", __version__)
        return bool(unfinished)

    def end_run(self, state: str, complete: bool = False) -> None:
        """Close the run: done, stopped or failed. `complete`: the search covered everything, so that jobs which an earlier run with the
        same arguments found and this one did not no longer exist."""
        with database_errors(self.path), self._transaction():
            self._execute("update runs set state = ?, ended = ? where run = ?", state, time(), self.run)
            if complete:
                self._execute(MARK_GONE, self.run)
            if state == "done":
                for table in ("causes", "remedies", "diagnoses"):
                    self._connection.execute(f"delete from {table} where diagnosis not in {USED_DIAGNOSES}")

    def discard_run(self) -> None:
        """Delete the record of a run that read nothing."""
        with database_errors(self.path), self._transaction():
            self._execute("delete from runs where run = ?", self.run)

    def mark_notified(self, fingerprint: str) -> None:
        """Record that a group was announced."""
        with database_errors(self.path), self._transaction():
            self._execute("update groups set notified = ? where fingerprint = ?", time(), fingerprint)

    def add_error(self, fault: str, message: Text, job: str | None = None) -> None:
        """Store an error that is no job's result; `job`: the job that it concerns, if any."""
        row: Row = {"run": self.run, "job": job, "fault": fault, "message_en": message.en, "message_zh": message.zh, "seen": time()}
        with database_errors(self.path), self._transaction():
            self._insert("errors", [row])

    # -- what is known

    def last_read(self, jobs: Sequence[str]) -> dict[str, LastRead]:
        """The last read inputs of these jobs under the current `basis`. Jobs with unreadable inputs are left out, so that they are read
        again."""
        sql = """select j.job, j.stamp, j.content from jobs j join runs r using (run) where r.rules = ? and j.status <> 'unread'
            and j.job in (select unnest(?::varchar[])) and not exists (from errors e where e.job = j.job and e.run = j.run)"""
        with self._lock, database_errors(self.path):
            rows = self._cursor.execute(sql, [self.basis, list(jobs)]).fetchall()
        return {job: LastRead(stamp, content) for job, stamp, content in rows}

    def diagnosis_summary(self, key: str) -> DiagnosisSummary | None:
        """The stored diagnosis of a key, as far as all jobs share it; None if there is none."""
        with self._lock, database_errors(self.path):
            if key not in self._diagnosis_filter():  # every failed job asks, and a query takes as long as to store it
                return None
            row = self._cursor.execute("select digest, fingerprint from diagnoses where diagnosis = ?", [key]).fetchone()
        if row is None:
            return None
        headline = json.loads(row[0])["headline"]
        return DiagnosisSummary(Text(headline["en"], headline["zh"]), row[1] or "")

    def _diagnosis_filter(self) -> BloomFilter:
        if self._known_diagnoses is None:
            self._known_diagnoses = BloomFilter()
            cursor = self._cursor.execute("select diagnosis from diagnoses")
            while rows := cursor.fetchmany(1024):
                for (key,) in rows:
                    self._known_diagnoses.add(key)
        return self._known_diagnoses

    # -- results

    def add(self, results: Sequence[Result]) -> list[Result]:
        """Store a batch atomically. A job's rows are replaced together; a job that has become unreadable keeps its earlier rows.

        Where the database refuses a value, each result is stored alone; those that cannot be become errors of their jobs and are
        returned. Raises UserError where the file itself cannot be written.
        """
        try:
            self._add_batch(results)
        except Exception as error:
            if is_about_file(error):
                raise
            return self._add_alone(results)
        return []

    def _add_alone(self, results: Sequence[Result]) -> list[Result]:
        refused = []
        for result in results:
            try:
                self._add_batch([result])
            except Exception as error:
                if is_about_file(error):
                    raise
                log_crash("the database", error)
                failure = unread_result(result.job, "not_stored", phrase("cluster.not_stored", why=str(error)[:300]))
                self._add_batch([failure])
                refused.append(failure)
        return refused

    def _add_batch(self, results: Sequence[Result]) -> None:
        with database_errors(self.path), self._transaction():
            self._add(list({result.job.id: result for result in results}.values()))

    def _add(self, results: Sequence[Result]) -> None:
        reused = [result for result in results if result.reused]
        unread = [result for result in results if result.error is not None]
        read = [result for result in results if not result.reused and result.error is None]
        known = self._existing("job", "jobs where status <> 'unread'", [result.job.id for result in unread])
        self._update_reused(reused)
        self._add_diagnoses([result for result in read if result.digest])
        self._replace_jobs([*read, *(result for result in unread if result.job.id not in known)])
        fingerprints = list({result.fingerprint for result in read if result.fingerprint})
        self._execute("update groups set last_run = ? where fingerprint in (select unnest(?::varchar[]))", self.run, fingerprints)
        self._insert("errors", result_tables.error_rows(results, self.run, time()))
        update_counts = "update runs set found = found + ?, read = read + ?, reused = reused + ?, failed = failed + ? where run = ?"
        self._execute(update_counts, len(results), len(read), len(reused), sum(result.failed for result in read), self.run)

    def _update_reused(self, results: Sequence[Result]) -> None:
        rows = [(result.job.id, result.stamp, result.modified) for result in results]
        jobs, stamps, times = zip(*rows, strict=True) if rows else ((), (), ())
        self._execute(UPDATE_REUSED, self.run, list(jobs), list(stamps), list(times))

    def _replace_jobs(self, results: Sequence[Result]) -> None:
        jobs = [result.job.id for result in results]
        first_runs = dict(self._execute("select job, first_run from jobs where job in (select unnest(?::varchar[]))", jobs).fetchall())
        for table in ("events", "jobs"):
            self._execute(f"delete from {table} where job in (select unnest(?::varchar[]))", jobs)
        self._insert("jobs", [result_tables.job_row(result, self.run, first_runs.get(result.job.id, self.run)) for result in results])
        self._insert("events", [row for result in results for row in result_tables.event_rows(result)])

    def _add_diagnoses(self, results: Sequence[Result]) -> None:
        by_key = {result.same: result for result in results}
        for table in ("causes", "remedies", "diagnoses"):
            self._execute(f"delete from {table} where diagnosis in (select unnest(?::varchar[]))", list(by_key))
        digests = {key: json.loads(result.digest) for key, result in by_key.items()}
        versions: Row = {"tool": __version__, "rules": self.basis}
        rows = [
            {"diagnosis": key, "digest": result.digest, "fingerprint": result.fingerprint or None} | versions
            for key, result in by_key.items()
        ]
        self._insert("diagnoses", rows)
        with self._lock:
            if self._known_diagnoses is not None:
                for key in by_key:
                    self._known_diagnoses.add(key)
        for table, columns in (("causes", result_tables.CAUSE_COLUMNS), ("remedies", result_tables.REMEDY_COLUMNS)):
            self._insert(table, [row for key, digest in digests.items() for row in result_tables.digest_rows(key, digest[table], columns)])
        parts = {
            result.fingerprint: group_fingerprint.of(digests[key]["parts"] or {}).identity._asdict()
            for key, result in by_key.items()
            if result.fingerprint
        }
        known = self._existing("fingerprint", "groups", list(parts))
        new_groups = {fingerprint: group for fingerprint, group in parts.items() if fingerprint not in known}
        self._insert("groups", [result_tables.group_row(fingerprint, group, self.run) for fingerprint, group in new_groups.items()])
