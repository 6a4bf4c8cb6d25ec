"""Runs jobs on a Ray cluster: Ray Data distributes them as rows and keeps the results as Parquet partitions."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any

from diagnose.cluster.cluster_errors import cluster_error
from diagnose.cluster.find.job import About, Job
from diagnose.cluster.run.local_engine import CHUNK, Deduplicator, Lookup
from diagnose.cluster.run.task import LIMITS, JobOptions, Limits, Task
from diagnose.cluster.run.worker_supervisor import Supervisor
from diagnose.cluster.store.result import EventRow, InputFault, Result
from diagnose.phrases import Text

if TYPE_CHECKING:
    import pyarrow as pa  # like ray an optional library, imported where it is used

#: Jobs of one dataset. Its results are stored before the next begins, so a run that is cut off loses one at most.
DATASET_SIZE = 50_000


def run_ray(
    tasks: Iterable[Task | Result],
    options: JobOptions,
    address: str | None = None,
    workers: int | None = None,
    limits: Limits = LIMITS,
    lookup: Lookup = lambda _: None,
    partitions: str = "",
) -> Generator[Result]:
    """Yield results as they complete, from the Ray cluster at an address (None: RAY_ADDRESS, else a local one).

    `workers` None: as many as the cluster has cores. `partitions`: a folder or URL writable from every node for the results as Parquet. The
    jobs' inputs must be readable from every node under the same names: objects in a store, or files on a shared file system.
    """
    ray = connect(address)
    count = max(1, workers or int(ray.cluster_resources().get("CPU", 1)))
    pending = iter(tasks)
    number = 0
    while batch := list(islice(pending, DATASET_SIZE)):
        yield from (item for item in batch if isinstance(item, Result))
        todo = [item for item in batch if isinstance(item, Task)]
        while todo:  # again for jobs whose diagnosis another job was to make, and did not
            number += 1
            deduplicator = Deduplicator(lookup, claims_elsewhere=True)
            partition = f"{partitions}/{number:05d}" if partitions else ""
            for result in _run_dataset(ray, todo, options, min(count, len(todo)), limits, partition):
                yield from deduplicator.add(result)[0]
            todo = deduplicator.unanswered()


def connect(address: str | None) -> Any:
    """The ray module after connecting. Raises UserError if it is not installed or the cluster cannot be reached."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise cluster_error("no_ray", hint="install_ray") from error
    if not ray.is_initialized():
        try:
            ray.init(
                address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False if address is None else None
            )
        except Exception as error:  # ray has many
            raise cluster_error("ray_refused", where=address or "", hint="check_ray", why=str(error).partition("\n")[0][:200]) from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


def _run_dataset(ray: Any, tasks: list[Task], options: JobOptions, workers: int, limits: Limits, partition: str) -> Iterator[Result]:
    claims = ray.remote(num_cpus=0)(Claims).remote()
    dataset = ray.data.from_items([task_to_row(task) for task in tasks]).map_batches(
        Reader,
        fn_constructor_args=(options, limits, claims),
        batch_size=CHUNK,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    if partition:
        dataset.write_parquet(
            partition, mode=ray.data.SaveMode.OVERWRITE, ray_remote_args={"num_cpus": 0}, concurrency=workers
        )  # the readers have all cores
        dataset = ray.data.read_parquet(partition)
    for batch in dataset.iter_batches(batch_format="pyarrow", batch_size=None):
        yield from map(row_to_result, batch.to_pylist())


class Claims:
    """An actor that assigns each diagnosis to one job."""

    def __init__(self) -> None:
        self._makers: dict[str, str] = {}

    def claim(self, key: str, job: str) -> bool:
        """Whether this job has to make the diagnosis."""
        return self._makers.setdefault(key, job) == job


class Reader:
    """An actor that reads jobs in a worker process of its own, with the limits and error handling of the local engine."""

    def __init__(self, options: JobOptions, limits: Limits, claims: Any) -> None:
        import ray

        self._supervisor = Supervisor(options, limits, lambda key, job: bool(ray.get(claims.claim.remote(key, job))))

    def __call__(self, batch: pa.Table) -> pa.Table:
        import pyarrow as pa

        tasks = [row_to_task(row) for row in batch.to_pylist()]
        return pa.Table.from_pylist([result_to_row(result) for result in self._supervisor.results(tasks)], schema=arrow_schema())


# -- tasks and results as flat rows


#: The columns of a result with Arrow's type of each. Nested values are JSON.
COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("job", "name", "status", "family", "phase", "headline_en", "headline_zh", "diagnosis", "fingerprint"), "string"),
    **dict.fromkeys(("digest", "stamp", "content", "fault", "error_en", "error_zh", "about", "events", "troubles", "report"), "string"),
    **dict.fromkeys(("logs", "configs"), "list"),
    **dict.fromkeys(("cpu", "modified"), "double"),
    "bytes": "int64",
    "reused": "bool",
}

#: Columns with the name and the value of a field of Result.
_PLAIN_COLUMNS = tuple(field.name for field in fields(Result) if field.name in COLUMNS and field.name not in ("job", "events", "troubles"))


def arrow_schema() -> pa.Schema:
    """The column types, identical for all partitions even if a column is empty."""
    import pyarrow as pa

    types = {"string": pa.string(), "list": pa.list_(pa.string()), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])


def task_to_row(task: Task) -> dict[str, Any]:
    job = task.job
    row = {"job": job.id, "name": job.name, "logs": _to_json(job.logs), "configs": _to_json(job.configs)}
    return row | {"about": _to_json(_field_values(job.about)), "content": task.content}


def row_to_task(row: dict[str, Any]) -> Task:
    about = About(**json.loads(row["about"]))
    logs, configs = (tuple(json.loads(row[column])) for column in ("logs", "configs"))
    return Task(Job(row["job"], logs, configs, about, row["name"]), row["content"])


def result_to_row(result: Result) -> dict[str, Any]:
    job, error = result.job, result.error
    row: dict[str, object] = {name: getattr(result, name) for name in _PLAIN_COLUMNS}
    row |= {"job": job.id, "name": job.name, "logs": list(job.logs), "configs": list(job.configs)}
    row |= {"about": _to_json(_field_values(job.about))}
    row |= {"headline_en": result.headline.en, "headline_zh": result.headline.zh, "diagnosis": result.same, "cpu": result.seconds}
    row |= {"error_en": error.en if error is not None else None, "error_zh": error.zh if error is not None else None}
    row |= {"events": _to_json([_field_values(event) for event in result.events])}
    row |= {"troubles": _to_json([[trouble.fault, *trouble.message] for trouble in result.troubles])}
    return row


def row_to_result(row: dict[str, Any]) -> Result:
    about = About(**json.loads(row["about"]))
    return Result(
        Job(row["job"], tuple(row["logs"]), tuple(row["configs"]), about, row["name"]),
        **{name: row[name] for name in _PLAIN_COLUMNS},
        headline=Text(row["headline_en"], row["headline_zh"]),
        same=row["diagnosis"],
        seconds=row["cpu"],
        error=None if row["error_en"] is None else Text(row["error_en"], row["error_zh"]),
        events=tuple(EventRow(**event) for event in json.loads(row["events"])),
        troubles=tuple(InputFault(fault, Text(en, zh)) for fault, en, zh in json.loads(row["troubles"])),
    )


def _field_values(value: About | EventRow) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
