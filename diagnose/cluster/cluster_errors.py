"""What cannot be done, as sentences (rules/phrases/cluster.yaml); also what the database says in words of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diagnose.errors import UserError
from diagnose.phrases import phrase

#: What the database's own words mean: signs, the sentence, the hint.
REFUSED = (
    (("Could not set lock", "Conflicting lock"), "store_locked", "wait_for_it"),
    (("No space left", "disk full", "Disk full", "File too large", "Disk quota"), "store_full", "make_room"),
    (("not a valid DuckDB", "Corrupt database", "Could not read enough bytes", "Serialization Error"), "store_broken", "other_store"),
    (("Permission denied", "Cannot open file", "Read-only", "Is a directory"), "store_closed", "check_store"),
)


def trouble(key: str, where: str = "", hint: str = "", **values: object) -> UserError:
    """A complaint whose sentences are in rules/phrases/cluster.yaml."""
    return UserError(phrase(f"cluster.{key}", **values), where, phrase(f"cluster.{hint}", **values) if hint else None, f"cluster.{key}")


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """What the database refuses, as a sentence about this file. Ctrl-C is Ctrl-C: the database tells it in two ways of its own."""
    import duckdb

    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise
    except duckdb.Error as error:
        raise refusal(path, str(error)) from error


def refusal(path: Path, said: str) -> UserError:
    """The complaint that an error of the database means; of one that we do not know in its own words."""
    said = said.partition("\n")[0][:300]
    for signs, key, hint in REFUSED:
        if any(sign in said for sign in signs):
            return trouble(key, where=str(path), hint=hint, why=said)
    return trouble("store_failed", where=str(path), hint="nothing_lost", why=said)
