"""Scores the memory ledger against measured peaks: python benchmarks/memory/score.py ROWS... [--json FILE]

ROWS are files of measured rows (README.md says their form), or folders of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memory import tally
from memory.predict import predict
from memory.rows import as_its_source_says
from memory.tally import Scored


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, or of every YAML file of a folder. What is no row is said and skipped."""
    if path.is_dir():
        for each in sorted(path.glob("*.yaml")):
            yield from rows_of(each)
        return
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as trouble:
        complain(f"{path}: cannot be read: {str(trouble).splitlines()[0]}")
        return
    if not isinstance(found, list):
        complain(f"{path}: not a list of rows")
        return
    for number, row in enumerate(found, start=1):
        if isinstance(row, dict):
            yield row
        else:
            complain(f"{path}: entry {number} is no row")


def complain(text: str) -> None:
    print(text, file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    asked = argparse.ArgumentParser(description="scores the memory ledger against measured rows")
    asked.add_argument("rows", nargs="+", type=Path, metavar="ROWS", help="files or folders of measured rows")
    asked.add_argument("--json", type=Path, metavar="FILE", help="write the scores there")
    asked.add_argument("--worst", type=int, default=0, metavar="N", help="show the rows with the largest errors")
    asked.add_argument("--only", metavar="WORD", help="only rows of this kind, grade or source")
    asked.add_argument("--terms", metavar="ID", help="show all moments and terms of this row")
    asked.add_argument("--as-written", action="store_true", help="also rows that the files of their own source contradict (words.MISREAD)")
    options = asked.parse_args(arguments)
    written = [row for path in options.rows for row in rows_of(path)]
    read = written if options.as_written else [as_its_source_says(row) for row in written]
    scored = [Scored(row, predict(row)) for row in read]
    if options.only:
        scored = [one for one in scored if options.only in (one.kind, one.grade, one.source)]
    if options.json:
        try:
            options.json.write_text(json.dumps(tally.as_json(scored), indent=1) + "\n", encoding="utf-8")
        except OSError as trouble:
            complain(f"{options.json}: cannot be written: {trouble.strerror}")
            return 2
    if options.terms:
        if all(one.id != options.terms for one in scored):
            complain(f"no row {options.terms}")
            return 2
        print("\n".join(tally.every_term(one) for one in scored if one.id == options.terms))
        return 0
    print(tally.text(scored))
    if count := sum(one is not other for one, other in zip(written, read, strict=True)):
        print(f"\n{count} rows are read as the files of their own source have them; --as-written reads them as they stand.")
    if options.worst:
        print(f"\n{tally.worst(scored, options.worst)}")
    return 0


def quietly(arguments: list[str] | None = None, main: Callable[[list[str] | None], int] = main) -> int:
    """The same where the reader may stop early: score.py ROWS | head."""
    try:
        status = main(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to say when Python flushes at its end
        return 0
    return status


if __name__ == "__main__":
    sys.exit(quietly())
