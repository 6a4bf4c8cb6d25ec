"""Results as rows of the database's tables (schema.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from diagnose.cluster.find.job import About
from diagnose.cluster.store.result import Happened, Result
from diagnose.record import fields

Row: TypeAlias = dict[str, object]

#: Columns of causes and remedies, and what a digest calls them.
CAUSE = {each: each for each in ("cause", "rule", "certainty", "also_true", "accounts_for")}
REMEDY = {**{each: each for each in ("remedy", "rule", "saves", "fits")}, "in_plan": "planned"}


def job(result: Result, run: int, first: int) -> Row:
    """The row of a job; `first`: the run that met it first."""
    of, about = result.job, result.job.about
    root = next((event for event in result.events if event.root), None)
    requested, free = (root.requested, root.free) if root else (None, None)
    row: Row = {each.name: getattr(about, each.name) for each in fields(About) if each.name != "id"}
    row |= {"scheduler_id": about.id, "gpu_seconds": about.gpu_seconds}
    row |= {"job": of.id, "name": of.name or of.id, "logs": list(of.logs), "configs": list(of.configs), "modified": result.modified}
    row |= {"stamp": result.stamp, "content": result.content, "bytes": result.bytes, "cpu": result.seconds}
    row |= {"status": result.status, "family": result.family, "phase": result.phase}
    row |= {"headline_en": result.headline.en, "headline_zh": result.headline.zh}
    row |= {"diagnosis": result.same, "fingerprint": result.fingerprint}
    row |= {"requested": requested, "shortage": None if requested is None or free is None else requested - free}
    row |= {"capacity": root.capacity if root else None}
    row |= {"run": run, "first_run": first, "last_run": run, "gone": False}
    return {column: None if value == "" else value for column, value in row.items()}


def events(result: Result) -> list[Row]:
    """The rows of a job's events."""
    told = [{each.name: getattr(event, each.name) for each in fields(Happened)} for event in result.events]
    return [{"job": result.job.id, "position": at, **row} for at, row in enumerate(told)]


def errors(results: Iterable[Result], run: int, seen: float) -> list[Row]:
    """The rows of what could not be used: jobs, and parts of jobs that were read otherwise."""
    said = [(one.job.id, one.fault, one.error) for one in results if one.error is not None]
    said += [(one.job.id, each.fault, each.message) for one in results for each in one.troubles]
    rows = [{"job": name, "fault": fault, "message_en": text.en, "message_zh": text.zh} for name, fault, text in said]
    return [{**row, "run": run, "seen": seen} for row in rows]


def listed(diagnosis: str, told: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> list[Row]:
    """The rows of a digest's causes or remedies; `columns` names the digest's key for each column."""
    rows = [{column: one.get(key) for column, key in columns.items()} for one in told]
    return [{"diagnosis": diagnosis, "position": at, **row} for at, row in enumerate(rows)]


def group(name: str, parts: object, run: int) -> Row:
    """The row of a group that was not there before."""
    version = name.partition(":")[0]
    told = json.dumps(parts, ensure_ascii=False)
    row: Row = {"fingerprint": name, "version": int(version), "parts": told, "first_run": run, "last_run": run, "notified": None}
    return row
