"""Known keys without effect in their context: the `ignored` lines of a framework's table.

key: one name, several parted by blanks, or a pattern (`zero_optimization.stage3_*`)
without: the switch that is not on (with `item`: a list that lacks it); with: one that is on
where: keys that have one of these values (diagnose/word_conditions.py)
since, until: the releases for which this holds (`version`: of what, where it is not the framework's own); an unknown release skips the line
knobs: only these knobs of the key lose their value; empty: the key keeps its effect and only the message is shown
wants: the knob that the key was meant to turn, where it turns none itself
quiet: a fact without a message, for harmless leftovers
real: the key that decides instead; defaults to `without`, then to the first key of `where`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from diagnose.adapters.formats.config_value import Leaf, texts_of
from diagnose.adapters.schema.table_types import Table
from diagnose.records import NamedTuple
from diagnose.release_spans import EVERY, ReleaseSpan, from_data
from diagnose.word_conditions import conditions, hold, is_one_of

#: Limit of keys reported per line of a table.
MAX_LEAVES_PER_RULE = 20


class IgnoredKey(NamedTuple):
    """A key without effect, the table line that says so, and the deciding key with its value."""

    leaf: Leaf
    rule: Mapping[str, Any]
    real: str
    held: str

    def takes(self, knob: str) -> bool:
        """Whether the knob ignores the value of this key."""
        knobs = self.rule.get("knobs")
        return knobs is None or knob in knobs


def find_ignored_keys(
    tab: Table, spans: Mapping[str, ReleaseSpan], by_name: Mapping[str, Leaf], context: Mapping[str, Leaf], whole: bool = True
) -> Iterator[IgnoredKey]:
    """The keys of one part that have no effect, each once. `context`: the framework's configuration; where that is not `whole`, a key that
    it lacks is unknown and not unset."""
    reported: set[str] = set()
    for rule in tab.ignored:
        if not _covers_release(rule, spans) or not rule_applies(rule, context) or not (whole or _all_known(rule, context)):
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


def _all_known(rule: Mapping[str, Any], context: Mapping[str, Leaf]) -> bool:
    """Whether every setting that a rule asks for stands in the configuration."""
    return "without" not in rule and all(key in context for key in rule.get("where", ()))


def _matching_leaves(name: str, by_name: Mapping[str, Leaf]) -> list[Leaf]:
    if "*" not in name:
        return [by_name[name]] if name in by_name else []
    return [leaf for key, leaf in by_name.items() if fnmatchcase(key, name) and leaf.shape != "map"]


def has_value(leaf: Leaf) -> bool:
    """Whether the key is set to something other than off or empty."""
    return leaf.shape != "null" and (leaf.text or "").lower() not in ("false", "no", "none")


def rule_applies(rule: Mapping[str, Any], context: Mapping[str, Leaf]) -> bool:
    """Whether the configuration has the combination that makes the key ineffective."""
    absent, present, item = rule.get("without"), rule.get("with"), rule.get("item")
    switch = context.get(absent) if absent else None
    is_off = (is_one_of(texts_of(switch), (item,)) is True if item else is_on(switch)) if absent else False
    if is_off or (present and not is_on(context.get(present))):
        return False
    return hold(conditions(rule.get("where")), lambda name: texts_of(context.get(name))) is True


def is_on(leaf: Leaf | None) -> bool:
    """Whether the key is present and not switched off."""
    return leaf is not None and leaf.shape != "null" and (leaf.text or "true").lower() not in ("false", "no", "off", "none", "0")


def _covers_release(rule: Mapping[str, Any], spans: Mapping[str, ReleaseSpan]) -> bool:
    return from_data(rule.get("since"), rule.get("until")).covers(spans.get(rule["version"], EVERY)) is True


def _deciding_key(rule: Mapping[str, Any]) -> str:
    return str(rule.get("real") or rule.get("without") or next(iter(rule.get("where", {})), ""))


def _short_value(leaf: Leaf | None) -> str:
    """The value as text for a message."""
    return "unset" if leaf is None or leaf.shape == "null" else "true" if leaf.shape == "flag" else (leaf.text or leaf.written)[:80]
