"""A diagnosis asked for from elsewhere (web, agents): everything is text, names are labels, nothing is opened or kept.

Questions and answers are plain values, so that `crew.py` can carry them to a worker process and back.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.errors import UserError
from diagnose.phrases import Lang, Text
from diagnose.record import field, record

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis
    from diagnose.facts import Declared

#: Characters of a label that are kept.
LABEL = 128
#: Columns of an article that is read as plain text.
WIDTH = 100


@record
class Question:
    """What is asked. No `logs`: before a run, of the configs alone. A log of bytes is an uploaded file and may be compressed.

    `changes` are the knobs of a what-if. `form`: a name of RENDERERS, "body" for that of a web page, "change" for the difference that
    the changes make, "chat.PLATFORM" for a message.
    """

    logs: tuple[tuple[str, str | bytes], ...] = ()  # of one job, each with its label
    configs: tuple[tuple[str, str | bytes], ...] = ()
    lang: Lang = "en"
    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    set: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    redact: bool = True
    form: str = "json"


@record
class Answer:
    """The rendered answer: a report in JSON (`data`) and, for people, `page` in the form asked for; or what is wrong with the question."""

    data: str = ""
    page: str = ""
    wrong: str = ""


def label(name: str, otherwise: str) -> str:
    """A stranger's file name as a label: its last part, harmless, of bounded length."""
    from diagnose.render.parts.strings import one_line

    base = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return one_line(base[: 4 * LABEL])[:LABEL].strip() or otherwise


def text_of(value: str | float | bool | None) -> str:
    """A value of JSON as `--set` would write it."""
    if value is None:
        return "unknown"
    return str(value).lower() if isinstance(value, bool) else str(value)


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


def diagnosed(asked: Question, changes: Mapping[str, str] | None = None, *, frontier: bool = True) -> Diagnosis:
    """The diagnosis, masked unless told otherwise. Raises UserError for an option that cannot be meant."""
    from diagnose.pipeline import check, explain
    from diagnose.scan.source import Source

    values = {**asked.set, **(changes or {})}
    options: dict[str, Any] = {"model": asked.model, "gpu": asked.gpu, "gpus": asked.gpus, "set": values}
    configs = [
        ConfigSource(label(name, f"config-{number}"), data if isinstance(data, bytes) else data.encode(errors="replace"))
        for number, (name, data) in enumerate(asked.configs, 1)
    ]
    if not asked.logs:
        found = check(configs, **options, frontier=frontier)
    else:
        logs = [Source.text(_sound(log), label(name, f"log-{number}")) for number, (name, log) in enumerate(asked.logs, 1)]
        found = explain(logs, configs=configs, **options)
    if not asked.redact:
        return found
    from diagnose.render.parts import redaction as redact

    return redact.diagnosis(found)


def _sound(text: str | bytes) -> str | bytes:
    """A text without halves of surrogate pairs, which no encoding knows."""
    return text.encode(errors="replace").decode() if isinstance(text, str) else text


def as_json(found: Diagnosis, lang: Lang) -> str:
    """The report of the contract on one line."""
    return json.dumps(found.to_dict(lang), ensure_ascii=False)


def page(found: Diagnosis, asked: Question) -> str:
    """The answer as people read it: in a form of RENDERERS, or as the body of a web page."""
    if asked.form == "body":
        from diagnose.render.markup import html

        return html.body(found, asked.lang)
    from diagnose.render.formats import RENDERERS, View

    return RENDERERS[asked.form](found, asked.lang, View())


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
def _spoken() -> frozenset[str]:
    from diagnose.manual import rule_shelf

    return frozenset(rule_shelf.shelf().names())


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
