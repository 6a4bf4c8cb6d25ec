"""`oomdoctor serve` as a process: what a program gets from its JSON API, and what it does not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from checkout import ROOT
from collected import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import CONFIGS, LOG, PROBLEM, SHORT, Server, is_problem, post, reply, serving

from diagnose.pipeline import explain
from diagnose.render.data.pydantic_report import Report

SECRET = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"


# -- the API


def test_explain_returns_the_report_of_the_contract(client: httpx.Client) -> None:
    answer = client.post("/api/explain", json={"text": LOG, "configs": CONFIGS, "options": {"set": {"parallel.world": 8}}})
    report = Report.model_validate(answer.json())
    assert answer.status_code == 200 and report.verdict.status == "oom" and report.plan is not None
    assert {given.name for given in report.inputs} == {"log-1", "qwen2vl_dpo.yaml", "ds_z3_config.json"}


def test_check_returns_it_with_the_outlook(client: httpx.Client) -> None:
    answer = client.post("/api/check", json={"configs": CONFIGS, "options": {"gpu": "A100-80GB", "gpus": 8}})
    assert answer.status_code == 200 and Report.model_validate(answer.json()).check is not None


def test_the_report_is_what_explain_says(client: httpx.Client) -> None:
    """The server adds and takes nothing away: only names of inputs differ from a direct call."""
    answer = client.post("/api/explain", json={"text": LOG, "options": {"redact": False, "lang": "en"}}).json()
    direct = json.loads(json.dumps(explain(LOG).to_dict("en")).replace('"source": "text"', '"source": "log-1"'))
    for part in ("verdict", "events", "attributions", "budgets", "causes", "remedies", "plan", "questions"):
        assert answer[part] == direct[part]


def test_languages(client: httpx.Client) -> None:
    """An option wins over Accept-Language, which wins over English."""
    for headers, options, chinese in (
        ({}, {}, False),
        ({"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"}, {}, True),
        ({"accept-language": "en;q=0.2, zh;q=0.1"}, {}, False),
        ({"accept-language": "zh"}, {"lang": "en"}, False),
        ({}, {"lang": "zh"}, True),
    ):
        said = client.post("/api/explain", json={"text": LOG, "options": options}, headers=headers).json()["verdict"]["headline"]
        assert bool(re.search("[一-鿿]", said)) is chinese


def test_secrets_are_masked_unless_told_otherwise(client: httpx.Client) -> None:
    text = f"token={SECRET}\n{LOG}"
    config = {"name": "run.sh", "text": f"HF_TOKEN={SECRET} torchrun train.py --hub_token {SECRET}\n"}
    assert SECRET not in client.post("/api/explain", json={"text": text, "configs": [config]}).text
    assert SECRET not in client.post("/", files={"log": (None, text), "config": (None, config["text"])}).text


def test_names_of_configs_are_labels(client: httpx.Client) -> None:
    """The last part, harmless, of bounded length: never a place."""
    names = {
        "/etc/../secret/a.yaml": "a.yaml",
        "C:\\x\\b.yaml": "b.yaml",
        "<b>\x1b[31m\u202ec": None,
        "d" * 4000: "d" * 128,
        "/": "config-1",
    }
    for name, label in names.items():
        answer = client.post("/api/check", json={"configs": [{"name": name, "text": CONFIGS[0]["text"]}]})
        shown = answer.json()["inputs"][0]["name"]
        assert len(shown) <= 128 and "/" not in shown and "\x1b" not in shown and "\u202e" not in shown
        assert label is None or shown == label


def test_rules(client: httpx.Client) -> None:
    every = client.get("/api/rules").json()
    assert len(every) > 100
    one = client.get(f"/api/rules/{every[0]['id']}").json()
    assert one["rules"] == [every[0]] and one["text"]
    assert client.get("/api/rules/logits", params={"lang": "zh"}).json()["text"] != client.get("/api/rules/logits").json()["text"]
    assert "logits" in is_problem(client.get("/api/rules/logit"), 404)["detail"]
    assert len(is_problem(client.get("/api/rules/" + "x" * 5000), 404)["detail"]) < 500
    is_problem(client.get("/api/rules/..%2f..%2fetc%2fpasswd"), 404)


def test_health(client: httpx.Client) -> None:
    assert client.get("/healthz").json()["status"] == "ok"


def test_the_description_is_openapi_and_holds(client: httpx.Client) -> None:
    """Every reference resolves; real answers are valid against what the description promises."""
    made = client.get("/openapi.json").json()
    assert made["openapi"].startswith("3.1")
    assert set(made["paths"]) == {"/api/explain", "/api/check", "/api/rules", "/api/rules/{id}", "/healthz"}
    held = set(made["components"]["schemas"])
    assert {found.rpartition("/")[2] for found in re.findall(r'"\$ref": ?"([^"]+)"', json.dumps(made))} <= held
    for path, body in (("/api/explain", {"text": LOG, "configs": CONFIGS}), ("/api/check", {"configs": CONFIGS})):
        schema = made["paths"][path]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(client.post(path, json=body).json(), {**schema, "components": made["components"]})


# -- what is refused


@for_each(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"text": 1}',
        b'{"text": "x", "more": 1}',
        b'{"text": "x", "configs": {}}',
        b'{"text": "x", "configs": [{"name": "a"}]}',
        b'{"text": "x", "options": {"gpus": 0}}',
        b'{"text": "x", "options": {"gpus": true}}',
        b'{"text": "x", "options": {"lang": "fr"}}',
        b'{"text": "x", "options": {"set": {"a": [1]}}}',
        b'{"text": "x", "options": {"set": {"a": NaN}}}',
        b'{"text": "x", "options": {"set": {"no.such": 1}}}',
        b'{"text": "x", "options": {"set": {"parallel.world": -1}}}',
        b'{"text": "x", "options": {"gpu": "abacus"}}',
        b'{"text": "x", "options": {"model": "no/such-model"}}',
        b'{"text": "x", "options": {"model": "{"}}',
        b'{"text": "x", "options": {"model": "/etc/passwd"}}',
        b'{"text": "x", "options": {"rules": ["/etc"]}}',
        b'{"text": "\xff"}',
        b'{"text": ' + b"[" * 100_000,
        b'{"text": "x", "options": ' + b'{"set":' * 100_000,
        b'{"text": "x", "options": {"set": {"a": ' + b"9" * 50_000 + b"}}}",
    ],
)
def test_a_body_that_is_not_understood_is_422(client: httpx.Client, body: bytes) -> None:
    """One sentence that says where, and nothing of what was sent."""
    told = is_problem(client.post("/api/explain", content=body, headers={"content-type": "application/json"}), 422)
    assert len(told["detail"]) < 2000 and "Traceback" not in told["detail"]


@for_each(
    "body, status",
    [
        (b'{"text": "%s \\ud800", "configs": [{"name": "\\udfff", "text": "a: \\ud800"}]}' % SHORT.encode(), 200),
        (b'{"text": "x", "options": {"set": {"\\ud800": "\\udc00\\ud800"}}}', 422),
        (b'{"text": "x", "options": {"gpu": "\\ud800"}}', 422),
        (b'{"text": "x", "options": {"model": "\\ud800"}}', 422),
        (b'{"\\ud800": 1}', 422),
    ],
)
def test_half_a_surrogate_pair_is_answered(client: httpx.Client, body: bytes, status: int) -> None:
    """As any other character that means nothing."""
    answer = client.post("/api/explain", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status and answer.json()


def test_a_model_may_be_inline_json(client: httpx.Client) -> None:
    heads = {"num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True}
    width = {"hidden_size": 896, "num_hidden_layers": 24, "intermediate_size": 4864, "vocab_size": 151936}
    shape = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **heads, **width}
    answer = client.post("/api/explain", json={"text": LOG, "options": {"model": json.dumps(shape)}})
    assert answer.status_code == 200


def test_other_types_are_415(client: httpx.Client) -> None:
    for kind in ("text/plain", "", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"):
        is_problem(client.post("/api/explain", content=b"{}", headers={"content-type": kind}), 415)
    is_problem(client.post("/api/explain", json={"text": "x"}, headers={"content-encoding": "gzip"}), 415)
    assert client.post("/", json={}).status_code == 415


def test_other_methods_and_pages(client: httpx.Client) -> None:
    assert "GET" in client.put("/", content=b"x").headers["allow"]
    is_problem(client.get("/api/explain"), 405)
    is_problem(client.delete("/healthz"), 405)
    is_problem(client.get("/nothing"), 404)
    is_problem(client.get("/docs"), 404)


def test_too_large_is_413_before_it_is_read(server: Server) -> None:
    """The answer comes although not one byte of the body was sent: to a program as a problem, to people on the page."""
    for path, kind in (("/api/explain", PROBLEM), ("/api/check", PROBLEM), ("/", 'role="alert"')):
        with server.raw(post(path, 100 << 20)) as connection:
            status, data = reply(connection)
        assert status == 413 and kind.encode() in data and b"2 MiB" in data


def test_a_paste_of_100_megabytes_is_413(client: httpx.Client) -> None:
    start = time.monotonic()
    is_problem(client.post("/api/explain", content=b"x" * (100 << 20), headers={"content-type": "application/json"}), 413)
    assert time.monotonic() - start < 20


def test_a_body_of_unknown_length_is_cut_off(client: httpx.Client) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(10):
            yield b"x" * (1 << 20)

    is_problem(client.post("/api/explain", content=chunks(), headers={"content-type": "application/json"}), 413)


def test_a_length_that_is_none(server: Server) -> None:
    for length in ("-1", "1e3", "9" * 30, "0x10"):
        with server.raw(f"POST /api/explain HTTP/1.1\nHost: x\nContent-Length: {length}\n\n") as connection:
            assert 400 <= reply(connection)[0] < 500


# -- anything at all

WORDS = st.text(max_size=30) | st.sampled_from(["", "A100-80GB", "Qwen/Qwen2-7B", "{}", "8", "/etc/passwd", LOG, CONFIGS[0]["text"]])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
NAMES = WORDS | st.sampled_from(["parallel.world", "train.max_seq_len", "train.precision", "model.shape", "log.family", "version.torch"])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "lang": st.sampled_from(["en", "zh", None, "fr"]),
        "gpu": WORDS | st.none(),
        "gpus": st.integers() | st.none(),
        "model": WORDS | st.none(),
        "set": st.dictionaries(NAMES, VALUES, max_size=3),
        "redact": st.booleans() | st.none(),
    },
)
KINDS = ["application/json", "multipart/form-data; boundary=a"]
CONFIG = st.fixed_dictionaries({"text": WORDS}, optional={"name": WORDS})
BODIES = VALUES | st.fixed_dictionaries(
    {"text": WORDS},
    optional={
        "configs": st.lists(st.fixed_dictionaries({"text": WORDS}, optional={"name": WORDS}), max_size=3),
        "options": OPTIONS | VALUES,
    },
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(path=st.sampled_from(["/api/explain", "/api/check"]), body=BODIES)
def test_any_json_is_a_report_or_a_problem(client: httpx.Client, path: str, body: Any) -> None:
    """Never a crash, never a text that is neither."""
    answer = client.post(path, content=json.dumps(body).encode(), headers={"content-type": "application/json"})
    if answer.status_code == 200:
        Report.model_validate(answer.json())
    else:
        is_problem(answer, 422)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    path=st.sampled_from(["/api/explain", "/api/check", "/"]),
    body=st.binary(max_size=200),
    kind=st.sampled_from(["application/json", "multipart/form-data; boundary=a"]),
)
def test_any_bytes_are_refused(client: httpx.Client, path: str, body: bytes, kind: str) -> None:
    assert client.post(path, content=body, headers={"content-type": kind}).status_code in (415, 422)


def test_the_documented_call_takes_a_log_of_five_megabytes(tmp_path: Path) -> None:
    """As it stands in docs/surfaces.md: a body does not pass as an argument of a command."""
    if not (shutil.which("jq") and shutil.which("curl")):
        pytest.skip("jq or curl is not installed")
    page = (ROOT / "docs" / "surfaces.md").read_text(encoding="utf-8")
    (call,) = re.findall(r"```\n(jq -Rs .*?)\n```", page, re.DOTALL)
    (tmp_path / "error.log").write_text("a line of a healthy run\n" * 220_000 + LOG, encoding="utf-8")
    with serving() as server:
        command = ["bash", "-c", call.replace("localhost:8080", f"127.0.0.1:{server.port}")]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "4.64 GiB requested" in done.stdout, done.stdout + done.stderr
