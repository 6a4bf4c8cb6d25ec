"""A real server against its own OpenAPI description: what it allows is answered, what it forbids is refused, and every answer is one
of those that it declares. Requests are made from the description that the running server hands out, whatever operations it names."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi import conforms, invalid, valid
from sweep import examples

OFTEN = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
OPERATIONS = [("post", "/api/explain"), ("post", "/api/check"), ("get", "/api/rules"), ("get", "/api/rules/{id}"), ("get", "/healthz")]


@pytest.fixture(scope="module")
def description(client: httpx.Client) -> dict[str, Any]:
    told: dict[str, Any] = client.get("/openapi.json").json()
    return told


def sent(client: httpx.Client, path: str, body: Any) -> httpx.Response:
    return client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})


def test_every_operation_is_tried_here(description: dict[str, Any]) -> None:
    assert {(method, path) for path, methods in description["paths"].items() for method in methods} == set(OPERATIONS)


@pytest.mark.parametrize("path", ["/api/explain", "/api/check"])
def test_the_examples_are_answered(client: httpx.Client, description: dict[str, Any], path: str) -> None:
    """What the description gives to be tried can be sent as it is."""
    shown = description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["examples"]
    for title, example in shown.items():
        answer = sent(client, path, example["value"])
        assert answer.status_code == 200 and answer.json()["verdict"]["headline"], title


@pytest.mark.parametrize("path", ["/api/explain", "/api/check"])
@OFTEN
@given(data=st.data())
def test_a_body_that_is_allowed(client: httpx.Client, description: dict[str, Any], path: str, data: st.DataObject) -> None:
    """A report, or a sentence on what is not known: never a complaint that a field is none."""
    parts, operation = description["components"]["schemas"], description["paths"][path]["post"]
    body = data.draw(valid(operation["requestBody"]["content"]["application/json"]["schema"], parts))
    answer = sent(client, path, body)
    conforms(answer, operation, parts)
    assert answer.status_code in (200, 422)


@pytest.mark.parametrize("path", ["/api/explain", "/api/check"])
@OFTEN
@given(data=st.data())
def test_a_body_that_is_forbidden(client: httpx.Client, description: dict[str, Any], path: str, data: st.DataObject) -> None:
    """Refused as the description says that it is, and the sentence is one."""
    parts, operation = description["components"]["schemas"], description["paths"][path]["post"]
    body = data.draw(invalid(operation["requestBody"]["content"]["application/json"]["schema"], parts))
    answer = sent(client, path, body)
    conforms(answer, operation, parts)
    assert answer.status_code == 422 and answer.json()["detail"]


@pytest.mark.parametrize("path", [path for method, path in OPERATIONS if method == "get"])
@OFTEN
@given(data=st.data())
def test_parameters_allowed_and_forbidden(client: httpx.Client, description: dict[str, Any], path: str, data: st.DataObject) -> None:
    parts, operation = description["components"]["schemas"], description["paths"][path]["get"]
    query, place, allowed = {}, path, True
    for parameter in operation.get("parameters", ()):
        broken = parameter["in"] == "query" and data.draw(st.booleans())
        value = "x" * 500 if broken else data.draw(valid(parameter["schema"], parts).filter(_sendable))
        allowed = allowed and not broken
        if parameter["in"] == "path":
            place = place.replace("{" + parameter["name"] + "}", quote(value, safe=""))
        else:
            query[parameter["name"]] = value
    answer = client.get(place, params=query)
    conforms(answer, operation, parts)
    assert allowed or answer.status_code == 422


def _sendable(text: str) -> bool:
    """An address holds UTF-8; dots alone are another address, and so is what has a slash in it."""
    return bool(text.strip(".")) and "/" not in text and text.isprintable()


def test_an_address_that_only_looks_like_one_is_not_forwarded(client: httpx.Client, description: dict[str, Any]) -> None:
    """A redirect is an answer that no operation declares."""
    operation = description["paths"]["/api/rules/{id}"]["get"]
    for place in ("/api/rules/", "/api/rules/%2F", "/api/rules/a%2Fb", "/api/rules/..%2F"):
        answer = client.get(place)
        assert answer.status_code == 404
        conforms(answer, operation, description["components"]["schemas"])


@OFTEN
@given(method=st.sampled_from(["put", "delete", "patch", "options", "get", "post"]), at=st.sampled_from(OPERATIONS))
def test_methods_that_are_not_declared_are_refused(client: httpx.Client, method: str, at: tuple[str, str]) -> None:
    declared, path = at
    if method != declared:
        answer = client.request(method, path.replace("{id}", "logits"))
        assert answer.status_code == 405 and answer.headers["content-type"] == "application/problem+json"
