"""What a key means by its name alone, whichever program has it: the knob that all frameworks agree on, else the lexicon's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from diagnose import rule_files
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.schema import lexicon


def knob_of_key(name: str) -> str:
    """The knob that a key turns: `--chunked-prefill-size`, `actor.ppo_micro_batch_size_per_gpu`; "" where tables differ or none has it."""
    own = _normal(name)
    return _by_name().get(own) or _guessed(own)


def knob_in_tables(name: str) -> str:
    """The knob that a key of several words turns in every framework that has it; "" where they differ or none does."""
    return _by_name().get(_normal(name), "")


def _guessed(name: str) -> str:
    if not lexicon.means_a_knob(name):
        return ""
    read = lexicon.guesses([Leaf(name, "1", "1", 0, 0, 0, 0)], lexicon.NEEDED).read
    return next((guess.knob for guess in read if not guess.implied), "")


def _normal(name: str) -> str:
    return name.lstrip("-+").rpartition(".")[2].replace("-", "_").lower()


@cache
def _by_name() -> Mapping[str, str]:
    return rule_files.kept("frameworks.key_names", _made, "frameworks")  # type: ignore[no-any-return]


def _made() -> dict[str, str]:
    """Names that turn one knob in every framework that has them."""
    knobs: dict[str, set[str]] = {}
    for raw in rule_files.table("frameworks").values():
        for knob, entries in raw.items():
            for entry in entries if "." in knob else ():
                if name := entry.get("key"):
                    knobs.setdefault(_normal(name), set()).add(knob)
    return {name: knob for name, (knob, *others) in knobs.items() if not others and "_" in name}
