"""Runs all checks on rule files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from diagnose import rule_files
from diagnose.records import NamedTuple
from diagnose.vet import examples, frameworks, language, links, meaning, remedy_form, rule_form, tables
from diagnose.vet.fault import Fault
from diagnose.vet.paper import Paper, papers

#: What one rule can have wrong. The first decides whether the others can read it.
ONE: tuple[Callable[[Paper], Iterator[Fault]], ...] = (meaning.check, language.check, links.check, examples.check, remedy_form.check)
#: What only all rules together can have wrong.
TOGETHER: tuple[Callable[[Sequence[Paper]], Iterator[Fault]], ...] = (
    meaning.producible,
    links.together,
    examples.neighbours,
    remedy_form.used,
)


def check(folders: Iterable[Path] = ()) -> list[Fault]:
    """All faults of the shipped rules and of those in the user's folders, in the order of the files."""
    folders = list(folders)
    misread = [*_traits(), *(fault for folder in folders for fault in frameworks.check(folder))]
    if misread:  # without traits no ledger can be made, which examples are tried on
        return misread
    parts = [_ours(), *map(_apart, folders)]
    faults = [*_tables(), *(fault for part in parts for fault in part.faults)]
    readable = [paper for part in parts for paper in part.readable]
    if not any(part.unreadable for part in parts):  # what points at an unreadable rule would be blamed for it
        faults += (fault for check_all in TOGETHER for fault in check_all(readable))
    return sorted(faults, key=lambda fault: (fault.file, fault.line, fault.message.en))


class _Part(NamedTuple):
    """The result for one folder: faults of individual rules, the readable rules, and the number of unreadable ones."""

    faults: tuple[Fault, ...]
    readable: tuple[Paper, ...]
    unreadable: int


@cache
def _traits() -> tuple[Fault, ...]:
    return tuple(frameworks.check(rule_files.home() / "rules"))


@cache
def _ours() -> _Part:
    return _apart(rule_files.home() / "rules")


@cache
def _tables() -> tuple[Fault, ...]:
    return tuple(tables.check(rule_files.home() / "rules"))


def _apart(folder: Path) -> _Part:
    items = list(papers(folder))
    faults = [item for item in items if isinstance(item, Fault)]
    written = [item for item in items if isinstance(item, Paper)]
    readable = [paper for paper in written if rule_form.usable(paper)]
    faults += (fault for paper in written for fault in rule_form.check(paper))
    faults += (fault for paper in readable for check_one in ONE for fault in check_one(paper))
    return _Part(tuple(faults), tuple(readable), len(items) - len(readable))
