"""Leaves of one config to facts and entries, by the table of its framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from diagnose.adapters import tables
from diagnose.adapters.leaf import Leaf
from diagnose.adapters.settings import Entry, Form
from diagnose.adapters.tables import NOTHING, Key, Span, Table
from diagnose.facts import Fact, Notice, Origin, Value, Witness, declared
from diagnose.phrases import phrase
from diagnose.record import record

#: Unknown keys that are spoken of; a file with more of them is no config of this framework.
MOST_UNKNOWN = 100


@record
class Part:
    """One config, or one command of a script: leaves of one framework and how to speak of them.

    `origin` is log for a command that the log echoes; `witness` then stands for every key. `whole` says that nothing else
    of this framework's configuration is missing, so that a key which is absent has its default.
    """

    name: str
    table: Table
    form: Form
    text: str
    leaves: tuple[Leaf, ...]
    origin: Origin = "config"
    witness: Witness | None = None
    entry: str = ""
    entry_at: tuple[int, int] = (1, 1)
    whole: bool = True
    own_keys: bool = True  # every key is meant for this framework (not a script with arguments of its own)

    def witness_of(self, leaf: Leaf, note: str = "") -> Witness:
        """Where the leaf stands. `device` and `enabled` say nothing by themselves: their block's line does."""
        if self.witness is not None:
            return self.witness
        block, _, last = leaf.key.rpartition(".")
        stands = next((other for other in self.leaves if other.key == block), leaf) if last in ("device", "enabled") else leaf
        return Witness(self.name, stands.line, stands.column, note, stands.key)


@dataclass(slots=True)
class Translation:
    """What one part says. `settled` are the knobs that a key of it sets, even to something unknown."""

    facts: list[Fact] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)


def translate(part: Part, spans: Mapping[str, Span], hidden: int | None) -> Translation:
    """The knobs that the keys of a part turn, in the order of the table; keys that its framework does not know; keys without effect."""
    told = Translation()
    by_name = {name_of(leaf.key): leaf for leaf in part.leaves}
    turns: dict[str, list[str]] = {}
    for knob in part.table.knobs:
        for key in part.table.of(knob):
            leaf = by_name.get(key.key) if key.key else None
            if leaf is None:
                continue
            value = _value(part, key, leaf, by_name, hidden, told)
            if value is NOTHING:
                continue
            turns.setdefault(leaf.key, []).append(knob)
            if knob not in told.settled and _in_force(part, key, spans):
                told.settled.add(knob)
                if value is not None:
                    told.facts.append(Fact(knob, value, part.origin, part.witness_of(leaf, _auto_note(key, leaf, hidden))))  # type: ignore[arg-type]
    told.facts += _entry_facts(part, told.settled)
    told.entries = [
        Entry(leaf.key, leaf.written, leaf.start, leaf.end, leaf.line, leaf.column, tuple(turns.get(leaf.key, ()))) for leaf in part.leaves
    ]
    told.facts += _within(part, by_name, told.settled)
    _unknown_keys(part, spans, told)
    _ignored_keys(part, by_name, told)
    return told


def _in_force(part: Part, key: Key, spans: Mapping[str, Span]) -> bool:
    """A framework that drops what it does not know drops the keys of other releases too; where it rejects them, what ran was known."""
    return part.table.unknown != "dropped" or key.covers(spans.get(key.version, Span())) is not False


def name_of(key: str) -> str:
    """The key as tables spell it: options lose their dashes."""
    return key.lstrip("-+").replace("-", "_") if key.startswith(("-", "+")) else key


def _value(part: Part, key: Key, leaf: Leaf, by_name: Mapping[str, Leaf], hidden: int | None, told: Translation) -> Value | object:
    if key.auto and (leaf.text or "").strip('"') == "auto":
        return automatic(key, hidden)
    try:
        value = tables.meaning(key, leaf)
    except ValueError:
        words = ", ".join(dict.fromkeys((key.values or {}).keys())) if key.values else _kind(key.knob)
        message = phrase("adapters.wrong_value", name=leaf.key, value=leaf.written[:80], wanted=words)
        told.notices.append(Notice("warning", "config.wrong_value", message, part.witness_of(leaf)))
        return None
    return _scaled(key, value, by_name)


def _kind(knob: str) -> str:
    entry = declared(knob)
    return entry.kind if entry else "text"


def automatic(key: Key, hidden: int | None) -> int | None:
    """What Hugging Face writes for "auto"; None where the hidden size is unknown."""
    if hidden is None or key.auto is None:
        return None
    factor, power = key.auto
    return int(factor * hidden**power)


def _auto_note(key: Key, leaf: Leaf, hidden: int | None) -> str:
    if not (key.auto and hidden and leaf.text == "auto"):
        return ""
    factor, power = key.auto
    return f"auto = {factor:g} * {hidden}{f'^{power}' if power > 1 else ''}"


def _scaled(key: Key, value: Value | object, by_name: Mapping[str, Leaf]) -> Value | object:
    """Processes per node times nodes; a global batch over the micro batch."""
    for other, multiply in ((key.times, True), (key.over, False)):
        if not other or not isinstance(value, int) or isinstance(value, bool):
            continue
        leaf = by_name.get(other)
        text = (leaf.text or "").partition(":")[0] if leaf else ""
        factor = int(text) if text.isdecimal() and len(text) < 8 else 1 if leaf is None and multiply else None
        if factor is None or factor == 0:
            return None
        value = value * factor if multiply else value // factor
    return value


def _entry_facts(part: Part, settled: set[str]) -> Iterable[Fact]:
    """What the entry point or the class settles: train_dpo trains preferences."""
    for name, knobs in part.table.entries.items():
        if name not in part.entry:
            continue
        for knob, word in knobs.items():
            if knob not in settled:
                settled.add(knob)
                witness = part.witness or Witness(part.name, *part.entry_at, key=part.entry)
                yield Fact(knob, word, part.origin, witness)
        return


def _within(part: Part, by_name: Mapping[str, Leaf], settled: set[str]) -> Iterable[Fact]:
    """A block that is there and lacks a key says that the key has its default: the file is the witness."""
    for key in part.table.keys:
        block = by_name.get(key.within) if key.within else None
        if block is None or key.default is None or key.knob in settled:
            continue
        if part.table.file_key.startswith(f"{key.within}.") and part.table.file_key in by_name:
            continue  # the block names a file of its own, which speaks for the keys that it lacks
        settled.add(key.knob)
        yield Fact(key.knob, typed_default(key), part.origin, part.witness_of(block, f"{block.key} without {_inside(key)}"))


def _inside(key: Key) -> str:
    """The first name of a key below the block that it belongs to."""
    return key.key.removeprefix(f"{key.within}.").partition(".")[0] or key.knob


def typed_default(key: Key) -> Value:
    from diagnose.facts import typed

    return typed(key.knob, key.default or "") if key.default != "none" else "none"


def _unknown_keys(part: Part, spans: Mapping[str, Span], told: Translation) -> None:
    tab, span = part.table, spans.get(part.table.version, Span())
    if tab.unknown == "anything" or not part.own_keys:
        return
    unread: list[tuple[str, str, Leaf]] = []
    said = 0
    for leaf in part.leaves:
        name = name_of(leaf.key)
        spellings = tab.named(name)
        gone = tab.unknown == "dropped" and bool(spellings) and all(key.covers(span) is False for key in spellings)
        if not gone and (name in tab.known or ("." in name and name.partition(".")[0] in tab.known) or _nested(part, name)):
            continue
        said += 1
        if said > MOST_UNKNOWN:
            break
        near, knob = nearest(tab, name, span, told.settled)
        if tab.unknown == "dropped":
            unread.append((knob, near, leaf))
        code = (
            ("unknown_key_gone" if gone and near else "unknown_key_near" if near else "unknown_key")
            if tab.unknown == "dropped"
            else ("rejected_key_near" if near else "rejected_key")
        )
        message = phrase(f"adapters.{code}", name=leaf.key, framework=tables.called(tab.name), near=near)
        told.notices.append(Notice("warning", "config.unknown_key", message, part.witness_of(leaf)))
    for knob, near, leaf in sorted(
        unread, key=lambda pair: not pair[0]
    ):  # those that wanted a knob first: the n-th wanted knob is the n-th key's
        told.facts.append(Fact("config.unknown_key", leaf.key, part.origin, part.witness_of(leaf)))
        if knob:
            told.facts.append(Fact("config.wanted_knob", knob, part.origin, part.witness_of(leaf)))
            told.facts.append(Fact("config.wanted_key", near, part.origin, part.witness_of(leaf)))
            told.facts.append(Fact("config.reader", tables.called(tab.name).zh, part.origin, part.witness_of(leaf)))


def _nested(part: Part, name: str) -> bool:
    """Keys inside a block, or of a dialect that joins words by dots, are judged only with their block."""
    return "." in name and part.form in ("yaml", "json", "python")


def nearest(tab: Table, name: str, span: Span, settled: set[str]) -> tuple[str, str]:
    """The real key that an unknown one most resembles, and the knob that it was meant to turn (empty: none).

    A key that another framework knows is a foreign key: the nearest real one is what this framework calls that knob.
    """
    import difflib

    usable = {key.key: key.knob for key in tab.keys if key.key and not key.read_only and key.covers(span) is not False}
    for other in tables.names():
        for key in tables.table(other).named(name) if other != tab.name else ():
            own = next((spelling for spelling, knob in usable.items() if knob == key.knob), "")
            if own:
                return own, key.knob if key.knob not in settled else ""
    pool = list(usable) + [word for word in tab.known if word not in usable]
    near = difflib.get_close_matches(name, pool, 1, 0.75)
    if not near:
        return "", ""
    knob = usable.get(near[0], "")
    return near[0], "" if knob in settled else knob


def _ignored_keys(part: Part, by_name: Mapping[str, Leaf], told: Translation) -> None:
    from diagnose.phrases import Text

    for rule in part.table.ignored:
        leaf = by_name.get(rule["key"])
        if leaf is None or (leaf.text or "").lower() in ("false", "no", "none"):
            continue
        lacks, beside = rule.get("without"), rule.get("with")
        if (lacks and on(by_name.get(lacks))) or (beside and not on(by_name.get(beside))):
            continue
        told.facts.append(Fact("config.ignored_key", leaf.key, part.origin, part.witness_of(leaf)))
        told.notices.append(Notice("warning", "config.ignored_key", Text(rule["en"], rule["zh"]), part.witness_of(leaf)))


def on(leaf: Leaf | None) -> bool:
    """Is the key there and not switched off?"""
    return leaf is not None and leaf.shape != "null" and (leaf.text or "true").lower() not in ("false", "no", "off", "none", "0")
