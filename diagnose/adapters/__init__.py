"""Configs, and commands that the log echoes, to knobs with their keys, and to documents that edits can be made in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from diagnose import catalogue
from diagnose.adapters import named, parts, tables
from diagnose.adapters.defaults import Setting, defaults, derived, disagreements, stock
from diagnose.adapters.leaf import Unreadable
from diagnose.adapters.opened import Opened, opened
from diagnose.adapters.parts import Started
from diagnose.adapters.run import cut_off, run_facts, script_facts
from diagnose.adapters.settings import ConfigSource, Document, Settings
from diagnose.adapters.tables import Span
from diagnose.adapters.translate import Part, Translation, name_of, translate
from diagnose.catalogue import Model
from diagnose.facts import Fact, FactBook, Witness
from diagnose.parse.reading import Reading

__all__ = ["read"]


def read(configs: Sequence[ConfigSource], reading: Reading, book: FactBook) -> Settings:
    """All that the configs say, the keys that say it, and what the frameworks presume where they are silent.

    `book` holds what is given and logged already; it is not changed. Commands echoed in the log are read as well, with the
    log as their origin. Nothing in a config raises: what cannot be used is a notice.
    """
    found = [opened(source) for source in configs]
    found += named.looked_up(found)
    hint = book.word("train.framework") or _trainer_of(reading)
    begun = [start for command in reading.commands for start in _echoed(command.text, command.witness, hint)]
    begun += [start for one in found if one.form == "shell" for start in _scripted(one, hint)]
    gathered = parts.in_order([*_file_parts(found), *(part for start in begun for part in parts.of_command(start)), *_variables(begun)])
    missing = named.missing(gathered, begun, found)

    lost, warnings = cut_off(begun)
    facts: list[Fact] = [*_frameworks(gathered, found), *run_facts(begun), *script_facts(found), *lost, _given(gathered)]
    known = FactBook(book).learn(facts)
    spans = _spans(gathered, known)
    told = _translated(gathered, spans, known)
    facts += [fact for one in told for fact in one.facts]
    settled = {knob for one in told for knob in one.settled} | {fact.name for fact in facts}
    known = FactBook(book).learn(facts)
    model = _model(known)
    facts += _presumed(gathered, begun, known, spans, settled, model, missing)
    known = FactBook(book).learn(facts)
    facts += [*derived(known), *disagreements(facts, book)]

    notices = [notice for one in found for notice in one.notices]
    notices += [notice for one in told for notice in one.notices]
    notices += warnings + missing.notices
    return Settings(tuple(one.input for one in found), tuple(facts), _documents(gathered, told), tuple(notices))


def _trainer_of(reading: Reading) -> str | None:
    """TRL where the failure's traceback runs through one of its trainers: its scripts' options look like transformers' own."""
    event = None if reading.root is None else reading.events[reading.root]
    return "trl" if event is not None and any("/trl/trainer/" in frame.file for frame in event.frames) else None


def _echoed(text: str, witness: Witness, hint: str | None) -> list[Started]:
    from diagnose.adapters.launch import launches

    try:
        return parts.started(launches(text), text, "command line", "command", hint, "log", witness)
    except (RecursionError, Unreadable):
        return []


def _scripted(one: Opened, hint: str | None) -> list[Started]:
    forced = one.kind if one.kind in tables.names() and one.kind != "shell" else None
    begun = parts.started(one.launches, one.text, one.source.name, "shell", hint)
    if forced:
        begun = [
            replace(start, table=tables.table(forced)) if start.launch.flags and not start.launch.orphan and start.trains else start
            for start in begun
        ]
    return begun


def _file_parts(found: Iterable[Opened]) -> list[Part]:
    return [part for one in found for part in parts.of_file(one)]


def _variables(begun: Sequence[Started]) -> list[Part]:
    """The environment of what trains; a server's own is not the trainer's."""
    mine = [start for start in begun if start.trains] or [start for start in begun if not start.is_server]
    return [part for start in mine if (part := parts.environment(start)) is not None]


def _frameworks(gathered: Iterable[Part], found: Sequence[Opened]) -> list[Fact]:
    """train.framework and train.entry, from the first trainer's part that names them."""
    keys = {one.source.name: one.found_by for one in found if one.found_by is not None}
    facts = []
    for part in gathered:
        if not part.table.trainer:
            continue
        leaf = keys.get(part.name)
        witness = part.witness or (part.witness_of(leaf) if leaf else Witness(part.name, *part.entry_at, key=part.entry))
        facts.append(Fact("train.framework", part.table.name, part.origin, witness))
        if part.entry:
            facts.append(Fact("train.entry", part.entry, part.origin, part.witness or Witness(part.name, *part.entry_at, key=part.entry)))
    models = [Fact("model.shape", shape, "config", Witness(one.source.name, 1, 1)) for one in found if one.model and (shape := _shape(one))]
    return facts + models


def _given(gathered: Iterable[Part]) -> Fact:
    """Whether anything says how the trainer was configured; defaults alone contradict nobody."""
    names = [part.name for part in gathered if part.table.trainer and part.leaves]
    return Fact("config.given", bool(names), "derived", Witness("derived", text=f"settings in {names[0]}" if names else "no settings"))


def _shape(one: Opened) -> Model | None:
    try:
        return catalogue.model_of_config(dict(one.model or {}))
    except Exception:  # a stranger's config.json: whatever is wrong with it, it is not a model we can use
        return None


def _spans(gathered: Iterable[Part], known: FactBook) -> dict[str, Span]:
    """For every framework the releases that are possible: the one known, else what the spellings of its keys leave."""
    present: dict[str, list[str]] = {}
    for part in gathered:
        present.setdefault(part.table.name, []).extend(name_of(leaf.key) for leaf in part.leaves)
    spans = {name: Span(version, tables.finished(version)) for name in tables.releases() if (version := known.version(name))}
    for name, keys in present.items():
        tab = tables.table(name)
        spans.setdefault(tab.version, tables.span(tab, known.version(tab.version), keys))
    return spans


def _translated(gathered: Sequence[Part], spans: dict[str, Span], known: FactBook) -> list[Translation]:
    """Every part's facts. The hidden size, which "auto" needs, comes from the model that the trainer's part names."""
    first = [translate(part, spans, None) for part in gathered]
    model = _model(FactBook(known).learn(fact for one in first for fact in one.facts))
    hugging = not any(part.table.name == "openrlhf" for part in gathered)
    if model is None or not hugging:
        return first
    return [
        translate(part, spans, model.h) if any(key.auto for key in part.table.keys) else one
        for part, one in zip(gathered, first, strict=True)
    ]


def _model(known: FactBook) -> Model | None:
    shape = known.shape("model.shape")
    path = known.word("model.path") or known.word("actor.model")
    return shape or (catalogue.model(path) if path else None)


def _presumed(
    gathered: Sequence[Part],
    begun: Sequence[Started],
    known: FactBook,
    spans: dict[str, Span],
    settled: set[str],
    model: Model | None,
    missing: named.Missing,
) -> list[Fact]:
    """Files that a framework ships, then the defaults of the trainer, DeepSpeed's own, and what frameworks set whatever the config says."""
    trainer = next((part.table for part in gathered if part.table.trainer), None)
    launchers = frozenset("spread" if start.launch.spread else start.launch.launcher for start in begun if start.trains)
    setting = Setting(known, spans, frozenset(part.form for part in gathered if part.table.trainer), launchers, model)
    facts: list[Fact] = []
    sharded = any(part.table.name == "deepspeed" for part in gathered) or (known.count("zero.stage") is not None)
    for file in missing.deepspeed:
        facts += stock(trainer, file, model.h if model else None) if trainer else []
        settled |= {"zero.stage"}
    settled |= {fact.name for fact in facts}
    sharded = sharded or bool(facts)
    if missing.launcher:
        settled |= {"zero.stage", "fsdp.sharding"}
    whole = all(part.whole for part in gathered if part.table.trainer)
    if trainer is not None and whole and not missing.trainer:
        facts += defaults(trainer, setting, settled)
    if sharded and "zero.stage" not in missing.unknown:
        facts += defaults(tables.table("deepspeed"), setting, settled)
    hint = known.word("train.framework")
    own = trainer or (tables.table(hint) if hint in tables.names() else None)
    if own is not None:
        facts += defaults(own, setting, settled, only_always=True)
    return facts


def _documents(gathered: Sequence[Part], told: Sequence[Translation]) -> tuple[Document, ...]:
    """What edits are made in: files first, the command line of the log last."""
    documents = [
        Document(part.name, part.table.name, part.form, part.text, tuple(one.entries))
        for part, one in zip(gathered, told, strict=True)
        if part.leaves
    ]
    return tuple(sorted(documents, key=lambda document: document.form == "command"))
