"""What a worker process does with a question: diagnose, and render the report, the web page, the what-if or the chat message."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal, cast

from diagnose import notebook
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.diagnosis import Diagnosis
from diagnose.errors import UserError
from diagnose.facts import declared
from diagnose.inputs.config_files import CONFIG_SUFFIXES, is_config_file
from diagnose.inputs.split_paste import pasted_configs
from diagnose.phrases import Lang
from diagnose.pipeline import check, explain
from diagnose.plan.remedies.remedy import Question as AskedQuestion
from diagnose.render.data.part import mapping
from diagnose.render.formats import RENDERERS
from diagnose.render.markup import html
from diagnose.render.markup.chat_within_limit import Platform, chat, dialect
from diagnose.render.parts import advice_text, failure_text, redaction
from diagnose.render.parts import words as words_of
from diagnose.render.parts.view import View
from diagnose.scan.source import Source
from diagnose.surfaces.server.question import Answer, Field, Question, label
from diagnose.surfaces.what_if import turned_roles
from diagnose.surfaces.what_if.typed_changes import WhatIf

#: The prefix of Question.form that asks for a chat message; the platform follows.
CHAT_FORM = "chat."
#: Characters of a headline in a notification.
MAX_TITLE = 200

Relevance = Literal["oom", "other", "nothing"]


def answer_question(question: Question) -> Answer:
    """Diagnose and render. An error of the user is a sentence in the answer; any other exception is a bug and is raised."""
    try:
        if question.form == "change":
            return answer_what_if(question)
        if question.form.startswith(CHAT_FORM):
            return answer_chat(question)
        diagnosis = diagnose_question(question)
    except UserError as error:
        return Answer(wrong=error.to(question.lang))
    page = "" if question.form == "json" else render_page(diagnosis, question)
    data = report_json(diagnosis, question.lang)
    if question.form != "body":
        return Answer(data=data, page=page)
    return Answer(
        data=data,
        page=page,
        title=failure_text.banner(diagnosis, question.lang),
        stem=failure_text.file_stem(diagnosis),
        file=html.render(diagnosis, question.lang),
        comment=RENDERERS["markdown"](diagnosis, question.lang, View()),
        patch=advice_text.patch(diagnosis),
        asked=tuple(form_field(asked, question.lang) for asked in diagnosis.outcome.questions),
        job=diagnosis.job,
        tried=advice_text.worth_trying(diagnosis, question.lang),
    )


def form_field(asked: AskedQuestion, lang: Lang) -> Field:
    """A question as a field: those of the form itself by their name, every other as a setting."""
    option = asked.set.split()[0].removeprefix("--") if asked.set else ""
    entry = declared(asked.fact)
    words = entry.words if entry is not None else ()
    switch = ("yes", "no") if entry is not None and entry.kind == "switch" else ()
    text = words_of.question(asked.why.to(lang), asked.how.to(lang), lang)
    return Field(option if option in ("model", "gpu", "gpus") else f"set.{asked.fact}", text, tuple(words or switch))


def diagnose_question(question: Question, *, frontier: bool = True) -> Diagnosis:
    """The diagnosis, with secrets masked if the question wants it. Raises UserError for an option without a meaning."""
    options: dict[str, Any] = {
        "model": question.model,
        "gpu": question.gpu,
        "gpus": question.gpus,
        "set": question.set,
        "notes": notebook.read(),
    }
    configs = [source for number, config in enumerate(question.configs, 1) for source in config_sources(number, *config)]
    if not question.logs:
        diagnosis = check(configs, **options, frontier=frontier)
    else:
        logs = [Source.text(log, label(name, f"log-{number}")) for number, (name, log) in enumerate(question.logs, 1)]
        diagnosis = explain(logs, configs=configs, **options)
    return redaction.mask_diagnosis(diagnosis) if question.redact else diagnosis


def config_sources(number: int, name: str, data: str | bytes) -> list[ConfigSource]:
    """A config; of a paste that is called like no file perhaps several."""
    called = label(name, f"config-{number}")
    if isinstance(data, str) and not called.lower().endswith(CONFIG_SUFFIXES):
        return pasted_configs(data, called)
    return [ConfigSource(called, data if isinstance(data, bytes) else data.encode(errors="replace"))]


def report_json(diagnosis: Diagnosis, lang: Lang) -> str:
    """The report of the documented schema on one line."""
    return json.dumps(diagnosis.to_dict(lang), ensure_ascii=False)


def render_page(diagnosis: Diagnosis, question: Question) -> str:
    """The answer for people: the body of a web page, or a format of RENDERERS."""
    if question.form == "body":
        return html.body(diagnosis, question.lang)
    return RENDERERS[question.form](diagnosis, question.lang, View())


def answer_what_if(question: Question) -> Answer:
    """The ledgers without and with the changes, role by role. Raises UserError for an unknown name or a value that it cannot have."""
    changes = turned_roles.values(question.changes)
    diagnosis = diagnose_question(question, frontier=False)
    comparison = turned_roles.compare(turned_roles.bench(diagnosis).turn(changes), diagnosis, question.changes, question.lang)
    data = json.dumps(mapping(comparison, WhatIf, question.lang), ensure_ascii=False)
    return Answer(data=data, page=turned_roles.summary_text(comparison, question.lang))


# -- chats


def answer_chat(question: Question) -> Answer:
    """The message; `data` holds its relevance, its headline and the patch. Attached files are sorted into logs and configs first."""
    sorted_question = separate_configs(question)
    diagnosis = diagnose_question(sorted_question)
    platform = cast("Platform", question.form.removeprefix(CHAT_FORM))
    message = chat(diagnosis, platform, question.lang, redact=False)  # diagnose_question has masked it
    headline = diagnosis.verdict.headline.to(question.lang)[:MAX_TITLE]
    data = {"relevance": relevance(diagnosis), "title": dialect(platform).escape(headline), "patch": message.patch}
    tried = tuple((word, "") for word in advice_text.tried_first(diagnosis))
    return Answer(data=json.dumps(data, ensure_ascii=False), page=message.text, job=diagnosis.job, tried=tried)


def relevance(diagnosis: Diagnosis) -> Relevance:
    """`oom`: a failure of memory, or an answer about configs; `other`: a failure that only resembles one; `nothing`: neither."""
    if diagnosis.asked == "check":
        return "nothing" if diagnosis.fits == "unknown" else "oom"
    relevances: dict[str, Relevance] = {"oom": "oom", "suspected": "oom", "lookalike": "other"}
    return relevances.get(diagnosis.verdict.status, "nothing")


def separate_configs(question: Question) -> Question:
    """The question with the configs among its logs moved to its configs."""
    configs = [file for file in question.logs if is_config_file(*file)]
    if not configs:
        return question
    return replace(question, logs=tuple(file for file in question.logs if file not in configs), configs=(*question.configs, *configs))
