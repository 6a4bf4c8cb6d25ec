"""Which public project a text names, and so what the program does (rules/projects.yaml): the facts `run.project` and `run.task`.

People call the project by its name, or its folder stands in a path, an address or an import. A list of installed packages names many
and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from diagnose import rule_files
from diagnose.facts import Fact
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple

if TYPE_CHECKING:
    from diagnose.parse.text.lines import Page

#: How much of a text is looked at, at its start and at its end.
_LOOK = 16 << 10

#: What does not count in a name, and what is left of one without it.
_DROPPED = b"-_."
_WORD = lazy_compile(rb"[a-z0-9+]+")

#: What stands behind a package in a list of them: its release. Such a list names what is installed, not what runs.
_RELEASE = lazy_compile(rb"[ \t]*(?:[=~<>!@]=?=?|:|[ \t]|\()[ \t]*v?\d+\.\d")
_IMPORTED = (b"import ", b"from ")

#: A number of something, of which a slash says per what: `922 neighs/atom`.
_PER = lazy_compile(rb"\d[\d.,]{0,12}[ \t]?[A-Za-z%]{1,16}/$")

#: More names than these are a list of what exists or is installed, and say nothing of what runs.
_MOST = 40

#: Letters of a name of several words below which they may stand side by side by chance.
_LONG = 10

#: How much a name weighs that stands in a path, an address or an import, beside one in running text.
_PLACED = 3


class Named(NamedTuple):
    """A project that a text names: what it does, its name as written there, and where that stands."""

    task: str
    name: str
    offset: int


def facts(pages: Sequence[Page]) -> Iterator[Fact]:
    """The project that the first log or the page names most."""
    named = find(pages[0].excerpt.raw) if pages else None
    if named is not None:
        witness = pages[0].witness(pages[0].excerpt.offset + named.offset)
        yield Fact("run.project", named.name, "log", witness)
        yield Fact("run.task", named.task, "log", witness)


def find(raw: bytes) -> Named | None:
    """The project named most; of several that are named as often the first."""
    weights: dict[str, int] = {}
    firsts: dict[str, Named] = {}
    for start, end in _parts(len(raw)):
        for name, task, offset, weight in _names(raw, start, end):
            weights[task] = weights.get(task, 0) + weight
            known = firsts.get(task)
            if known is None or (offset, -len(name)) < (known.offset, -len(known.name)):  # the names come in no order
                firsts[task] = Named(task, name, offset)
    most = min(weights, key=lambda task: (-weights[task], firsts[task].offset), default=None)
    return firsts[most] if most is not None else None


def _parts(length: int) -> list[tuple[int, int]]:
    return [(0, length)] if length <= 2 * _LOOK else [(0, _LOOK), (length - _LOOK, length)]


def _names(raw: bytes, start: int, end: int) -> Iterator[tuple[str, str, int, int]]:
    """Name, task, offset and weight of each project that is named between two offsets, unless they are too many."""
    anywhere, placed, stems, spaced = _table()
    part = raw[start:end]
    plain = part.lower().translate(None, _DROPPED)
    words = set(_WORD.findall(plain))
    found = {word: task for word in words if (task := anywhere.get(word) or placed.get(word))}
    for name in (name for word in words & spaced.keys() for name in spaced[word] if name in plain):
        found.setdefault(name.replace(b" ", b""), anywhere[name.replace(b" ", b"")])
    for stem, task in stems.items():
        if stem in plain:
            found |= {word: task for word in words if stem in word and word not in found}
    if found.keys() <= placed.keys():  # a part of a dotted name, as in simtk.openmm.OpenMMException
        found |= {word: anywhere[word] for word in _WORD.findall(part.lower()) if word in anywhere}
    for word, task in found.items() if len(found) <= _MOST else ():
        spelled = b"[-_. ]*".join(re.escape(bytes([letter])) for letter in word)
        for match in re.finditer(rb"(?<![A-Za-z0-9])" + spelled + rb"(?![A-Za-z0-9])", part, re.IGNORECASE):
            first, last = start + match.start(), start + match.end()
            is_placed = raw[max(start, first - 7) : first].endswith((b"/", b"\\", *_IMPORTED)) or raw[last : last + 1] in (b"/", b"\\")
            if raw[max(start, first - 5) : first].endswith((b"envs/", b"envs\\")):
                continue  # an environment is called as its owner likes
            if _PER.search(raw, max(start, first - 32), first):
                continue
            if (is_placed or word not in placed) and not _RELEASE.match(raw, last):
                yield match.group().decode(), task, first, _PLACED if is_placed else 1


class _Table(NamedTuple):
    """Tasks by name as it is compared: of names that say it anywhere, of those that do in a path, an address or an import alone, and of
    parts of names; and the names of several words, with blanks between them, by their first."""

    anywhere: Mapping[bytes, str]
    placed: Mapping[bytes, str]
    stems: Mapping[bytes, str]
    spaced: Mapping[bytes, list[bytes]]


@cache
def _table() -> _Table:
    kept = rule_files.kept("parse.projects", _compiled, "projects")
    anywhere, placed, stems = (
        {name: task for task, names in kept[kind].items() for name in names.encode().split()} for kind in ("names", "placed", "stems")
    )
    spaced: dict[bytes, list[bytes]] = {}
    for name in kept["spaced"].encode().split(b"\n"):
        spaced.setdefault(name.partition(b" ")[0], []).append(name)
    return _Table(anywhere, placed, stems, spaced)


def _compiled() -> dict[str, Any]:
    """By where they count the names of each task as they are compared, in one text; and those of several words as people write them."""
    rows = rule_files.table("projects").items()
    kinds = {kind: {task: _compared(" ".join(row.get(kind, ()))) for task, row in rows} for kind in ("names", "placed", "stems")}
    words = (re.split("[-_]", name.lower().replace(".", "")) for _, row in rows for name in row.get("names", ()))
    several = {" ".join(name) for name in words if len(name) > 1 and all(map(len, name)) and sum(map(len, name)) >= _LONG}
    return {**kinds, "spaced": "\n".join(sorted(several))}


def _compared(name: str) -> str:
    return name.encode().translate(None, _DROPPED).lower().decode()
