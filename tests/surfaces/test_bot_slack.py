"""`oomdoctor bot slack` with the real SDK against a Slack on the loopback address, and as a process over webhooks and Socket Mode."""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import attacks
import httpx
import pytest
import yaml
from chatting import Answer, Call, Fake, Kept, always, as_json, faked
from checkout import ROOT
from collected import for_each
from forked import ENTRY
from hypothesis import given
from hypothesis import strategies as st
from serving import CONFIGS, LOG, SHORT, command, serving
from slack_bolt import App
from slack_sdk.signature import SignatureVerifier

from diagnose import notebook
from diagnose.render.parts.strings import HARMFUL
from diagnose.surfaces.bots.bot_command import BotOptions
from diagnose.surfaces.bots.bot_dispatcher import Dispatcher
from diagnose.surfaces.bots.bot_slack import SCOPES, SHORTCUT, Slack, build_handler, client_for, connect
from diagnose.surfaces.bots.bot_slack_incoming import parse_event, parse_post, plain_text

BOT, SIGNING = "xoxb-" + "test-bot", "a-signing-secret"
SECRET = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
TYPED = html.escape(LOG, quote=False)
POST = "/api/chat.postMessage"


@pytest.fixture
def slack() -> Iterator[Fake]:
    with faked() as held:
        held.routes |= {
            "/api/auth.test": lambda _: as_json({"ok": True, "user_id": "U0BOT", "bot_id": "B0", "team_id": "T0"}),
            POST: lambda _: as_json({"ok": True, "ts": "99.9"}),
            "/api/files.getUploadURLExternal": lambda _: as_json({"ok": True, "file_id": "F9", "upload_url": f"{held.url}/upload/F9"}),
            "/upload/F9": lambda _: (200, {}, b"OK"),
            "/api/files.completeUploadExternal": lambda _: as_json({"ok": True, "files": [{"id": "F9"}]}),
        }
        for name, text in (("error.log", LOG), *((config["name"], config["text"]) for config in CONFIGS)):
            held.routes[f"/files/{name}"] = always((200, {"content-type": "text/plain"}, text.encode()))
        yield held


class Talk:
    """A bot in this process, and what Slack says to it."""

    def __init__(self, app: App, desk: Dispatcher) -> None:
        self.app, self.desk, self.events = app, desk, 0

    def send(self, body: str, headers: dict[str, str] | None = None, kind: str = "application/json") -> int:
        stamp = str(int(time.time()))
        signature = SignatureVerifier(SIGNING).generate_signature(timestamp=stamp, body=body) or ""
        told = {"content-type": kind, "x-slack-request-timestamp": stamp, "x-slack-signature": signature, **(headers or {})}
        return build_handler(self.app, SIGNING)(told, body.encode()).status

    def event(self, event: dict[str, Any], headers: dict[str, str] | None = None, name: str = "") -> int:
        self.events += 1
        return self.send(enveloped(event, name or f"Ev{self.events}"), headers)


def enveloped(event: dict[str, Any], name: str = "Ev1") -> str:
    told = {"channel": "C1", "user": "U1", "ts": "10.1", **event}
    return json.dumps({"type": "event_callback", "event_id": name, "team_id": "T0", "api_app_id": "A0", "event": told})


def mention(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "app_mention", "text": f"<@U0BOT> {text}", **more}


@contextmanager
def talking(slack: Fake, crew: Any, **options: Any) -> Iterator[Talk]:
    """At the end of the block everything is answered."""
    desk, app = connect(client_for(BOT, f"{slack.url}/api"), crew, BotOptions("slack", http=True, **options))
    desk.open()
    try:
        yield Talk(app, desk)
    finally:
        desk.close()


def shared(slack: Fake, name: str, **more: Any) -> dict[str, Any]:
    return {"id": "F1", "name": name, "size": 10, "mimetype": "text/plain", "url_private_download": f"{slack.url}/files/{name}", **more}


def text_of(call: Call) -> str:
    """All words of a message that the bot sent."""
    blocks: list[dict[str, Any]] = sent(call)["blocks"]
    return "\n".join(
        part["text"]
        for block in blocks
        if block["type"] != "actions"
        for part in ([block["text"]] if "text" in block else block["elements"])
    )


def sent(call: Call) -> dict[str, Any]:
    assert call.headers["authorization"] == f"Bearer {BOT}"
    told = (
        call.json
        if call.headers["content-type"].startswith("application/json")
        else {**call.form, "blocks": json.loads(call.form["blocks"])}
    )
    assert all(len(block["text"]["text"]) <= 3000 for block in told["blocks"] if "text" in block)
    return told


# -- what is answered


def test_a_mention_is_answered_in_its_thread(slack: Fake, crew: Kept) -> None:
    with talking(slack, crew) as talk:
        assert talk.event(mention(f"why? ```{TYPED}```")) == 200
    [call] = slack.to(POST)
    told = sent(call)
    assert told["channel"] == "C1" and told["thread_ts"] == "10.1"
    assert "4.64 GiB" in text_of(call) and "4.64 GiB" in told["text"]


def test_the_thread_gives_log_and_configs_and_the_patch_is_a_snippet(slack: Fake, crew: Kept) -> None:
    """The log stands above, the configs are attached between; whoever asks only says why."""
    before = [
        {"user": "U2", "ts": "9.0", "text": "it died", "files": [shared(slack, "error.log")]},
        {"user": "U2", "ts": "9.1", "text": "", "files": [shared(slack, config["name"]) for config in CONFIGS]},
        {"user": "U0BOT", "ts": "9.2", "text": "our own words"},
    ]
    slack.routes["/api/conversations.replies"] = lambda _: as_json({"ok": True, "messages": before})
    with talking(slack, crew) as talk:
        talk.event(mention("and now?", thread_ts="9.0"))
    [asked] = slack.to("/api/conversations.replies")
    given = {**asked.query, **(asked.form if asked.body else {})}
    assert given["ts"] == "9.0" and given["latest"] == "10.1"
    [call] = slack.to(POST)
    assert sent(call)["thread_ts"] == "9.0" and "4.64 GiB" in text_of(call)
    [begun] = slack.to("/api/files.getUploadURLExternal")
    assert "diff" in (begun.query.get("snippet_type"), begun.form.get("snippet_type"))
    [uploaded] = slack.to("/upload/F9")
    assert uploaded.body.startswith(b"--- ") and b"qwen2vl_dpo.yaml" in uploaded.body
    assert "authorization" not in uploaded.headers
    [done] = slack.to("/api/files.completeUploadExternal")
    assert done.form["thread_ts"] == "9.0" and done.form["channel_id"] == "C1"
    assert all(call.headers["authorization"] == f"Bearer {BOT}" for call in slack.calls if call.path.startswith("/files/"))


def test_where_files_may_not_be_sent_the_patch_is_a_block(slack: Fake, crew: Kept) -> None:
    slack.routes["/api/files.getUploadURLExternal"] = lambda _: as_json({"ok": False, "error": "missing_scope"})
    files = [shared(slack, name) for name in ("error.log", *(config["name"] for config in CONFIGS))]
    with talking(slack, crew) as talk:
        talk.event(mention("", files=files))
    answer, patch = slack.to(POST)
    assert "4.64 GiB" in text_of(answer)
    assert text_of(patch).startswith("```\n--- ") and sent(patch)["thread_ts"] == "10.1"


def test_a_button_notes_what_became_of_the_advice(slack: Fake, crew: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    slack.routes["/respond"] = always(as_json({"ok": True}))
    with talking(slack, crew) as talk:
        talk.event(mention(TYPED))
    (buttons,) = [block for block in sent(slack.to(POST)[0])["blocks"] if block["type"] == "actions"]
    assert [element["text"]["text"] for element in buttons["elements"]] == ["It worked", "It failed"]
    pressed = {
        "type": "block_actions",
        "user": {"id": "U1"},
        "team": {"id": "T0"},
        "actions": [{**buttons["elements"][1], "block_id": "b"}],
    }
    with talking(slack, crew) as talk:
        body = urlencode({"payload": json.dumps({**pressed, "response_url": f"{slack.url}/respond"})})
        assert talk.send(body, kind="application/x-www-form-urlencoded") == 200
    _, job, *remedies = buttons["elements"][1]["value"].split()
    assert [(note.job, note.remedy, note.result) for note in notebook.read()] == [(job, remedy, "failed") for remedy in remedies]
    assert slack.to("/respond")[0].json["text"] == "Noted. The next answer on this job starts there."


def test_the_shortcut_explains_whoever_wrote_the_message(slack: Fake, crew: Kept) -> None:
    """Also a program's, each time that somebody asks."""
    message = {"type": "message", "ts": "7.1", "bot_id": "B9", "text": "", "attachments": [{"text": TYPED}]}

    def asked(trigger: str) -> str:
        told = {"type": "message_action", "callback_id": "explain_oom", "trigger_id": trigger, "message": message}
        return urlencode({"payload": json.dumps({**told, "channel": {"id": "C1"}, "user": {"id": "U1"}, "team": {"id": "T0"}})})

    with talking(slack, crew) as talk:
        for trigger in ("1", "1", "2"):
            assert talk.send(asked(trigger), kind="application/x-www-form-urlencoded") == 200
    answers = slack.to(POST)
    assert len(answers) == 2 and all("4.64 GiB" in text_of(call) and sent(call)["thread_ts"] == "7.1" for call in answers)


def test_the_shortcut_where_the_bot_is_no_member_answers_aside(slack: Fake, crew: Kept) -> None:
    slack.routes[POST] = lambda _: as_json({"ok": False, "error": "not_in_channel"})
    slack.routes["/hook"] = lambda _: (200, {}, b"ok")
    message = {"ts": "7.1", "user": "U9", "text": TYPED}
    told = {"type": "message_action", "callback_id": "explain_oom", "trigger_id": "1", "message": message, "channel": {"id": "C1"}}
    body = urlencode({"payload": json.dumps({**told, "user": {"id": "U1"}, "team": {"id": "T0"}, "response_url": f"{slack.url}/hook"})})
    with talking(slack, crew) as talk:
        talk.send(body, kind="application/x-www-form-urlencoded")
    [aside] = slack.to("/hook")
    assert aside.json["response_type"] == "ephemeral" and "4.64 GiB" in json.dumps(aside.json["blocks"])
    assert "authorization" not in aside.headers


def test_a_file_in_a_channel_is_answered_only_where_it_holds_a_failure(slack: Fake, crew: Kept) -> None:
    slack.routes["/files/notes.txt"] = lambda _: (200, {"content-type": "text/plain"}, b"minutes of the meeting")
    upload = {"type": "message", "subtype": "file_share", "channel_type": "channel", "text": ""}
    with talking(slack, crew) as talk:
        talk.event({**upload, "ts": "1.1", "files": [shared(slack, "notes.txt")]})
        talk.event({**upload, "ts": "1.2", "files": [shared(slack, "error.log")]})
        talk.event({**upload, "ts": "1.3", "files": [shared(slack, "error.log")], "bot_id": "B9"})
        talk.event({"type": "message", "channel_type": "channel", "ts": "1.4", "text": TYPED})
    [call] = slack.to(POST)
    assert sent(call)["thread_ts"] == "1.2" and "4.64 GiB" in text_of(call)


def test_a_direct_message_is_answered(slack: Fake, crew: Kept) -> None:
    with talking(slack, crew) as talk:
        talk.event({"type": "message", "channel_type": "im", "text": TYPED})
    assert "4.64 GiB" in text_of(slack.to(POST)[0])


@pytest.mark.parametrize(("text", "said"), [("good morning", "no out-of-memory failure"), ("早上好", "没有看到")])
def test_what_is_no_failure_gets_one_sentence(slack: Fake, crew: Kept, text: str, said: str) -> None:
    """In the language of whoever asks."""
    with talking(slack, crew) as talk:
        talk.event(mention(text))
    [call] = slack.to(POST)
    assert said in text_of(call) and len(sent(call)["blocks"]) == 1


def test_the_message_before_the_thread(slack: Fake, crew: Kept) -> None:
    """A new failure in an old thread is the one that is meant."""
    old = [{"user": "U2", "ts": "9.0", "text": TYPED}]
    slack.routes["/api/conversations.replies"] = lambda _: as_json({"ok": True, "messages": old})
    with talking(slack, crew) as talk:
        talk.event(mention(f"now this: {SHORT}", thread_ts="9.0"))
    [call] = slack.to(POST)
    assert "2.00 GiB" in text_of(call) and "4.64 GiB" not in text_of(call)


# -- once, and within limits


def test_the_same_message_is_answered_once(slack: Fake, crew: Kept) -> None:
    """Slack sends again what it thinks is lost; a mention in a direct message or with a file comes as two events."""
    both = mention(TYPED, files=[shared(slack, "error.log")])
    with talking(slack, crew) as talk:
        for number in range(3):
            retry = {"x-slack-retry-num": str(number), "x-slack-retry-reason": "http_timeout"} if number else {}
            assert talk.event(both, retry, name="Ev77") == 200
        talk.event({**both, "type": "message", "channel_type": "im", "subtype": "file_share"})
        talk.event({**both, "edited": {"user": "U1", "ts": "11.0"}})
    assert len(slack.to(POST)) == 1


def test_slack_is_answered_before_the_diagnosis(slack: Fake, crew: Kept) -> None:
    """Within 3 s, whatever the diagnosis takes."""

    class Slow(Kept):
        async def answer(self, asked: Any) -> Any:
            time.sleep(2)
            return await crew.answer(asked)

    with talking(slack, Slow(workers=1)) as talk:
        started = time.monotonic()
        assert talk.event(mention(TYPED)) == 200
        assert time.monotonic() - started < 1
    assert len(slack.to(POST)) == 1


@pytest.mark.parametrize(
    "headers, why",
    [
        ({"x-slack-signature": "v0=" + "0" * 64}, "forged"),
        ({"x-slack-signature": ""}, "unsigned"),
        ({"x-slack-request-timestamp": str(int(time.time()) - 3600)}, "old"),
        ({"x-slack-request-timestamp": "soon"}, "no time"),
    ],
)
def test_what_slack_did_not_sign_is_refused(slack: Fake, crew: Kept, headers: dict[str, str], why: str) -> None:
    with talking(slack, crew) as talk:
        assert talk.event(mention(TYPED), headers) == 401
    assert [call.path for call in slack.calls] == ["/api/auth.test"]


def limited(seconds: str) -> Answer:
    return as_json({"ok": False, "error": "ratelimited"}, 429, retry_after=seconds)


def test_rate_limits_are_obeyed(slack: Fake, crew: Kept) -> None:
    slack.first[POST] = [limited("1")]
    with talking(slack, crew) as talk:
        talk.event(mention(TYPED))
        started = time.monotonic()
    assert len(slack.to(POST)) == 2 and time.monotonic() - started >= 1
    assert slack.to(POST)[0].body == slack.to(POST)[1].body


def test_nobody_waits_an_hour(slack: Fake, crew: Kept, capfd: pytest.CaptureFixture[str]) -> None:
    """The answer is given up, which our log says without what was written; the bot goes on."""
    slack.first[POST] = [limited("3600")]
    with talking(slack, crew) as talk:
        talk.event(mention(TYPED))
        talk.event(mention(SHORT, ts="10.2"))
    assert len(slack.to(POST)) == 2 and "2.00 GiB" in text_of(slack.to(POST)[1])
    assert "ratelimited" in (told := capfd.readouterr().err) and "CUDA" not in told


@pytest.mark.parametrize("size", [10, 99 << 20])
def test_a_file_that_is_too_large_is_not_read(slack: Fake, crew: Kept, size: int) -> None:
    """Whether it says so or not. The rest is answered, with a note."""
    slack.routes["/files/big.log"] = lambda _: (200, {"content-type": "text/plain"}, bytes(3 << 20))
    with talking(slack, crew, max_mib=1) as talk:
        talk.event(mention(SHORT, files=[shared(slack, "big.log", size=size)]))
    [call] = slack.to(POST)
    assert "2.00 GiB" in text_of(call) and "big.log was not read" in text_of(call)
    assert len(slack.to("/files/big.log")) == (size == 10)


def test_the_token_goes_to_no_stranger(slack: Fake, crew: Kept) -> None:
    """An address in a file is what a stranger may have written; nor is a redirect followed."""
    with faked() as stranger:
        stranger.routes["/steal"] = lambda _: (200, {"content-type": "text/plain"}, b"got it")
        slack.routes["/files/moved.log"] = lambda _: (302, {"location": f"{stranger.url}/steal"}, b"")
        addresses = [
            f"{stranger.url}/steal",
            f"{slack.url}@{stranger.url.removeprefix('http://')}/steal",
            "file:///etc/passwd",
            "http://files.slack.com/x",
            "https://files.slack.com.example.net/x",
            "https://files.slack.com:444/x",
            "https://user@files.slack.com/x",
            "https://[bad/x",
        ]
        slack_files = Slack(client_for(BOT, f"{slack.url}/api"), "U0BOT")
        assert not [address for address in addresses if slack_files.is_trusted(address)]
        assert Slack(client_for(BOT, "https://slack.com/api"), "U0BOT").is_trusted(
            "https://files.slack.com/files-pri/T0-F0/download/error.log"
        )
        assert not Slack(client_for(BOT, "https://slack.com/api"), "U0BOT").is_trusted("https://slack.com/api/x")
        files = [shared(slack, f"{number}.log", url_private_download=address) for number, address in enumerate(addresses)]
        with talking(slack, crew) as talk:
            talk.event(mention(SHORT, files=[*files[:2], shared(slack, "moved.log")]))
        assert not stranger.calls
    said = text_of(slack.to(POST)[0])
    assert "2.00 GiB" in said and "outside" in said and "moved.log could not be fetched" in said


def test_a_page_to_log_in_is_no_file(slack: Fake, crew: Kept) -> None:
    """What Slack sends where the scope files:read is missing; and a picture is not fetched at all."""
    slack.routes["/files/error.log"] = lambda _: (200, {"content-type": "text/html; charset=utf-8"}, b"<html>sign in</html>")
    with talking(slack, crew) as talk:
        talk.event(mention("", files=[shared(slack, "error.log"), shared(slack, "screen.png", mimetype="image/png")]))
    said = text_of(slack.to(POST)[0])
    assert "could not be fetched" in said and "paste the text" in said and not slack.to("/files/screen.png")


def test_a_file_of_another_workspace_is_asked_for(slack: Fake, crew: Kept) -> None:
    """Its event says only its name."""
    slack.routes["/api/files.info"] = lambda _: as_json({"ok": True, "file": shared(slack, "error.log")})
    with talking(slack, crew) as talk:
        talk.event(mention("", files=[{"id": "F1", "file_access": "check_file_info"}]))
    assert "4.64 GiB" in text_of(slack.to(POST)[0])


# -- what strangers write


def test_secrets_are_masked_and_nobody_is_called(slack: Fake, crew: Kept) -> None:
    log = LOG.replace("CUDA out", f"{SECRET} <!channel> <@U7> *b* CUDA out")
    config = CONFIGS[0]["text"] + f"\nhub_token: {SECRET}\n"
    slack.routes["/files/train.yaml"] = lambda _: (200, {"content-type": "text/plain"}, config.encode())
    with talking(slack, crew) as talk:
        talk.event(mention(html.escape(log, quote=False), files=[shared(slack, "train.yaml")]))
    everything = b"".join(call.body for call in slack.calls).decode()
    assert SECRET not in everything and "<!channel>" not in everything and "<@U7>" not in everything


def test_what_a_log_says_is_said_by_nobody(slack: Fake, crew: Kept) -> None:
    """Orders, markup, escapes and hidden text of a log: what is posted steers no reader and no model, and calls nobody."""
    slack.routes["/files/evil.yaml"] = lambda _: (200, {"content-type": "text/plain"}, attacks.config(attacks.EVERYTHING))
    with talking(slack, crew) as talk:
        talk.event(mention(html.escape(attacks.log(attacks.EVERYTHING), quote=False), files=[shared(slack, "evil.yaml")]))
    [call] = slack.to(POST)
    words = text_of(call)
    assert "4.64 GiB" in words and not HARMFUL.search(words.replace("@\u200b", "@"))
    assert not re.search(r"<(?:[@!#]|script|img|https?:)|@everyone", words)
    assert attacks.ORDERS not in re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", words, flags=re.DOTALL))


def test_without_masks_if_told_so(slack: Fake, crew: Kept) -> None:
    with talking(slack, crew, redact=False) as talk:
        talk.event(mention(SHORT))
    assert "2.00 GiB" in text_of(slack.to(POST)[0])


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("<@U0BOT> a &lt;b&gt; &amp;amp;", " a <b> &amp;"),
        ("see <https://x.org/a|x.org> <https://y.org>", "see x.org https://y.org"),
        ("<!here> 3 &lt; 4 <#C1|general>", " 3 < 4 general"),
    ],
)
def test_text_is_read_as_it_was_typed(typed: str, read: str) -> None:
    assert plain_text(typed) == read


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda held: st.lists(held) | st.dictionaries(st.text(), held))


@given(st.dictionaries(st.sampled_from(["text", "blocks", "attachments", "files", "ts", "user", "channel"]), JSON))
def test_any_message_can_be_read(message: dict[str, Any]) -> None:
    assert isinstance(parse_post(message).text, str) and parse_event(message).key


# -- as a process


def environment(slack: Fake, **more: str) -> dict[str, str]:
    return {"SLACK_BOT_TOKEN": BOT, "SLACK_SIGNING_SECRET": SIGNING, "SLACK_API_URL": f"{slack.url}/api", **more}


def waited(slack: Fake, path: str, seconds: float = 30) -> Call:
    ends = time.monotonic() + seconds
    while not slack.to(path) and time.monotonic() < ends:
        time.sleep(0.05)
    return slack.to(path)[0]


def test_the_real_process_over_webhooks(slack: Fake) -> None:
    """Signed requests are answered at once and in the thread; others are not; what was begun is finished after SIGTERM."""
    with serving("--http", "--workers", "1", "--lang", "en", command="bot slack", env=environment(slack)) as server:
        assert server.url.endswith("/slack/events")
        body = enveloped(mention(TYPED))
        stamp = str(int(time.time()))
        headers = {"content-type": "application/json", "x-slack-request-timestamp": stamp}
        signed = {**headers, "x-slack-signature": SignatureVerifier(SIGNING).generate_signature(timestamp=stamp, body=body) or ""}
        with httpx.Client(trust_env=False, timeout=20) as client:
            assert client.post(server.url, content=body, headers={**headers, "x-slack-signature": "v0=00"}).status_code == 401
            assert client.post(server.url, content=b"x" * (3 << 20), headers=signed).status_code == 413
            assert client.get(server.url).status_code == 405
            assert client.get(server.url.replace("/slack/events", "/healthz")).json() == {"status": "ok"}
            started = time.monotonic()
            assert client.post(server.url, content=body, headers=signed).status_code == 200
            assert time.monotonic() - started < 3
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(40) == 0
    [call] = slack.to(POST)
    assert "4.64 GiB" in text_of(call)


class Link:
    """The other end of Socket Mode: one WebSocket, of which only short text frames are needed."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listening.getsockname()[1]}/link"
        self.heard: list[dict[str, Any]] = []
        self.open = threading.Event()
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()

    def _live(self) -> None:
        self.peer, _ = self.listening.accept()
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.peer.recv(4096)
        key = next(line.split(b": ")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
        proof = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {proof}", "", ""]
        self.peer.sendall("\r\n".join(lines).encode())
        self.open.set()
        held = self.peer.makefile("rb")
        while len(start := held.read(2)) == 2:
            length = start[1] & 127
            length = struct.unpack(">H", held.read(2))[0] if length == 126 else length
            mask = held.read(4)
            data = bytes(byte ^ mask[place % 4] for place, byte in enumerate(held.read(length)))
            if start[0] & 15 == 1:
                self.heard.append(json.loads(data))

    def say(self, told: dict[str, Any]) -> None:
        data = json.dumps(told).encode()
        self.peer.sendall(b"\x81" + bytes([126]) + struct.pack(">H", len(data)) + data)

    def close(self) -> None:
        if self.open.is_set():
            self.peer.close()
        self.listening.close()


def test_the_real_process_over_socket_mode(slack: Fake) -> None:
    """Envelopes are acknowledged within 3 s, the same event twice is answered once, SIGTERM ends it with 0."""
    link = Link()
    slack.routes["/api/apps.connections.open"] = lambda _: as_json({"ok": True, "url": link.url})
    env = {**os.environ, "LC_ALL": "C.UTF-8", **environment(slack, SLACK_APP_TOKEN="xapp-" + "1")}
    process = subprocess.Popen(
        [sys.executable, "-c", ENTRY, "bot", "slack", "--workers", "1"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        assert link.open.wait(60)
        assert b"connected to Slack" in process.stdout.readline()
        [opened] = slack.to("/api/apps.connections.open")
        assert opened.headers["authorization"] == "Bearer xapp-1"
        started = time.monotonic()
        for number in range(2):
            payload = json.loads(enveloped(mention(SHORT)))
            link.say({"type": "events_api", "envelope_id": f"e{number}", "payload": payload, "retry_attempt": number})
        while len(link.heard) < 2 and time.monotonic() - started < 10:
            time.sleep(0.02)
        assert {told["envelope_id"] for told in link.heard} == {"e0", "e1"} and time.monotonic() - started < 3
        assert "2.00 GiB" in text_of(waited(slack, POST))
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0
        assert len(slack.to(POST)) == 1
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        link.close()


# -- what is missing


@pytest.mark.parametrize(
    ("set_", "words", "named"),
    [
        ({}, [], "SLACK_BOT_TOKEN"),
        ({"SLACK_BOT_TOKEN": BOT}, [], "SLACK_APP_TOKEN"),
        ({"SLACK_BOT_TOKEN": BOT}, ["--http"], "SLACK_SIGNING_SECRET"),
        ({"SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": "x", "SLACK_API_URL": "http://example.net"}, [], "SLACK_API_URL"),
        ({"SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": "x", "SLACK_API_URL": "http://127.0.0.1:1/api"}, [], "SLACK_BOT_TOKEN"),
    ],
)
def test_a_missing_token_is_one_sentence_and_2(
    oomdoctor: Any, monkeypatch: pytest.MonkeyPatch, set_: dict[str, str], words: list[str], named: str
) -> None:
    for name in ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_API_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in set_.items():
        monkeypatch.setenv(name, value)
    left = oomdoctor("bot", "slack", *words)
    assert left.status == 2 and left.out == "" and len(left.err.splitlines()) == 1 and named in left.err, left.err
    assert BOT not in left.err


@pytest.mark.parametrize("module", ["slack_bolt", "slack_sdk"])
def test_without_the_extra_it_is_one_sentence_and_2(module: str) -> None:
    left = command("bot", "slack", before=f"import sys; sys.modules[{module!r}] = None")
    assert left.returncode == 2 and left.stdout == "" and len(left.stderr.splitlines()) == 1
    assert "pip install '.[slack]'" in left.stderr and "bot slack" in left.stderr


def test_what_slack_has_not_signed_now_is_not_parsed(slack: Fake, crew: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it claims to be: an event, a form of a shortcut, the challenge, a check of the certificate."""
    now = str(int(time.time()))
    bodies = [
        b"{",
        b"[" * 100_000,
        b"\xff" * 9,
        b"",
        urlencode({"payload": "{"}).encode(),
        b"ssl_check=1&token=x",
        enveloped(mention(TYPED)).encode(),
    ]

    def fails(**_: Any) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr("diagnose.surfaces.bots.bot_slack.BoltRequest", fails)
    with talking(slack, crew) as talk:
        for body in bodies:
            signature = SignatureVerifier(SIGNING).generate_signature(timestamp=now, body=body.decode("latin-1")) or ""
            for stamp, sign in (
                (now, ""),
                (now, "v0=00"),
                (now, "v0=\xe9"),
                ("", signature),
                ("1" * 400, signature),
                (str(int(now) - 301), signature),
            ):
                told = {"content-type": "application/json", "x-slack-request-timestamp": stamp, "x-slack-signature": sign}
                assert build_handler(talk.app, SIGNING)(told, body).status == 401
    assert not slack.to(POST)


@for_each("body", [b"{", b"[" * 100_000, b"[1]", b"7", b"\xff", b"payload=%7B", b'{"authorizations": 7}'])
def test_signed_nonsense_is_no_mistake_of_ours(body: bytes, slack: Fake, crew: Kept) -> None:
    stamp = str(int(time.time()))
    signature = "v0=" + hmac.new(SIGNING.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    told = {"content-type": "application/json", "x-slack-request-timestamp": stamp, "x-slack-signature": signature}
    with talking(slack, crew) as talk:
        assert build_handler(talk.app, SIGNING)(told, body).status in (200, 400, 404)


def test_a_lone_surrogate_is_answered(slack: Fake, crew: Kept) -> None:
    with talking(slack, crew) as talk:
        assert talk.event(mention(f"{SHORT}\n--model \ud800x", channel="C1")) == 200
    assert len(slack.to(POST)) == 1


def test_the_manifest_asks_for_what_the_bot_uses_and_a_lack_is_told(slack: Fake, capsys: pytest.CaptureFixture[str], crew: Kept) -> None:
    manifest = yaml.load((ROOT / "docs" / "examples" / "slack-manifest.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert tuple(manifest["oauth_config"]["scopes"]["bot"]) == SCOPES
    assert [each["callback_id"] for each in manifest["features"]["shortcuts"]] == [SHORTCUT]
    answered = {"ok": True, "user_id": "U0BOT", "bot_id": "B0", "team_id": "T0"}
    for granted, told in ((",".join(SCOPES), ""), ("chat:write, app_mentions:read,commands,files:write,im:history", "files:read")):
        slack.routes["/api/auth.test"] = always(
            (200, {"content-type": "application/json", "x-oauth-scopes": granted}, json.dumps(answered).encode())
        )
        dispatcher, _ = connect(client_for(BOT, f"{slack.url}/api"), crew, BotOptions("slack"))
        dispatcher.close()
        said = capsys.readouterr().err
        assert (told in said and "groups:history" in said and "chat:write" not in said) if told else said == ""
