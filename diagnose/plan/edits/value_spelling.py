"""How a value is written: the framework's word for it, in the syntax of the document and the quotes of the current value."""

from __future__ import annotations

import json
import re
import shlex

from diagnose.adapters.formats.settings import Document, Entry, Form
from diagnose.adapters.schema.table_types import Key
from diagnose.adapters.schema.value_meaning import allocator_options
from diagnose.facts import Value
from diagnose.plan.patch.patch_places import line_start, newline
from diagnose.plan.remedies.remedy import Edit
from diagnose.units import Size
from diagnose.word_conditions import word_of

_PLAIN = re.compile(r"[A-Za-z_][\w./@-]*|\d+(?:\.\d+)?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"})


def current_text(entry: Entry) -> str:
    """The value as written; "true" for a flag without one."""
    return "true" if entry.is_bare_flag else entry.written


def word_for(key: Key, value: Value) -> str | None:
    """The framework's word for a value of the knob, unquoted; None where it has none."""
    text = table_word(value)
    if key.values is not None:
        same = text if key.values.get("*") == "same" and text not in key.values else None
        return next((name for name, meaning in key.values.items() if meaning == text and "*" not in name), same)
    return {"enabled": "true", "disabled": "false"}[text] if isinstance(value, bool) else text


def table_word(value: Value) -> str:
    """The value as the framework tables write it."""
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    if isinstance(value, Size):
        return str(value.bytes)
    return f"{value:g}" if isinstance(value, float) else str(value)


def spell(word: str, form: Form, kind: str = "text", entry: Entry | None = None) -> str:
    """A word in the syntax of the form, in the quotes of the current entry. `kind`: that of the fact, which decides on quotes."""
    number = kind not in ("text", "version") and _NUMBER.fullmatch(word) is not None
    switch = word in ("true", "false")
    if form == "json":
        return word if number or switch else json.dumps(word, ensure_ascii=False)
    if form == "toml":
        return word if number or switch else _toml(word, entry)
    quote = entry.written[:1] if entry is not None and entry.written[:1] in ("'", '"') else ""
    if form == "python":
        if entry is not None and entry.written.startswith("torch."):
            return f"torch.{word}"
        return word.capitalize() if switch else word if number else _quoted(word, quote)
    if form == "yaml":
        plain = switch or number or (not quote and _PLAIN.fullmatch(word) and word.lower() not in _RESERVED)
        return word if plain else _quoted(word, quote)
    return f"{quote}{word}{quote}" if quote and not set(word) & set("'\"\\$`") else shlex.quote(word)


def _quoted(word: str, quote: str) -> str:
    """A string in these quotes if they can hold it without escapes, else in JSON's."""
    return f"'{word}'" if quote == "'" and word.isprintable() and not set(word) & set("'\\") else json.dumps(word, ensure_ascii=False)


def _toml(word: str, entry: Entry | None) -> str:
    """A TOML string, literal if the current one is and can hold the word."""
    if entry is not None and entry.written[:1] == "'" and entry.written[:3] != "'''" and word.isprintable() and "'" not in word:
        return f"'{word}'"
    return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")


def literal(value: object, form: Form) -> str:
    """A list, mapping or scalar of a framework table in the syntax of the form."""
    if isinstance(value, dict):
        if form == "python":
            return "{" + ", ".join(f'"{name}": {literal(inner, form)}' for name, inner in value.items()) + "}"
        if form == "toml":
            return "{" + ", ".join(f"{name} = {literal(inner, form)}" for name, inner in value.items()) + "}"
        if form == "yaml":
            return "{" + ", ".join(f"{name}: {literal(inner, form)}" for name, inner in value.items()) + "}"
        text = json.dumps(value)
        return shlex.quote(text) if form in ("shell", "command") else text
    if isinstance(value, list):
        return "[" + ", ".join(literal(item, form) for item in value) + "]"
    word = word_of(value)
    return spell(word, form, "count" if isinstance(value, (int, float)) and not isinstance(value, bool) else "text")


def add_to_list(document: Document, key: str, item: str, entry: Entry | None) -> list[Edit]:
    """The edit that appends an item to a list, in the style in which the list is written; none where it has the item."""
    if entry is None or entry.written in ("", "[]", "null", "~"):
        return [Edit(document.name, key, current_text(entry) if entry else None, literal([item], document.form))]
    if item in entry.written:
        return []
    if entry.written.startswith("["):
        return [Edit(document.name, key, entry.written, f"{entry.written[:-1].rstrip()}, {spell(item, document.form)}]")]
    indent = document.text[line_start(document.text, entry.start) : entry.start]
    lines = f"{entry.written.rstrip()}{newline(document.text)}{indent}- {spell(item, document.form)}"
    return [Edit(document.name, key, entry.written, lines)]


def exchange_word(key: Key, word: str, entry: Entry | None) -> str | None:
    """The entry's list of words with the one that sets this knob replaced; None where there is none."""
    if entry is None:
        return None
    for spelling in key.values or {}:
        pattern = re.compile(rf"(?<![\w]){re.escape(spelling)}(?![\w])")
        if pattern.search(entry.written):
            return pattern.sub(word, entry.written, count=1)
    return None


def merge_option(key: Key, value: Value, entry: Entry | None, form: Form) -> str | None:
    """The allocator's option string with one option changed or appended; None without an entry."""
    if entry is None:
        return None
    new = str(value.bytes // 2**20) if isinstance(value, Size) else table_word(value) if not isinstance(value, bool) else str(value)
    options = allocator_options(entry.written.strip("\"'"))
    names = [option.partition(":")[0] for option in options]
    options = [f"{key.part}:{new}" if name == key.part else option for name, option in zip(names, options, strict=True)]
    return _requote(",".join(options if key.part in names else [*options, f"{key.part}:{new}"]), entry, form)


def _requote(text: str, entry: Entry, form: Form) -> str:
    """A string in the quotes of the entry; without any, quoted as the form needs it."""
    quote = entry.written[:1] if entry.written[:1] in ("'", '"') else ""
    return f"{quote}{text}{quote}" if quote else json.dumps(text) if form == "python" else shlex.quote(text)
