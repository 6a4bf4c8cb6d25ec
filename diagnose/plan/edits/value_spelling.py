"""How a value is written: the framework's word for it, in the quotes and the manner of the form and of what stands there."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from diagnose.adapters.formats.settings import Document, Entry, Form
from diagnose.adapters.schema.spellings import Key
from diagnose.adapters.schema.value_meaning import allocator_options
from diagnose.facts import Value
from diagnose.plan.rules.remedy import Edit
from diagnose.units import Size
from diagnose.word_conditions import word_of

_PLAIN = re.compile(r"[A-Za-z_][\w./@-]*|\d+(?:\.\d+)?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"})


def now(entry: Entry) -> str:
    """The value as written; a flag without one is on."""
    return "true" if flagged(entry) else entry.written


def flagged(entry: Entry) -> bool:
    return entry.start == entry.end and entry.key.startswith("-")


def word_for(key: Key, value: Value) -> str | None:
    """The framework's own word for a value of the knob, before quoting; None where it has none."""
    text = plainly(value)
    if key.values is not None:
        return next((name for name, meant in key.values.items() if meant == text and "*" not in name), None)
    return {"enabled": "true", "disabled": "false"}[text] if isinstance(value, bool) else text


def plainly(value: Value) -> str:
    """A value as the tables write it."""
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    if isinstance(value, Size):
        return str(value.bytes)
    return f"{value:g}" if isinstance(value, float) else str(value)


def spelled(word: str, form: Form, kind: str = "text", entry: Entry | None = None) -> str:
    """A word as this form writes it, in the manner of what stands there."""
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
    """A string in the quotes of what stands there, where they can hold it."""
    return f"'{word}'" if quote == "'" and word.isprintable() and not set(word) & set("'\\") else json.dumps(word, ensure_ascii=False)


def _toml(word: str, entry: Entry | None) -> str:
    """A string in the quotes of what stands there, where they can hold it."""
    if entry is not None and entry.written[:1] == "'" and entry.written[:3] != "'''" and word.isprintable() and "'" not in word:
        return f"'{word}'"
    return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")


def literal(value: Any, form: Form) -> str:
    """A list or mapping of a table as this form writes it."""
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
    return spelled(word, form, "count" if isinstance(value, (int, float)) and not isinstance(value, bool) else "text")


def in_list(document: Document, key: str, item: str, entry: Entry | None) -> list[Edit]:
    """The list with the item, in the manner in which the list is written."""
    if entry is None or entry.written in ("", "[]", "null", "~"):
        return [Edit(document.name, key, now(entry) if entry else None, literal([item], document.form))]
    if item in entry.written:
        return []
    if entry.written.startswith("["):
        return [Edit(document.name, key, entry.written, f"{entry.written[:-1].rstrip()}, {spelled(item, document.form)}]")]
    line_start = document.text.rfind("\n", 0, entry.start) + 1
    indent = document.text[line_start : entry.start]
    newline = "\r\n" if "\r\n" in document.text else "\n"
    return [Edit(document.name, key, entry.written, f"{entry.written.rstrip()}{newline}{indent}- {spelled(item, document.form)}")]


def exchanged(key: Key, word: str, entry: Entry | None) -> str | None:
    """A list of words with the one that means this knob replaced."""
    if entry is None:
        return None
    for spelling in key.values or {}:
        pattern = re.compile(rf"(?<![\w]){re.escape(spelling)}(?![\w])")
        if pattern.search(entry.written):
            return pattern.sub(word, entry.written, count=1)
    return None


def merged(key: Key, value: Value, entry: Entry | None, form: Form) -> str | None:
    """The allocator's string with one option changed or added, the others kept."""
    if entry is None:
        return None
    new = str(value.bytes // 2**20) if isinstance(value, Size) else plainly(value) if not isinstance(value, bool) else str(value)
    options = allocator_options(entry.written.strip("\"'"))
    names = [option.partition(":")[0] for option in options]
    options = [f"{key.part}:{new}" if name == key.part else option for name, option in zip(names, options, strict=True)]
    return requoted(",".join(options if key.part in names else [*options, f"{key.part}:{new}"]), entry, form)


def requoted(text: str, entry: Entry, form: Form) -> str:
    """A string in the quotes of what stands there."""
    quote = entry.written[:1] if entry.written[:1] in ("'", '"') else ""
    return f"{quote}{text}{quote}" if quote else json.dumps(text) if form == "python" else shlex.quote(text)
