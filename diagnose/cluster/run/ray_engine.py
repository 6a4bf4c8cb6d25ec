"""The same work on a Ray cluster: Ray Data hands the jobs out and keeps the results as Parquet partitions."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from diagnose.cluster.cluster_errors import trouble
from diagnose.cluster.run import task_rows
from diagnose.cluster.run.local_engine import CHUNK, Known, Shared
from diagnose.cluster.run.task import Asked, Task
from diagnose.cluster.run.worker_supervisor import LIMITS, Limits, Minder
from diagnose.cluster.store.result import Result

if TYPE_CHECKING:
    import pyarrow as pa

#: Jobs of one dataset: what is done of it is stored before the next begins, so a run that is cut off loses one at most.
ROUND = 50_000


def cluster(
    tasks: Iterable[Task | Result],
    asked: Asked,
    address: str | None = None,
    workers: int | None = None,
    limits: Limits = LIMITS,
    known: Known = lambda _: None,
    partitions: str = "",
) -> Generator[Result]:
    """The results of tasks as they come, from the Ray cluster at an address (None: RAY_ADDRESS, else one on this machine). `workers` None:
    as many as the cluster has cores. With `partitions` (a folder or address that every node can write) the results are there as Parquet.

    What the jobs name must be readable from every node under the same name: objects in a store, or files of a shared file system.
    """
    ray = joined(address)
    count = max(1, workers or int(ray.cluster_resources().get("CPU", 1)))
    pending = iter(tasks)
    number = 0
    while some := list(islice(pending, ROUND)):
        yield from (one for one in some if isinstance(one, Result))
        todo = [one for one in some if isinstance(one, Task)]
        while todo:  # again for jobs whose diagnosis another one was to bring, and did not
            number += 1
            shared = Shared(known, elsewhere=True)
            part = f"{partitions}/{number:05d}" if partitions else ""
            for result in _round(ray, todo, asked, min(count, len(todo)), limits, part):
                yield from shared.passed(result)[0]
            todo = shared.left()


def joined(address: str | None) -> Any:
    """Ray, connected. Raises UserError where it is not installed or cannot be reached."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise trouble("no_ray", hint="install_ray") from error
    if not ray.is_initialized():
        try:
            ray.init(
                address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False if address is None else None
            )
        except Exception as error:  # ray has many
            raise trouble("ray_refused", where=address or "", hint="check_ray", why=str(error).partition("\n")[0][:200]) from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


def _round(ray: Any, todo: list[Task], asked: Asked, workers: int, limits: Limits, partitions: str) -> Iterator[Result]:
    claims = ray.remote(num_cpus=0)(Claims).remote()
    made = ray.data.from_items([task_rows.of_task(task) for task in todo]).map_batches(
        Reader,
        fn_constructor_args=(asked, limits, claims),
        batch_size=CHUNK,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    if partitions:
        made.write_parquet(partitions, mode=ray.data.SaveMode.OVERWRITE, ray_remote_args={"num_cpus": 0})  # the readers have all cores
        made = ray.data.read_parquet(partitions)
    for batch in made.iter_batches(batch_format="pyarrow", batch_size=None):
        yield from map(task_rows.to_result, batch.to_pylist())


class Claims:
    """An actor: which job makes which diagnosis."""

    def __init__(self) -> None:
        self._makers: dict[str, str] = {}

    def claim(self, same: str, job: str) -> bool:
        """Whether this job is to make it: nobody else does."""
        return self._makers.setdefault(same, job) == job


class Reader:
    """An actor that reads jobs: in a worker process of its own, so that limits and faults are those of the local engine."""

    def __init__(self, asked: Asked, limits: Limits, claims: Any) -> None:
        import ray

        self._minder = Minder(asked, limits, lambda same, job: bool(ray.get(claims.claim.remote(same, job))))

    def __call__(self, batch: pa.Table) -> pa.Table:
        import pyarrow as pa

        tasks = [task_rows.to_task(row) for row in batch.to_pylist()]
        return pa.Table.from_pylist([task_rows.of_result(each) for each in self._minder.results(tasks)], schema=task_rows.schema())
