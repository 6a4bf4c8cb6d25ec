"""Whether the published releases of a framework declare a key at an entry point: rules/declared, recorded by benchmarks/edits."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from diagnose import rule_files
from diagnose.adapters.formats.config_value import name_of
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.records import NamedTuple
from diagnose.release_spans import EVERY, ReleaseSpan
from diagnose.ternary import Truth
from diagnose.units import Version


class Column(NamedTuple):
    """One release at one entry point."""

    number: int
    release: Version
    entry: str


class Record(NamedTuple):
    """What some releases of a framework declare: of each name the columns that have it; `dashes`: whether an option must have them."""

    columns: tuple[Column, ...]
    names: dict[str, frozenset[int]]
    defaults: dict[str, str]
    dashes: dict[str, bool]


@cache
def record(framework: str) -> Record | None:
    """The record of a framework; None where it has none of its own."""
    try:
        data = rule_files.table(f"declared/{framework}")
    except FileNotFoundError:
        return None
    columns = tuple(Column(number, Version(release), entry) for number, (release, entry) in enumerate(data["columns"]))
    names = {name: frozenset(_numbers(row["in"])) for row in data["rows"] for name in row["names"].split()}
    dashes = {name: heading == "dashed" for heading in ("dashed", "underscored") for name in data.get(heading, "").split()}
    return Record(columns, names, data.get("defaults", {}), dashes)


def entry_points(framework: str) -> frozenset[str]:
    """The entry points of a framework that are recorded."""
    found = record(framework)
    return frozenset(column.entry for column in found.columns) if found is not None else frozenset()


class Use(NamedTuple):
    """What tells the release and the entry point of a document: words of entry points, the possible releases of each framework of its
    lineage, and the keys that stand in it (`written`), which rule out what lacks them."""

    entries: tuple[str, ...]
    spans: Mapping[str, ReleaseSpan]
    present: tuple[str, ...]


def written(keys: Iterable[str]) -> tuple[str, ...]:
    """The names of the keys of a document; one that Hydra is told to add keeps its `+`: the release has none of that name."""
    return tuple(f"+{name_of(key)}" if re.match(r"\+[^+]", key) else name_of(key) for key in keys)


def declares(framework: str, key: Key, use: Use) -> Truth:
    """Whether the job's releases and entry point declare a key; unknown where some lack it or nothing is recorded. A framework that
    inherits the key has a say, and so has the one that brings it."""
    said: list[Truth] = []
    for _, columns, having in _asked(framework, key, use):
        declaring = {column.entry for column in columns if column.number in having}
        never = any(column.entry not in declaring for column in columns)  # an entry point that may be in use
        said.append(False if never else True if all(column.number in having for column in columns) else None)
    return False if False in said else True if said and all(said) else None


def is_given_up(framework: str, key: Key, use: Use) -> bool:
    """Whether the newest release that may be in use lacks a key that an older one has."""
    return any(
        not having.issuperset({column.entry: column.number for column in columns}.values())  # columns ascend with the releases
        for _, columns, having in _asked(framework, key, use)
    )


class Begin(NamedTuple):
    """From which release on a program has a key: `version` is the fact of its release, `lacking` the last recorded release without it."""

    version: str
    release: Version
    lacking: Version | None


def beginning(framework: str, key: Key, use: Use) -> Begin | None:
    """The release from which on all that may be in use declare a key which an older one of them lacks. The framework that brings the key
    knows best, and its table (`since`) better than the next recorded release."""
    low = key.releases.low
    for name, columns, having in () if key.struct else reversed([*_asked(framework, key, use)]):
        steps = [step for entry in {column.entry for column in columns} if (step := _last_step(columns, entry, having)) is not None]
        if steps:
            lacking, first = max(steps)
            return Begin(framework_tables.table(name).version, low if low and lacking < low else first, lacking)
    found = record(key.version.partition(".")[2])
    return Begin(key.version, low, None) if low and (found is None or found.columns[0].release < low) else None


def _last_step(columns: list[Column], entry: str, having: frozenset[int]) -> tuple[Version, Version] | None:
    """The last release of an entry point that lacks a key and the next one, which has it as all newer ones have; None without either."""
    own = [column for column in columns if column.entry == entry]  # columns ascend with the releases
    at = next((at for at in reversed(range(len(own))) if own[at].number not in having), len(own))
    return (own[at].release, own[at + 1].release) if at + 1 < len(own) else None


def _asked(framework: str, key: Key, use: Use) -> Iterator[tuple[str, list[Column], frozenset[int]]]:
    """Each framework that has a say in a key, its columns that may be in use, and the numbers of those that declare the key."""
    words = [_words(entry) for entry in use.entries if entry]
    for name in framework_tables.lineage(framework):
        found = record(name)
        if found is not None and (key.key in found.names or key.key in framework_tables.known(name)):
            columns = _consistent(found, _released(_at(found.columns, words), use.spans.get(name, EVERY)), use.present)
            if columns:
                yield name, columns, found.names.get(key.key, frozenset())
        if key.version == framework_tables.table(name).version:
            return


def wants_dashes(framework: str, name: str) -> bool | None:
    """Whether an option is spelled with dashes and never without; None where both are taken or nothing is recorded."""
    records = (record(one) for one in framework_tables.lineage(framework))
    return next((found.dashes[name] for found in records if found is not None and name in found.dashes), None)


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
        after += [column for column in own if span.before is not None and column not in after and span.before <= column.release]
        inside = [column for column in own if column not in before and column not in after]
        if span.low is not None and not any(column.release == span.low for column in inside):
            inside = [*before[-1:], *inside]
        if span.high is not None and not any(column.release == span.high for column in inside) and before:
            inside += after[:1]
        result += inside
    return result


def _consistent(found: Record, columns: list[Column], present: Collection[str]) -> list[Column]:
    """The columns that declare most of the keys that stand there, and fewest of those that are added."""
    names = [(found.names[name.lstrip("+")], name[:1] != "+") for name in present if name.lstrip("+") in found.names]
    counts = {column: sum((column.number in having) is wanted for having, wanted in names) for column in columns}
    return [column for column, count in counts.items() if count == max(counts.values())]
