"""The tables of a database as files that other tools read: Parquet and JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diagnose.cluster.cluster_errors import trouble
from diagnose.cluster.store.schema import TABLES

if TYPE_CHECKING:
    from diagnose.cluster.store.result_store import Store

FORMATS = {"parquet": "format parquet, compression zstd", "jsonl": "format json"}


def export(store: Store, folder: Path) -> list[Path]:
    """Write every table as TABLE.parquet and TABLE.jsonl; each file appears when it is whole. Raises UserError where that cannot be."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in TABLES:
            for ending, how in FORMATS.items():
                path = folder / f"{table}.{ending}"
                beside = folder / f".{table}.{ending}.part"
                list(store.query(f"copy (select * from {table} order by 1, 2) to '{quoted(beside)}' ({how})"))
                written.append(beside.replace(path))
    except OSError as error:
        raise trouble("no_export", where=str(folder), hint="make_room", why=error.strerror or str(error)) from error
    return written


def quoted(path: Path) -> str:
    return str(path).replace("'", "''")
