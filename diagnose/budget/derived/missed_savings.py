"""Keys of the configuration without effect that were meant to save memory."""

from __future__ import annotations

from diagnose.facts import Fact, FactBook, Value, derived_fact
from diagnose.record import replace

#: Knobs that people set to save memory.
SAVING = ("train.", "zero.", "fsdp.", "lora.", "model.a", "model.q", "rollout.", "eval.", "data.image", "alloc.", "parallel.")


def missed(book: FactBook) -> list[Fact]:
    """The first key without effect that was meant to set a knob that saves memory: one that is not read, then one that is in vain."""
    keys = {_place(key): key for name in ("config.unknown_key", "config.ignored_key") for key in book.all(name)}
    if not keys:
        return []
    real, reader, in_force, other_value = (
        {_place(key_fact): key_fact.value for key_fact in book.all(f"config.{name}")}
        for name in ("wanted_key", "reader", "wanted_value", "wanted_other")
    )
    for knob in sorted(book.all("config.wanted_knob"), key=lambda knob: _place(knob) in in_force):
        place = _place(knob)
        key = keys.get(place)  # a key without a knob has no partner
        if key is not None and isinstance(knob.value, str) and knob.value.startswith(SAVING):
            key_fact = f"{key.value} was meant as {knob.value}"
            return [
                derived_fact("config.missed_memory", True, key_fact),
                Fact("config.missed_key", key.value, "derived", replace(key.witness, text=key_fact)),
                derived_fact("config.missed_knob", knob.value, key_fact),
                derived_fact("config.missed_real", real.get(place, knob.value), key_fact),
                derived_fact("config.missed_value", in_force.get(place) or _written(book.value(knob.value)), key_fact),
                derived_fact("config.missed_reader", reader.get(place, "-"), key_fact),
                derived_fact("config.missed_other", other_value.get(place) is True, key_fact),
            ]
    return [derived_fact("config.missed_memory", False, "no unread key names a knob that saves memory")]


def _place(fact: Fact) -> tuple[str, int, int]:
    """Facts of one key stand in one place."""
    return fact.witness.source, fact.witness.line, fact.witness.column


def _written(value: Value) -> str:
    """A value as a config would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "unset" if value is None else str(value)
