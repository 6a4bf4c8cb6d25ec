"""What nobody set: defaults of the framework's release, files that it ships, and what follows from the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from diagnose.adapters import tables
from diagnose.adapters.tables import Key, Span, Table
from diagnose.adapters.translate import automatic, typed_default
from diagnose.catalogue import Model
from diagnose.facts import Fact, FactBook, Value, Witness, typed
from diagnose.record import record
from diagnose.units import Version

#: What the log's word for compute precision makes of a configured precision.
_COMPUTES = {"bf16": "bf16", "pure_bf16": "bf16", "fp16": "fp16"}


@record
class Setting:
    """What decides which defaults hold: all that is known so far, and how the job was started."""

    book: FactBook
    spans: Mapping[str, Span]
    forms: frozenset[str] = frozenset()
    launchers: frozenset[str] = frozenset()
    model: Model | None = None
    found: dict[str, Value] = field(default_factory=dict)

    def word(self, name: str) -> str | None:
        """The value of a fact as tables write it; None: unknown."""
        value = self.found[name] if name in self.found else self.book.value(name)
        if isinstance(value, bool):
            return "enabled" if value else "disabled"
        return None if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    def holds(self, conditions: Mapping[str, tuple[str, ...]] | None) -> bool:
        return all(self._one(name, words) for name, words in (conditions or {}).items())

    def _one(self, name: str, words: tuple[str, ...]) -> bool:
        if name == "form":
            return bool(self.forms & set(words))
        if name == "launcher":
            return bool(self.launchers & set(words))
        if name == "model.family":
            return self.model is not None and self.model.family in words
        if name == "model.vision":
            return self.model is not None and self.model.vision is not None
        if name == "run.distributed":
            return (self.book.count("parallel.world") or 0) > 1
        if name == "torch.expandable":
            torch = self.book.version("version.torch")
            return torch is not None and torch >= Version("2.2")
        return self.word(name) in words


def defaults(tab: Table, setting: Setting, settled: set[str], only_always: bool = False) -> Iterator[Fact]:
    """The defaults of a table for the knobs that nobody settled. `only_always`: those that hold whatever the config says."""
    for knob in tab.knobs:
        if knob in settled:
            continue
        for key in tab.of(knob):
            if key.default is None or key.within or (only_always and not key.always) or not _applies(key, setting):
                continue
            if not key.always and knob in setting.book and only_always:
                continue
            settled.add(knob)
            value = typed_default(key)
            setting.found[knob] = value
            yield Fact(knob, value, "default", Witness("default", text=_said(tab, key, setting)))
            break


def _applies(key: Key, setting: Setting) -> bool:
    bounded = key.since or key.until
    covered = key.covers(setting.spans.get(key.version, Span())) if bounded and not key.key else True
    return covered is True and setting.holds(key.given)


def _said(tab: Table, key: Key, setting: Setting) -> str:
    release = setting.spans.get(key.version, Span())
    number = f" {release.low}" if release.low and release.low == release.high else ""
    name = key.version.partition(".")[2] if key.version != tab.version else tab.name
    if key.always:
        return f"{name}{number} sets it itself"
    return f"default of {name}{number}" + (f": {key.key} is not set" if key.key else "")


def stock(tab: Table, file: str, hidden: int | None) -> Iterator[Fact]:
    """What a file that the framework ships says, where a configuration names it and nobody gave it."""
    deepspeed = tables.table("deepspeed")
    for knob, word in tab.stock.get(file, {}).items():
        text = tables.word_of(word)
        value = (
            automatic(next(key for key in deepspeed.of(knob) if key.auto), hidden)
            if text == "auto"
            else text
            if text == "none"
            else typed(knob, text)
        )
        if value is not None:
            yield Fact(knob, value, "default", Witness("default", text=f"{file} as {tab.name} ships it"))


def derived(book: FactBook) -> Iterator[Fact]:
    """Accumulation where only the global batch is set: rows per step over rows per micro batch and data-parallel rank."""
    total, micro = book.count("train.global_batch"), book.count("train.micro_batch_size")
    world = book.count("actor.gpus") or book.count("parallel.world")
    if "train.gradient_accumulation" in book or not total or not micro or not world:
        return
    split = (book.count("parallel.tensor") or 1) * (book.count("parallel.context") or 1) * (book.count("parallel.pipeline") or 1)
    ranks = max(1, world // split)
    if total % (micro * ranks) == 0:
        yield Fact(
            "train.gradient_accumulation", total // (micro * ranks), "derived", Witness("derived", text=f"{total} / ({micro} * {ranks})")
        )


def disagreements(facts: Sequence[Fact], book: FactBook) -> Iterator[Fact]:
    """Knobs that a file sets to one value and the log shows at another: the file is not what ran."""
    seen: set[str] = set()
    for fact in facts:
        if fact.origin != "config" or fact.name in seen:
            continue
        seen.add(fact.name)
        other = _logged(fact.name, book, facts)
        if other is not None and fact.value is not None and other != fact.value and not _same_model(fact, other):
            yield Fact("config.disagreement", fact.name, "config", fact.witness)


def _logged(name: str, book: FactBook, facts: Iterable[Fact]) -> Value:
    if name == "train.precision":
        return _precision_logged(book, facts)
    return next(
        (fact.value for fact in (*book.all(name), *facts) if fact.name == name and fact.origin == "log" and fact.value is not None), None
    )


def _precision_logged(book: FactBook, facts: Iterable[Fact]) -> Value:
    """The log prints the precision of computing; a file that says pure_bf16 or fp8 agrees with bf16."""
    computed = book.word("train.compute_dtype")
    configured = next((fact.value for fact in facts if fact.name == "train.precision" and fact.origin == "config"), None)
    if computed is None or not isinstance(configured, str) or configured == "fp8":
        return next((fact.value for fact in book.all("train.precision") if fact.origin == "log"), None)
    return configured if _COMPUTES.get(configured, configured) == computed else computed


def _same_model(fact: Fact, other: Value) -> bool:
    """A path and a hub name can mean one model; so can a list in another order."""
    if not isinstance(fact.value, str) or not isinstance(other, str):
        return False
    if fact.name == "model.path":
        return fact.value.rstrip("/").rpartition("/")[2] == other.rstrip("/").rpartition("/")[2]
    return sorted(fact.value.split(",")) == sorted(other.split(","))
