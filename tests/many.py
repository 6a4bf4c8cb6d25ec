"""Folders of many small jobs, and what a database says of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from logs_of_torch import LOG

from diagnose.cluster.run import triage_run as story
from diagnose.cluster.store.result_store import Store

QUIET = "".join(f"step {step} loss 1.2{step}\n" for step in range(20))

#: Columns that differ from run to run: which run, when, and how long it took.
PASSING = {"run", "first_run", "last_run", "cpu", "seen", "stamp"}


def failure(number: int) -> str:
    """A log that failed of memory; those of different numbers are different failures."""
    return QUIET + LOG.replace("4.64 GiB", f"{number + 2}.00 GiB")


def lay(top: Path, jobs: int, distinct: int = 3) -> Path:
    """A folder of jobs, each in a folder of its own: every other one failed, in so many different ways; some have a config."""
    for number in range(jobs):
        folder = top / f"job{number:03d}"
        folder.mkdir(parents=True)
        (folder / "error.log").write_text(failure(number // 2 % distinct) if number % 2 else QUIET)
        if number % 5 == 1:
            (folder / "train.yaml").write_text("stage: sft\nmodel_name_or_path: Qwen/Qwen2-7B\ncutoff_len: 8192\n")
        os.utime(folder / "error.log", (1_700_000_000 + number, 1_700_000_000 + number))
    return top


def told(store: Store | Path) -> dict[str, list[tuple[Any, ...]]]:
    """All tables of results, in order, without what differs from run to run."""
    if isinstance(store, Path):
        opened = Store.open(store)
        try:
            return told(opened)
        finally:
            opened.close()
    found = {}
    for table in ("jobs", "events", "diagnoses", "causes", "remedies", "groups", "errors"):
        columns = [
            name for (name,) in store.query("select column_name from information_schema.columns where table_name = ? order by 1", [table])
        ]
        listed = ", ".join(f'"{column}"' for column in columns if column not in PASSING)
        found[table] = sorted(store.query(f"select {listed} from {table}"), key=repr)
    return found


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a query of a database says."""
    store = Store.open(path)
    try:
        return list(store.query(sql))
    finally:
        store.close()


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that stay the same, whoever edits them while the tests run."""
    monkeypatch.setattr(story, "with_basis", lambda asked: replace(asked, basis="rules"))
