"""A diagnosis asked for from elsewhere (web, agents): everything is text, names are labels, nothing is opened or kept.

Questions and answers are plain values, so that `crew.py` can carry them to a worker process and back.
"""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from diagnose.errors import UserError
from diagnose.phrases import Lang, Text
from diagnose.surfaces.server.question import Answer, Question, diagnose_question, label, render_page, report_json

if TYPE_CHECKING:
    from diagnose.facts import Declared

#: Columns of an article that is read as plain text.
WIDTH = 100


def answer_question(question: Question) -> Answer:
    """What a worker does: diagnose and render. A mistake of the asker is a sentence in the answer; ours is raised."""
    try:
        if question.form == "change":
            from diagnose.surfaces.server.what_if import answer_what_if

            return answer_what_if(question)
        if question.form.startswith("chat."):
            from diagnose.surfaces.server.chat_answer import answer_chat

            return answer_chat(question)
        diagnosis = diagnose_question(question)
    except UserError as error:
        return Answer(wrong=error.to(question.lang))
    return Answer(data=report_json(diagnosis, question.lang), page="" if question.form == "json" else render_page(diagnosis, question))


# -- the rule base


@cache
def rules(lang: Lang) -> tuple[dict[str, str], ...]:
    """Every rule: its id, the kind of word it speaks for and the word, its title."""
    from diagnose.manual import manual_pages, rule_shelf
    from diagnose.manual.rule_shelf import WORD

    return tuple(
        {"id": entry.id, "kind": WORD[entry.room], "word": entry.word, "title": manual_pages.title_of(entry, lang)}
        for entry in rule_shelf.shelf().entries
    )


@cache
def _rule_names() -> frozenset[str]:
    from diagnose.manual import rule_shelf

    return frozenset(rule_shelf.shelf().names())


@cache
def _article(name: str, lang: Lang) -> dict[str, Any]:
    from diagnose.manual import manual_pages
    from diagnose.surfaces.term.manual_text import render_blocks

    return {
        "name": name,
        "text": render_blocks(manual_pages.article(name, lang), WIDTH),
        "rules": [rule for rule in rules(lang) if rule["id"] == name] or [rule for rule in rules(lang) if rule["word"] == name],
    }


def article(name: str, lang: Lang) -> dict[str, Any]:
    """What the manual says of a rule, or of every rule of a cause or remedy. Raises UserError where nothing is called that."""
    from diagnose.surfaces.term.console import trouble

    if name not in _rule_names():  # asked first, so that only what exists is kept
        shown_name = label(name, "?")
        near = difflib.get_close_matches(shown_name, _rule_names(), 1)
        raise trouble("no_such_rule", hint="did_you_mean" if near else "", name=repr(shown_name), near="".join(near))
    return _article(name, lang)


@cache
def knobs(lang: Lang) -> tuple[dict[str, Any], ...]:
    """Every knob: its name, kind and meaning, and the words that it may be where these are fixed."""
    from diagnose import rule_files
    from diagnose.facts import declared

    def describe(entry: Declared) -> dict[str, Any]:
        meaning = entry.zh if lang == "zh" else entry.en
        return {"name": entry.name, "kind": entry.kind, "meaning": meaning, **({"words": [*entry.words]} if entry.words else {})}

    return tuple(map(describe, filter(None, map(declared, rule_files.table("knobs")))))


# -- extras


def missing_extra(extra: Literal["serve", "mcp", "slack", "feishu"], error: ImportError, command: str = "") -> UserError:
    """The sentence that tells how to install what a command needs; the extra has its name unless another is given."""
    from diagnose.phrases import phrase

    sentence: Text = phrase("remote.extra", command=command or extra, module=error.name or "?")
    return UserError(sentence, "", phrase("remote.install", extra=extra))
