"""Leaves of one config to facts and entries, by the table of its framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from diagnose.adapters.formats.config_value import Leaf, name_of, texts_of
from diagnose.adapters.formats.settings import Entry, Form
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.ignored_keys import Vain, in_vain, on
from diagnose.adapters.schema.spellings import Key, Table
from diagnose.adapters.schema.value_meaning import NOTHING, meaning
from diagnose.adapters.translate.unread_keys import unknown_keys
from diagnose.facts import Fact, Notice, Origin, Value, Witness, typed
from diagnose.phrases import Text
from diagnose.record import field, record
from diagnose.release_spans import EVERY, ReleaseSpan
from diagnose.word_conditions import hold, word_of

__all__ = ["Part", "Translation", "automatic", "name_of", "on", "stands_with", "translate", "typed_default"]

#: Characters of a line of the log that a witness shows.
SHOWN = 500


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
    about: str = ""  # the entry point, where another part of the job names it
    asks: bool = False  # a script whose settings a parser of the command line fills
    elsewhere: Mapping[str, Witness] | None = None  # keys whose values the command line gives, and where
    own_keys: bool = True  # every key is meant for this framework (not a script with arguments of its own)
    lines: tuple[Witness, ...] = ()  # of settings that a log prints: where each line of the text stands in it
    merged: Mapping[str, Leaf] | None = None  # what files and overrides say together, where the framework merges them
    outer: str = ""  # of a config that a script writes: the script's text, and where it begins in it
    shift: int = 0

    def witness_of(self, leaf: Leaf, note: str = "") -> Witness:
        """Where the leaf stands. `device` and `enabled` say nothing by themselves: their block's line does."""
        if self.witness is not None:
            return self.witness
        if self.elsewhere and leaf.key in self.elsewhere:
            return self.elsewhere[leaf.key]
        if self.lines:
            return self._in_log(leaf)
        block, _, last = leaf.key.rpartition(".")
        shown = next((candidate for candidate in self.leaves if candidate.key == block), leaf) if last in ("device", "enabled") else leaf
        return Witness(self.name, shown.line, shown.column, note, shown.key)

    def _in_log(self, leaf: Leaf) -> Witness:
        """The place in the log, with the line as it stands there; of a long line the part that holds the key."""
        place = self.lines[min(leaf.line, len(self.lines)) - 1]
        column = place.column + leaf.column - 1
        if leaf.column < SHOWN // 2:
            return Witness(place.source, place.line, column, place.text, leaf.key)
        line = self.text.split("\n", leaf.line)[leaf.line - 1]
        return Witness(place.source, place.line, column, line[leaf.column - 1 :][:SHOWN], leaf.key)


@record(frozen=False)
class Translation:
    """What one part says. `settled` are the knobs that a key of it sets, even to something unknown."""

    facts: list[Fact] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    winning: list[Fact] = field(default_factory=list)  # of keys that win over the other parts' as well


def translate(part: Part, spans: Mapping[str, ReleaseSpan], hidden: int | None, beside: Mapping[str, Leaf] | None = None) -> Translation:
    """The knobs that the keys of a part turn, in the order of the table; keys that its framework does not know; keys without effect.

    `beside`: what all parts of the same framework say together.
    """
    result = Translation()
    by_name = {name_of(leaf.key): leaf for leaf in part.leaves}
    context = by_name if part.merged is None else part.merged
    knobs: dict[str, list[str]] = {}
    ignored = {ignored_key.leaf.key: ignored_key for ignored_key in in_vain(part.table, spans, by_name, beside or context)}
    intended: dict[str, str] = {}
    invalid: dict[str, Leaf] = {}
    for knob in part.table.knobs:
        for key in part.table.of(knob):
            leaf = by_name.get(key.key) if key.key else None
            if leaf is None or not stands_with(key, context) or not key.reads(part.table.deciding(part.entry) or part.about):
                continue
            value = _value(part, key, leaf, context, hidden, invalid)
            if value is NOTHING:
                continue
            if leaf.key in ignored and ignored[leaf.key].takes(knob):
                intended.setdefault(leaf.key, knob)
                continue
            knobs.setdefault(leaf.key, []).append(knob)
            if knob not in result.settled and _in_force(part, key, spans):
                result.settled.add(knob)
                if value is not None:
                    origin: Origin = "default" if leaf.option else part.origin
                    fact = Fact(knob, value, origin, part.witness_of(leaf, _note(key, leaf, context, hidden)))  # type: ignore[arg-type]
                    (result.winning if key.wins else result.facts).append(fact)
    if invalid:
        from diagnose.adapters.translate import invalid_values  # a value that nothing understands is rare

        result.notices += invalid_values.notices(part, invalid.values())
    result.facts += _entry_facts(part, result.settled)
    result.entries = [
        Entry(
            leaf.key, leaf.written, leaf.start, leaf.end, leaf.line, leaf.column, tuple(dict.fromkeys(knobs.get(leaf.key, ()))), leaf.used
        )
        for leaf in part.leaves
    ]
    result.facts += _within(part, by_name, result.settled)
    unknown_keys(part, spans.get(part.table.version, EVERY), result)
    for ignored_key in ignored.values():
        _ignored(part, ignored_key, intended.get(ignored_key.leaf.key), result)
    return result


def stands_with(key: Key, by_name: Mapping[str, Leaf]) -> bool:
    """Do the keys that it asks for stand beside it with one of their values (`unset`: not at all)?"""
    return hold(key.where, lambda name: texts_of(by_name.get(name))) is True


def _in_force(part: Part, key: Key, spans: Mapping[str, ReleaseSpan]) -> bool:
    """A framework that drops what it does not know drops the keys of other releases too; where it rejects them, what ran was known.
    Of a key that has a line for some releases and another for others, the line of this release counts."""
    lines = [candidate for candidate in part.table.of(key.knob) if candidate.key == key.key]
    return (part.table.unknown != "dropped" and len(lines) == 1) or key.releases.covers(spans.get(key.version, EVERY)) is not False


def _value(part: Part, key: Key, leaf: Leaf, by_name: Mapping[str, Leaf], hidden: int | None, invalid: dict[str, Leaf]) -> Value | object:
    if key.auto and (leaf.text or "").strip('"') == "auto":
        return automatic(key, hidden)
    try:
        value = meaning(key, leaf)
    except ValueError:
        from diagnose.adapters.translate.invalid_values import understood

        if understood(part.table, leaf):
            return NOTHING
        invalid[leaf.key] = leaf
        return None
    return _scaled(key, _with_more(key, value, by_name), by_name)


def _with_more(key: Key, value: Value | object, by_name: Mapping[str, Leaf]) -> Value | object:
    """The words that switches beside a list add to it."""
    if not key.also or not isinstance(value, str):
        return value
    return ",".join([value, *(words for switch, words in key.also.items() if on(by_name.get(switch)))])


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
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    for factor, multiply in _factors(key, by_name):
        if not factor:
            return None
        if not multiply and 0 < value < factor:  # less than one for each: nobody can tell what ran
            return None
        value = value * factor if multiply else value // factor
    return value


def _factors(key: Key, by_name: Mapping[str, Leaf]) -> Iterable[tuple[int | None, bool]]:
    """What multiplies or (False) divides a value; None where it cannot be known."""
    for written, multiply in ((key.times, True), (key.over, False)):
        for name, presumed in framework_tables.factors(written):
            leaf = by_name.get(name)
            text = (leaf.text or "").partition(":")[0] if leaf else ""
            absent = presumed or (1 if multiply else None) if leaf is None or leaf.shape == "null" else None
            yield (int(text) if text.isdecimal() and len(text) < 8 else absent), multiply


def _note(key: Key, leaf: Leaf, by_name: Mapping[str, Leaf], hidden: int | None) -> str:
    """The arithmetic that leads from what is written to the value; an option whose default it is."""
    if leaf.option:
        return f"default of {leaf.option}"
    steps = [f" {'*' if multiply else '/'} {factor}" for factor, multiply in _factors(key, by_name) if factor != 1]
    return f"{leaf.text}{''.join(steps)}" if steps and leaf.text else _auto_note(key, leaf, hidden)


def _entry_facts(part: Part, settled: set[str]) -> Iterable[Fact]:
    """What the entry point or the class settles: train_dpo trains preferences."""
    for name, knobs in part.table.entries.items():
        if name not in part.entry:
            continue
        for knob, word in knobs.items():
            if knob not in settled and not _said_elsewhere(part, knob):
                settled.add(knob)
                witness = part.witness or Witness(part.name, *part.entry_at, key=part.entry)
                yield Fact(knob, typed(knob, word_of(word)), part.origin, witness)
        return


def _said_elsewhere(part: Part, knob: str) -> bool:
    """Does another file, merged with this one, hold a key that says more than the entry point?"""
    for key in part.table.of(knob) if part.merged else ():
        leaf = part.merged.get(key.key) if part.merged else None
        try:
            if leaf is not None and stands_with(key, part.merged or {}) and meaning(key, leaf) is not NOTHING:
                return True
        except ValueError:
            continue
    return False


def _within(part: Part, by_name: Mapping[str, Leaf], settled: set[str]) -> Iterable[Fact]:
    """A block that is there and lacks a key says that the key has its default: the file is the witness."""
    for key in part.table.keys:
        block = by_name.get(key.within) if key.within else None
        if block is None or key.default is None or key.knob in settled or not stands_with(key, by_name):
            continue
        if part.table.file_key.startswith(f"{key.within}.") and part.table.file_key in by_name:
            continue  # the block names a file of its own, which speaks for the keys that it lacks
        settled.add(key.knob)
        absent = _inside(part.table, key)
        note = f"{block.key} without {absent}" if absent else f"default of {block.key}"
        yield Fact(key.knob, typed_default(key), part.origin, part.witness_of(block, note))


def _inside(tab: Table, key: Key) -> str:
    """The first name below its block of the key that is absent; of a default without a key, of the knob's first one in the block."""
    spellings = [candidate.key for candidate in (key, *tab.of(key.knob)) if candidate.key.startswith(f"{key.within}.")]
    return spellings[0].removeprefix(f"{key.within}.").partition(".")[0] if spellings else ""


def typed_default(key: Key) -> Value:
    return typed(key.knob, key.default or "") if key.default != "none" else "none"


def spelt(tab: Table, knob: str) -> str:
    """How the framework's users write a knob: the first of its keys; the knob's own name where it has none."""
    return next((key.key for key in tab.of(knob) if key.key), knob)


def _ignored(part: Part, ignored_key: Vain, intended: str | None, result: Translation) -> None:
    """The key, what it was meant to turn, and the key that decides instead."""
    witness = part.witness_of(ignored_key.leaf)
    result.facts.append(Fact("config.ignored_key", ignored_key.leaf.key, part.origin, witness))
    if ignored_key.rule.get("quiet"):
        return
    result.notices.append(Notice("warning", "config.ignored_key", Text(ignored_key.rule["en"], ignored_key.rule["zh"]), witness))
    knob = intended or ignored_key.rule.get("wants")
    if knob:
        values = {
            "wanted_knob": knob,
            "wanted_key": ignored_key.real or spelt(part.table, knob),
            "reader": framework_tables.called(part.table.name).zh,
            "wanted_value": ignored_key.held,
        }
        result.facts += [Fact(f"config.{name}", text, part.origin, witness) for name, text in values.items()]
        is_other = bool(ignored_key.real) and all(key.key != ignored_key.real for key in part.table.of(knob))
        result.facts.append(Fact("config.wanted_other", is_other, part.origin, witness))
