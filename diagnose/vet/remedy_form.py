"""Checks the form of a remedy: knob, price, exceptions, edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diagnose import facts, rule_files, vocabulary
from diagnose.adapters.schema.framework_tables import lineage
from diagnose.vet.fault import Fault
from diagnose.vet.paper import Paper


def check(paper: Paper) -> Iterator[Fault]:
    """The faults that only a remedy can have."""
    if paper.room != "remedies":
        return
    yield from knob(paper)
    yield from targets(paper)
    yield from price(paper)
    yield from saving(paper)
    yield from host(paper)
    yield from edits(paper)


def knob(paper: Paper) -> Iterator[Fault]:
    """It changes an existing knob (or fact of a script), or tells what to do instead."""
    turns = paper.data["turns"]
    if turns == "none":
        if "do" not in paper.data:
            yield paper.fault(("turns",), "nothing_to_do")
    elif facts.declared(turns) is None:
        yield paper.fault(("turns",), "no_such_knob", name=turns)
    for name in [*paper.data.get("with", {}), *paper.data.get("asks", {})]:
        if facts.declared(name) is None:
            yield paper.fault(("with",), "no_such_knob", name=name)


def targets(paper: Paper) -> Iterator[Fault]:
    """The values to try are values of that knob."""
    turns, to = paper.data["turns"], paper.data.get("to", ())
    entry = facts.declared(turns)
    if entry is None or isinstance(to, Mapping) or not entry.words:
        return
    for index, word in enumerate(to):
        if word not in entry.words:
            yield paper.fault(("to", index), "unknown_word", word=str(word), known=", ".join(entry.words))


def price(paper: Paper) -> Iterator[Fault]:
    """Results, speed and effort are words of the vocabulary."""
    words: Mapping[str, Sequence[str]] = rule_files.table("vocabulary")["price"]
    for field, allowed in words.items():
        word = paper.data["price"].get(field) if isinstance(paper.data["price"], Mapping) else None
        if word not in allowed:
            yield paper.fault(("price", field), "unknown_word", word=str(word), known=", ".join(allowed))


def saving(paper: Paper) -> Iterator[Fault]:
    """The saving is a difference of ledgers, a named fact, or unknown; numbers are not allowed."""
    saves = paper.data.get("saves", "unknown")
    name = saves.get("at_most") if isinstance(saves, Mapping) else saves
    if name not in ("ledger", "unknown") and (facts.declared(str(name)) is None):
        yield paper.fault(("saves",), "no_such_knob", name=str(name))


def host(paper: Paper) -> Iterator[Fault]:
    """The host memory that it takes is a difference of ledgers, a named fact, or unknown."""
    host_memory = str(paper.data["price"].get("host_memory", "unknown")) if isinstance(paper.data["price"], Mapping) else "unknown"
    if host_memory not in ("ledger", "unknown") and facts.declared(host_memory) is None:
        yield paper.fault(("price", "host_memory"), "no_such_knob", name=host_memory)


def edits(paper: Paper) -> Iterator[Fault]:
    """Frameworks named by examples exist and have the knob."""
    turns, tables = paper.data["turns"], rule_files.table("frameworks")
    for index, example in enumerate(paper.data.get("examples", ())):
        framework = example.get("framework", "")
        if framework == "shell":
            continue
        if framework not in tables:
            yield paper.fault(("examples", index), "no_such_framework", name=framework)
        elif turns != "none" and not any(mentions(tables[table], turns) for table in lineage(framework)):
            yield paper.fault(("examples", index), "knob_not_there", name=turns, framework=framework)


def mentions(table: object, knob: str) -> bool:
    """Whether a table mentions this knob at any depth."""
    if isinstance(table, Mapping):
        return knob in table or any(mentions(part, knob) for part in table.values())
    if isinstance(table, list):
        return any(mentions(part, knob) for part in table)
    return table == knob


def used(papers: Sequence[Paper]) -> Iterator[Fault]:
    """Every remedy is listed by a cause, has conditions of its own, or is popular advice."""
    if not any(paper.room == "causes" for paper in papers):
        return
    named = {word for paper in papers if paper.room != "remedies" for word in paper.data.get("remedies", ())}
    named |= set(vocabulary.releases().values())
    for paper in papers:
        brought_up = "where" in paper.data or paper.data.get("popular") == "enabled"
        if paper.room == "remedies" and paper.data["remedy"] not in named and not brought_up:
            yield paper.fault(("remedy",), "remedy_unused", word=paper.data["remedy"])
