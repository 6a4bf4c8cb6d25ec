"""The page: a form that works without a script, and the answer as a page of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import HTMLResponse, Response

from diagnose import catalogue
from diagnose.phrases import Lang, phrase
from diagnose.render.markup import page_templates
from diagnose.render.markup.html import SHEET
from diagnose.surfaces.server.question import Answer, Question
from diagnose.surfaces.server.serve_asked import CONFIGS, WORD
from diagnose.surfaces.server.serve_limits import POLICY, Limits, Refused, language_of, retry

FIELDS = 32
#: Characters of a field that are shown again beside a mistake.
SENT_BACK = 1 << 20


class InMemory(MultiPartParser):
    """Files of a form stay in memory: nothing that is pasted touches a disk."""

    spool_max_size = 1 << 30


def add_page(app: FastAPI, ask: Callable[[Question], Any], redact: bool, limits: Limits) -> None:
    """GET gives the form, POST the answer, or the form with what is wrong."""

    @app.get("/", include_in_schema=False)
    async def form(request: Request) -> Response:
        return page("paste", tongue(request))

    @app.get("/style.css", include_in_schema=False)
    async def sheet_of_the_form() -> Response:
        return Response(page_templates.asset("tokens.css", "paste.css"), media_type="text/css", headers={"cache-control": "max-age=3600"})

    @app.post("/", include_in_schema=False)
    async def answer(request: Request) -> Response:
        lang, given = tongue(request), FormData()
        try:
            given = await read(request, limits)
            lang = language_of(request.headers.get("accept-language", ""), text(given, "lang") or request.query_params.get("lang", ""))
            found: Answer = await ask(question(given, lang, redact, await files(given)))
        except Refused as refusal:
            return wrong(refusal.status, refusal.detail(lang), lang, given)
        return wrong(422, found.wrong, lang, given) if found.wrong else shown(found, lang)


def tongue(request: Request) -> Lang:
    return language_of(request.headers.get("accept-language", ""), request.query_params.get("lang", ""))


# -- the form, read


async def read(request: Request, limits: Limits) -> FormData:
    """The fields of the form. Raises Refused where it is none."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise Refused(415, "wrong_type", wanted="multipart/form-data")
    parser = InMemory(request.headers, request.stream(), max_files=CONFIGS, max_fields=FIELDS, max_part_size=limits.size)
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise Refused(422, "not_a_form", why=error.message[:200]) from error
    except (KeyError, ValueError, UnicodeError, AssertionError) as error:  # a boundary that is missing or none
        raise Refused(422, "not_a_form", why=type(error).__name__) from error


def text(given: FormData, name: str) -> str:
    """A field as text; empty where it is missing or a file."""
    value = given.get(name)
    return value.strip() if isinstance(value, str) else ""


async def files(given: FormData) -> dict[str, list[tuple[str, bytes]]]:
    """The files that were chosen, by field; those that are empty were not."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for name, value in given.multi_items():
        if isinstance(value, UploadFile):
            data = await value.read()
            await value.close()
            if data:
                found.setdefault(name, []).append((value.filename or "", data))
    return found


def pasted(given: FormData, uploaded: dict[str, list[tuple[str, bytes]]], what: str) -> tuple[tuple[str, str | bytes], ...]:
    """The logs or the configs: what stands in the text field, then the files."""
    written = given.get(what)
    texts = [("", written)] if isinstance(written, str) and written.strip() else []
    return (*texts, *uploaded.get(what, []), *uploaded.get(f"{what}_file", []))


def question(given: FormData, lang: Lang, redact: bool, uploaded: dict[str, list[tuple[str, bytes]]]) -> Question:
    """What the form asks. What was pasted comes before what was chosen. Raises Refused where nothing was given."""
    logs, configs = pasted(given, uploaded, "log"), pasted(given, uploaded, "config")
    if not logs and not configs:
        raise Refused(422, "nothing_given")
    number = text(given, "gpus")
    if number and not (number.isascii() and number.isdigit() and 0 < int(number[:9]) <= 10**6):
        raise Refused(422, "not_understood", why="gpus")
    return Question(
        logs=logs,
        configs=configs,
        lang=lang,
        model=text(given, "model") or None,
        gpu=text(given, "gpu")[:WORD] or None,
        gpus=int(number) if number else None,
        redact=redact and not text(given, "unmasked"),
        form="body",
    )


# -- pages


def page(name: str, lang: Lang, status: int = 200, **values: object) -> Response:
    """One of our own pages, as an answer."""
    return HTMLResponse(written(name, lang, **values), status, retry(status))


def written(name: str, lang: Lang, **values: object) -> str:
    """One of our own pages."""

    def say(key: str, **figures: object) -> str:
        return phrase(f"remote.{key}", **figures).to(lang)

    filled = {"title": "oomdoctor", "wrong": "", "typed": {}, "cards": catalogue.card_names(), **values}
    return "".join(page_templates.page(name, lang, say=say, **filled))


def empty(detail: str, lang: Lang) -> str:
    """The form without what was typed, which was not read, and why not."""
    return written("paste", lang, wrong=detail)


def wrong(status: int, detail: str, lang: Lang, given: FormData) -> Response:
    """The form again, with what is wrong above it and what was typed in it, as far as that is not large."""
    typed = {name: value for name, value in given.items() if isinstance(value, str) and len(value) <= SENT_BACK}
    return page("paste", lang, status, wrong=detail, typed=typed)


def shown(found: Answer, lang: Lang) -> Response:
    """The answer in a page with a style of its own, so that it can be kept as one file."""
    sheet = page_templates.asset(*SHEET, "pasted.css")
    made = page("pasted", lang, answer=found.page, sheet=sheet)
    made.headers["content-security-policy"] = POLICY.format(styles=f" {page_templates.csp_digest(sheet)}")
    return made
