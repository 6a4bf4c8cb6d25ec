"""Takes messages of any chat platform and answers each once: decides what is read, asks the worker processes, keeps the limits."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from diagnose.phrases import Lang, phrase
from diagnose.record import replace
from diagnose.surfaces.bots.bot_command import Asked, File, Incoming, Name, Outgoing, Platform, Post, Unfetched
from diagnose.surfaces.server.question import Question, label
from diagnose.surfaces.server.worker_pool import Crew, Lost, Overloaded, Stopped

if TYPE_CHECKING:
    from diagnose.render.markup.chat_message import Dialect

#: Files of one question that are read; earlier messages of a thread that are looked at; sentences about what was not read.
FILES, EARLIER, NOTES = 10, 50, 3
#: Characters of all messages of a thread that are read, newest first.
WORDS = 1 << 20
#: Messages that may wait or be answered at once, of all and of one person; of how many the keys are remembered.
WAITING, OF_ONE, REMEMBERED = 64, 8, 20_000
#: Messages that are worked on at once: most of the time goes to the platform's network.
HANDS = 4
#: What no diagnosis is made of.
NOT_TEXT = ("image/", "video/", "audio/")

#: A line of options, as an answer's own questions write them; some keyboards make one dash of two.
OPTION = re.compile(r"(?:--|\u2014)(gpu|gpus|model|set)[ =]([^\s=`]{1,200}(?:=[^\s`]{1,200})?)")
OPTIONS = re.compile(rf"[ `]*(?:{OPTION.pattern}(?:[ `]+|$)){{1,20}}")
HAN = re.compile(r"[\u4e00-\u9fff]")


class Desk:
    """Takes messages and answers each once, in a few threads, behind a bounded queue."""

    def __init__(self, platform: Platform, crew: Crew, asked: Asked) -> None:
        self.platform, self.crew, self.asked = platform, crew, asked
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._of: Counter[str] = Counter()
        self._hands = ThreadPoolExecutor(HANDS, thread_name_prefix="oomdoctor bot")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def open(self) -> None:
        """Have the worker processes ready."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.crew.start(), self._loop).result()

    def close(self) -> None:
        """Answer what was taken, then end everything; once."""
        if self._loop.is_closed():
            return
        self._hands.shutdown(wait=True)
        self.crew.close()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    @property
    def full(self) -> bool:
        """Whether the platform had better come again later."""
        return self._of.total() >= WAITING

    def take(self, came: Incoming) -> bool:
        """Answer it soon; False where it was taken before or there is no room. Returns at once."""
        with self._lock:
            if came.key in self._seen or self.full or self._of[came.who] >= OF_ONE:
                return False
            self._seen[came.key] = None
            while len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            self._of[came.who] += 1
        self._hands.submit(self._work, came)
        return True

    def _work(self, came: Incoming) -> None:
        try:
            said = self.outgoing(came)
            if said is not None:
                self.platform.reply(came, said)
        except Exception as error:  # the bot goes on; what went wrong is for whoever runs it, without what was said
            print(f"oomdoctor: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
        finally:
            with self._lock:
                self._of[came.who] -= 1
                self._of += Counter()  # drops who has nothing waiting

    # -- one message

    def outgoing(self, came: Incoming) -> Outgoing | None:
        """The answer: of the message alone where that holds a failure, else of its thread, else of the configs; None: say nothing."""
        lang: Lang = "zh" if HAN.search(came.post.text[:WORDS]) else self.asked.lang
        options = asked_with(came.post.text)
        reading = Reading(self, lang)
        own = reading.logs(came.post, "message")
        before = [] if came.quiet else list(self.platform.earlier(came))[-EARLIER:]
        thread = [log for number, post in enumerate(reversed(before), 1) for log in reading.logs(post, f"message-{number}")]
        thread = [*reversed(thread), *own]
        attempts = [own, *([thread] if thread != own else [])]
        alone = [log for log in thread if not log[0].startswith("message")]  # without a word that is none of a log
        attempts += [alone] if alone and len(alone) < len(thread) else []
        other: Outgoing | None = None
        for logs in filter(None, attempts):
            told = self.ask(Question(tuple(logs), lang=lang, **options))
            if isinstance(told, str):
                return None if came.quiet else self.plain(told, reading)
            speaks, said = told
            said = Outgoing(said.text, said.title, tuple(reading.notes), said.patch, lang)
            if speaks == "oom":
                return said
            other = other or (said if speaks == "other" else None)
        if came.quiet:
            return None
        return other or self.plain(phrase("bot.nothing_found").to(lang), reading)

    def plain(self, sentence: str, reading: Reading) -> Outgoing:
        """A sentence of ours."""
        shown = dialect(self.platform.name).escape(sentence)
        return Outgoing(shown, shown, tuple(reading.notes), lang=reading.lang)

    def ask(self, question: Question) -> tuple[str, Outgoing] | str:
        """What a worker says: whether it speaks of memory and the message; or the sentence why there is none."""
        lang = question.lang
        question = replace(question, redact=self.asked.redact, form=f"chat.{self.platform.name}")
        try:
            answer = asyncio.run_coroutine_threadsafe(self.crew.answer(question), self._loop).result()
        except Overloaded:
            return phrase("bot.too_busy").to(lang)
        except Stopped:
            return phrase("remote.took_too_long", seconds=f"{self.crew.seconds:g}").to(lang)
        except Lost as lost:
            print(f"oomdoctor: {lost}", file=sys.stderr, flush=True)
            return phrase("remote.internal").to(lang)
        if answer.wrong:
            return answer.wrong
        data = json.loads(answer.data)
        return data["speaks"], Outgoing(answer.page, data["title"], (), data["patch"])


class Reading:
    """The texts and files of one question, within its limits; `notes`: what was left out, and why."""

    def __init__(self, desk: Desk, lang: Lang) -> None:
        self.desk, self.lang = desk, lang
        self.notes: list[str] = []
        self.words, self.files, self.bytes = WORDS, FILES, desk.asked.max_mib << 20

    def logs(self, post: Post, log_label: str) -> list[tuple[str, str | bytes]]:
        """The words of a message and what it has attached, each with its name."""
        text = post.text[: self.words]
        self.words -= len(text)
        found: list[tuple[str, str | bytes]] = [(log_label, text)] if text.strip() else []
        return [*found, *((label(file.name, "file"), data) for file in post.files if (data := self.data(file)) is not None)]

    def data(self, file: File) -> bytes | None:
        """A file's bytes; None, and a note, where it is not read."""
        try:
            data = self.fetched(file)
        except Unfetched as error:
            self.note(str(error), file)
            return None
        self.bytes -= len(data)
        return data

    def fetched(self, file: File) -> bytes:
        if file.media.startswith(NOT_TEXT):
            raise Unfetched("not_text")
        if self.files <= 0:
            raise Unfetched("too_many")
        self.files -= 1
        if file.size > self.bytes:
            raise Unfetched("too_large")
        return self.desk.platform.fetch(file, self.bytes)

    def note(self, key: str, file: File) -> None:
        said = phrase(f"bot.{key}", name=label(file.name, "?"), most=self.desk.asked.max_mib, files=FILES).to(self.lang)
        shown = dialect(self.desk.platform.name).escape(said)
        if len(self.notes) < NOTES and shown not in self.notes:
            self.notes.append(shown)


def asked_with(text: str) -> dict[str, Any]:
    """The options of a question, from lines of the asker's message that hold nothing else (a log's command lines hold more)."""
    found: dict[str, Any] = {"set": {}}
    for line in text[:WORDS].splitlines()[:2000]:
        if len(line) > 2000 or not OPTIONS.fullmatch(line.strip()):
            continue
        for name, value in OPTION.findall(line):
            key, equals, worth = value.partition("=")
            if name == "set" and equals:
                found["set"][key] = worth
            elif name == "gpus" and value.isascii() and value.isdigit():
                found["gpus"] = int(value[:6])
            elif name in ("gpu", "model"):
                found[name] = value
    return found


def dialect(name: Name) -> Dialect:
    from diagnose.render.markup import chat_message

    return chat_message.dialect(name)


def crew_of(asked: Asked) -> Crew:
    """As many worker processes as asked for."""
    return Crew(asked.workers or min(os.cpu_count() or 1, 4), asked.timeout, WAITING)
