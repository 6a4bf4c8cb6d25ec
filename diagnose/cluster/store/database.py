"""A database file of DuckDB: opened or made whole, brought up to date, written in transactions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from diagnose.cluster.cluster_errors import refusals, trouble
from diagnose.cluster.store import schema
from diagnose.cluster.store.result_rows import Row
from diagnose.version import __version__

if TYPE_CHECKING:
    import duckdb

#: Bytes of memory that the database may use; more goes to temporary files beside it.
MEMORY = "128MB"


class Database:
    """An open file with the tables of schema.py. `query` is for the thread that opened it."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self._connection = connection
        self._known_types: dict[str, dict[str, str]] = {}

    @classmethod
    def open(cls, path: Path) -> Self:
        """The database in a file, made or brought up to date. Raises UserError where that cannot be."""
        try:
            import duckdb  # noqa: F401 - told at once where it is missing
        except ImportError as error:
            raise trouble("no_duckdb", hint="install_triage") from error
        if not path.exists() or (path.is_file() and not path.stat().st_size):
            cls._make(path)
        store = cls(path, connected(path))
        try:
            with refusals(path):
                store._migrate()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def _make(cls, path: Path) -> None:
        """A database without rows. It is made beside and then given its name, so that there is a whole one or none."""
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            store = cls(beside, connected(beside, path))
            try:
                with refusals(path):
                    store._migrate()
            finally:
                store.close()
            if path.exists() and path.stat().st_size:  # another run was quicker
                return
            beside.replace(path)
        except OSError as error:
            raise trouble("store_closed", where=str(path), hint="check_store", why=error.strerror or str(error)) from error
        finally:
            for left in (beside, beside.with_name(f"{beside.name}.wal")):
                left.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; what was stored is in it."""
        self._connection.close()

    def query(self, sql: str, params: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, a few at a time."""
        with refusals(self.path):
            found = self._connection.execute(sql, list(params))
            while rows := found.fetchmany(1024):
                yield from rows

    def _migrate(self) -> None:
        held = self.version()
        if held > schema.VERSION:
            raise trouble("newer_store", where=str(self.path), hint="newer_tool", version=held, ours=schema.VERSION)
        if held == 0 and self._one("select count(*) from information_schema.tables where table_schema = 'main'")[0]:
            raise trouble("foreign_store", where=str(self.path), hint="other_store")
        for version in range(held + 1, schema.VERSION + 1):
            with self._whole():
                for statement in schema.MIGRATIONS[version]:
                    self._connection.execute(statement)
                self._execute("insert or replace into meta values ('schema', ?), ('tool', ?)", str(version), __version__)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A transaction: all of it or nothing."""
        import duckdb

        self._connection.begin()
        try:
            yield
            self._connection.commit()
        except BaseException:
            with suppress(duckdb.Error):  # one that failed to commit is over already
                self._connection.rollback()
            raise

    def version(self) -> int:
        """The version of the tables; 0 where there are none."""
        if not self._one("select count(*) from information_schema.tables where table_name = 'meta'")[0]:
            return 0
        found = self._connection.execute("select value from meta where key = 'schema'").fetchone()
        return int(found[0]) if found else 0

    def _one(self, sql: str) -> tuple[Any, ...]:
        found: tuple[Any, ...] | None = self._execute(sql).fetchone()
        assert found is not None
        return found

    def _execute(self, sql: str, *params: object) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(sql, list(params))

    def _names(self, column: str, table: str, names: list[str]) -> set[str]:
        """Those of some names that a table has."""
        rows = self._execute(f"select {column} from (from {table}) where {column} in (select unnest(?::varchar[]))", names)
        return {name for (name,) in rows.fetchall()}

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows by columns: one statement whatever their number."""
        if not rows:
            return
        types = self._types(table)
        columns = list(rows[0])
        listed = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join(f"unnest(?::{types[column]}[])" for column in columns)
        self._execute(f"insert into {table} ({listed}) select {values}", *([row[column] for row in rows] for column in columns))

    def _types(self, table: str) -> dict[str, str]:
        if table not in self._known_types:
            rows = self._execute("select column_name, data_type from information_schema.columns where table_name = ?", table)
            self._known_types[table] = dict(rows.fetchall())
        return self._known_types[table]


def connected(path: Path, called: Path | None = None) -> duckdb.DuckDBPyConnection:
    """An open file. Raises UserError where it is none of ours; `called`: what the complaint calls it."""
    import duckdb

    with refusals(called or path):
        return duckdb.connect(str(path), config={"memory_limit": MEMORY, "threads": 2, "autoinstall_known_extensions": False})
