"""The rule base for clients of servers: rules, articles of the manual and knobs as JSON values."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

from diagnose import rule_files
from diagnose.facts import Declared, declared
from diagnose.manual import manual_pages, rule_index
from diagnose.manual.rule_index import WORD_FIELD
from diagnose.phrases import Lang
from diagnose.surfaces.server.question import label
from diagnose.surfaces.terminal.console import trouble
from diagnose.surfaces.terminal.rules_command import render_blocks

#: Columns of an article that is read as plain text.
WIDTH = 100


@cache
def rules(lang: Lang) -> tuple[dict[str, str], ...]:
    """Every rule: its id, its kind (cause or remedy), the word of that cause or remedy, and its title."""
    return tuple(
        {"id": entry.id, "kind": WORD_FIELD[entry.room], "word": entry.word, "title": manual_pages.title_of(entry, lang)}
        for entry in rule_index.load_index().entries
    )


@cache
def _rule_names() -> frozenset[str]:
    return frozenset(rule_index.load_index().names())


@cache
def _article(name: str, lang: Lang) -> dict[str, object]:
    return {
        "name": name,
        "text": render_blocks(manual_pages.article(name, lang), WIDTH),
        "rules": [rule for rule in rules(lang) if rule["id"] == name] or [rule for rule in rules(lang) if rule["word"] == name],
    }


def article(name: str, lang: Lang) -> dict[str, Any]:
    """The manual's article on a rule, or on every rule of a cause or remedy. Raises UserError for an unknown name."""
    if name not in _rule_names():  # checked first, so that clients cannot fill the cache of _article with names of their own
        shown_name = label(name, "?")
        near = difflib.get_close_matches(shown_name, _rule_names(), 1)
        raise trouble("no_such_rule", hint="did_you_mean" if near else "", name=repr(shown_name), near="".join(near))
    return _article(name, lang)


@cache
def knobs(lang: Lang) -> tuple[dict[str, object], ...]:
    """Every knob: its name, kind and meaning, and its values if they are an enumeration."""

    def describe(entry: Declared) -> dict[str, object]:
        meaning = entry.zh if lang == "zh" else entry.en
        return {"name": entry.name, "kind": entry.kind, "meaning": meaning, **({"words": [*entry.words]} if entry.words else {})}

    return tuple(map(describe, filter(None, map(declared, rule_files.table("knobs")))))
