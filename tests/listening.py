"""Every surface that listens, as a process; the chat bots with a platform on the loopback address that lets them in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chatting import always, as_json, faked
from serving import Server, serving

#: What the platforms answer at the start.
LETS_IN = {
    "/open-apis/auth/v3/tenant_access_token/internal": always(as_json({"code": 0, "tenant_access_token": "t", "expire": 7200})),
    "/open-apis/bot/v3/info": always(as_json({"code": 0, "msg": "ok", "bot": {"open_id": "ou_bot"}})),
    "/api/auth.test": always(as_json({"ok": True, "user_id": "U0BOT", "bot_id": "B0", "team_id": "T0"})),
}
SECRETS = {"FEISHU_APP_ID": "a", "FEISHU_APP_SECRET": "b", "FEISHU_VERIFICATION_TOKEN": "c", "FEISHU_ENCRYPT_KEY": "d"}
SECRETS |= {"SLACK_BOT_TOKEN": "e", "SLACK_SIGNING_SECRET": "f"}


@contextmanager
def listening(command: str) -> Iterator[Server]:
    """`serve`, `mcp`, `bot slack` or `bot feishu`."""
    options = {"serve": ["--workers", "1"], "mcp": ["--http"], "bot slack": ["--http", "--workers", "1"]}.get(command, ["--workers", "1"])
    with faked() as platform:
        platform.routes = dict(LETS_IN)
        addresses = {"FEISHU_API_URL": platform.url, "SLACK_API_URL": f"{platform.url}/api"}
        with serving(*options, command=command, env={**SECRETS, **addresses}) as server:
            yield server
