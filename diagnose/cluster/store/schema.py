"""The tables of the database, by version; docs/triage.md describes them. Older databases are brought up to date when they are opened.

Times are seconds since 1970 in UTC, sizes are bytes.
"""

from __future__ import annotations

#: The version that this release writes.
VERSION = 1

#: What brings a database to each version; nothing here may change once it was released.
MIGRATIONS: dict[int, tuple[str, ...]] = {
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
