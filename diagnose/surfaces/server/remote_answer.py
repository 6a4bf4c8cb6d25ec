"""A diagnosis asked for from elsewhere (web, agents): everything is text, names are labels, nothing is opened or kept.

Questions and answers are plain values, so that `crew.py` can carry them to a worker process and back.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from diagnose.errors import UserError
from diagnose.phrases import Lang, Text
from diagnose.surfaces.server.question import Answer, Question, as_json, diagnosed, label, page

if TYPE_CHECKING:
    from diagnose.facts import Declared

#: Columns of an article that is read as plain text.
WIDTH = 100


def answered(asked: Question) -> Answer:
    """What a worker does: diagnose and render. A mistake of the asker is a sentence in the answer; ours is raised."""
    try:
        if asked.form == "change":
            from diagnose.surfaces.server.what_if import compared

            return compared(asked)
        if asked.form.startswith("chat."):
            from diagnose.surfaces.server.chat_answer import spoken

            return spoken(asked)
        found = diagnosed(asked)
    except UserError as trouble:
        return Answer(wrong=trouble.to(asked.lang))
    return Answer(data=as_json(found, asked.lang), page="" if asked.form == "json" else page(found, asked))


# -- the rule base


@cache
def rules(lang: Lang) -> tuple[dict[str, str], ...]:
    """Every rule: its id, the kind of word it speaks for and the word, its title."""
    from diagnose.manual import manual_pages, rule_index
    from diagnose.manual.rule_index import WORD_FIELD

    return tuple(
        {"id": entry.id, "kind": WORD_FIELD[entry.room], "word": entry.word, "title": manual_pages.title_of(entry, lang)}
        for entry in rule_index.load_index().entries
    )


@cache
def _spoken() -> frozenset[str]:
    from diagnose.manual import rule_index

    return frozenset(rule_index.load_index().names())


@cache
def _article(name: str, lang: Lang) -> dict[str, Any]:
    from diagnose.manual import manual_pages
    from diagnose.surfaces.term.manual_text import printed

    return {
        "name": name,
        "text": printed(manual_pages.article(name, lang), WIDTH),
        "rules": [rule for rule in rules(lang) if rule["id"] == name] or [rule for rule in rules(lang) if rule["word"] == name],
    }


def article(name: str, lang: Lang) -> dict[str, Any]:
    """What the manual says of a rule, or of every rule of a cause or remedy. Raises UserError where nothing is called that."""
    from diagnose.surfaces.term.console import trouble

    if name not in _spoken():  # asked first, so that only what exists is kept
        shown = label(name, "?")
        near = difflib.get_close_matches(shown, _spoken(), 1)
        raise trouble("no_such_rule", hint="did_you_mean" if near else "", name=repr(shown), near="".join(near))
    return _article(name, lang)


@cache
def knobs(lang: Lang) -> tuple[dict[str, Any], ...]:
    """Every knob: its name, kind and meaning, and the words that it may be where these are fixed."""
    from diagnose import rule_files
    from diagnose.facts import declared

    def told(each: Declared) -> dict[str, Any]:
        meaning = each.zh if lang == "zh" else each.en
        return {"name": each.name, "kind": each.kind, "meaning": meaning, **({"words": [*each.words]} if each.words else {})}

    return tuple(map(told, filter(None, map(declared, rule_files.table("knobs")))))


# -- extras


def missing(extra: Literal["serve", "mcp", "slack", "feishu"], error: ImportError, command: str = "") -> UserError:
    """The sentence that tells how to install what a command needs; the extra has its name unless another is given."""
    from diagnose.phrases import phrase

    what: Text = phrase("remote.extra", command=command or extra, module=error.name or "?")
    return UserError(what, "", phrase("remote.install", extra=extra))
