"""`oomdoctor bot slack`: mentions, the message shortcut and shared files, through Socket Mode or signed webhooks.

Read at docs.slack.dev: Events API (events are sent again after 3 s without an answer, with the same event_id), verifying requests,
Socket Mode, files (url_private_download with the bot's token), formatting of message text, rate limits (429 with Retry-After).
"""

from __future__ import annotations

import html
import logging
import signal
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from slack_bolt import App, BoltRequest
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry import HttpRequest, HttpResponse, RateLimitErrorRetryHandler, RetryState
from slack_sdk.webhook import WebhookClient

from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.surfaces.bots import bot_command
from diagnose.surfaces.bots.bot_command import Asked, File, Incoming, Outgoing, Post, Unfetched, Unsent
from diagnose.surfaces.bots.bot_desk import EARLIER, Desk, crew_of
from diagnose.surfaces.bots.bot_slack_text import incoming, post
from diagnose.surfaces.term import console

if TYPE_CHECKING:
    from slack_sdk.socket_mode.request import SocketModeRequest

    from diagnose.surfaces.bots.bot_http import Takes
    from diagnose.surfaces.server.worker_pool import Crew

API = "https://slack.com/api"
#: The hosts of files, and those of workspaces of the United States government.
FILE_HOSTS = frozenset({"files.slack.com", "files.slack-gov.com"})
PATH = "/slack/events"
SHORTCUT = "explain_oom"
#: Seconds that an answer of Slack may take; seconds of Retry-After that are waited for, and how often.
SECONDS, PATIENCE, AGAIN = 15, 60, 4
#: What Slack says where the bot is no member.
ABSENT = ("not_in_channel", "channel_not_found", "is_archived", "restricted_action")
#: Characters of a patch that a message holds, where it cannot be a snippet: a section has 3,000.
BLOCK = 2900


class Patient(RateLimitErrorRetryHandler):
    """Waits as long as Slack says, unless that is longer than anyone would wait for an answer."""

    def _can_retry(
        self, *, state: RetryState, request: HttpRequest, response: HttpResponse | None = None, error: Exception | None = None
    ) -> bool:
        if not super()._can_retry(state=state, request=request, response=response, error=error) or response is None:
            return False
        told = next((value[0] for name, value in response.headers.items() if name.lower() == "retry-after" and value), "1")
        return told.isascii() and told.isdigit() and int(told[:6]) <= PATIENCE


def run(asked: Asked) -> int:
    """Answer until a signal comes. Raises UserError where a token is missing or wrong, or nothing can listen."""
    token = bot_command.secret("SLACK_BOT_TOKEN", "slack_bot_token")
    other = (
        bot_command.secret("SLACK_SIGNING_SECRET", "slack_signing_secret")
        if asked.http
        else bot_command.secret("SLACK_APP_TOKEN", "slack_app_token")
    )
    client = client_for(token, bot_command.service("SLACK_API_URL", API))
    desk, app = made(client, crew_of(asked), asked, signing=other if asked.http else "")
    try:
        if asked.http:
            over_http(app, desk, asked)
        else:
            over_socket(app, desk, asked, other)
    finally:
        desk.close()
    return 0


def client_for(token: str, base: str) -> WebClient:
    """Asks again only what was turned away: an answer that may have arrived is not sent twice."""
    return WebClient(token, base_url=f"{base}/", timeout=SECONDS, retry_handlers=[Patient(max_retry_count=AGAIN)])


def made(client: WebClient, crew: Crew, asked: Asked, signing: str = "") -> tuple[Desk, App]:
    """The desk and the Bolt app that hands messages to it. Raises UserError for a token that Slack does not take."""
    try:
        me = str(client.auth_test()["user_id"])
    except (SlackClientError, OSError, HTTPException) as error:
        why = error.response.get("error") if isinstance(error, SlackApiError) else type(error).__name__
        raise UserError(phrase("bot.not_let_in", platform="Slack", why=why), "", phrase("bot.see_token", name="SLACK_BOT_TOKEN")) from error
    desk = Desk(Slack(client, me), crew, asked)
    quiet = logging.getLogger("oomdoctor.slack")
    quiet.setLevel(logging.CRITICAL)  # Bolt writes requests into its log, and requests hold what people wrote
    app = App(
        client=client,
        logger=quiet,
        signing_secret=signing or None,
        request_verification_enabled=bool(signing),
        token_verification_enabled=False,
        process_before_response=True,  # listeners only take messages; so none is lost between Slack's answer and the desk
    )
    _listen(app, desk, me)
    return desk, app


def _listen(app: App, desk: Desk, me: str) -> None:
    """What is answered. Listeners only take the message: Slack has its answer at once."""

    @app.event("app_mention")
    def mentioned(event: dict[str, Any]) -> None:
        if not event.get("bot_id"):
            desk.take(incoming(event))

    @app.event("message")
    def written(event: dict[str, Any]) -> None:
        """A direct message is always answered; a file in a channel where it holds a failure. A mention comes as an event of its own."""
        direct = event.get("channel_type") == "im"
        ours = event.get("subtype") in (None, "file_share") and (direct or event.get("files"))
        if ours and not event.get("bot_id") and f"<@{me}>" not in str(event.get("text")):
            desk.take(incoming(event, quiet=not direct))

    @app.shortcut(SHORTCUT)
    def pointed_at(ack: Any, shortcut: dict[str, Any]) -> None:
        """A person wants this message explained, whoever wrote it; each time that they ask."""
        ack()
        event = {**shortcut["message"], "channel": shortcut["channel"]["id"], "user": shortcut.get("user", {}).get("id")}
        key = str(shortcut.get("trigger_id") or shortcut.get("action_ts"))
        desk.take(incoming(event, key, answer_at=str(shortcut.get("response_url") or "")))


def over_http(app: App, desk: Desk, asked: Asked) -> None:
    from diagnose.surfaces.bots.bot_http import listen

    listen(hook(app), PATH, desk, asked.host, asked.port, asked.lang)


def hook(app: App) -> Takes:
    """What takes requests: Bolt looks at the signature and its age, and answers what was not signed with 401."""
    from diagnose.surfaces.bots.bot_http import Reply

    def takes(headers: Mapping[str, str], body: bytes) -> Reply:
        made = headers.get("x-slack-request-timestamp", "")
        if not (made.isascii() and made.isdigit() and len(made) < 15):  # Bolt takes it for a number
            return Reply(401)
        told = app.dispatch(BoltRequest(body=body.decode("utf-8", "replace"), headers=dict(headers)))
        return Reply(told.status, (told.body or "").encode(), told.first_headers().get("content-type", "text/plain"))

    return takes


class Handler(SocketModeHandler):
    """Does not acknowledge what there is no room for: Slack sends it again."""

    desk: Desk

    def handle(self, client: Any, req: SocketModeRequest) -> None:
        if not self.desk.full:
            super().handle(client, req)


def over_socket(app: App, desk: Desk, asked: Asked, token: str) -> None:
    """Connect from here to Slack, which needs no address of ours, until a signal comes."""
    handler = Handler(app, token)
    handler.desk = desk
    told = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: told.set())
    desk.open()
    try:
        handler.client.connect()
    except (SlackClientError, OSError, HTTPException) as error:
        why = error.response.get("error") if isinstance(error, SlackApiError) else type(error).__name__
        raise UserError(phrase("bot.not_let_in", platform="Slack", why=why), "", phrase("bot.see_token", name="SLACK_APP_TOKEN")) from error
    console.say(phrase("bot.connected", platform="Slack").to(asked.lang))
    try:
        told.wait()
    finally:
        handler.client.close()


class Unmoved(urllib.request.HTTPRedirectHandler):
    """The token goes nowhere but where it was sent."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Slack:
    """The platform, through the official client."""

    name: bot_command.Name = "slack"

    def __init__(self, client: WebClient, me: str) -> None:
        self.client, self.me = client, me
        self._opener = urllib.request.build_opener(Unmoved)
        base = urllib.parse.urlsplit(client.base_url)
        # an address that the operator chose for the API may hold its files too
        self._own = (base.scheme, base.netloc) if base.netloc != urllib.parse.urlsplit(API).netloc else None

    def earlier(self, came: Incoming) -> Sequence[Post]:
        where = came.where
        if where["thread"] == where["ts"]:
            return ()
        try:
            told = self.client.conversations_replies(
                channel=where["channel"], ts=where["thread"], latest=where["ts"], inclusive=False, limit=EARLIER
            )
        except (SlackClientError, OSError, HTTPException):
            return ()  # no scope for the history of this kind of channel: the message alone
        messages = told.get("messages")
        said = [each for each in (messages if isinstance(messages, list) else ()) if isinstance(each, dict)]
        return [post(each) for each in said if each.get("ts") != where["ts"] and each.get("user") != self.me]

    def fetch(self, file: File, most: int) -> bytes:
        address = file.where["url"]
        if not address and file.where["id"]:  # shared from another workspace: the event does not tell
            try:
                told = self.client.files_info(file=file.where["id"]).get("file")
            except (SlackClientError, OSError, HTTPException) as error:
                raise Unfetched("not_fetched") from error
            address = str(told.get("url_private_download") or "") if isinstance(told, dict) else ""
        if not self.is_ours(address):
            raise Unfetched("elsewhere")
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.client.token}"})  # noqa: S310 - is_ours
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                if answer.headers.get_content_type() == "text/html" and not file.media.startswith("text/html"):
                    raise Unfetched("not_fetched")  # the page to log in: no scope to read files
                data: bytes = answer.read(most + 1)
        except (OSError, HTTPException, ValueError) as error:
            raise Unfetched("not_fetched") from error
        if len(data) > most:
            raise Unfetched("too_large")
        return data

    def is_ours(self, address: str) -> bool:
        """Whether the token may go there: a host of Slack's files, or of the API that the operator set."""
        try:
            parts = urllib.parse.urlsplit(address)
            port = parts.port
        except ValueError:
            return False
        if self._own is not None and (parts.scheme, parts.netloc) == self._own:
            return True
        return parts.scheme == "https" and parts.netloc.lower() in FILE_HOSTS and port is None

    def reply(self, came: Incoming, said: Outgoing) -> None:
        channel, thread = came.where["channel"], came.where["thread"]
        blocks: list[dict[str, Any]] = [section(said.text)]
        if said.notes:
            blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": note[:2000]} for note in said.notes]})
        try:
            self._post(channel, thread, said.title, blocks)
            if said.patch:
                self._patch(channel, thread, said)
        except SlackApiError as error:
            if not came.where["answer_at"] or error.response.get("error") not in ABSENT:
                raise Unsent(str(error.response.get("error"))) from error
            self._aside(came, said, blocks)
        except (SlackClientError, OSError, HTTPException) as error:
            raise Unsent(str(error)) from error

    def _post(self, channel: str, thread: str, text: str, blocks: list[dict[str, Any]]) -> None:
        self.client.chat_postMessage(channel=channel, thread_ts=thread, text=text, blocks=blocks, unfurl_links=False, unfurl_media=False)

    def _aside(self, came: Incoming, said: Outgoing, blocks: list[dict[str, Any]]) -> None:
        """To whoever used the shortcut, alone: where it was used the bot is no member."""
        patch = [section(code(said))] if said.patch else []
        WebhookClient(came.where["answer_at"], timeout=SECONDS, retry_handlers=self.client.retry_handlers).send(
            text=said.title, blocks=[*blocks, *patch], response_type="ephemeral"
        )

    def _patch(self, channel: str, thread: str, said: Outgoing) -> None:
        """As a snippet, which keeps every character; where files may not be sent, as a block of code."""
        name = "oomdoctor.patch"
        try:
            self.client.files_upload_v2(
                channel=channel, thread_ts=thread, content=said.patch, filename=name, title=name, snippet_type="diff"
            )
        except (SlackClientError, OSError, HTTPException):
            self._post(channel, thread, name, [section(code(said))])


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def code(said: Outgoing) -> str:
    """The patch as a block of code."""
    text = f"```\n{html.escape(said.patch, quote=False).replace('```', chr(39) * 3)}\n```"
    return text if len(text) <= BLOCK else phrase("bot.patch_too_long").to(said.lang)
