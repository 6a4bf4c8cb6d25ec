"""`oomdoctor serve` as a process: what a browser gets, and that nothing it sends is opened, kept or becomes markup."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from collected import for_each
from serving import CONFIGS, LOG, Server, is_problem, serving

# -- the page


HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store", "x-frame-options": "DENY"}


def test_every_answer_has_the_headers(client: httpx.Client) -> None:
    answers = [
        client.get("/"),
        client.get("/nothing"),
        client.post("/", files={"log": (None, LOG)}),
        client.post("/api/explain", json={"text": LOG}),
        client.post("/api/explain", json={}),
        client.post("/api/explain", content=b"x" * (3 << 20)),
    ]
    for answer in answers:
        assert HEADERS.items() <= dict(answer.headers).items()
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "form-action 'self'" in policy
        assert "unsafe" not in policy and "script-src" not in policy


def test_pages_have_no_script_and_name_no_other_host(client: httpx.Client) -> None:
    for page in (client.get("/").text, client.get("/", params={"lang": "zh"}).text, client.post("/", files={"log": (None, LOG)}).text):
        assert "<script" not in page.lower() and not re.search(r"\bon\w+=", page)
        assert not re.search(r"(?:src|href|action)=[\"']?(?:https?:)?//(?!github\.com)", page.split("<pre")[0])


def test_the_form_works_without_a_script(client: httpx.Client) -> None:
    """A browser sends the empty fields too, and files that were not chosen as files without a name."""
    fields: list[tuple[str, Any]] = [(name, (None, value)) for name, value in (
        ("log", LOG), ("config", CONFIGS[0]["text"]), ("gpu", ""), ("gpus", "8"), ("model", ""), ("lang", "en"),
    )]  # fmt: skip
    empty: list[tuple[str, Any]] = [(name, ("", b"", "application/octet-stream")) for name in ("log_file", "config_file")]
    answer = client.post("/", files=[*fields, *empty])
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "4.64 GiB" in answer.text and "cutoff_len" in answer.text


def test_what_was_typed_is_kept_beside_a_mistake(client: httpx.Client) -> None:
    """Nobody likes to paste twice; what is sent back is text, whatever it says."""
    evil = '"><script>alert(1)</script></textarea><b>'
    fields = {"log": f"\n{evil}\nsecond line", "config": evil, "gpu": f"abacus{evil}", "gpus": "8", "model": evil}
    page = client.post("/", files={name: (None, value) for name, value in fields.items()}).text
    assert "second line" in page and 'value="8"' in page and "<script" not in page and "<b>" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_a_file_is_as_good_as_a_paste(client: httpx.Client) -> None:
    import gzip

    for data, name in ((LOG.encode(), "../../x/error.log"), (gzip.compress(LOG.encode()), "error.log.gz")):
        answer = client.post("/", files={"log_file": (name, data)})
        assert answer.status_code == 200 and "4.64 GiB" in answer.text and "../" not in answer.text


def test_a_config_alone_is_checked(client: httpx.Client) -> None:
    answer = client.post("/", files={"config": (None, CONFIGS[0]["text"]), "gpu": (None, "A100-80GB"), "gpus": (None, "8")})
    assert answer.status_code == 200 and "GiB" in answer.text


def test_a_question_is_asked_once(client: httpx.Client) -> None:
    """As a field where what was pasted can be sent again: then the options of the command line stand hidden; else by their options."""
    short = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert 'class="with-form"' in client.post("/", files={"log": (None, short)}).text
    assert 'class="with-form"' not in client.post("/", files={"log_file": ("error.log", short.encode())}).text


def test_the_page_speaks_both_languages(client: httpx.Client) -> None:
    assert "粘贴" in client.get("/", headers={"accept-language": "zh-CN"}).text
    assert '<html lang="zh-CN"' in client.get("/", params={"lang": "zh"}).text
    assert "显存" in client.post("/", files={"log": (None, LOG), "lang": (None, "zh")}).text


def test_what_is_wrong_stands_above_the_form(client: httpx.Client) -> None:
    for fields, said in (
        ({"log": " "}, "paste a log"),
        ({"log": LOG, "gpu": "<abacus>"}, "&lt;abacus&gt;"),
        ({"log": LOG, "gpus": "many"}, "gpus"),
        ({"log": LOG, "model": "/etc/passwd"}, "no model"),
    ):
        answer = client.post("/", files={name: (None, value) for name, value in fields.items()})
        assert answer.status_code == 422 and said in answer.text and "<form" in answer.text


@for_each(
    "kind, body",
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=", b"x"),
        ("multipart/form-data; boundary=a", b""),
        ("multipart/form-data; boundary=a", b"--b\r\n\r\nx"),
        ("multipart/form-data; boundary=a", b'--a\r\nContent-Disposition: form-data; name="log"\r\n\r\ncut off'),
        ("multipart/form-data; boundary=a", b"--a\r\nContent-Disposition: form-data\r\n\r\nx\r\n--a--\r\n"),
        ("multipart/form-data; boundary=a", b"--a\r\nX: " + b"y" * 100_000 + b"\r\n\r\nx\r\n--a--\r\n"),
        ("multipart/form-data; boundary=" + "a" * 3000, b"x"),
        ("multipart/form-data; boundary=\xe9".encode("latin-1").decode("latin-1"), b"x"),
        ("multipart/form-data; boundary=a", b'--a\r\nContent-Disposition: form-data; name="log"\r\n\r\n\xff\xfe\x00\r\n--a--\r\n'),
        ("multipart/form-data; boundary=a; charset=nonsense", b'--a\r\nContent-Disposition: form-data; name="log"\r\n\r\nx\r\n--a--\r\n'),
        ("multipart/form-data; boundary=a", b'--a\r\nContent-Disposition: form-data; name="x"\r\n\r\n\r\n' * 500 + b"--a--\r\n"),
    ],
)
def test_a_form_that_is_none_is_no_crash(client: httpx.Client, kind: str, body: bytes) -> None:
    answer = client.post("/", content=body, headers={b"content-type": kind.encode("latin-1")})
    assert answer.status_code in (200, 422) and "text/html" in answer.headers["content-type"]


@for_each("evil", ["<script>alert(1)</script>", "</pre><img src=x onerror=alert(1)>", "</textarea><b>", "{{ 7*7 }}<i>", "\u202e\x1b[2J"])
def test_what_is_pasted_is_shown_as_text(client: httpx.Client, evil: str) -> None:
    """In the log, in a config and its keys, in a name: never markup, never a template."""
    log = LOG.replace("CUDA out of memory", f"CUDA out of memory {evil}", 1) + f"\n{evil}\n"
    config = CONFIGS[0]["text"] + f"\n# {evil}\noutput_dir: '{evil}'\nmodel_{evil}: 1\n"
    files: dict[str, Any] = {
        "log_file": (f"{evil}.log", log.encode()),
        "config_file": (f"{evil}.yaml", config.encode()),
        "unmasked": (None, "yes"),
    }
    page = client.post("/", files=files).text
    assert evil not in page and "<script" not in page.lower() and "<img" not in page and "</textarea" not in page
    assert "\u202e" not in page and "\x1b" not in page
    if "7*7" in evil:
        assert "7*7" in page.replace("&#123;", "{")


# -- nothing named is opened, nothing is kept


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_no_path_or_address_in_a_paste_is_opened(client: httpx.Client, tmp_path: Path) -> None:
    """A pipe that is opened would hang the request, a file that is read would show; a port that is asked would hear of it."""
    pipe, canary = tmp_path / "config.json", tmp_path / "canary.json"
    os.mkfifo(pipe)
    canary.write_text(json.dumps({"zero_optimization": {"stage": 3}, "canary_key_7391": 1, "hidden_size": 7391}))
    with socket.create_server(("127.0.0.1", 0)) as ear:
        address = f"http://127.0.0.1:{ear.getsockname()[1]}/canary.json"
        for place in (str(pipe), str(canary), str(tmp_path), f"file://{canary}", address, address.replace("http", "s3")):
            log = f"deepspeed train.py --deepspeed {place} --model_name_or_path {place} --config {place}\nLoading {place}\n{LOG}"
            text = CONFIGS[0]["text"] + f"\ndeepspeed: {place}\nmodel_name_or_path: {place}\ndefaults: [{place}]\n"
            shell = (
                f"source {place}\n. {place}\nllamafactory-cli train {place}\ntorchrun train.py --deepspeed {place} --config_file {place}\n"
            )
            configs = [{"name": place, "text": text}, {"name": "run.sh", "text": shell}]
            for options in ({}, {"set": {"model.path": place}}):
                answer = client.post(
                    "/api/explain", json={"text": log, "configs": configs, "options": {**options, "redact": False}}, timeout=15
                )
                assert answer.status_code == 200 and "canary_key_7391" not in answer.text and "7391" not in answer.text
                assert client.post("/api/check", json={"configs": configs, "options": options}, timeout=15).status_code == 200
            for name in ("model", "gpu"):
                is_problem(client.post("/api/explain", json={"text": log, "options": {name: place}}, timeout=15), 422)
            fields: dict[str, Any] = {"log": (None, log), "log_file": (place, b"x"), "config_file": (place, text.encode())}
            assert client.post("/", files=fields, timeout=15).status_code == 200
        ear.settimeout(0.1)
        with pytest.raises(TimeoutError):
            ear.accept()


def test_nothing_is_written(server: Server, client: httpx.Client, tmp_path: Path) -> None:
    """Not even a large upload touches a disk."""
    with serving("--workers", "1", env={"TMPDIR": str(tmp_path)}) as other:
        before = sorted(path.name for path in tmp_path.iterdir())
        big = LOG + ("x" * 200 + "\n") * 20_000
        assert httpx.post(other.url + "/", files={"log_file": ("a.log", big.encode())}, timeout=60, trust_env=False).status_code == 200
        assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_an_example_can_be_tried(client: httpx.Client) -> None:
    """The form links to itself with a failure in it, and that failure is explained."""
    page = client.get("/", params={"example": "1"}).text
    assert "CUDA out of memory" in page and "example=1" in client.get("/").text
    log = re.search(r'<textarea id="log"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL)
    assert log and "9.28 GiB" in client.post("/", files={"log": (None, html.unescape(log[1]))}).text


def test_the_answer_has_a_title_a_patch_and_fields_for_what_it_asks(client: httpx.Client) -> None:
    """The title says the verdict, the plan can be downloaded, and a question is a field that can be sent with what was pasted."""
    answer = client.post("/", files={"log": (None, LOG), "config": (None, CONFIGS[0]["text"])}).text
    assert "<title>OUT OF MEMORY · oomdoctor</title>" in answer
    link = re.search(r'href="data:text/x-diff;charset=utf-8;base64,([^"]+)" download="([\w.-]+\.patch)"', answer)
    assert link and "+cutoff_len" in base64.b64decode(link[1]).decode()
    bare = client.post("/", files={"log": (None, "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")}).text
    assert 'name="log" value="RuntimeError' in bare and 'name="model"' in bare
    again = client.post("/", files={"log": (None, LOG), "set.host.shared": (None, "perhaps")})
    assert again.status_code == 422 and "host.shared" in again.text


def test_what_was_uploaded_is_not_asked_about_again(client: httpx.Client) -> None:
    """A page cannot send a file again, so that it offers no form that would lose it."""
    answer = client.post("/", files={"log_file": ("a.log", b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")}).text
    assert "OUT OF MEMORY" in answer and 'class="asked"' not in answer


@for_each(
    "paste",
    [
        "{yaml}\n{json}",
        "{yaml}\n---\n{json}",
        "train.yaml:\n```yaml\n{yaml}\n```\nand this one\n```json\n{json}\n```\n",
        "llamafactory-cli train qwen2vl_dpo.yaml\n\n{yaml}\n# ds_z3_config.json\n{json}",
    ],
)
def test_one_paste_of_several_configs_is_told_apart(client: httpx.Client, paste: str) -> None:
    """Both are read, and the edit is of the first alone."""
    text = paste.format(yaml=CONFIGS[0]["text"], json=CONFIGS[1]["text"])
    answer = client.post("/", files={"log": (None, LOG), "config": (None, text), "gpus": (None, "8"), "lang": (None, "en")})
    assert answer.status_code == 200 and "GiB to spare" in answer.text
    told = client.post("/api/explain", json={"text": LOG, "configs": [{"text": text}], "options": {"gpus": 8}}).json()
    assert {fact["name"]: fact["value"] for fact in told["facts"]}["train.max_seq_len"] == 4096
    assert not [notice for notice in told["notices"] if notice["level"] == "error"]


def test_a_script_stays_whole(client: httpx.Client) -> None:
    """With the file that it writes, which is a part of it."""
    script = 'export A=1\ncat > ds.json <<EOF\n{"zero_optimization": {"stage": 2}}\nEOF\n\ndeepspeed train.py --deepspeed ds.json\n'
    told = client.post("/api/explain", json={"text": LOG, "configs": [{"text": script}]}).json()
    assert [each["name"] for each in told["inputs"]] == ["log-1", "config-1"]


def test_the_answer_can_be_kept(client: httpx.Client) -> None:
    """As a file with a telling name that opens by itself, and as Markdown to copy; the patch as before."""
    page = client.post(
        "/", files={"log": (None, LOG), "config": (None, CONFIGS[0]["text"]), "gpus": (None, "8"), "lang": (None, "en")}
    ).text
    links = re.findall(r'href="data:[^"]*?base64,([^"]+)" download="([^"]+)"', page)
    kept = {name: base64.b64decode(data).decode() for data, name in links}
    assert set(kept) == {"oomdoctor-oom-logits.html", "oomdoctor-oom-logits.patch"}
    assert kept["oomdoctor-oom-logits.html"].startswith("<!") and "4.64 GiB" in kept["oomdoctor-oom-logits.html"]
    (comment,) = re.findall(r'<code class="copy" id="comment">(.*?)</code>', page, re.DOTALL)
    assert html.unescape(comment).startswith("**OUT OF MEMORY**")


def test_what_is_wrong_with_a_config_stands_above_the_answer(client: httpx.Client) -> None:
    """With its line, before the memory and the advice; the log is explained all the same."""
    broken = ("train.yaml", b"cutoff_len: 4096\n  - : [1\n")
    page = client.post("/", files={"log": (None, LOG), "lang": (None, "en"), "config_file": broken}).text
    assert 'class="note error"' in page and "4.64 GiB" in page
    assert page.index("train.yaml") < page.index('id="memory"') < page.index('id="plan"')
