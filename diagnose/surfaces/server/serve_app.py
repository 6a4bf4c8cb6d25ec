"""The web application: a JSON API with its own OpenAPI description, and the page of `serve_page.py`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import GenericAlias
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.render.data.pydantic_report import Report, model
from diagnose.surfaces.server import rule_lookup
from diagnose.surfaces.server.question import Answer, Question
from diagnose.surfaces.server.serve_limits import (
    PROBLEM_TYPE,
    RETRY_SECONDS,
    Gate,
    Limits,
    Problem,
    RequestError,
    problem,
    retry_header,
)
from diagnose.surfaces.server.serve_page import add_page, empty_form, request_language
from diagnose.surfaces.server.serve_requests import ToCheck, ToExplain, parse_request
from diagnose.surfaces.server.typed_answers import Article, Rule
from diagnose.surfaces.server.worker_pool import Lost, Overloaded, Stopped, WorkerPool
from diagnose.version import __version__

REPORT = {"application/json": {"schema": {"$ref": "#/components/schemas/Report"}}}

#: Bodies that can be sent as they are.
EXAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    "explain": {
        "a message and a config": {
            "text": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. "
            "GPU 0 has a total capacity of 79.15 GiB of which 1.41 GiB is free.",
            "configs": [{"name": "train.yaml", "text": "per_device_train_batch_size: 4\ncutoff_len: 4096\n"}],
            "options": {"lang": "en", "gpus": 8, "set": {"train.max_seq_len": 2048}},
        },
        "the message alone": {"text": "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB"},
    },
    "check": {
        "a run that did not start yet": {
            "configs": [
                {
                    "name": "train.yaml",
                    "text": "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\ncutoff_len: 4096\n",
                }
            ],
            "options": {"gpu": "A100-80GB", "gpus": 8},
        },
    },
}

#: Meanings of the statuses of a POST, for the OpenAPI description.
STATUSES = {
    400: "The request ended before its body did.",
    408: "The body did not arrive in time.",
    413: "The request is too large; it is refused before it is read.",
    415: "The body is of another type.",
    422: "The body is not what this address takes, an option names nothing that is known, or the diagnosis took too long.",
    429: "Too many requests of one address are being answered.",
    500: "A mistake of ours.",
    503: "Too many requests are waiting.",
}


class Health(BaseModel):
    """The server is up; how many questions are being answered or wait."""

    model_config = ConfigDict(extra="forbid")
    status: str
    version: str
    asked: int


class Fault(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(title="Problem", extra="forbid")
    type: str
    title: str
    status: int
    detail: str


SCHEMAS: tuple[type[BaseModel], ...] = (ToExplain, ToCheck, Report, model(Rule), model(Article), Health, Fault)

AskWorker = Callable[[Question], Awaitable[Answer]]
LanguageParameter = Annotated[str, Query(alias="lang", description="en or zh; else Accept-Language decides.", max_length=20)]


def application(pool: WorkerPool, limits: Limits, redact: bool = True, ready: Callable[[], None] = lambda: None) -> Gate:
    """The whole application. `ready` is called once it listens; at its end it closes the pool."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        ready()
        try:
            yield
        finally:
            pool.close()

    pages: dict[str, Any] = {"docs_url": None, "redoc_url": None, "openapi_url": None, "redirect_slashes": False}  # no others than declared
    app = FastAPI(title="oomdoctor", version=__version__, lifespan=lifespan, **pages)

    async def ask(question: Question) -> Answer:
        """The answer of a worker. Raises RequestError if the pool is full, too slow or broken."""
        try:
            reply = await pool.answer(question)
        except Overloaded as error:
            raise RequestError(503, "too_busy", seconds=RETRY_SECONDS) from error
        except Stopped as error:
            raise RequestError(422, "took_too_long", seconds=f"{pool.seconds:g}") from error
        except Lost as error:
            print(f"oomdoctor: {error}", file=sys.stderr)
            raise RequestError(500, "internal") from error
        return reply

    _add_api(app, ask, pool, redact)
    add_page(app, ask, redact, limits)
    _add_problems(app)
    return Gate(app, limits, empty_form)


def is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _add_api(app: FastAPI, ask: AskWorker, pool: WorkerPool, redact: bool) -> None:
    async def reported(request: Request, shape: type[ToCheck]) -> Response:
        if not is_json(request):
            raise RequestError(415, "wrong_type", wanted="application/json")
        answer = await ask(parse_request(shape, await request.body()).question(request_language(request), redact))
        if answer.wrong:
            return problem_response(422, answer.wrong)
        return Response(answer.data, media_type="application/json")

    @app.post("/api/explain", **_operation("explain", "ToExplain", "Diagnose one failed job."))
    async def explain(request: Request) -> Response:
        return await reported(request, ToExplain)

    @app.post("/api/check", **_operation("check", "ToCheck", "Before a run: will it fit?"))
    async def check(request: Request) -> Response:
        return await reported(request, ToCheck)

    @app.get("/api/rules", response_model=GenericAlias(list, model(Rule)), operation_id="rules", summary="Every rule.")
    def rules(request: Request, _lang: LanguageParameter = "") -> Any:
        return rule_lookup.rules(request_language(request))

    @app.get(
        "/api/rules/{id}",
        response_model=model(Article),
        operation_id="rule",
        summary="What the manual says of a rule, or of every rule of a cause or remedy.",
        responses={404: _problem_schema("No rule, cause or remedy is called that.")},
    )
    def rule(request: Request, id: str, _lang: LanguageParameter = "") -> Any:
        try:
            return rule_lookup.article(id, request_language(request))
        except UserError as error:
            return problem_response(404, error.to(request_language(request)))

    @app.get("/healthz", response_model=Health, operation_id="health", summary="Whether the server is up.")
    async def health() -> Any:  # never behind the threads that other addresses wait for
        return {"status": "ok", "version": __version__, "asked": pool.pending}

    @app.get("/openapi.json", include_in_schema=False)
    def openapi() -> Any:
        return openapi_document(app)


def _operation(name: str, shape: str, summary: str) -> dict[str, Any]:
    """OpenAPI keywords of a POST. pydantic reads the body, not FastAPI, so it is declared here."""
    examples = {title: {"summary": title, "value": value} for title, value in EXAMPLES[name].items()}
    content = {"schema": {"$ref": f"#/components/schemas/{shape}"}, "examples": examples}
    body = {"required": True, "content": {"application/json": content}}
    return {
        "operation_id": name,
        "summary": summary,
        "openapi_extra": {"requestBody": body},
        "response_class": Response,
        "responses": {
            200: {"description": "The report; `oomdoctor schema` prints its schema.", "content": REPORT},
            **{status: _problem_schema(why) for status, why in STATUSES.items()},
        },
    }


def _problem_schema(why: str) -> dict[str, Any]:
    return {"description": why, "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Fault"}}}}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, built once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        _, definitions = models_json_schema([(shape, "validation") for shape in SCHEMAS], ref_template="#/components/schemas/{model}")
        document.setdefault("components", {}).setdefault("schemas", {}).update(definitions["$defs"])
        for path in document["paths"].values():
            for operation in path.values():
                if "422" in operation["responses"] and PROBLEM_TYPE not in operation["responses"]["422"]["content"]:
                    operation["responses"]["422"] = _problem_schema("A parameter is not understood.")
        for unused in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(unused, None)
        app.openapi_schema = document
    return app.openapi_schema


# -- problems


def problem_response(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    body: Problem = problem(status, detail)
    return JSONResponse(body, status, {**retry_header(status), **(headers or {})}, media_type=PROBLEM_TYPE)


def _add_problems(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def refused(request: Request, refusal: RequestError) -> Response:
        return problem_response(refusal.status, refusal.detail(request_language(request)))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        why = "; ".join(str(detail["msg"])[:200] for detail in error.errors()[:5])
        return problem_response(422, phrase("remote.not_understood", why=why).to(request_language(request)))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        key = {404: "no_such_page", 405: "no_such_method"}.get(error.status_code)
        detail = phrase(f"remote.{key}", method=request.method[:20]).to(request_language(request)) if key else str(error.detail)
        return problem_response(error.status_code, detail, dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def internal_error(request: Request, error: Exception) -> Response:  # noqa: ARG001 - uvicorn prints it
        return problem_response(500, phrase("remote.internal").to(request_language(request)))
