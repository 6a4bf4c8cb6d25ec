"""The long connection of Feishu and Lark: events come over a WebSocket that the bot opens, so that it needs no address of its own.

Source: larksuite/oapi-sdk-python: ws/client.py (reconnects by itself; answers each event with 200, or with 500, after which it is delivered
again), event/dispatcher_handler.py.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import lark_oapi as lark
from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse

from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.surfaces.bots.bot_command import BotOptions
from diagnose.surfaces.bots.bot_dispatcher import Dispatcher
from diagnose.surfaces.bots.bot_feishu_api import toast
from diagnose.surfaces.terminal import console

#: What is done with an event: a message is queued; a pressed button gets the sentence that is returned.
Take: TypeAlias = Callable[[Mapping[str, object]], str | None]


class Connection(lark.ws.Client):
    """The connection, which says when it stands."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.stands = threading.Event()

    async def _connect(self) -> None:
        await super()._connect()
        if self._conn is not None:
            self.stands.set()


def serve_socket(dispatcher: Dispatcher, take: Take, base: str, app_id: str, secret: str, options: BotOptions) -> None:
    """Take the events of the connection until a signal arrives. Raises UserError if Feishu does not let it in."""
    connection = Connection(app_id, secret, lark.LogLevel.CRITICAL, handler(dispatcher, take), base)
    stop, failures = threading.Event(), list[Exception]()

    def connect() -> None:
        try:
            connection.start()
        except Exception as error:  # whatever ends the connection for good
            failures.append(error)
            connection.stands.set()
            stop.set()

    def leave(*_: object) -> None:
        stop.set()
        connection.stands.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    dispatcher.open()
    try:
        threading.Thread(target=connect, daemon=True).start()
        connection.stands.wait()
        if not stop.is_set():
            console.say(phrase("bot.connected", platform="Feishu").to(options.lang))
        stop.wait()
    finally:
        dispatcher.stop()
    if failures:
        why = phrase("bot.not_let_in", platform="Feishu", why=f"{type(failures[0]).__name__} {failures[0]}"[:200])
        raise UserError(why, "", phrase("bot.see_long_connection"))


def handler(dispatcher: Dispatcher, take: Take) -> lark.EventDispatcherHandler:
    """What is done with messages and pressed buttons."""

    def received(event: object) -> None:
        if dispatcher.is_full:
            raise RuntimeError("the queue is full")  # Feishu delivers it again
        take(as_dict(event))

    def button(event: object) -> P2CardActionTriggerResponse:
        return P2CardActionTriggerResponse(toast(take(as_dict(event)) or ""))

    built = lark.EventDispatcherHandler.builder("", "").register_p2_im_message_receive_v1(received)
    return built.register_p2_card_action_trigger(button).build()


def as_dict(event: object) -> dict[str, Any]:
    """The event as it came."""
    told = json.loads(lark.JSON.marshal(event) or "{}")
    return told if isinstance(told, dict) else {}
