"""Whether the published releases of a framework declare a key at an entry point: rules/declared, recorded by benchmarks/edits."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from diagnose import rule_files
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.release_spans import EVERY, ReleaseSpan
from diagnose.ternary import Truth
from diagnose.units import Version


class Column(NamedTuple):
    """One release at one entry point."""

    number: int
    release: Version
    entry: str


class Record(NamedTuple):
    """What some releases of a framework declare: of each name the columns that have it."""

    columns: tuple[Column, ...]
    names: dict[str, frozenset[int]]
    defaults: dict[str, str]


@cache
def record(framework: str) -> Record | None:
    """The record of a framework; None where it has none of its own."""
    try:
        data = rule_files.table(f"declared/{framework}")
    except FileNotFoundError:
        return None
    columns = tuple(Column(number, Version(release), entry) for number, (release, entry) in enumerate(data["columns"]))
    names = {name: frozenset(_numbers(row["in"])) for row in data["rows"] for name in row["names"].split()}
    return Record(columns, names, data.get("defaults", {}))


def declares(framework: str, key: Key, entries: Iterable[str], spans: Mapping[str, ReleaseSpan], present: Collection[str]) -> Truth:
    """Whether the job's releases and entry point declare a key: no where the newest of them lacks it, unknown where some lack it or
    nothing is recorded.

    `spans`: the possible releases of each framework of the lineage; `present`: the keys that stand beside it, which rule out what lacks
    them. A framework that inherits the key has a say, and so has the one that brings it.
    """
    words = [_words(entry) for entry in entries if entry]
    said: list[Truth] = []
    for name in framework_tables.lineage(framework):
        found = record(name)
        if found is not None:
            said.append(_declares(found, name, key, words, spans.get(name, EVERY), present))
        if key.version == framework_tables.table(name).version:
            break
    return False if False in said else True if said and all(said) else None


def _declares(found: Record, name: str, key: Key, entries: list[frozenset[str]], span: ReleaseSpan, present: Collection[str]) -> Truth:
    columns = _consistent(found, _released(_at(found.columns, entries), span), present)
    if not columns or (key.key not in found.names and key.key not in framework_tables.known(name)):
        return None
    having = found.names.get(key.key, frozenset())
    newest = {column.entry: column.number for column in columns}  # columns ascend with the releases
    if not having.issuperset(newest.values()):
        return False
    return True if all(column.number in having for column in columns) else None


def default(framework: str, key: Key) -> str | None:
    """The value that the key has in all recorded releases where nothing sets it; None where they differ or nothing is recorded."""
    records = (record(name) for name in framework_tables.lineage(framework))
    return next((found.defaults[key.key] for found in records if found is not None and key.key in found.defaults), None)


def _numbers(text: str) -> Iterator[int]:
    for part in text.split():
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


@cache
def _words(entry: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", entry.lower()))


def _at(columns: tuple[Column, ...], entries: list[frozenset[str]]) -> list[Column]:
    """The columns of the entry point that shares most words; all where it is none of them or unknown."""
    shared = {column: len(words) for column in columns for words in [_words(column.entry)] if any(words <= entry for entry in entries)}
    return [column for column, count in shared.items() if count == max(shared.values())] or list(columns)


def _released(columns: list[Column], span: ReleaseSpan) -> list[Column]:
    """The columns of the possible releases; of one between two recorded ones both, of one before all of them none."""
    result: list[Column] = []
    for entry in dict.fromkeys(column.entry for column in columns):
        own = [column for column in columns if column.entry == entry]
        before = [column for column in own if span.low is not None and column.release < span.low]
        after = [column for column in own if span.high is not None and span.high < column.release]
        inside = [column for column in own if column not in before and column not in after]
        if span.low is not None and not any(column.release == span.low for column in inside):
            inside = [*before[-1:], *inside]
        if span.high is not None and not any(column.release == span.high for column in inside) and before:
            inside += after[:1]
        result += inside
    return result


def _consistent(found: Record, columns: list[Column], present: Collection[str]) -> list[Column]:
    """The columns that declare most of the keys that stand there."""
    names = [found.names[name] for name in present if name in found.names]
    counts = {column: sum(column.number in having for having in names) for column in columns}
    return [column for column, count in counts.items() if count == max(counts.values())]
