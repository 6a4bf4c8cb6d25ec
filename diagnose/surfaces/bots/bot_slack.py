"""`oomdoctor bot slack`: mentions, the message shortcut and shared files, through Socket Mode or signed webhooks.

What an answer says, cut to what a message of Slack holds: diagnose/render/markup/chat_within_limit.py and rules/chats.yaml.

Source: docs.slack.dev: Events API (events are delivered again after 3 s without a response, with the same event_id), verifying requests,
Socket Mode, files (url_private_download with the bot's token), formatting of message text, rate limits (429 with Retry-After).
"""

from __future__ import annotations

import hashlib
import hmac
import html
import logging
import signal
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from slack_bolt import App, BoltRequest
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry import HttpRequest, HttpResponse, RateLimitErrorRetryHandler, RetryState
from slack_sdk.webhook import WebhookClient

from diagnose import notebook
from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.render.parts.strings import visible
from diagnose.surfaces.bots import bot_command
from diagnose.surfaces.bots.bot_command import BotOptions, FetchError, File, Incoming, Outgoing, Post, SendError
from diagnose.surfaces.bots.bot_dispatcher import MAX_EARLIER, Dispatcher, build_pool
from diagnose.surfaces.bots.bot_slack_incoming import parse_event, parse_post
from diagnose.surfaces.server.worker_pool import WorkerPool
from diagnose.surfaces.terminal import console

if TYPE_CHECKING:
    from slack_sdk.socket_mode.request import SocketModeRequest

    from diagnose.surfaces.bots.bot_http import RequestHandler

API = "https://slack.com/api"
#: Hosts of files, also of workspaces of the United States government.
FILE_HOSTS = frozenset({"files.slack.com", "files.slack-gov.com"})
PATH = "/slack/events"
SHORTCUT = "explain_oom"
#: How the ids of buttons begin, before what became of the advice.
ACTION = "oomdoctor_"
#: What the bot's token has to be allowed; docs/examples/slack-manifest.yaml asks for it.
SCOPES = (
    "app_mentions:read", "channels:history", "chat:write", "commands", "files:read", "files:write", "groups:history", "im:history",
)  # fmt: skip
#: Seconds for one response; the longest Retry-After that is waited for, and how many retries.
TIMEOUT, MAX_DELAY, RETRIES = 15, 60, 4
#: Errors of channels that the bot is not a member of.
NOT_MEMBER_ERRORS = ("not_in_channel", "channel_not_found", "is_archived", "restricted_action")
#: Characters of a patch in a message, where snippets are not allowed: a section has 3,000 in all.
MAX_BLOCK = 2900


class RetryAfterHandler(RateLimitErrorRetryHandler):
    """Waits as long as Retry-After says, up to MAX_DELAY."""

    def _can_retry(
        self, *, state: RetryState, request: HttpRequest, response: HttpResponse | None = None, error: Exception | None = None
    ) -> bool:
        if not super()._can_retry(state=state, request=request, response=response, error=error) or response is None:
            return False
        seconds = next((value[0] for name, value in response.headers.items() if name.lower() == "retry-after" and value), "1")
        return seconds.isascii() and seconds.isdigit() and int(seconds[:6]) <= MAX_DELAY


def run(options: BotOptions) -> int:
    """Answer until a signal arrives. Raises UserError for a missing or wrong token or an address that is taken."""
    token = bot_command.read_secret("SLACK_BOT_TOKEN", "slack_bot_token")
    second_secret = (
        bot_command.read_secret("SLACK_SIGNING_SECRET", "slack_signing_secret")
        if options.http
        else bot_command.read_secret("SLACK_APP_TOKEN", "slack_app_token")
    )
    client = client_for(token, bot_command.read_api_url("SLACK_API_URL", API))
    dispatcher, app = connect(client, build_pool(options), options)
    try:
        if options.http:
            serve_http(app, dispatcher, options, second_secret)
        else:
            serve_socket(app, dispatcher, options, second_secret)
    finally:
        dispatcher.close()
    return 0


def client_for(token: str, base: str) -> WebClient:
    """A client that retries only at rate limits: an answer that may have arrived is not sent twice."""
    return WebClient(token, base_url=f"{base}/", timeout=TIMEOUT, retry_handlers=[RetryAfterHandler(max_retry_count=RETRIES)])


def connect(client: WebClient, pool: WorkerPool, options: BotOptions) -> tuple[Dispatcher, App]:
    """The dispatcher and the Bolt app that feeds it. Raises UserError for a token that Slack refuses."""
    try:
        tested = client.auth_test()
        bot_user = str(tested["user_id"])
    except (SlackClientError, OSError, HTTPException) as error:
        why = error.response.get("error") if isinstance(error, SlackApiError) else type(error).__name__
        raise UserError(phrase("bot.not_let_in", platform="Slack", why=why), "", phrase("bot.see_token", name="SLACK_BOT_TOKEN")) from error
    if lacking := missing_scopes(tested.headers):
        console.warn(phrase("bot.scopes_missing", scopes=", ".join(lacking)).to(options.lang))
    dispatcher = Dispatcher(Slack(client, bot_user), pool, options)
    logger = logging.getLogger("oomdoctor.slack")
    logger.setLevel(logging.CRITICAL)  # Bolt logs requests, which contain messages of people
    app = App(
        client=client,
        logger=logger,
        request_verification_enabled=False,  # build_handler verifies: Bolt parses a body first
        token_verification_enabled=False,
        process_before_response=True,  # listeners only queue messages, so none is lost after the response to Slack
    )
    _register_listeners(app, dispatcher, bot_user)
    return dispatcher, app


def _register_listeners(app: App, dispatcher: Dispatcher, bot_user: str) -> None:
    """The events that are answered. Listeners only queue the message, so that Slack gets its response at once."""

    @app.event("app_mention")
    def mentioned(event: dict[str, object]) -> None:
        if not event.get("bot_id"):
            dispatcher.submit(parse_event(event))

    @app.event("message")
    def posted(event: dict[str, object]) -> None:
        """Direct messages are always answered, files in a channel only if they hold a failure. Mentions are separate events."""
        direct = event.get("channel_type") == "im"
        wanted = event.get("subtype") in (None, "file_share") and (direct or event.get("files"))
        if wanted and not event.get("bot_id") and f"<@{bot_user}>" not in str(event.get("text")):
            dispatcher.submit(parse_event(event, unprompted=not direct))

    for result in bot_command.BUTTONS:
        app.action(f"{ACTION}{result}")(button_listener(result))

    @app.shortcut(SHORTCUT)
    def shortcut_used(ack: Any, shortcut: dict[str, Any]) -> None:
        """Explain the message that the shortcut was used on, whoever wrote it, each time."""
        ack()
        event = {**shortcut["message"], "channel": shortcut["channel"]["id"], "user": shortcut.get("user", {}).get("id")}
        key = str(shortcut.get("trigger_id") or shortcut.get("action_ts"))
        dispatcher.submit(parse_event(event, key, answer_at=str(shortcut.get("response_url") or "")))


def button_listener(result: notebook.Result) -> Callable[..., None]:
    """Notes what became of the advice, and says so to whoever pressed the button."""

    def button_pressed(ack: Any, action: dict[str, Any], respond: Any) -> None:
        ack()
        respond(text=bot_command.take_note(result, action.get("value")), response_type="ephemeral", replace_original=False)

    return button_pressed


def serve_http(app: App, dispatcher: Dispatcher, options: BotOptions, secret: str) -> None:
    from diagnose.surfaces.bots.bot_http import serve_webhook  # needs uvicorn, which Socket Mode does not

    serve_webhook(build_handler(app, secret), PATH, dispatcher, options.host, options.port, options.lang)


def build_handler(app: App, secret: str) -> RequestHandler:
    """A handler of webhook requests (events, shortcuts). What Slack has not signed with `secret`, or not now, is refused unparsed."""
    from diagnose.surfaces.bots.bot_http import Reply  # see serve_http

    def handle(headers: Mapping[str, str], body: bytes) -> Reply:
        if not is_signed(secret, headers, body):
            return Reply(401)
        try:
            request = BoltRequest(body=body.decode("utf-8", "replace"), headers=dict(headers))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return Reply(400)
        response = app.dispatch(request)
        return Reply(response.status, (response.body or "").encode(), response.first_headers().get("content-type", "text/plain"))

    return handle


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the signature over the raw bytes is Slack's, and recent."""
    stamp = headers.get("x-slack-request-timestamp", "")
    expected = hmac.new(secret.encode(), b"v0:%b:%b" % (stamp.encode("latin-1", "replace"), body), hashlib.sha256).hexdigest()
    signature = headers.get("x-slack-signature", "").encode("latin-1", "replace")
    return bot_command.is_recent(stamp) and hmac.compare_digest(signature, f"v0={expected}".encode())


class BoundedSocketHandler(SocketModeHandler):
    """Acknowledges no events while the queue is full: Slack delivers them again."""

    dispatcher: Dispatcher

    def handle(self, client: Any, req: SocketModeRequest) -> None:
        if not self.dispatcher.is_full:
            super().handle(client, req)


def serve_socket(app: App, dispatcher: Dispatcher, options: BotOptions, token: str) -> None:
    """Connect to Slack by Socket Mode, which needs no public address, until a signal arrives."""
    handler = BoundedSocketHandler(app, token)
    handler.dispatcher = dispatcher
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    dispatcher.open()
    try:
        handler.client.connect()
    except (SlackClientError, OSError, HTTPException) as error:
        why = error.response.get("error") if isinstance(error, SlackApiError) else type(error).__name__
        raise UserError(phrase("bot.not_let_in", platform="Slack", why=why), "", phrase("bot.see_token", name="SLACK_APP_TOKEN")) from error
    console.say(phrase("bot.connected", platform="Slack").to(options.lang))
    try:
        stop.wait()
    finally:
        dispatcher.stop()
        handler.client.close()


def missing_scopes(headers: Mapping[str, str]) -> list[str]:
    """The scopes that the token lacks, by the header that Slack sends with every answer; none where it is not sent."""
    granted = next((value for name, value in headers.items() if name.lower() == "x-oauth-scopes"), None)
    return [] if granted is None else [scope for scope in SCOPES if scope not in granted.replace(" ", "").split(",")]


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, so that the token reaches no other host."""

    def redirect_request(self, *_: object) -> None:
        return None


class Slack:
    """The platform `slack`."""

    name: bot_command.Name = "slack"

    def __init__(self, client: WebClient, bot_user: str) -> None:
        self.client, self.bot_user = client, bot_user
        self._opener = urllib.request.build_opener(NoRedirects)
        base = urllib.parse.urlsplit(client.base_url)
        # a host that the operator chose for the API may serve its files too
        self._own_host = (base.scheme, base.netloc) if base.netloc != urllib.parse.urlsplit(API).netloc else None

    def earlier_posts(self, message: Incoming) -> Sequence[Post]:
        context = message.context
        if context["thread"] == context["ts"]:
            return ()
        try:
            response = self.client.conversations_replies(
                channel=context["channel"], ts=context["thread"], latest=context["ts"], inclusive=False, limit=MAX_EARLIER
            )
        except (SlackClientError, OSError, HTTPException):
            return ()  # no scope to read the history of this kind of channel
        messages = response.get("messages")
        posts = [item for item in (messages if isinstance(messages, list) else ()) if isinstance(item, dict)]
        return [parse_post(item) for item in posts if item.get("ts") != context["ts"] and item.get("user") != self.bot_user]

    def fetch(self, file: File, max_bytes: int) -> bytes:
        address = file.reference["url"]
        if not address and file.reference["id"]:  # shared from another workspace: the event has no URL
            try:
                info = self.client.files_info(file=file.reference["id"]).get("file")
            except (SlackClientError, OSError, HTTPException) as error:
                raise FetchError("not_fetched") from error
            address = str(info.get("url_private_download") or "") if isinstance(info, dict) else ""
        if not self.is_trusted(address):
            raise FetchError("elsewhere")
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.client.token}"})  # noqa: S310 - is_trusted
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                if answer.headers.get_content_type() == "text/html" and not file.media.startswith("text/html"):
                    raise FetchError("not_fetched")  # the login page: no scope to read files
                data: bytes = answer.read(max_bytes + 1)
        except (OSError, HTTPException, ValueError) as error:
            raise FetchError("not_fetched") from error
        if len(data) > max_bytes:
            raise FetchError("too_large")
        return data

    def is_trusted(self, address: str) -> bool:
        """Whether the token may be sent to a URL: a file host of Slack, or the host of the API that the operator set."""
        try:
            parts = urllib.parse.urlsplit(address)
            port = parts.port
        except ValueError:
            return False
        if self._own_host is not None and (parts.scheme, parts.netloc) == self._own_host:
            return True
        return parts.scheme == "https" and parts.netloc.lower() in FILE_HOSTS and port is None

    def reply(self, message: Incoming, answer: Outgoing) -> None:
        channel, thread = message.context["channel"], message.context["thread"]
        blocks: list[dict[str, object]] = [section(answer.text)]
        if answer.notes:
            blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": note[:2000]} for note in answer.notes]})
        if answer.tried:
            blocks.append(buttons(answer))
        try:
            self._post(channel, thread, answer.title, blocks)
            if answer.patch:
                self._patch(channel, thread, answer)
        except SlackApiError as error:
            if not message.context["answer_at"] or error.response.get("error") not in NOT_MEMBER_ERRORS:
                raise SendError(str(error.response.get("error"))) from error
            self._send_ephemeral(message, answer, blocks)
        except (SlackClientError, OSError, HTTPException) as error:
            raise SendError(str(error)) from error

    def _post(self, channel: str, thread: str, text: str, blocks: list[dict[str, object]]) -> None:
        self.client.chat_postMessage(channel=channel, thread_ts=thread, text=text, blocks=blocks, unfurl_links=False, unfurl_media=False)

    def _send_ephemeral(self, message: Incoming, answer: Outgoing, blocks: list[dict[str, object]]) -> None:
        """Answer only the user of the shortcut, in a channel that the bot is not a member of."""
        patch = [section(patch_block(answer))] if answer.patch else []
        WebhookClient(message.context["answer_at"], timeout=TIMEOUT, retry_handlers=self.client.retry_handlers).send(
            text=answer.title, blocks=[*blocks, *patch], response_type="ephemeral"
        )

    def _patch(self, channel: str, thread: str, answer: Outgoing) -> None:
        """Send the patch as a snippet, which keeps every character; as a code block where files are not allowed."""
        name = "oomdoctor.patch"
        try:
            self.client.files_upload_v2(
                channel=channel, thread_ts=thread, content=answer.patch, filename=name, title=name, snippet_type="diff"
            )
        except (SlackClientError, OSError, HTTPException):
            self._post(channel, thread, name, [section(patch_block(answer))])


def buttons(answer: Outgoing) -> dict[str, Any]:
    """One button for each thing that may have become of the advice."""
    return {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": f"{ACTION}{result}",
                "value": answer.tried,
                "text": {"type": "plain_text", "text": phrase(f"remote.{words}").to(answer.lang)},
            }
            for result, words in bot_command.BUTTONS.items()
        ],
    }


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def patch_block(answer: Outgoing) -> str:
    """The patch as a code block, or a sentence if it is too long."""
    text = f"```\n{html.escape(visible(answer.patch), quote=False).replace('```', chr(39) * 3)}\n```"
    return text if len(text) <= MAX_BLOCK else phrase("bot.patch_too_long").to(answer.lang)
