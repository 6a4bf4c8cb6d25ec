"""Translates the leaves of one part to facts and entries by the table of its framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from diagnose.adapters.formats.config_value import Leaf, name_of, texts_of
from diagnose.adapters.formats.settings import Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.ignored_keys import IgnoredKey, find_ignored_keys, is_on
from diagnose.adapters.schema.table_types import Key, Table
from diagnose.adapters.schema.value_meaning import NOTHING, meaning
from diagnose.adapters.translate import invalid_values
from diagnose.adapters.translate.config_part import Part, Translation
from diagnose.adapters.translate.unread_keys import unknown_keys
from diagnose.facts import Fact, Notice, Origin, Value, Witness, typed
from diagnose.phrases import Text
from diagnose.release_spans import EVERY, ReleaseSpan
from diagnose.word_conditions import hold, word_of

__all__ = ["auto_value", "name_of", "translate", "typed_default", "where_holds"]


def translate(part: Part, spans: Mapping[str, ReleaseSpan], hidden: int | None, beside: Mapping[str, Leaf] | None = None) -> Translation:
    """Facts for the knobs that a part sets, in the order of the table; notices for unknown, invalid and ineffective keys.

    `spans`: possible releases. `hidden`: the model's hidden size, for "auto". `beside`: the keys of all parts of the framework.
    """
    result = Translation()
    by_name = {name_of(leaf.key): leaf for leaf in part.leaves}
    context = by_name if part.merged is None else part.merged
    knobs: dict[str, list[str]] = {}
    ignored = {
        ignored_key.leaf.key: ignored_key for ignored_key in find_ignored_keys(part.table, spans, by_name, beside or context, part.whole)
    }
    intended: dict[str, str] = {}
    invalid: dict[str, Leaf] = {}
    for knob in part.table.knobs:
        for key in part.table.of(knob):
            leaf = by_name.get(key.key) if key.key else None
            if leaf is None or not where_holds(key, context) or not key.reads(part.table.deciding(part.entry) or part.about):
                continue
            value = _knob_value(part, key, leaf, context, hidden, invalid)
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
        result.notices += invalid_values.invalid_value_notices(part, invalid.values())
    result.facts += _entry_facts(part, result.settled)
    result.entries = [
        Entry(
            leaf.key, leaf.written, leaf.start, leaf.end, leaf.line, leaf.column, tuple(dict.fromkeys(knobs.get(leaf.key, ()))), leaf.used
        )
        for leaf in part.leaves
    ]
    result.facts += _block_defaults(part, by_name, result.settled)
    unknown_keys(part, spans.get(part.table.version, EVERY), result)
    for ignored_key in ignored.values():
        _add_ignored(part, ignored_key, intended.get(ignored_key.leaf.key), result)
    return result


def where_holds(key: Key, by_name: Mapping[str, Leaf]) -> bool:
    """Whether the key's `where` condition on its sibling keys holds (`unset`: absent)."""
    return hold(key.where, lambda name: texts_of(by_name.get(name))) is True


def _in_force(part: Part, key: Key, spans: Mapping[str, ReleaseSpan]) -> bool:
    """Whether the entry is valid in the possible releases. A framework that rejects unknown keys would not have started otherwise,
    so that only a key with several entries is checked there."""
    lines = [candidate for candidate in part.table.of(key.knob) if candidate.key == key.key]
    return (part.table.unknown != "dropped" and len(lines) == 1) or key.releases.covers(spans.get(key.version, EVERY)) is not False


def _knob_value(
    part: Part, key: Key, leaf: Leaf, by_name: Mapping[str, Leaf], hidden: int | None, invalid: dict[str, Leaf]
) -> Value | object:
    if key.auto and (leaf.text or "").strip('"') == "auto":
        return auto_value(key, hidden)
    try:
        value = meaning(key, leaf)
    except ValueError:
        if invalid_values.is_understood(part.table, leaf):
            return NOTHING
        invalid[leaf.key] = leaf
        return None
    return _scaled(key, _with_added_words(key, value, by_name), by_name)


def _with_added_words(key: Key, value: Value | object, by_name: Mapping[str, Leaf]) -> Value | object:
    """Append the words that sibling switches (`also`) add."""
    if not key.also or not isinstance(value, str):
        return value
    return ",".join([value, *(words for switch, words in key.also.items() if is_on(by_name.get(switch)))])


def auto_value(key: Key, hidden: int | None) -> int | None:
    """The value that Hugging Face computes for "auto"; None if the hidden size is unknown."""
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
    """Apply the key's factors, as in processes per node * nodes or global batch / micro batch; None if one is unknown."""
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
    """The factors of a value, True to multiply or False to divide; None if unknown."""
    for written, multiply in ((key.times, True), (key.over, False)):
        for name, presumed in framework_tables.factors(written):
            leaf = by_name.get(name)
            text = (leaf.text or "").partition(":")[0] if leaf else ""
            absent = presumed or (1 if multiply else None) if leaf is None or leaf.shape == "null" else None
            yield (int(text) if text.isdecimal() and len(text) < 8 else absent), multiply


def _note(key: Key, leaf: Leaf, by_name: Mapping[str, Leaf], hidden: int | None) -> str:
    """The arithmetic from the written value to the knob's, or the option whose default it is."""
    if leaf.option:
        return f"default of {leaf.option}"
    steps = [f" {'*' if multiply else '/'} {factor}" for factor, multiply in _factors(key, by_name) if factor != 1]
    return f"{leaf.text}{''.join(steps)}" if steps and leaf.text else _auto_note(key, leaf, hidden)


def _entry_facts(part: Part, settled: set[str]) -> Iterable[Fact]:
    """Facts that the entry point or class implies: train_dpo trains preferences."""
    for name, knobs in part.table.entries.items():
        if name not in part.entry:
            continue
        for knob, word in knobs.items():
            if knob not in settled and not _set_elsewhere(part, knob):
                settled.add(knob)
                witness = part.witness or Witness(part.name, *part.entry_at, key=part.entry)
                yield Fact(knob, typed(knob, word_of(word)), part.origin, witness)
        return


def _set_elsewhere(part: Part, knob: str) -> bool:
    """Whether a file merged with this one sets the knob."""
    for key in part.table.of(knob) if part.merged else ():
        leaf = part.merged.get(key.key) if part.merged else None
        try:
            if leaf is not None and where_holds(key, part.merged or {}) and meaning(key, leaf) is not NOTHING:
                return True
        except ValueError:
            continue
    return False


def _block_defaults(part: Part, by_name: Mapping[str, Leaf], settled: set[str]) -> Iterable[Fact]:
    """Defaults of keys absent from a block that is present; the block is the witness."""
    for key in part.table.keys:
        block = by_name.get(key.within) if key.within else None
        if block is None or key.default is None or key.knob in settled or not where_holds(key, by_name):
            continue
        if part.table.file_key.startswith(f"{key.within}.") and part.table.file_key in by_name:
            continue  # the block names a file that may set the absent keys
        settled.add(key.knob)
        absent = _absent_name(part.table, key)
        note = f"{block.key} without {absent}" if absent else f"default of {block.key}"
        yield Fact(key.knob, typed_default(key), part.origin, part.witness_of(block, note))


def _absent_name(tab: Table, key: Key) -> str:
    """Name, below the block, of the absent key; for a default without a key, of the knob's first key in the block."""
    spellings = [candidate.key for candidate in (key, *tab.of(key.knob)) if candidate.key.startswith(f"{key.within}.")]
    return spellings[0].removeprefix(f"{key.within}.").partition(".")[0] if spellings else ""


def typed_default(key: Key) -> Value:
    return typed(key.knob, key.default or "") if key.default != "none" else "none"


def spelling(tab: Table, knob: str) -> str:
    """The framework's first key for a knob; the knob's own name if it has none."""
    return next((key.key for key in tab.of(knob) if key.key), knob)


def _add_ignored(part: Part, ignored_key: IgnoredKey, intended: str | None, result: Translation) -> None:
    """Add facts and a notice for an ineffective key: the intended knob and the deciding key."""
    witness = part.witness_of(ignored_key.leaf)
    result.facts.append(Fact("config.ignored_key", ignored_key.leaf.key, part.origin, witness))
    if ignored_key.rule.get("quiet"):
        return
    result.notices.append(Notice("warning", "config.ignored_key", Text(ignored_key.rule["en"], ignored_key.rule["zh"]), witness))
    knob = intended or ignored_key.rule.get("wants")
    wanted = ignored_key.real or (spelling(part.table, knob) if knob else "")
    if knob and wanted != name_of(ignored_key.leaf.key):  # it cannot be written in its own place
        values = {
            "wanted_knob": knob,
            "wanted_key": wanted,
            "reader": framework_tables.display_name(part.table.name),
            "wanted_value": ignored_key.held,
        }
        result.facts += [Fact(f"config.{name}", text, part.origin, witness) for name, text in values.items()]
        is_other = bool(ignored_key.real) and all(key.key != ignored_key.real for key in part.table.of(knob))
        result.facts.append(Fact("config.wanted_other", is_other, part.origin, witness))
