"""A question from elsewhere (web page, chat, agent) and its answer: texts with labels, so that they can travel to a worker process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.phrases import Lang
from diagnose.record import field, record

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis

#: Characters of a label that are kept.
LABEL = 128


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

    return redact.mask_diagnosis(found)


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
    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts.view import View

    return RENDERERS[asked.form](found, asked.lang, View())
