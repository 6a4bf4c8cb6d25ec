"""Builds the model from a trainer's own size options (`--num-layers 32 --hidden-size 4096`).

A table's `shape` lists the fields of a model's config.json with entries like those of a knob: the first entry whose key is set,
or whose default applies, gives the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diagnose import catalogue
from diagnose.adapters.formats.config_value import Leaf, name_of, texts_of
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.config_part import Part
from diagnose.errors import UserError
from diagnose.facts import Fact
from diagnose.word_conditions import conditions, hold, word_of

#: Upper bound of a dimension; larger numbers are typing errors.
_LARGEST = 2**31


def built_model(part: Part) -> Fact | None:
    """The model that the part describes; None if a required dimension is missing."""
    if not part.table.shape:
        return None
    own = {name_of(leaf.key): leaf for leaf in part.leaves}
    by_name = {**(part.merged or {}), **own}
    config: dict[str, object] = {}
    for field, lines in part.table.shape.items():
        value = next((result for line in lines if (result := _field_value(line, by_name, part.entry)) is not None), None)
        if value is not None:
            config[field] = value
    witness = next((own[line["key"]] for line in part.table.shape.get("hidden_size", ()) if line.get("key") in own), None)
    if witness is None:
        return None
    try:
        shape = catalogue.model_of_config(config, f"{config.get('num_hidden_layers')} x {config.get('hidden_size')}")
    except (UserError, ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return Fact("model.shape", shape, part.origin, part.witness_of(witness))


def _field_value(line: Mapping[str, Any], by_name: Mapping[str, Leaf], entry: str) -> object:
    """The value that an entry of `shape` gives; None if it does not apply to this entry point or its key is unset."""
    if hold(conditions(line.get("where")), lambda name: texts_of(by_name.get(name))) is not True:
        return None
    if line.get("entry", "") not in entry:
        return None
    if "key" not in line:
        default = line.get("default")
        return _padded(default, line, by_name) if "multiple_of" in line and isinstance(default, int) else default
    leaf = by_name.get(line["key"])
    if leaf is None or leaf.shape not in ("scalar", "flag"):
        return None
    text = leaf.text or "true"
    if line.get("of_model"):
        model = catalogue.model(text)
        return None if model is None else _padded(model.V, line, by_name)
    if "values" in line:
        values = {word_of(name).lower(): value for name, value in line["values"].items()}
        meaning = values.get(text.lower())
        return _padded(meaning, line, by_name) if isinstance(meaning, int) and not isinstance(meaning, bool) else meaning
    number = int(text.replace("_", "")) if len(text) < 12 and text.replace("_", "").isdecimal() else None
    return None if number is None or number >= _LARGEST else _padded(_share(number, line), line, by_name)


def _share(number: int, line: Mapping[str, Any]) -> int:
    """The number times the entry's `share`, rounded down to a multiple."""
    over, under = line.get("share", (1, 1))
    step = line.get("rounded_down_to", 1)
    return int(number * over / under) // int(step) * int(step)


def _padded(number: int, line: Mapping[str, Any], by_name: Mapping[str, Leaf]) -> int | None:
    """The number rounded up to a multiple given by other keys; None if one of them is no number."""
    step = 1
    for name, presumed in framework_tables.factors(line.get("multiple_of", "")):
        leaf = by_name.get(name)
        text = (leaf.text or "") if leaf is not None and leaf.shape != "null" else str(presumed or 1)
        if not (text.isdecimal() and len(text) < 8 and int(text)):
            return None
        step *= int(text)
    return -(-number // step) * step
