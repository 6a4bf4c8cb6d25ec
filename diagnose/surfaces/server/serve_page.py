"""The page: a form that works without a script, and the answer as a page of its own."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import HTMLResponse, Response

from diagnose import catalogue, notebook
from diagnose.phrases import Lang, phrase
from diagnose.render.markup import page_templates
from diagnose.render.markup.html import SHEET
from diagnose.surfaces.server.question import Answer, Question
from diagnose.surfaces.server.serve_limits import CONTENT_POLICY, Limits, RequestError, negotiate_language, retry_header
from diagnose.surfaces.server.serve_requests import MAX_CONFIGS, MAX_WORD

logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it logs what is wrong with a stranger's form

MAX_FIELDS = 32
#: How the fields begin that answer questions.
SET = "set."
#: What a visitor may try: a failure that the message alone explains.
EXAMPLE = """\
[rank0]:   File "train.py", line 88, in <module>
[rank0]:     trainer.train()
[rank0]:   File "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", line 3104, in cross_entropy
[rank0]:     return torch._C._nn.cross_entropy_loss(input, target, weight, _Reduction.get_enum(reduction), ignore_index, label_smoothing)
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 79.15 GiB of which 4.12 GiB \
is free. Including non-PyTorch memory, this process has 75.02 GiB memory in use. \
Of the allocated memory 71.30 GiB is allocated by PyTorch, and 2.20 GiB is reserved by PyTorch but unallocated.
"""
#: Characters of a field that are shown again beside an error.
MAX_ECHO = 1 << 20


class InMemoryParser(MultiPartParser):
    """Keeps uploaded files in memory: nothing that is pasted touches a disk."""

    spool_max_size = 1 << 30


def add_page(app: FastAPI, ask: Callable[[Question], Any], redact: bool, limits: Limits) -> None:
    """GET returns the form; POST returns the answer, or the form with an error."""

    @app.get("/", include_in_schema=False)
    async def form(request: Request) -> Response:
        lang = request_language(request)
        typed = {"log": EXAMPLE} if "example" in request.query_params else {}
        return html_response("paste", lang, typed=typed)

    @app.get("/style.css", include_in_schema=False)
    async def sheet_of_the_form() -> Response:
        return Response(page_templates.asset("tokens.css", "paste.css"), media_type="text/css", headers={"cache-control": "max-age=3600"})

    @app.post("/", include_in_schema=False)
    async def answer(request: Request) -> Response:
        lang, form_data = request_language(request), FormData()
        try:
            form_data = await read_form(request, limits)
            lang = negotiate_language(
                request.headers.get("accept-language", ""), field_text(form_data, "lang") or request.query_params.get("lang", "")
            )
            files = await read_files(form_data)
            if is_note(form_data) and request.headers.get("sec-fetch-site") != "cross-site":
                take_note(*noted(form_data))
                if not has_material(form_data, files):
                    return html_response("paste", lang, told=phrase("remote.noted").to(lang))
            reply: Answer = await ask(build_question(form_data, lang, redact, files))
        except RequestError as refusal:
            return form_with_error(refusal.status, refusal.detail(lang), lang, form_data)
        return form_with_error(422, reply.wrong, lang, form_data) if reply.wrong else answer_response(reply, lang, kept_fields(form_data))


def request_language(request: Request) -> Lang:
    return negotiate_language(request.headers.get("accept-language", ""), request.query_params.get("lang", ""))


# -- reading the form


async def read_form(request: Request, limits: Limits) -> FormData:
    """The fields of the form. Raises RequestError for a body that is not one."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise RequestError(415, "wrong_type", wanted="multipart/form-data")
    parser = InMemoryParser(request.headers, request.stream(), max_files=MAX_CONFIGS, max_fields=MAX_FIELDS, max_part_size=limits.size)
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise RequestError(422, "not_a_form", why=error.message[:200]) from error
    except (KeyError, ValueError, UnicodeError, AssertionError) as error:  # a missing or malformed boundary
        raise RequestError(422, "not_a_form", why=type(error).__name__) from error


def field_text(form: FormData, name: str) -> str:
    """A field as text; empty where it is missing or a file."""
    value = form.get(name)
    return value.strip() if isinstance(value, str) else ""


async def read_files(form: FormData) -> dict[str, list[tuple[str, bytes]]]:
    """The uploaded files by field, without empty ones (browsers send those for a field without a file)."""
    uploads: dict[str, list[tuple[str, bytes]]] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            data = await value.read()
            await value.close()
            if data:
                uploads.setdefault(name, []).append((value.filename or "", data))
    return uploads


def texts_of_field(form: FormData, uploaded: dict[str, list[tuple[str, bytes]]], field: str) -> tuple[tuple[str, str | bytes], ...]:
    """The logs or configs of a field: its text, then its files."""
    typed = form.get(field)
    texts = [("", typed)] if isinstance(typed, str) and typed.strip() else []
    return (*texts, *uploaded.get(field, []), *uploaded.get(f"{field}_file", []))


def has_material(form: FormData, uploaded: dict[str, list[tuple[str, bytes]]]) -> bool:
    """Whether a log or a config was given."""
    return any(texts_of_field(form, uploaded, name) for name in ("log", "config"))


def build_question(form: FormData, lang: Lang, redact: bool, uploaded: dict[str, list[tuple[str, bytes]]]) -> Question:
    """The question of a form; pasted text comes before files. Raises RequestError for an empty form or a wrong number."""
    logs, configs = texts_of_field(form, uploaded, "log"), texts_of_field(form, uploaded, "config")
    if not has_material(form, uploaded):
        raise RequestError(422, "nothing_given")
    number = field_text(form, "gpus")
    if number and not (number.isascii() and number.isdigit() and 0 < int(number[:9]) <= 10**6):
        raise RequestError(422, "not_understood", why="gpus")
    return Question(
        logs=logs,
        configs=configs,
        lang=lang,
        model=field_text(form, "model") or None,
        gpu=field_text(form, "gpu")[:MAX_WORD] or None,
        gpus=int(number) if number else None,
        set=stated(form),
        redact=redact and not field_text(form, "unmasked"),
        form="body",
    )


def stated(form: FormData) -> dict[str, str]:
    """The answers to questions: fields called set.FACT that were filled in."""
    names = [name for name in form if name.startswith(SET)]
    return {name.removeprefix(SET): value[:MAX_WORD] for name in names if (value := field_text(form, name))}


def kept_fields(form: FormData) -> dict[str, str] | None:
    """What was pasted, for a form that asks for more; None where files were chosen, which a page cannot send again, or the text is long."""
    if any(isinstance(value, UploadFile) and value.filename for value in form.values()):
        return None
    typed = {name: value for name, value in form.items() if isinstance(value, str) and value.strip() and name not in ("job", *NOTES)}
    return typed if sum(map(len, typed.values())) <= MAX_ECHO else None


# -- notes

#: Fields that say what became of a remedy, which is their value.
NOTES: tuple[notebook.Result, ...] = ("worked", "failed")


def is_note(form: FormData) -> bool:
    """Whether the form says what became of a remedy."""
    return any(field_text(form, name) for name in NOTES)


def noted(form: FormData) -> tuple[str, list[str], notebook.Result]:
    """The job, the remedy and what became of it. Raises RequestError where one of them is none."""
    result = next(name for name in NOTES if field_text(form, name))
    job, remedy = field_text(form, "job"), field_text(form, result)
    if not notebook.JOB.fullmatch(job) or remedy not in notebook.remedies():
        raise RequestError(422, "not_understood", why=result)
    return job, [remedy], result


def take_note(job: str, remedies: list[str], result: notebook.Result) -> None:
    """Keep it. Raises RequestError where it cannot be kept."""
    try:
        kept = notebook.write(job, remedies, result)
    except OSError:
        kept = None
    if kept is None:
        raise RequestError(500, "not_noted")


# -- pages


def html_response(name: str, lang: Lang, status: int = 200, **values: object) -> Response:
    """A page of the server as a response."""
    return HTMLResponse(render_template(name, lang, **values), status, retry_header(status))


def render_template(name: str, lang: Lang, **values: object) -> str:
    """A page of the server from its template."""

    def say(key: str, **figures: object) -> str:
        return phrase(f"remote.{key}", **figures).to(lang)

    variables = {"title": "oomdoctor", "wrong": "", "told": "", "typed": {}, "cards": catalogue.card_names(), **values}
    return "".join(page_templates.page(name, lang, say=say, **variables))


def empty_form(detail: str, lang: Lang) -> str:
    """The form with an error, for a request whose body was not read."""
    return render_template("paste", lang, wrong=detail)


def form_with_error(status: int, detail: str, lang: Lang, form: FormData) -> Response:
    """The form with an error above it and the typed values in it, except large ones."""
    typed = {name: value for name, value in form.items() if isinstance(value, str) and len(value) <= MAX_ECHO}
    return html_response("paste", lang, status, wrong=detail, typed=typed)


def answer_response(answer: Answer, lang: Lang, kept: dict[str, str] | None = None) -> Response:
    """The answer as a page with its styles inline, so that it can be saved as one file; with a form for what it asks, where what was
    pasted (`kept`) can be sent again."""
    sheet = page_templates.asset(*SHEET, "pasted.css")
    asked = [one for one in answer.asked if kept is not None and one.name not in kept]
    response = html_response(
        "pasted", lang, answer=answer.page, sheet=sheet, title=f"{answer.title} · oomdoctor", stem=answer.stem, asked=asked,
        kept=kept or {}, job=answer.job, tried=answer.tried,
        patch=data_link("text/x-diff", answer.patch), file=data_link("text/html", answer.file), comment=answer.comment,
    )  # fmt: skip
    response.headers["content-security-policy"] = CONTENT_POLICY.format(styles=f" {page_templates.csp_digest(sheet)}")
    return response


def data_link(kind: str, text: str) -> str:
    """An address that holds a file: nothing has to be kept for it, and no script makes it. Empty without a text."""
    return f"data:{kind};charset=utf-8;base64,{b64encode(text.encode(errors='replace')).decode()}" if text else ""
