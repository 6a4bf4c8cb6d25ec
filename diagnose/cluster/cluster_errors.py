"""Errors of triage as sentences in both languages, those of the database (DuckDB) among them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diagnose.errors import UserError
from diagnose.phrases import Text, phrase

#: Parts of DuckDB's messages, and the keys of the sentence and of the hint that such a message becomes.
DATABASE_ERRORS = (
    (("Could not set lock", "Conflicting lock"), "store_locked", "wait_for_it"),
    (("No space left", "disk full", "Disk full", "File too large", "Disk quota"), "store_full", "make_room"),
    (("not a valid DuckDB", "Corrupt database", "Could not read enough bytes", "Serialization Error"), "store_broken", "other_store"),
    (("Permission denied", "Cannot open file", "Read-only", "Is a directory"), "store_closed", "check_store"),
)


def cluster_error(key: str, where: str = "", hint: str = "", **values: object) -> UserError:
    """An error whose sentences are in rules/phrases/cluster.yaml."""
    return UserError(phrase(f"cluster.{key}", **values), where, phrase(f"cluster.{hint}", **values) if hint else None, f"cluster.{key}")


def finding_error(key: str, where: str, hint: str, **values: object) -> UserError:
    """An error whose sentences are in rules/phrases/finding.yaml; its key is the `fault` of an UnreadableJob."""
    return UserError(phrase(f"finding.{key}", **values), where, phrase(f"finding.{hint}", **values), key)


def error_text(error: UserError) -> Text:
    """An error with its place and hint, in both languages."""
    return Text(error.to("en"), error.to("zh"))


def require_unicode(path: Path) -> None:
    """Refuse a path that DuckDB cannot be given, which takes names as UTF-8 alone. Raises UserError."""
    try:
        os.path.abspath(path).encode()  # noqa: PTH100
    except UnicodeEncodeError as error:
        raise cluster_error("no_unicode", where=str(path), hint="other_name") from error


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Turn DuckDB's errors into a UserError about this file, and its two forms of an interrupt into KeyboardInterrupt."""
    import duckdb  # an optional library

    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise
    except duckdb.Error as error:
        raise database_error(path, reason(error)) from error


def reason(error: Exception) -> str:
    """Why a write or a query failed: the system's words where DuckDB passes on its error number, else the first line of its message."""
    number = getattr(error, "errno", None) or ((match := re.search(r'"errno":"(\d+)"', str(error))) and match[1])
    return os.strerror(int(number)) if number else str(error).partition("\n")[0][:300]


def database_error(path: Path, message: str) -> UserError:
    """The error that a message of DuckDB means; an unknown message is quoted."""
    for signs, key, hint in DATABASE_ERRORS:
        if any(sign in message for sign in signs):
            return cluster_error(key, where=str(path), hint=hint, why=message)
    return cluster_error("store_failed", where=str(path), hint="nothing_lost", why=message)


def is_about_file(error: Exception) -> bool:
    """Whether an error of a write is about the database's file (full, locked, broken) and not about a value that was to be written."""
    return isinstance(error, UserError) and error.key != "cluster.store_failed"
