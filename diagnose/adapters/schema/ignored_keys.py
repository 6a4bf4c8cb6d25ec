"""Keys that exist and have no effect where they stand: the `ignored` lines of a framework's table.

key: one name, several parted by blanks, or a pattern (`zero_optimization.stage3_*`)
without: the switch that is not on (with `item`: a list that lacks it); with: one that is on
where: keys that have one of these values (diagnose/word_conditions.py)
since, until: the releases for which this holds (`version`: of what, where it is not the framework's own); unknown ones are not spoken of
knobs: only these knobs of the key lose their value; empty: the key keeps what it turns (the sentence alone is told)
wants: the knob that the key was meant to turn, where it turns none itself
quiet: a fact without a sentence, for what people leave in their files
real: the key that decides instead; `without` and the first of `where` where it is left out
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from diagnose.adapters.formats.config_value import Leaf, texts_of
from diagnose.adapters.schema.spellings import Table
from diagnose.record import record
from diagnose.release_spans import EVERY, ReleaseSpan, from_data
from diagnose.word_conditions import conditions, hold, is_one_of

#: Keys that one line of a table is said of at most.
MAX_LEAVES_PER_RULE = 20


@record
class IgnoredKey:
    """A leaf without effect, the line of the table that says so, and the key that decides instead with what stands there."""

    leaf: Leaf
    rule: Mapping[str, Any]
    real: str
    held: str

    def takes(self, knob: str) -> bool:
        """Does the knob lose the value that this key gives it?"""
        knobs = self.rule.get("knobs")
        return knobs is None or knob in knobs


def find_ignored_keys(
    tab: Table, spans: Mapping[str, ReleaseSpan], by_name: Mapping[str, Leaf], context: Mapping[str, Leaf]
) -> Iterator[IgnoredKey]:
    """The keys of one part that say nothing, each once. `around`: what the other parts of the framework's configuration say beside it."""
    reported: set[str] = set()
    for rule in tab.ignored:
        if not _covers_release(rule, spans) or not rule_applies(rule, context):
            continue
        count = 0
        for name in str(rule["key"]).split():
            for leaf in _matching_leaves(name, by_name):
                if leaf.key in reported or not has_value(leaf) or count >= MAX_LEAVES_PER_RULE:
                    continue
                reported.add(leaf.key)
                count += 1
                deciding = _deciding_key(rule)
                yield IgnoredKey(leaf, rule, deciding, _short_value(context.get(deciding)))


def _matching_leaves(name: str, by_name: Mapping[str, Leaf]) -> list[Leaf]:
    if "*" not in name:
        return [by_name[name]] if name in by_name else []
    return [leaf for key, leaf in by_name.items() if fnmatchcase(key, name) and leaf.shape != "map"]


def has_value(leaf: Leaf) -> bool:
    """A key that is switched off or empty loses nothing."""
    return leaf.shape != "null" and (leaf.text or "").lower() not in ("false", "no", "none")


def rule_applies(rule: Mapping[str, Any], context: Mapping[str, Leaf]) -> bool:
    """Does the combination stand here that makes the key say nothing?"""
    absent, present, item = rule.get("without"), rule.get("with"), rule.get("item")
    switch = context.get(absent) if absent else None
    is_off = (is_one_of(texts_of(switch), (item,)) is True if item else is_on(switch)) if absent else False
    if is_off or (present and not is_on(context.get(present))):
        return False
    return hold(conditions(rule.get("where")), lambda name: texts_of(context.get(name))) is True


def is_on(leaf: Leaf | None) -> bool:
    """Is the key there and not switched off?"""
    return leaf is not None and leaf.shape != "null" and (leaf.text or "true").lower() not in ("false", "no", "off", "none", "0")


def _covers_release(rule: Mapping[str, Any], spans: Mapping[str, ReleaseSpan]) -> bool:
    return from_data(rule.get("since"), rule.get("until")).covers(spans.get(rule["version"], EVERY)) is True


def _deciding_key(rule: Mapping[str, Any]) -> str:
    return str(rule.get("real") or rule.get("without") or next(iter(rule.get("where", {})), ""))


def _short_value(leaf: Leaf | None) -> str:
    """What stands there, short."""
    return "unset" if leaf is None or leaf.shape == "null" else "true" if leaf.shape == "flag" else (leaf.text or leaf.written)[:80]
