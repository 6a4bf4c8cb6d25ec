"""A DuckDB file: creation, migration, transactions, export as Parquet and JSON lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from diagnose.cluster.cluster_errors import cluster_error, database_errors, reason, require_unicode
from diagnose.cluster.store import result_tables
from diagnose.cluster.store.result_tables import Row
from diagnose.errors import pip
from diagnose.version import __version__
from diagnose.whole_file import draft

if TYPE_CHECKING:
    import duckdb  # an optional library, imported where it is used

#: The memory that the database may use; more goes to temporary files beside it.
MEMORY = "128MB"

#: The largest value of each integer type; what is beyond it is stored as it.
LARGEST: Mapping[str, int] = {"BIGINT": (1 << 63) - 1, "INTEGER": (1 << 31) - 1}

#: The suffixes of exported tables, and the options of `copy` that write them.
EXPORT_FORMATS: Mapping[str, str] = {"parquet": "format parquet, compression zstd", "jsonl": "format json"}


class Database:
    """An open file with the tables of result_tables.py. Only the thread that opened it may call `query`."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self._connection = connection
        self._column_types: dict[str, dict[str, str]] = {}  # by table

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the database of a file, creating or migrating it. Raises UserError."""
        try:
            import duckdb  # noqa: F401 - the error comes before a file is created
        except ImportError as error:
            raise cluster_error("no_duckdb", hint="install_triage", pip=pip()) from error
        require_unicode(path)
        if not path.exists() or (path.is_file() and not path.stat().st_size):
            cls._create(path)
        store = cls(path, connect(path))
        try:
            with database_errors(path):
                store._migrate()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def _create(cls, path: Path) -> None:
        """Create an empty database under a temporary name and rename it, so that no partial file is left."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            store = cls(temporary, connect(temporary, path))
            try:
                with database_errors(path):
                    store._migrate()
            finally:
                store.close()
            if path.exists() and path.stat().st_size:  # another run was quicker
                return
            temporary.replace(path)
        except OSError as error:
            raise cluster_error("store_closed", where=str(path), hint="check_store", why=error.strerror or str(error)) from error
        finally:
            for leftover in (temporary, temporary.with_name(f"{temporary.name}.wal")):
                leftover.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; its content is durable."""
        self._connection.close()

    def query(self, sql: str, params: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, fetched in blocks."""
        with database_errors(self.path):
            cursor = self._connection.execute(sql, list(params))
            while rows := cursor.fetchmany(1024):
                yield from rows

    def export_tables(self, folder: Path) -> list[Path]:
        """Write every table as TABLE.parquet and TABLE.jsonl, each atomically. Raises UserError."""
        import duckdb

        paths = []
        require_unicode(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for table in result_tables.TABLES:
                for suffix, options in EXPORT_FORMATS.items():
                    with draft(folder / f"{table}.{suffix}") as beside:
                        quoted = str(beside).replace("'", "''")
                        self._connection.execute(f"copy (select * from {table} order by 1, 2) to '{quoted}' ({options})")
                    paths.append(folder / f"{table}.{suffix}")
        except (OSError, duckdb.IOException) as error:  # of a table's file: the database is only read
            raise cluster_error("no_export", where=str(folder), hint="make_room", why=reason(error)) from error
        return paths

    def _migrate(self) -> None:
        current = self.version()
        if current > result_tables.VERSION:
            raise cluster_error("newer_store", where=str(self.path), hint="newer_tool", version=current, ours=result_tables.VERSION)
        if current == 0 and self._first_row("select count(*) from information_schema.tables where table_schema = 'main'")[0]:
            raise cluster_error("foreign_store", where=str(self.path), hint="other_store")
        for version in range(current + 1, result_tables.VERSION + 1):
            with self._transaction():
                for statement in result_tables.MIGRATIONS[version]:
                    self._connection.execute(statement)
                self._execute("insert or replace into meta values ('schema', ?), ('tool', ?)", str(version), __version__)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction: all or nothing."""
        import duckdb

        self._connection.begin()
        try:
            yield
            self._connection.commit()
        except BaseException:
            with suppress(duckdb.Error):  # a commit that failed has ended the transaction
                self._connection.rollback()
            raise

    def version(self) -> int:
        """The version of the tables; 0 for an empty file."""
        if not self._first_row("select count(*) from information_schema.tables where table_name = 'meta'")[0]:
            return 0
        row = self._connection.execute("select value from meta where key = 'schema'").fetchone()
        return int(row[0]) if row else 0

    def _first_row(self, sql: str) -> tuple[Any, ...]:
        """The row of a query that always has one."""
        row: tuple[object, ...] = self._execute(sql).fetchall()[0]
        return row

    def _execute(self, sql: str, *params: object) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(sql, list(params))

    def _existing(self, column: str, table: str, names: list[str]) -> set[str]:
        """The given names that occur in a column."""
        rows = self._execute(f"select {column} from (from {table}) where {column} in (select unnest(?::varchar[]))", names)
        return {name for (name,) in rows.fetchall()}

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows with a single statement."""
        if not rows:
            return
        types = self._types(table)
        columns = list(rows[0])
        names = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join(f"unnest(?::{types[column]}[])" for column in columns)
        cells = ([storable(row[column], types[column]) for row in rows] for column in columns)
        self._execute(f"insert into {table} ({names}) select {values}", *cells)

    def _types(self, table: str) -> dict[str, str]:
        if table not in self._column_types:
            rows = self._execute("select column_name, data_type from information_schema.columns where table_name = ?", table)
            self._column_types[table] = dict(rows.fetchall())
        return self._column_types[table]


def storable(value: object, column_type: str) -> object:
    """The value as a column of this type takes it: numbers within its range, text that is valid Unicode without NUL."""
    if isinstance(value, str):
        return value if value.isascii() and "\0" not in value else value.replace("\0", "").encode(errors="replace").decode()
    if isinstance(value, list):
        return [storable(item, column_type) for item in value]
    if not isinstance(value, (int, float)):
        return value
    if column_type == "DOUBLE":  # an integer of more than 128 bits is not even converted
        return float(max(-sys.float_info.max, min(value, sys.float_info.max))) if isinstance(value, int) else value
    largest = LARGEST.get(column_type)
    return value if largest is None else int(max(-largest, min(value, largest)))


def connect(path: Path, display_path: Path | None = None) -> duckdb.DuckDBPyConnection:
    """An open DuckDB connection. Raises UserError if the file is no database; `display_path`: its name in errors."""
    import duckdb

    with database_errors(display_path or path):
        return duckdb.connect(str(path), config={"memory_limit": MEMORY, "threads": 2, "autoinstall_known_extensions": False})
