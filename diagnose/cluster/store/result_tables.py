"""The tables of the database, by version, and results as their rows; docs/triage.md describes the columns.

Times are seconds since 1970 in UTC, sizes are bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias

from diagnose.cluster.find.job import About
from diagnose.cluster.store.result import EventRow, Result

Row: TypeAlias = dict[str, object]

#: The version that this release writes.
VERSION = 1

#: The statements that bring a database to each version; none may change once it was released.
MIGRATIONS: Mapping[int, tuple[str, ...]] = {
    1: (
        "create table meta (key varchar primary key, value varchar)",
        """create table runs (run bigint primary key, started double, ended double, state varchar, tool varchar, rules varchar,
            engine varchar, arguments json, found bigint, read bigint, reused bigint, failed bigint)""",
        """create table jobs (job varchar primary key, run bigint, name varchar, logs varchar[], configs varchar[], stamp varchar,
            content varchar, status varchar, family varchar, phase varchar, headline_en varchar, headline_zh varchar, diagnosis varchar,
            fingerprint varchar, requested bigint, shortage bigint, capacity bigint, scheduler varchar, scheduler_id varchar,
            "user" varchar, project varchar, state varchar, reason varchar, exit_code integer, signal integer, nodes integer,
            gpus integer, gpu varchar, submitted double, started double, ended double, modified double, elapsed double, gpu_seconds double,
            memory_limit bigint, memory_used bigint, restarts integer, bytes bigint, cpu double, first_run bigint, last_run bigint,
            gone boolean)""",
        "create table diagnoses (diagnosis varchar primary key, digest json, tool varchar, rules varchar, fingerprint varchar)",
        """create table events (job varchar, position integer, family varchar, status varchar, exception varchar, fatal boolean,
            attempt integer, rank integer, host varchar, gpu integer, phase varchar, requested bigint, capacity bigint, free bigint,
            allocated bigint, reserved_unallocated bigint, source varchar, line bigint, root boolean)""",
        """create table causes (diagnosis varchar, position integer, cause varchar, rule varchar, certainty varchar,
            also_true boolean, accounts_for bigint)""",
        """create table remedies (diagnosis varchar, position integer, remedy varchar, rule varchar, saves bigint, fits varchar,
            in_plan boolean)""",
        """create table groups (fingerprint varchar primary key, version integer, parts json, first_run bigint, last_run bigint,
            notified double)""",
        "create table errors (run bigint, job varchar, fault varchar, message_en varchar, message_zh varchar, seen double)",
    ),
}

#: The tables that are exported.
TABLES = ("runs", "jobs", "diagnoses", "events", "causes", "remedies", "groups", "errors")

#: Columns of causes and remedies, and the key of a digest that fills each.
CAUSE_COLUMNS: Mapping[str, str] = {column: column for column in ("cause", "rule", "certainty", "also_true", "accounts_for")}
REMEDY_COLUMNS: Mapping[str, str] = {**{column: column for column in ("remedy", "rule", "saves", "fits")}, "in_plan": "planned"}


def job_row(result: Result, run: int, first_run: int) -> Row:
    """The row of a job; `first_run`: the run that found it first."""
    job, about = result.job, result.job.about
    root = next((event for event in result.events if event.root), None)
    requested, free = (root.requested, root.free) if root else (None, None)
    row: Row = {column.name: getattr(about, column.name) for column in fields(About) if column.name != "id"}
    row |= {"scheduler_id": about.id, "gpu_seconds": about.gpu_seconds}
    row |= {"job": job.id, "name": job.name or job.id, "logs": list(job.logs), "configs": list(job.configs), "modified": result.modified}
    row |= {"stamp": result.stamp, "content": result.content, "bytes": result.bytes, "cpu": result.seconds}
    row |= {"status": result.status, "family": result.family, "phase": result.phase}
    row |= {"headline_en": result.headline.en, "headline_zh": result.headline.zh}
    row |= {"diagnosis": result.same, "fingerprint": result.fingerprint}
    row |= {"requested": requested, "shortage": None if requested is None or free is None else requested - free}
    row |= {"capacity": root.capacity if root else None}
    row |= {"run": run, "first_run": first_run, "last_run": run, "gone": False}
    return {column: None if value == "" else value for column, value in row.items()}


def event_rows(result: Result) -> list[Row]:
    rows = [{column.name: getattr(event, column.name) for column in fields(EventRow)} for event in result.events]
    return [{"job": result.job.id, "position": position, **row} for position, row in enumerate(rows)]


def error_rows(results: Iterable[Result], run: int, time: float) -> list[Row]:
    """Rows for unreadable jobs, and for unusable inputs of other jobs."""
    errors = [(result.job.id, result.fault, result.error) for result in results if result.error is not None]
    errors += [(result.job.id, trouble.fault, trouble.message) for result in results for trouble in result.troubles]
    rows = [{"job": job, "fault": fault, "message_en": text.en, "message_zh": text.zh} for job, fault, text in errors]
    return [{**row, "run": run, "seen": time} for row in rows]


def digest_rows(diagnosis: str, items: Sequence[Mapping[str, object]], columns: Mapping[str, str]) -> list[Row]:
    """The rows of a digest's causes or remedies; `columns` names the digest's key for each column."""
    rows = [{column: item.get(key) for column, key in columns.items()} for item in items]
    return [{"diagnosis": diagnosis, "position": position, **row} for position, row in enumerate(rows)]


def group_row(fingerprint: str, parts: object, run: int) -> Row:
    """The row of a new group."""
    version = fingerprint.partition(":")[0]
    parts_json = json.dumps(parts, ensure_ascii=False)
    row: Row = {
        "fingerprint": fingerprint,
        "version": int(version),
        "parts": parts_json,
        "first_run": run,
        "last_run": run,
        "notified": None,
    }
    return row
