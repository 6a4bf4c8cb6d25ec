"""The part of Ray that a triage uses, in this process: the same calls, held against Ray's own signatures, on Arrow tables."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def install(ray: Any, patch: pytest.MonkeyPatch) -> Any:
    """Put it in the place of a Ray that is installed, and return it."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import ray.data

    def as_of(real: Callable[..., Any], *words: Any, **named: Any) -> None:
        """What Ray itself would refuse is refused, and what it would only hand on to Arrow."""
        signature = inspect.signature(real)
        signature.bind(*words, **named)
        assert named.keys() <= signature.parameters.keys(), named

    class Dataset:
        def __init__(self, rows: list[dict[str, Any]], steps: tuple[tuple[Callable[[pa.Table], pa.Table], int], ...] = ()) -> None:
            self.rows, self.steps = rows, steps

        def map_batches(self, reader: type, *, fn_constructor_args: tuple[Any, ...], batch_size: int, **named: Any) -> Dataset:
            as_of(ray.data.Dataset.map_batches, self, reader, fn_constructor_args=fn_constructor_args, batch_size=batch_size, **named)
            shared = [each if isinstance(each, Actor) else pickle.loads(pickle.dumps(each)) for each in fn_constructor_args]
            return Dataset(self.rows, (*self.steps, (reader(*shared), batch_size)))

        def tables(self) -> Iterator[pa.Table]:
            for first in range(0, len(self.rows), size := self.steps[0][1] if self.steps else len(self.rows) or 1):
                table = pa.Table.from_pylist(self.rows[first : first + size])
                for step, _ in self.steps:
                    table = step(table)
                yield table

        def iter_batches(self, **named: Any) -> Iterator[pa.Table]:
            as_of(ray.data.Dataset.iter_batches, self, **named)
            return self.tables()

        def write_parquet(self, path: str, **named: Any) -> None:
            as_of(ray.data.Dataset.write_parquet, self, path, **named)
            Path(path).mkdir(parents=True)
            for number, table in enumerate(self.tables()):
                pq.write_table(table, Path(path) / f"{number}.parquet")

    def read_parquet(path: str, **named: Any) -> Dataset:
        as_of(ray.data.read_parquet, path, **named)
        return Dataset([row for file in sorted(Path(path).rglob("*.parquet")) for row in pq.read_table(file).to_pylist()])

    class Actor:
        def __init__(self, made: Any) -> None:
            self._made = made

        def __getattr__(self, name: str) -> Any:
            return SimpleNamespace(remote=getattr(self._made, name))

    here, data = ModuleType("ray"), ModuleType("ray.data")
    vars(data).update(
        from_items=lambda items: Dataset(list(items)), read_parquet=read_parquet, DataContext=SimpleNamespace(get_current=SimpleNamespace),
        ActorPoolStrategy=ray.data.ActorPoolStrategy, SaveMode=ray.data.SaveMode,
    )  # fmt: skip
    vars(here).update(
        data=data, is_initialized=lambda: True, cluster_resources=lambda: {"CPU": 1.0}, get=lambda value: value,
        remote=lambda **_: lambda kind: SimpleNamespace(remote=lambda *words: Actor(kind(*words))),
    )  # fmt: skip
    patch.setitem(__import__("sys").modules, "ray", here)
    patch.setitem(__import__("sys").modules, "ray.data", data)
    return here
