"""Tasks and results as flat rows, for engines that carry tables between machines and keep them as Parquet."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from diagnose.cluster.find.job import About, Job
from diagnose.cluster.run.task import Task
from diagnose.cluster.store.result import Happened, Result, Trouble
from diagnose.phrases import Text
from diagnose.record import fields

if TYPE_CHECKING:
    import pyarrow as pa

#: The columns of a result: Arrow's type of each. What has parts of its own is JSON.
COLUMNS = {
    **dict.fromkeys(("job", "name", "status", "family", "phase", "headline_en", "headline_zh", "diagnosis", "fingerprint"), "string"),
    **dict.fromkeys(("digest", "stamp", "content", "fault", "error_en", "error_zh", "about", "events", "troubles", "report"), "string"),
    **dict.fromkeys(("logs", "configs"), "list"),
    **dict.fromkeys(("cpu", "modified"), "double"),
    "bytes": "int64",
    "reused": "bool",
}


def schema() -> pa.Schema:
    """The columns, as Arrow has them: the same for every part, whatever happens to be empty in it."""
    import pyarrow as pa

    types = {"string": pa.string(), "list": pa.list_(pa.string()), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])


def of_task(task: Task) -> dict[str, Any]:
    job = task.job
    row = {"job": job.id, "name": job.name, "logs": _json(job.logs), "configs": _json(job.configs)}
    return row | {"about": _json(_plain(job.about)), "content": task.content}


def to_task(row: dict[str, Any]) -> Task:
    told = About(**json.loads(row["about"]))
    return Task(Job(row["job"], _texts(row["logs"]), _texts(row["configs"]), told, row["name"]), row["content"])


def of_result(result: Result) -> dict[str, Any]:
    job, error = result.job, result.error
    row: dict[str, Any] = {each: getattr(result, each) for each in _SAME}
    row |= {"job": job.id, "name": job.name, "logs": list(job.logs), "configs": list(job.configs), "about": _json(_plain(job.about))}
    row |= {"headline_en": result.headline.en, "headline_zh": result.headline.zh, "diagnosis": result.same, "cpu": result.seconds}
    row |= {"error_en": error.en if error is not None else None, "error_zh": error.zh if error is not None else None}
    row |= {"events": _json([_plain(event) for event in result.events])}
    row |= {"troubles": _json([[each.fault, *each.message] for each in result.troubles])}
    return row


def to_result(row: dict[str, Any]) -> Result:
    about = About(**json.loads(row["about"]))
    return Result(
        Job(row["job"], tuple(row["logs"]), tuple(row["configs"]), about, row["name"]),
        **{each: row[each] for each in _SAME},
        headline=Text(row["headline_en"], row["headline_zh"]),
        same=row["diagnosis"],
        seconds=row["cpu"],
        error=None if row["error_en"] is None else Text(row["error_en"], row["error_zh"]),
        events=tuple(Happened(**event) for event in json.loads(row["events"])),
        troubles=tuple(Trouble(fault, Text(en, zh)) for fault, en, zh in json.loads(row["troubles"])),
    )


#: Columns that are called as the fields of a result.
_SAME = tuple(each.name for each in fields(Result) if each.name in COLUMNS and each.name not in ("job", "events", "troubles"))


def _plain(value: object) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}  # type: ignore[arg-type]


def _texts(listed: str) -> tuple[str, ...]:
    return tuple(json.loads(listed))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
