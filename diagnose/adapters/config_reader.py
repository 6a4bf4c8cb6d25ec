"""Configs, and commands that the log echoes, to knobs with their keys, and to documents that edits can be made in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diagnose import catalogue
from diagnose.adapters.documents.open_config import Opened, opened
from diagnose.adapters.documents.started_programs import Started, started
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.formats.settings import ConfigSource, Document, Settings
from diagnose.adapters.job import command_layers, config_layers, named_files
from diagnose.adapters.job.framework_inference import adopted
from diagnose.adapters.job.job_start import alone, cut_off, run_facts, script_facts, too_late, unrecognised, untrained
from diagnose.adapters.job.script_options import answered, knowing
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.effective_settings import derived, ineffective
from diagnose.adapters.translate.file_conflicts import conflicts, integration
from diagnose.adapters.translate.framework_defaults import (
    Setting,
    contradictions,
    defaults,
    disagreements,
    engine_of_name,
    launcher_of_name,
    stock,
    unsaid_attention,
)
from diagnose.adapters.translate.model_dimensions import built
from diagnose.adapters.translate.translation import Part, Translation, name_of, translate
from diagnose.catalogue import Model
from diagnose.facts import Fact, FactBook, Witness
from diagnose.parse.model.reading import Reading
from diagnose.record import replace
from diagnose.release_spans import ReleaseSpan

__all__ = ["read"]


def read(configs: Sequence[ConfigSource], reading: Reading, book: FactBook) -> Settings:
    """All that the configs say, the keys that say it, and what the frameworks presume where they are silent.

    `book` holds what is given and logged already; it is not changed. Commands echoed in the log are read as well, with the
    log as their origin. Nothing in a config raises: what cannot be used is a notice.
    """
    found = [opened(source) for source in configs]
    found += [inner for one in found for inner in one.inside]
    found += named_files.looked_up(found)
    hint = book.word("train.framework") or _trainer_of(reading)
    begun = [start for command in reading.commands for start in _echoed(command.text, command.witness, hint)]
    begun += [start for one in found if one.form == "shell" for start in _scripted(one, hint)]
    if len(begun) > 1:
        from diagnose.adapters.documents.failed_command import those_that_failed

        begun = those_that_failed(begun, reading)
    begun = knowing(begun, found)
    found = adopted(found, begun, hint)
    logged = _dumped(reading, hint, found, begun)
    gathered = config_layers.in_order(
        [*logged, *_file_parts(found), *(part for start in begun for part in command_layers.of_command(start)), *_variables(begun)]
    )
    gathered = answered(_rewritten(gathered), begun)
    missing = named_files.missing(gathered, begun, found)

    lost, warnings = cut_off(begun)
    after, late = too_late(found)
    facts: list[Fact] = [*_frameworks(gathered, found), *run_facts(begun), *script_facts(found), *lost, *after, _given(gathered)]
    facts += untrained(found, begun, gathered)
    facts += alone(begun, gathered, book)
    known = FactBook(book).learn(facts)
    spans = _spans(gathered, known)
    told = _translated(gathered, spans, known)
    facts += [fact for one in told for fact in one.winning]
    facts += [fact for part, one in zip(gathered, told, strict=True) for fact in one.facts if not _overruled(part, fact, missing)]
    settled = {knob for one in told for knob in one.settled} | {fact.name for fact in facts}
    known = FactBook(book).learn(facts)
    model = _model(known)
    facts += _presumed(gathered, begun, known, spans, settled, model, missing)
    facts, in_vain = ineffective(facts, book, gathered)
    facts += derived(FactBook(book).learn(facts))
    against, clashes = conflicts(gathered, told, FactBook(book).learn(facts))
    facts += [*against, *disagreements(facts, book)]

    notices = [notice for one in found for notice in one.notices]
    notices += [notice for part, one in zip(gathered, told, strict=True) if part.form != "dump" for notice in one.notices]
    notices += [*in_vain, *clashes, *contradictions(facts, book)]
    notices += warnings + late + missing.notices + unrecognised(found, begun)
    return Settings(tuple(one.input for one in found if not one.outer), tuple(facts), _documents(gathered, told), tuple(notices))


def _rewritten(gathered: Sequence[Part]) -> list[Part]:
    """What the command line takes out of the files, and what ${...} in them stands for."""
    taken = config_layers.taken_out(gathered)
    if not any(part.table.interpolates for part in taken):
        return taken
    from diagnose.adapters.job.config_bases import layered
    from diagnose.adapters.job.interpolation import interpolated

    return interpolated(layered(taken))


def _overruled(part: Part, fact: Fact, missing: named_files.Missing) -> bool:
    """A DeepSpeed file that nobody gave says more than what Accelerate is told of sharding."""
    return (
        bool(missing.deepspeed)
        and (part.table.launches or part.table.role == "around")
        and not part.table.trainer
        and fact.name.startswith("zero.")
        and fact.name != "zero.config"
    )


def _trainer_of(reading: Reading) -> str | None:
    """Whose trainer the failure's traceback runs through, of those whose scripts' options look like another framework's (TRL's)."""
    files = [] if reading.root is None else [frame.file for frame in reading.events[reading.root].frames]
    shown = (
        name
        for name in framework_tables.names()
        for path in framework_tables.signs(name).get("frames", ())
        if any(path in file for file in files)
    )
    return next(shown, None)


def _dumped(reading: Reading, hint: str | None, found: Sequence[Opened], begun: Sequence[Started]) -> list[Part]:
    """Settings that the log prints; what Accelerate is set up with counts only where no launch names another file."""
    if not reading.dumps:
        return []
    from diagnose.adapters.job import dumped_configs

    named_by = [one.kind for one in found] + [start.table.name for start in begun if start.table is not None]
    trainer = hint or next((name for name in named_by if name in framework_tables.names() and framework_tables.table(name).trainer), None)
    chosen = any("config_file" in flag.name for start in begun for flag in start.launch.launcher_flags)
    return dumped_configs.parts([dump for dump in reading.dumps if dump.effective or not chosen], trainer)


def _echoed(text: str, witness: Witness, hint: str | None) -> list[Started]:
    from diagnose.adapters.launch.launch_command import launches

    try:
        return started(launches(text), text, "command line", "command", hint, "log", witness)
    except (RecursionError, Unreadable):
        return []


def _scripted(one: Opened, hint: str | None) -> list[Started]:
    forced = one.kind if one.kind in framework_tables.names() and one.kind != "shell" else None
    begun = started(one.launches, one.text, one.source.name, "shell", hint)
    if forced:
        begun = [
            replace(start, table=framework_tables.table(forced))
            if start.launch.flags and not start.launch.orphan and start.trains
            else start
            for start in begun
        ]
    return begun


def _file_parts(found: Iterable[Opened]) -> list[Part]:
    return [part for one in found for part in config_layers.of_file(one)]


def _variables(begun: Sequence[Started]) -> list[Part]:
    """The environment of what trains; a server's own is not the trainer's."""
    mine = [start for start in begun if start.trains] or [start for start in begun if not start.is_server]
    return [part for start in mine if (part := command_layers.environment(start)) is not None]


def _frameworks(gathered: Iterable[Part], found: Sequence[Opened]) -> list[Fact]:
    """train.framework and train.entry, from the first trainer's part that names them."""
    keys = {one.source.name: one.found_by for one in found if one.found_by is not None}
    facts = []
    for part in gathered:
        if not part.table.trainer:
            continue
        leaf = keys.get(part.name)
        entry = part.witness or (part.lines[0] if part.lines else Witness(part.name, *part.entry_at, key=part.entry))
        witness = part.witness_of(leaf) if leaf and not part.lines else entry
        facts.append(Fact("train.framework", part.table.name, part.origin, witness))
        if part.entry:
            facts.append(Fact("train.entry", part.entry, part.origin, entry))
    models = [Fact("model.shape", shape, "config", Witness(one.source.name, 1, 1)) for one in found if one.model and (shape := _shape(one))]
    models += [fact for part in gathered if part.table.shape and (fact := built(part)) is not None]
    return facts + models


def _given(gathered: Sequence[Part]) -> Fact:
    """Whether anything says how the trainer was configured; defaults alone contradict nobody."""
    names = [part.name for part in config_layers.leading(gathered) if part.leaves]
    return Fact("config.given", bool(names), "derived", Witness("derived", text=f"settings in {names[0]}" if names else "no settings"))


def _shape(one: Opened) -> Model | None:
    try:
        return catalogue.model_of_config(dict(one.model or {}))
    except Exception:  # a stranger's config.json: whatever is wrong with it, it is not a model we can use
        return None


def _spans(gathered: Iterable[Part], known: FactBook) -> dict[str, ReleaseSpan]:
    """For every framework the releases that are possible: the one known, else what the spellings of its keys leave."""
    present: dict[str, list[str]] = {}
    for part in gathered:
        mine = (leaf for leaf in part.leaves if not leaf.key.startswith("+"))  # what is added to a configuration need not be known to it
        present.setdefault(part.table.name, []).extend(name_of(leaf.key) for leaf in mine)
    spans = {
        name: ReleaseSpan(version, framework_tables.finished(version))
        for name in framework_tables.releases()
        if (version := known.version(name))
    }
    for name, keys in present.items():
        tab = framework_tables.table(name)
        spans.setdefault(tab.version, framework_tables.span(tab, known.version(tab.version), keys))
    return spans


def _translated(gathered: Sequence[Part], spans: dict[str, ReleaseSpan], known: FactBook) -> list[Translation]:
    """Every part's facts. The hidden size, which "auto" needs, comes from the model that the trainer's part names."""
    whole: dict[str, dict[str, Leaf]] = {}
    for part in gathered:
        own = whole.setdefault(part.table.name, {})
        for leaf in part.leaves if part.merged is None else part.merged.values():
            own.setdefault(name_of(leaf.key), leaf)
    first = [translate(part, spans, None, whole[part.table.name]) for part in gathered]
    model = _model(FactBook(known).learn(fact for one in first for fact in one.facts))
    if model is None:
        return first
    trainer = next((part.table.name for part in gathered if part.table.trainer), None)
    return [
        translate(part, spans, model.h, whole[part.table.name])
        if any(key.auto for key in part.table.keys) and _fills_in(part, trainer)
        else one
        for part, one in zip(gathered, first, strict=True)
    ]


def _fills_in(part: Part, trainer: str | None) -> bool:
    """Does something write a value for "auto"? Where nobody says what trains it is presumed to be transformers, which does."""
    way = integration(part.table, trainer) if trainer else None
    return trainer is None or not part.table.integrations or (way is not None and way.get("auto", False))


def _model(known: FactBook) -> Model | None:
    shape = known.shape("model.shape")
    path = known.word("model.path") or known.word("actor.model")
    return shape or (catalogue.model(path) if path else None)


def _presumed(
    gathered: Sequence[Part],
    begun: Sequence[Started],
    known: FactBook,
    spans: dict[str, ReleaseSpan],
    settled: set[str],
    model: Model | None,
    missing: named_files.Missing,
) -> list[Fact]:
    """Files that a framework ships, then the defaults of the trainer, DeepSpeed's own, and what frameworks set whatever the config says."""
    leading = config_layers.leading(gathered)
    trainer = next((part.table for part in leading), None)
    launchers = frozenset("spread" if start.launch.spread else start.launch.launcher for start in begun if start.trains)
    merged = next((part.merged for part in leading), None)
    if merged is None:
        merged = {name_of(leaf.key): leaf for part in reversed(leading) for leaf in part.leaves}
    setting = Setting(known, spans, frozenset(part.form for part in leading), launchers, model, merged)
    facts: list[Fact] = []
    engine = framework_tables.table(framework_tables.of_role("engine"))
    drives = trainer is None or integration(engine, trainer.name) is not None
    sharded = any(part.table is engine for part in gathered) or (drives and (known.count("zero.stage") or 0) > 0)
    for file in missing.deepspeed:
        shipped = list(stock(trainer, file, model.h if model else None)) if trainer else []
        facts += shipped or [fact for fact in engine_of_name(file) if fact.name not in settled and fact.name not in known]
        settled |= {"zero.stage"}
    settled |= {fact.name for fact in facts}
    sharded = sharded or bool(facts)
    for file, witness in missing.launcher:
        facts += [fact for fact in launcher_of_name(file, witness) if fact.name not in settled and fact.name not in known]
        settled |= {"zero.stage", "fsdp.sharding"}
    own = [part for part in leading if part.form != "dump"]
    whole = all(part.whole for part in own) if own else any(part.whole for part in leading)
    if trainer is not None and whole and not missing.trainer:
        if "model.attention" not in settled and "model.attention" not in known:
            facts += unsaid_attention(trainer, setting)
        facts += defaults(trainer, setting, settled)
    if sharded and "zero.stage" not in missing.unknown:
        facts += defaults(engine, setting, settled)
    hint = known.word("train.framework")
    named_by = trainer or (framework_tables.table(hint) if hint in framework_tables.names() else None)
    if named_by is not None:
        facts += defaults(named_by, setting, settled, only_always=True)
    for server in dict.fromkeys(start.table.name for start in begun if start.table is not None and start.is_server):
        facts += defaults(framework_tables.table(server), setting, settled)
    return facts


def _documents(gathered: Sequence[Part], told: Sequence[Translation]) -> tuple[Document, ...]:
    """What edits are made in: files first, the command line of the log last."""
    documents = [
        Document(part.name, part.table.name, part.form, part.text, tuple(one.entries), part.outer, part.shift, part.entry)
        for part, one in zip(gathered, told, strict=True)
        if part.leaves and part.form != "dump"
    ]
    return tuple(sorted(documents, key=lambda document: document.form == "command"))
