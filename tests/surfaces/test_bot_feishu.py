"""`oomdoctor bot feishu` against a Feishu on the loopback address: signatures, encryption, token, cards, files, and as a process."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attacks
import httpx
import pytest
from chatting import Call, Fake, Kept, as_json, faked
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from forked import ENTRY
from hypothesis import given
from hypothesis import strategies as st
from serving import CONFIGS, LOG, SHORT, command, serving

from diagnose import notebook
from diagnose.render.parts.strings import HARMFUL
from diagnose.surfaces.bots.bot_command import BotOptions
from diagnose.surfaces.bots.bot_feishu import ForgedRequest, RequestVerifier, Webhook, connect, parse_event, parse_post
from diagnose.surfaces.bots.bot_feishu_api import ApiError, Client

APP, KEY, TOKEN, ME = "cli_a1", "an-encrypt-key", "a-verification-token", "ou_bot"
SECRET = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
REPLY = "/open-apis/im/v1/messages/om_1/reply"
GIVES = "/open-apis/auth/v3/tenant_access_token/internal"


def ok(data: Any = None) -> Any:
    return as_json({"code": 0, "msg": "success", "data": data or {}})


@pytest.fixture
def feishu() -> Iterator[Fake]:
    with faked() as held:
        held.routes |= {
            GIVES: lambda call: as_json({"code": 0, "tenant_access_token": f"t-{len(held.to(GIVES))}", "expire": 7200}),
            "/open-apis/bot/v3/info": lambda _: as_json({"code": 0, "msg": "ok", "bot": {"open_id": ME}}),
            REPLY: lambda _: ok({"message_id": "om_99"}),
            "/open-apis/im/v1/files": lambda _: ok({"file_key": "file_v9"}),
            "/open-apis/im/v1/messages/om_1/resources/file_1": lambda _: (200, {"content-type": "text/plain"}, LOG.encode()),
        }
        yield held


def sealed(event: Any, key: str = KEY) -> bytes:
    """As Feishu encrypts: AES-256-CBC with the hash of the key, the vector in front."""
    data = json.dumps(event, ensure_ascii=False).encode()
    pad = 16 - len(data) % 16
    writer = Cipher(algorithms.AES(hashlib.sha256(key.encode()).digest()), modes.CBC(bytes(range(16)))).encryptor()
    held = bytes(range(16)) + writer.update(data + bytes([pad]) * pad) + writer.finalize()
    return json.dumps({"encrypt": base64.b64encode(held).decode()}).encode()


def signed(body: bytes, key: str = KEY) -> dict[str, str]:
    stamp, nonce = str(int(time.time())), "n0"
    signature = hashlib.sha256((stamp + nonce + key).encode() + body).hexdigest()
    return {"x-lark-request-timestamp": stamp, "x-lark-request-nonce": nonce, "x-lark-signature": signature}


def event(kind: str, content: Any, token: str = TOKEN, age: float = 0, **more: Any) -> dict[str, Any]:
    """A message to the bot alone, or what `more` says."""
    message = {"message_id": "om_1", "chat_id": "oc_1", "chat_type": "p2p", "message_type": kind, "content": json.dumps(content)}
    made = str(int((time.time() - age) * 1000))
    header = {"event_id": "e1", "event_type": "im.message.receive_v1", "token": token, "create_time": made, "app_id": APP}
    sender = {"sender_type": more.pop("sender_type", "user"), "sender_id": {"open_id": "ou_1"}}
    return {"schema": "2.0", "header": header, "event": {"sender": sender, "message": {**message, **more}}}


MENTIONED: dict[str, Any] = {"chat_type": "group", "mentions": [{"key": "@_user_1", "id": {"open_id": ME}, "name": "oomdoctor"}]}


class Talk:
    """A bot in this process, and what Feishu says to it."""

    def __init__(self, hook: Webhook, client: Client) -> None:
        self.hook, self.client = hook, client

    def say(self, told: Any) -> int:
        body = sealed(told)
        return self.hook(signed(body), body).status


@contextmanager
def talking(feishu: Fake, crew: Any, **options: Any) -> Iterator[Talk]:
    client = Client(feishu.url, APP, "an-app-secret")
    desk, bot_id = connect(client, crew, BotOptions("feishu", **options))
    hook = Webhook(desk, RequestVerifier(KEY, TOKEN), bot_id)
    desk.open()
    try:
        yield Talk(hook, client)
    finally:
        desk.close()
        client.close()


def card_of(call: Call) -> str:
    """The words of a card; it fits where Feishu lets it."""
    assert call.headers["authorization"].startswith("Bearer t-") and len(call.body) <= 30_000
    assert call.json["msg_type"] == "interactive" and len(call.json["uuid"]) <= 50
    told = json.loads(call.json["content"])
    assert told["schema"] == "2.0" and told["config"]["summary"]["content"]
    return "\n".join(element["content"] for element in told["body"]["elements"] if element["tag"] == "markdown")


# -- what is answered


def test_a_message_is_answered_by_a_card(feishu: Fake, crew: Kept) -> None:
    with talking(feishu, crew) as talk:
        assert talk.say(event("text", {"text": LOG})) == 200
    [call] = feishu.to(REPLY)
    assert "4.64 GiB" in card_of(call) and call.json["reply_in_thread"] is False


def test_a_button_notes_what_became_of_the_advice(feishu: Fake, crew: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": f"{LOG}\n求助"}))
    elements = json.loads(feishu.to(REPLY)[0].json["content"])["body"]["elements"]
    worked, failed = (element for element in elements if element["tag"] == "button")
    assert worked["text"]["content"] == "有效" and failed["text"]["content"] == "无效"
    with talking(feishu, crew) as talk:
        for value in (worked["behaviors"][0]["value"], {"worked": "en 1 lora"}, {"worked": "zh 12345678 rm"}, {}, {"worked": 3}):
            header = {"event_type": "card.action.trigger", "token": TOKEN}
            body = sealed({"schema": "2.0", "header": header, "event": {"action": {"tag": "button", "value": value}}})
            answer = talk.hook(signed(body), body)
            noted = value is worked["behaviors"][0]["value"]
            assert answer.status == 200 and ("已记下" in json.loads(answer.body)["toast"]["content"]) == noted
    _, job, *remedies = worked["behaviors"][0]["value"]["worked"].split()
    assert [(note.job, note.remedy, note.result) for note in notebook.read()] == [(job, remedy, "worked") for remedy in remedies]


def test_a_mention_in_a_group_is_answered_in_its_thread(feishu: Fake, crew: Kept) -> None:
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": f"@_user_1 为什么？\n{LOG}"}, **MENTIONED))
    [call] = feishu.to(REPLY)
    assert call.json["reply_in_thread"] is True and "显存" in card_of(call) and "4.64 GiB" in card_of(call)


def test_rich_text_with_a_block_of_code(feishu: Fake, crew: Kept) -> None:
    lines = [
        [{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": "why? "}],
        [{"tag": "code_block", "language": "LOG", "text": SHORT}],
    ]
    with talking(feishu, crew) as talk:
        talk.say(event("post", {"title": "it died", "content": lines}, **MENTIONED))
    assert "2.00 GiB" in card_of(feishu.to(REPLY)[0])


def test_what_was_said_before_is_read_and_the_patch_is_a_file(feishu: Fake, crew: Kept) -> None:
    """The mention replies to a file; the configs stand in the thread; our own answers are not read."""
    root = {"message_id": "om_r", "msg_type": "file", "body": {"content": json.dumps({"file_key": "file_1", "file_name": "error.log"})}}
    items = [{**root, "create_time": "1", "sender": {"id": "ou_1", "sender_type": "user"}}]
    for number, config in enumerate(CONFIGS, 2):
        told = {"message_id": f"om_c{number}", "msg_type": "text", "create_time": str(number), "sender": {"id": "ou_1"}}
        items.append({**told, "body": {"content": json.dumps({"text": f"Here is my {config['name']}:\n```\n{config['text']}\n```"})}})
    own = {"message_id": "om_o", "msg_type": "interactive", "create_time": "9", "sender": {"id": APP, "sender_type": "app"}}
    items.append({**own, "body": {"content": '{"elements": [[{"tag": "text", "text": "ours"}]]}'}})
    feishu.routes["/open-apis/im/v1/messages/om_r"] = lambda _: ok({"items": items[:1]})
    feishu.routes["/open-apis/im/v1/messages"] = lambda _: ok({"items": items[::-1]})
    feishu.routes["/open-apis/im/v1/messages/om_r/resources/file_1"] = lambda _: (200, {"content-type": "text/plain"}, LOG.encode())
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": "@_user_1"}, root_id="om_r", parent_id="om_r", thread_id="omt_1", **MENTIONED))
    answer, patch = feishu.to(REPLY)
    assert "4.64 GiB" in card_of(answer)
    [listed] = feishu.to("/open-apis/im/v1/messages")
    assert listed.query["container_id_type"] == "thread" and listed.query["container_id"] == "omt_1"
    [uploaded] = feishu.to("/open-apis/im/v1/files")
    assert b"oomdoctor.patch" in uploaded.body and b"\n--- " in uploaded.body
    assert patch.json["msg_type"] == "file" and json.loads(patch.json["content"]) == {"file_key": "file_v9"}
    assert patch.json["uuid"] != answer.json["uuid"]


def test_a_shared_file_is_answered_where_it_holds_a_failure(feishu: Fake, crew: Kept) -> None:
    feishu.routes["/open-apis/im/v1/messages/om_2/resources/file_2"] = lambda _: (200, {}, b"minutes")
    with talking(feishu, crew) as talk:
        talk.say(event("file", {"file_key": "file_2", "file_name": "notes.txt"}, chat_type="group", message_id="om_2"))
        talk.say(event("file", {"file_key": "file_1", "file_name": "error.log"}, chat_type="group"))
    assert not feishu.to("/open-apis/im/v1/messages/om_2/reply")
    assert "4.64 GiB" in card_of(feishu.to(REPLY)[0])
    assert feishu.to("/open-apis/im/v1/messages/om_1/resources/file_1")[0].query == {"type": "file"}


def test_what_is_no_failure_gets_one_sentence(feishu: Fake, crew: Kept) -> None:
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": "早上好"}))
    assert "没有看到" in card_of(feishu.to(REPLY)[0])


@pytest.mark.parametrize(
    "told",
    [
        event("text", {"text": LOG}, chat_type="group"),
        event("text", {"text": LOG}, chat_type="group", mentions=[{"key": "@_user_1", "id": {"open_id": "ou_other"}}]),
        event("text", {"text": LOG}, sender_type="app"),
        event("text", {"text": LOG}, age=3 * 24 * 3600),
        {"header": {"event_type": "im.chat.member.bot.added_v1", "token": TOKEN}, "event": {}},
        {"header": {"token": TOKEN}},
    ],
)
def test_what_is_not_for_the_bot_is_left_alone(feishu: Fake, crew: Kept, told: Any) -> None:
    """A group's own talk, programs, and copies of old events."""
    with talking(feishu, crew) as talk:
        assert talk.say(told) == 200
    assert not [call for call in feishu.calls if call.path.endswith("/reply")]


def test_a_chat_without_threads_gets_a_plain_reply(feishu: Fake, crew: Kept) -> None:
    feishu.first[REPLY] = [as_json({"code": 230071, "msg": "no thread here"}, 400)]
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": SHORT}, **MENTIONED))
    first, second = feishu.to(REPLY)
    assert first.json["reply_in_thread"] is True and second.json["reply_in_thread"] is False


def test_where_files_may_not_be_sent_the_patch_is_a_block(feishu: Fake, crew: Kept) -> None:
    feishu.routes["/open-apis/im/v1/files"] = lambda _: as_json({"code": 99991672, "msg": "no permission"}, 400)
    text = f"{LOG}\n\nHere is my qwen2vl_dpo.yaml:\n```yaml\n{CONFIGS[0]['text']}\n```\n"
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": text}))
    answer, *rest = feishu.to(REPLY)
    assert "4.64 GiB" in card_of(answer)
    assert [card_of(call).startswith("```diff\n--- ") for call in rest] == [True]


# -- once, and within limits


def test_the_same_message_is_answered_once(feishu: Fake, crew: Kept) -> None:
    with talking(feishu, crew) as talk:
        for _ in range(3):
            assert talk.say(event("text", {"text": SHORT})) == 200
    assert len(feishu.to(REPLY)) == 1


def test_one_token_serves_until_it_is_old(feishu: Fake, crew: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    with talking(feishu, crew) as talk:
        for _ in range(3):
            talk.client.call("GET", "bot/v3/info")
        assert len(feishu.to(GIVES)) == 1
        assert feishu.to(GIVES)[0].json == {"app_id": APP, "app_secret": "an-app-secret"}
        now = time.monotonic()
        monkeypatch.setattr("diagnose.surfaces.bots.bot_feishu_api.time.monotonic", lambda: now + 7200 - 500)
        talk.client.call("GET", "bot/v3/info")
    assert len(feishu.to(GIVES)) == 2 and feishu.calls[-1].headers["authorization"] == "Bearer t-2"


def test_a_token_that_is_no_longer_good_is_replaced(feishu: Fake, crew: Kept) -> None:
    with talking(feishu, crew) as talk:
        feishu.first[REPLY] = [as_json({"code": 99991663, "msg": "invalid token"}, 400)]
        talk.say(event("text", {"text": SHORT}))
    first, second = feishu.to(REPLY)
    assert (first.headers["authorization"], second.headers["authorization"]) == ("Bearer t-1", "Bearer t-2")
    assert first.json["uuid"] == second.json["uuid"]


@pytest.mark.parametrize(
    "limit",
    [as_json({"code": 99991400, "msg": "slow down"}, 429, x_ogw_ratelimit_reset="1"), as_json({"code": 230020, "msg": "chat"}, 400)],
)
def test_rate_limits_are_obeyed(feishu: Fake, crew: Kept, limit: Any) -> None:
    feishu.first[REPLY] = [limit]
    started = time.monotonic()
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": SHORT}))
    assert len(feishu.to(REPLY)) == 2 and time.monotonic() - started >= (1 if limit[0] == 429 else 0.5)


def test_nobody_waits_an_hour(feishu: Fake) -> None:
    feishu.first[GIVES] = [as_json({"code": 99991400, "msg": "slow down"}, 429, x_ogw_ratelimit_reset="3600")]
    client = Client(feishu.url, APP, "x")
    with pytest.raises(ApiError):
        client.token()
    client.close()


def test_a_file_that_is_too_large_is_not_read(feishu: Fake, crew: Kept) -> None:
    """Feishu does not say how large it is: reading ends at the limit. A picture is not fetched at all."""
    feishu.routes["/open-apis/im/v1/messages/om_1/resources/file_1"] = lambda _: (200, {}, bytes(5 << 20))
    with talking(feishu, crew, max_mib=1) as talk:
        talk.say(event("file", {"file_key": "file_1", "file_name": "big.log"}))
        talk.say(event("image", {"image_key": "img_1"}, message_id="om_2"))
    assert "big.log was not read" in card_of(feishu.to(REPLY)[0])
    assert not [call for call in feishu.calls if "img_1" in call.path]


@pytest.mark.parametrize("key", ["../../x", "a/b", "a?b", "http://example.net", "", "x" * 500])
def test_a_name_stays_a_name(feishu: Fake, crew: Kept, key: str) -> None:
    """What a message calls a file becomes a part of an address, and nothing else."""
    with talking(feishu, crew) as talk:
        talk.say(event("file", {"file_key": key, "file_name": "error.log"}))
    assert "could not be fetched" in card_of(feishu.to(REPLY)[0])
    assert {call.path for call in feishu.calls} == {GIVES, "/open-apis/bot/v3/info", REPLY}


# -- whose request it is


def test_the_question_whether_the_address_is_ours(feishu: Fake, crew: Kept) -> None:
    with talking(feishu, crew) as talk:
        body = sealed({"challenge": "c-1", "token": TOKEN, "type": "url_verification"})
        told = talk.hook({}, body)
        assert told.status == 200 and json.loads(told.body) == {"challenge": "c-1"}
        assert talk.hook({}, sealed({"challenge": "c-1", "token": "other", "type": "url_verification"})).status == 401
        assert talk.hook({}, json.dumps({"challenge": "c-1", "token": TOKEN, "type": "url_verification"}).encode()).status == 401


def test_what_feishu_did_not_sign_is_refused(feishu: Fake, crew: Kept) -> None:
    """No signature, one of another key or body, another encryption, another token, no encryption at all."""
    told = event("text", {"text": SHORT})
    body = sealed(told)
    other = event("text", {"text": SHORT}, token="other")
    with talking(feishu, crew) as talk:
        for headers, sent in (
            ({}, body),
            (signed(body, "another-key"), body),
            (signed(body), sealed(told | {"more": 1})),
            (signed(body) | {"x-lark-request-nonce": "n1"}, body),
            (signed(sealed(told, "another-key")), sealed(told, "another-key")),
            (signed(sealed(other)), sealed(other)),
            (signed(json.dumps(told).encode()), json.dumps(told).encode()),
        ):
            assert talk.hook(headers, sent).status == 401
    assert not feishu.to(REPLY)


@given(
    st.binary(max_size=200) | st.binary(max_size=100).map(lambda data: json.dumps({"encrypt": base64.b64encode(data).decode()}).encode())
)
def test_any_body_is_refused_or_read(body: bytes) -> None:
    with pytest.raises(ForgedRequest):
        RequestVerifier(KEY, TOKEN).verify({}, body)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda held: st.lists(held) | st.dictionaries(st.text(), held))
KINDS = st.sampled_from(["text", "post", "file", "image", "interactive", "sticker"])


@given(KINDS, st.dictionaries(st.sampled_from(["text", "title", "content", "elements", "file_key", "file_name"]), JSON) | JSON)
def test_any_message_can_be_read(kind: str, content: Any) -> None:
    assert isinstance(parse_post("om_1", kind, json.dumps(content)).text, str)
    assert isinstance(parse_post("om_1", kind, content).text, str)


@given(st.dictionaries(st.sampled_from(["header", "event", "type"]), JSON))
def test_any_event_can_be_read(told: dict[str, Any]) -> None:
    parse_event(told, ME)
    parse_event({"header": {"event_type": "im.message.receive_v1"}, "event": {"sender": {"sender_type": "user"}, "message": told}}, ME)


def test_secrets_are_masked_and_nobody_is_called(feishu: Fake, crew: Kept) -> None:
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": LOG.replace("CUDA out", f"{SECRET} <at id=all></at> CUDA out")}))
    everything = b"".join(call.body for call in feishu.calls).decode()
    assert SECRET not in everything and "<at" not in everything


def test_what_a_log_says_is_said_by_nobody(feishu: Fake, crew: Kept) -> None:
    """Orders, markup, escapes and hidden text of a log: the card steers no reader and no model, and calls nobody."""
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": attacks.log(attacks.EVERYTHING)}))
    [call] = feishu.to(REPLY)
    words = card_of(call)
    assert "4.64 GiB" in words and not HARMFUL.search(words.replace("@\u200b", "@"))
    outside = re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", words, flags=re.DOTALL))
    assert not re.search(r"(?<!\\)<(?:at|script|img)|!\[x\]\(|(?<!\\)\[y\]\(|@everyone", outside) and attacks.ORDERS not in outside


# -- as a process


def environment(feishu: Fake) -> dict[str, str]:
    told = {"FEISHU_APP_ID": APP, "FEISHU_APP_SECRET": "an-app-secret", "FEISHU_API_URL": feishu.url}
    return {**told, "FEISHU_VERIFICATION_TOKEN": TOKEN, "FEISHU_ENCRYPT_KEY": KEY}


def test_the_real_process(feishu: Fake) -> None:
    """Signed events are answered at once and by a card; others are refused; what was begun is finished after SIGTERM."""
    with serving("--workers", "1", "--lang", "en", command="bot feishu", env=environment(feishu)) as server:
        assert server.url.endswith("/feishu/events")
        body = sealed(event("text", {"text": LOG}))
        with httpx.Client(trust_env=False, timeout=20) as client:
            challenge = sealed({"challenge": "c-1", "token": TOKEN, "type": "url_verification"})
            assert client.post(server.url, content=challenge).json() == {"challenge": "c-1"}
            assert client.post(server.url, content=body).status_code == 401
            started = time.monotonic()
            assert client.post(server.url, content=body, headers=signed(body)).status_code == 200
            assert time.monotonic() - started < 3
            assert client.post(server.url, content=body, headers=signed(body)).status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(40) == 0
    [call] = feishu.to(REPLY)
    assert "4.64 GiB" in card_of(call)


def test_the_real_process_over_the_long_connection(feishu: Fake) -> None:
    """No verification token, no key, no address: a message and a button come over the WebSocket, SIGTERM ends it with 0."""
    pytest.importorskip("lark_oapi.ws", reason="the extra feishu-socket is not installed")
    from lark_oapi.ws.pb.pbbp2_pb2 import Frame
    from websockets.sync.server import ServerConnection, serve

    heard: list[dict[str, Any]] = []

    def link(peer: ServerConnection) -> None:
        button = {"header": {"event_type": "card.action.trigger"}, "event": {"action": {"value": {"failed": "zh 1 nothing"}}}}
        for told in (event("text", {"text": LOG}), {"schema": "2.0", **button}):
            frame = Frame(SeqID=1, LogID=1, service=1, method=1, payload=json.dumps(told).encode())
            for key, value in {"type": "event", "message_id": "m", "trace_id": "t", "sum": "1", "seq": "0"}.items():
                frame.headers.add(key=key, value=value)
            peer.send(frame.SerializeToString())
            answer = Frame()
            answer.ParseFromString(peer.recv(20))
            heard.append(json.loads(answer.payload))
        peer.recv(60)

    with serve(link, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/ws?device_id=1&service_id=1"
        settings = {"ReconnectCount": 1, "ReconnectInterval": 1, "ReconnectNonce": 0, "PingInterval": 60}
        feishu.routes["/callback/ws/endpoint"] = lambda _: as_json({"code": 0, "data": {"URL": where, "ClientConfig": settings}})
        env = {**os.environ, "LC_ALL": "C.UTF-8", **environment(feishu)}
        for name in ("FEISHU_VERIFICATION_TOKEN", "FEISHU_ENCRYPT_KEY"):
            env.pop(name)
        words = [sys.executable, "-c", ENTRY, "bot", "feishu", "--socket", "--workers", "1", "--lang", "en"]
        process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        try:
            assert b"connected to Feishu" in (said := process.stdout.readline()), said + process.stdout.read()
            ends = time.monotonic() + 60
            while (len(heard) < 2 or not feishu.to(REPLY)) and time.monotonic() < ends:
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert process.wait(40) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    assert [answer["code"] for answer in heard] == [200, 200]
    assert json.loads(base64.b64decode(heard[1]["data"]))["toast"]["type"] == "info"
    assert "4.64 GiB" in card_of(feishu.to(REPLY)[0])


def test_the_long_connection_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SET:
        monkeypatch.setenv(name, "x")
    left = command("bot", "feishu", "--socket", before="import sys; sys.modules['lark_oapi'] = None")
    assert left.returncode == 2 and "pip install '.[feishu-socket]'" in left.stderr and len(left.stderr.splitlines()) == 1


SET = ["FEISHU_APP_ID", "FEISHU_APP_SECRET", "FEISHU_VERIFICATION_TOKEN", "FEISHU_ENCRYPT_KEY"]


@pytest.mark.parametrize("missing", SET)
def test_a_missing_secret_is_one_sentence_and_2(oomdoctor: Any, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in SET:
        monkeypatch.setenv(name, "x-value")
    monkeypatch.delenv(missing)
    left = oomdoctor("bot", "feishu")
    assert left.status == 2 and left.out == "" and len(left.err.splitlines()) == 1 and missing in left.err
    assert "x-value" not in left.err


def test_secrets_that_feishu_does_not_take(monkeypatch: pytest.MonkeyPatch, feishu: Fake) -> None:
    for name, value in environment(feishu).items():
        monkeypatch.setenv(name, value)
    feishu.routes[GIVES] = lambda _: as_json({"code": 10014, "msg": "app secret invalid"})
    left = command("bot", "feishu")
    assert left.returncode == 2 and len(left.stderr.splitlines()) == 1 and "10014" in left.stderr and "an-app-secret" not in left.stderr


@pytest.mark.parametrize("module", ["httpx", "cryptography", "uvicorn"])
def test_without_the_extra_it_is_one_sentence_and_2(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    for name in SET:
        monkeypatch.setenv(name, "x")
    left = command("bot", "feishu", before=f"import sys; sys.modules[{module!r}] = None")
    assert left.returncode == 2 and left.stdout == "" and len(left.stderr.splitlines()) == 1
    assert "pip install '.[feishu]'" in left.stderr


def test_what_feishu_has_not_signed_now_is_not_parsed(feishu: Fake, crew: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old timestamp with its own signature is a replayed copy; without a signature only a small challenge is looked at."""
    body = sealed(event("text", {"text": LOG}))
    with talking(feishu, crew) as talk:
        monkeypatch.setattr(talk.hook.verifier, "_decrypt", lambda _: pytest.fail("parsed"))
        for age in (-600, 301, 3600):
            stamp = str(int(time.time() - age))
            signature = hashlib.sha256((stamp + "n0" + KEY).encode() + body).hexdigest()
            told = {"x-lark-request-timestamp": stamp, "x-lark-request-nonce": "n0", "x-lark-signature": signature}
            assert talk.hook(told, body).status == 401
        for change in ({"x-lark-signature": "é"}, {"x-lark-request-timestamp": "soon"}, {"x-lark-request-nonce": "n1"}):
            assert talk.hook(signed(body) | change, body).status == 401
        assert talk.hook({}, body + b" " * 4096).status == 401
        assert talk.hook(signed(body), b"[" * 100_000).status == 401
    assert not feishu.to(REPLY)


def test_a_patch_in_a_card_is_escaped_as_the_card_is(feishu: Fake, crew: Kept) -> None:
    """Where files are not allowed. Its lines are a stranger's config."""
    feishu.routes["/open-apis/im/v1/files"] = lambda _: as_json({"code": 99991672, "msg": "no permission"}, 400)
    evil = (
        CONFIGS[0]["text"]
        .replace("lora_target: all", "lora_target: all")
        .replace("cutoff_len: 4096", "cutoff_len: 4096  # <at id=all></at> ``` https://x.example \u202e")
    )
    text = f"{LOG}\n\nHere is my qwen2vl_dpo.yaml:\n~~~yaml\n{evil}\n~~~\n"
    with talking(feishu, crew) as talk:
        talk.say(event("text", {"text": text}))
    patches = [card_of(call) for call in feishu.to(REPLY)[1:]]
    assert patches and "cutoff_len" in patches[0]
    assert not any(sign in patches[0] for sign in ("<at", "://", "\u202e")) and patches[0].count("```") == 2


def test_a_lone_surrogate_is_answered(feishu: Fake, crew: Kept) -> None:
    with talking(feishu, crew) as talk:
        assert talk.say(event("text", {"text": f"{SHORT}\n--model \ud800x"})) == 200
    assert len(feishu.to(REPLY)) == 1
