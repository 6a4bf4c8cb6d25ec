"""Translates a written value to the value of the knob that its key turns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from diagnose.adapters.formats.config_value import NO, YES, Leaf
from diagnose.adapters.schema.table_types import Key
from diagnose.errors import UserError
from diagnose.facts import MAX_TEXT, Value, declared, typed
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple

#: Sentinel: the key is present and leaves the knob alone.
NOTHING = object()
_INTEGER = lazy_compile(r"\d{1,7}(?:\.0+)?")


def meaning(key: Key, leaf: Leaf) -> Value | object:
    """What a written value means for the knob; NOTHING where it leaves the knob alone, None where it cannot be known.

    Raises ValueError where the knob's kind cannot hold it.
    """
    if leaf.shape == "unsure":
        return None
    if leaf.shape == "null" and leaf.text == "none" and key.values and "none" in key.values:
        return _knob_value(key.knob, key.values["none"])  # on a command line it is a word like any other
    kind = (declared(key.knob) or _UNDECLARED).kind
    if leaf.shape in ("null", "map") and not (key.values and "*" in key.values and leaf.shape == "map"):
        return _block_meaning(key, leaf, kind)
    if key.takes == "any":
        return _first_word_meaning(key, leaf)
    if key.takes == "each":
        return _words_meaning(key, leaf)
    text = _plain_text(key, leaf)
    if text is None:
        return NOTHING
    if leaf.shape == "list" and key.values is None and key.takes == "whole" and kind in ("count", "ratio", "size", "switch"):
        raise ValueError(text)  # a list where one value belongs
    if key.values is not None:
        word = _look_up(key.values, text)
        if word is None:
            words = (declared(key.knob) or _UNDECLARED).words
            if text.lower() in words and _switch_word(text) not in ("true", "false"):
                return _knob_value(key.knob, text.lower())
            if _switch_word(text) in ("true", "false") or text.lower() == "auto":
                return NOTHING
            raise ValueError(text)
        return NOTHING if word == "nothing" else None if word == "unknown" else _knob_value(key.knob, text if word == "same" else word)
    return _knob_value(key.knob, text)


def _block_meaning(key: Key, leaf: Leaf, kind: str) -> object:
    """NOTHING: the block's own keys set the knob. Raises ValueError for a block where a number belongs."""
    if leaf.shape == "map" and key.values is None and key.takes == "whole" and kind in ("count", "ratio", "size"):
        raise ValueError(leaf.written)
    return NOTHING


def _look_up(values: Mapping[str, str], text: str) -> str | None:
    folded = {name.lower(): word for name, word in values.items()}
    exact = folded.get(text.lower(), folded.get(_switch_word(text)))
    patterns = (word for name, word in folded.items() if "*" in name and name != "*" and fnmatchcase(text.lower(), name))
    return exact if exact is not None else next(patterns, folded.get("*"))


class _Undeclared(NamedTuple):
    """Stands for the declaration of a fact that rules/facts.yaml does not hold: any text."""

    words: tuple[str, ...] = ()
    kind: str = "text"


_UNDECLARED = _Undeclared()


def _plain_text(key: Key, leaf: Leaf) -> str | None:
    if leaf.shape == "flag":
        return None if key.takes == "basename" else "true"
    if key.takes == "many":
        items = leaf.items if leaf.shape == "list" else [item for item in (leaf.text or "").strip("[] ").split(",") if item.strip()]
        return str(len(items)) if leaf.shape == "list" or len(items) > 1 else (leaf.text or "").strip("[] ,")
    if key.takes == "largest":
        leaf = largest_number(leaf)
    if leaf.shape == "list":
        return ",".join(leaf.items)
    text = leaf.text or ""
    if key.takes == "part":
        return allocator_option(text, key.part)
    if key.takes == "member":
        return json_member(text, key.part)
    if key.takes == "basename":
        return text.replace("\\", "/").rpartition("/")[2]
    return text


def json_member(text: str, name: str) -> str | None:
    """A member of the object that a command line gives as JSON; None where it has none of that name."""
    try:
        data = json.loads(text.strip("'"))
    except (ValueError, RecursionError):  # nested deeper than a stack is
        return None
    value = data.get(name) if isinstance(data, dict) else None
    return str(value) if isinstance(value, (str, int, float)) else None


def largest_number(leaf: Leaf) -> Leaf:
    """A list of sizes as its largest, `(640, 800)`, `640x800` and `640:800` as well."""
    texts = leaf.items or re.split(r"[\s,()\[\]x*:]+", (leaf.text or "").strip("()[] "))
    numbers = [text for text in texts if text]
    if leaf.shape not in ("scalar", "list") or not numbers or not all(_INTEGER.fullmatch(text) for text in numbers):
        return leaf
    return leaf._replace(shape="scalar", text=str(max(int(float(text)) for text in numbers)), items=())


def _first_word_meaning(key: Key, leaf: Leaf) -> Value | object:
    words = leaf.items if leaf.shape == "list" and leaf.items else (leaf.text or "").replace(",", " ").split()
    for word in words:
        for name in (word, _switch_word(word)):
            for spelling, value in (key.values or {}).items():
                if spelling.lower() == name.lower():
                    return NOTHING if value == "nothing" else _knob_value(key.knob, value)
    return NOTHING


def _words_meaning(key: Key, leaf: Leaf) -> Value | object:
    words = leaf.items if leaf.shape == "list" and leaf.items else re.findall(r"[\w.-]+", leaf.text or "")
    named = [name for word in words if (name := (key.values or {}).get(word, word)) != "nothing"]
    return _knob_value(key.knob, ",".join(named)) if named else NOTHING


def allocator_option(text: str, name: str) -> str | None:
    """The value of one option of an allocator string such as `expandable_segments:True,max_split_size_mb:128`."""
    values = [option.partition(":")[2] for option in allocator_options(text) if option.partition(":")[0] == name]
    return None if not values else f"{values[-1]} MiB" if name.endswith("_mb") else values[-1]


def allocator_options(text: str) -> list[str]:
    """The options of an allocator string, `name:value`; commas inside [...] part no options."""
    return re.findall(r"(?<![^,:\[\]])[^,:\[\]]+:(?:\[[^\]]*\]|[^,\[\]]*)", text.replace(" ", ""))


def _switch_word(text: str) -> str:
    word = text.strip().lower()
    return "true" if word in YES else "false" if word in NO else word


def _count_value(knob: str, text: str) -> Value | object:
    """A count; negative numbers, and 0 for training and parallel sizes, leave the knob alone."""
    if text.strip().lower() in ("auto", "gpu", "") or re.fullmatch(r"\d+:\d+", text.strip()):  # as many as there are; elastic
        return NOTHING
    if "," in text:
        raise ValueError(text)  # no reader of configs takes the commas of thousands
    try:
        value = typed(knob, text)
    except UserError as error:
        raise ValueError(text) from error
    if not isinstance(value, int):
        raise ValueError(text)
    return NOTHING if value < 0 or (value == 0 and knob.startswith(("train.", "parallel."))) else value


def _knob_value(knob: str, text: str) -> Value | object:
    entry = declared(knob)
    if entry is not None and entry.kind == "count":
        return _count_value(knob, text)
    if entry is not None and entry.kind == "word" and entry.words and text not in entry.words:
        raise ValueError(text)
    if entry is not None and entry.kind == "text":
        if len(text) > MAX_TEXT:
            raise ValueError(text)
        if re.fullmatch(r"\[[\w\s'\",.-]*\]", text):  # a list as an option is given it: ['q_proj', 'v_proj']
            text = ",".join(item.strip(" '\"") for item in text[1:-1].split(","))
        return text or NOTHING
    try:
        return typed(knob, _switch_word(text) if entry is not None and entry.kind == "switch" else text)
    except UserError as error:
        raise ValueError(text) from error
