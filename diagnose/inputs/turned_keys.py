"""Keys of programs that a sentence names, and the remedies that turn the knobs which they turn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from diagnose import rule_files
from diagnose.adapters.schema import key_names

#: A key of a program: an option, or words joined with underscores or dashes.
_KEY = re.compile(
    r"(?<![\w./-])(?:--[A-Za-z][\w-]{2,60}|(?:\w{1,40}\.){0,6}[A-Za-z][A-Za-z0-9]{0,30}(?:[_-][A-Za-z0-9]{1,30}){1,9})(?![\w/]|\.\w)",
    re.ASCII,
)


def keys_in(text: str) -> Iterator[tuple[str, str]]:
    """The keys that a text names, each with the knob that it turns."""
    for key in _KEY.finditer(text):
        if knob := key_names.knob_of_key(key[0]):
            yield key[0], knob


@cache
def remedies_of(knob: str) -> Sequence[tuple[str, bool | None]]:
    """The remedies that turn a knob, each with whether it turns it up (False: down; None: to a word). Of several that turn it the same way
    those that turn the fewest others; of words one alone, as nobody can tell which of them a key means."""
    own = _by_knob().get(knob, ())
    by_way = {way: [remedy for remedy, other in own if other is way] for _, way in own}
    least = {way: min(map(_breadth, remedies)) for way, remedies in by_way.items()}
    return tuple(
        (remedy, way)
        for way, remedies in by_way.items()
        if way is not None or len(own) == 1
        for remedy in remedies
        if _breadth(remedy) == least[way]
    )


def _breadth(remedy: str) -> int:
    """How many knobs a remedy turns."""
    return sum(any(other == remedy for other, _ in remedies) for remedies in _by_knob().values())


@cache
def _by_knob() -> Mapping[str, Sequence[tuple[str, bool | None]]]:
    found: dict[str, dict[tuple[str, bool | None], None]] = {}
    for rule in rule_files.table("remedies").values():
        to = rule.get("to", ())
        values = [str(to.get("most", ""))] if isinstance(to, dict) else list(map(str, to))
        share = next((value for value in values if value.endswith("%")), "")
        if share or (values and values[0].replace("_", "").isalpha()):
            found.setdefault(rule["turns"], {})[rule["remedy"], float(share[:-1]) > 100 if share else None] = None
    return {knob: tuple(remedies) for knob, remedies in found.items()}
