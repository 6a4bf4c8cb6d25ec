"""Values of knobs that no config sets: defaults by release, files that frameworks ship; and disagreements with the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key, Table
from diagnose.adapters.translate.translation import auto_value, typed_default, where_holds
from diagnose.catalogue import Model
from diagnose.facts import Fact, FactBook, Notice, Value, Witness, typed
from diagnose.phrases import phrase
from diagnose.release_spans import EVERY, ReleaseSpan
from diagnose.word_conditions import Conditions, Said, hold, word, word_of

#: The compute dtype that a log prints for a configured precision.
_COMPUTE_DTYPE = {"bf16": "bf16", "pure_bf16": "bf16", "fp16": "fp16"}


@dataclass(slots=True)
class Setting:
    """The context that decides which defaults apply: known facts, releases, forms and launchers."""

    book: FactBook
    spans: Mapping[str, ReleaseSpan]
    forms: frozenset[str] = frozenset()
    launchers: frozenset[str] = frozenset()
    model: Model | None = None
    merged: Mapping[str, Leaf] = field(default_factory=dict)  # the keys that stand in the trainer's configuration
    found: dict[str, Value] = field(default_factory=dict)

    def word(self, name: str) -> str | None:
        """The value of a fact as tables write it; None if unknown."""
        return word(self._value(name))

    def holds(self, conditions: Conditions | None) -> bool:
        """Whether all conditions hold; an unknown fact fails them."""
        return hold(conditions, self._said) is True

    def _value(self, name: str) -> Value:
        return self.found[name] if name in self.found else self.book.value(name)

    def _said(self, name: str) -> Said:
        """The value of a fact, or of one of the additional names that conditions of tables may use."""
        if name == "form":
            return self.forms
        if name == "launcher":
            return self.launchers
        if name == "train.entry":  # a script or a module, wherever it lies
            return [str(fact.value) for fact in self.book.all(name)]
        if name == "model.family":
            return self.model.family if self.model else None
        if name == "model.vision":
            return self.model.vision is not None if self.model else None
        if name == "run.distributed":
            return (self.book.count("parallel.world") or 0) > 1
        return self._value(name)


def defaults(tab: Table, setting: Setting, settled: set[str], only_always: bool = False) -> Iterator[Fact]:
    """Defaults of a table for unset knobs. `only_always`: only those that hold whatever the config says."""
    for knob in tab.knobs:
        if knob in settled:
            continue
        for key in tab.of(knob):
            if (key.default is None and not key.fills) or key.within or (only_always and not key.always) or not _applies(key, setting):
                continue
            if not key.always and knob in setting.book and only_always:
                continue
            value = typed_default(key) if not key.fills else _filling_accumulation(key.fills, setting)
            if value is None and key.fills:
                break
            settled.add(knob)
            setting.found[knob] = value
            yield Fact(knob, value, "default", Witness("default", text=_default_text(tab, key, setting)))
            break


def possible_defaults(tab: Table, knob: str, setting: Setting) -> Iterator[Value]:
    """A knob's defaults over all releases that are possible."""
    for key in tab.of(knob):
        if key.default is None or key.within or not _is_read(key, setting):
            continue
        if not setting.holds(key.given) or not where_holds(key, setting.merged):
            continue
        covered = True if key.key else key.releases.covers(setting.spans.get(key.version, EVERY))
        if covered is not False:
            yield typed_default(key)
        if covered:
            return


def attention_default(tab: Table, setting: Setting) -> Iterator[Fact]:
    """Whether eager attention is the default of some possible release, if no config chooses one."""
    possible = set(possible_defaults(tab, "model.attention", setting))
    if possible:
        text = f"defaults of {tab.name}: {', '.join(sorted(map(str, possible)))}"
        yield Fact("model.attention_maybe_eager", "eager" in possible, "derived", Witness("derived", text=text))


def _filling_accumulation(rows: int, setting: Setting) -> int | None:
    """Gradient accumulation for `rows` samples over all processes, rounded up; None if a size is unknown."""
    micro, world = setting.word("train.micro_batch_size"), setting.word("parallel.world")
    return None if not micro or not world else max(1, -(-rows // (int(micro) * int(world))))


def _applies(key: Key, setting: Setting) -> bool:
    covered = True if key.key else key.releases.covers(setting.spans.get(key.version, EVERY))
    return covered is True and _is_read(key, setting) and setting.holds(key.given) and where_holds(key, setting.merged)


def _is_read(key: Key, setting: Setting) -> bool:
    """Whether an entry point of the job reads the key, whose default counts only there; so where the entry point is unknown."""
    entries = [str(fact.value) for fact in setting.book.all("train.entry")] if key.entry else []
    return not entries or any(key.reads(entry) for entry in entries)


def _default_text(tab: Table, key: Key, setting: Setting) -> str:
    release = setting.spans.get(key.version, EVERY)
    number = f" {release.low}" if release.low and release.low == release.high else ""
    name = key.version.partition(".")[2] if key.version != tab.version else tab.name
    if key.always:
        return f"{name}{number} sets it itself"
    return f"default of {name}{number}" + (f": {key.key} is not set" if key.key else "")


def stock_file_facts(tab: Table, file: str, hidden: int | None) -> Iterator[Fact]:
    """Facts of a file that the framework ships and a config names."""
    engine = framework_tables.table(framework_tables.of_role("engine"))
    for knob, written in tab.stock.get(file, {}).items():
        text = word_of(written)
        value = (
            auto_value(next(key for key in engine.of(knob) if key.auto), hidden)
            if text == "auto"
            else text
            if text == "none"
            else typed(knob, text)
        )
        if value is not None:
            yield Fact(knob, value, "default", Witness("default", text=f"{file} as {tab.name} ships it"))


#: Names of launcher and DeepSpeed files, and the knobs that they imply (huggingface/trl examples/accelerate_configs,
#: hiyouga/LlamaFactory examples/accelerate): of the first pattern that fits, and of each that tells what is offloaded.
_FILE_NAME_PATTERNS: tuple[tuple[str, str, Value], ...] = (
    (r"fsdp", "fsdp.sharding", "full_shard"),
    (r"(?:zero|z|stage)[-_]?3", "zero.stage", 3),
    (r"(?:zero|z|stage)[-_]?2", "zero.stage", 2),
    (r"(?:zero|z|stage)[-_]?1", "zero.stage", 1),
)
_OFFLOAD_PATTERNS: tuple[tuple[str, str, Value], ...] = (
    (r"fsdp.*offload", "fsdp.offload", True),
    (r"(?:zero|z|stage)[-_]?[23].*offload(?![-_]?param)", "zero.offload_optimizer", "cpu"),
    (r"(?:zero|z|stage)[-_]?3.*offload(?![-_]?opt)", "zero.offload_param", "cpu"),
)
_NOT_OFFLOADED = re.compile(r"(?:no|non|not|without|wo)[-_]?(?:cpu[-_]?)?offload")


def launcher_from_file_name(file: str, witness: Witness) -> Iterator[Fact]:
    """What a missing launcher file probably sets, by its name."""
    yield Fact("config.launcher_missing", True, "config", witness)
    yield from _from_file_name(file)


def engine_from_file_name(file: str) -> Iterator[Fact]:
    """What a missing DeepSpeed file probably sets, by its name."""
    yield Fact("config.engine_file_missing", True, "config", Witness("derived", text=f"{file} was not given"))
    yield from _from_file_name(file)


def _from_file_name(file: str) -> Iterator[Fact]:
    name = file.lower()
    first = next((row for row in _FILE_NAME_PATTERNS if re.search(row[0], name)), None)
    rows = (*([first] if first else ()), *(() if _NOT_OFFLOADED.search(name) else _OFFLOAD_PATTERNS))
    for pattern, knob, value in rows:
        if re.search(pattern, name):
            yield Fact(knob, value, "default", Witness("default", key=file, text=f"{file}, by its name"))


def disagreements(facts: Sequence[Fact], book: FactBook) -> Iterator[Fact]:
    """A fact for each knob that a file and the log set differently: the file is not what ran."""
    for fact, _ in _disagreeing_facts(facts, book):
        yield Fact("config.disagreement", fact.name, "config", fact.witness)


def disagreement_notices(facts: Sequence[Fact], book: FactBook) -> Iterator[Notice]:
    """A notice for each disagreement, with both places; the log's value counts."""
    for fact, logged in _disagreeing_facts(facts, book):
        values = {"log": _format_value(logged.value), "config": _format_value(fact.value)}
        places = {"place": f"{logged.witness.source}:{logged.witness.line}", "file": fact.witness.source, "line": fact.witness.line}
        message = phrase("adapters.disagreement", name=fact.witness.key or fact.name, **values, **places)
        yield Notice("warning", "config.disagreement", message, fact.witness)


def _disagreeing_facts(facts: Sequence[Fact], book: FactBook) -> Iterator[tuple[Fact, Fact]]:
    """Pairs of a file's fact and the log's fact that contradicts it."""
    names = {"train.micro_batch_size"} if book.switch("log.batch_searched") else set[str]()  # that setting was a start, and took effect
    for fact in facts:
        if fact.origin != "config" or fact.name in names:
            continue
        names.add(fact.name)
        logged = _logged_fact(fact.name, book, facts)
        if logged is None or fact.value is None or logged.value == fact.value or _same_model(fact, logged.value):
            continue
        if fact.name == "train.framework" and fact.value in framework_tables.lineage(str(logged.value)):
            continue  # options of the framework that the logged one is built on
        yield fact, logged


def _format_value(value: Value) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _logged_fact(name: str, book: FactBook, facts: Iterable[Fact]) -> Fact | None:
    """The log's fact about a knob. Logs print the compute dtype, so bf16 agrees with a configured pure_bf16 or fp8."""
    logged = [fact for fact in (*book.all(name), *facts) if fact.name == name and fact.origin == "log" and fact.value is not None]
    computed = book.fact("train.compute_dtype") if name == "train.precision" else None
    configured = next((fact.value for fact in facts if fact.name == name and fact.origin == "config"), None)
    if computed is None or not isinstance(configured, str) or configured == "fp8":
        return logged[0] if logged else None
    return computed if _COMPUTE_DTYPE.get(configured, configured) != computed.value else None


def _same_model(fact: Fact, logged: Value) -> bool:
    """Whether texts are equivalent: a path and a hub name of one model, or one list in another order."""
    if not isinstance(fact.value, str) or not isinstance(logged, str):
        return False
    if fact.name == "model.path":
        return fact.value.rstrip("/").rpartition("/")[2] == logged.rstrip("/").rpartition("/")[2]
    return sorted(fact.value.split(",")) == sorted(logged.split(","))
