"""Queues messages of any chat platform and answers each once: selects what is read, asks the workers, enforces the limits."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from diagnose.phrases import Lang, phrase
from diagnose.render.markup.chat_within_limit import dialect
from diagnose.surfaces.bots.bot_command import BotOptions, FetchError, File, Incoming, Outgoing, Platform, Post, tried_value
from diagnose.surfaces.server.question import Question, label
from diagnose.surfaces.server.worker_pool import FINISH_SECONDS, Lost, Overloaded, Stopped, WorkerPool

#: Files of one question; earlier messages of a thread; notes about files that were not read.
MAX_FILES, MAX_EARLIER, MAX_NOTES = 10, 50, 3
#: Characters read from a thread, newest messages first.
MAX_CHARACTERS = 1 << 20
#: Messages in the queue, in all and of one person; keys remembered to recognise repeated deliveries.
MAX_PENDING, MAX_PER_PERSON, MAX_KEYS = 64, 8, 20_000
#: Messages answered at once: threads mostly wait for the network.
THREADS = 4
#: Media types that are never read.
BINARY_MEDIA = ("image/", "video/", "audio/")

#: A line of options, as answers suggest them; some keyboards turn two hyphens into a dash.
OPTION = re.compile(r"(?:--|\u2014)(gpu|gpus|model|set)[ =]([^\s=`]{1,200}(?:=[^\s`]{1,200})?)")
OPTION_LINE = re.compile(rf"[ `]*(?:{OPTION.pattern}(?:[ `]+|$)){{1,20}}")
HAN = re.compile(r"[\u4e00-\u9fff]")


class Dispatcher:
    """Answers each message once, in a few threads behind a bounded queue."""

    def __init__(self, platform: Platform, pool: WorkerPool, options: BotOptions) -> None:
        self.platform, self.pool, self.options = platform, pool, options
        self._lock = threading.Lock()
        self._recent_keys: OrderedDict[str, None] = OrderedDict()
        self._pending: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="oomdoctor bot")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._timer = threading.Timer(FINISH_SECONDS, pool.close)
        self._timer.daemon = True

    def open(self) -> None:
        """Start the worker processes and wait until they are ready."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.pool.start(), self._loop).result()

    def stop(self) -> None:
        """Give the queued messages FINISH_SECONDS; what is not diagnosed then is answered by one sentence."""
        self._timer.start()

    def close(self) -> None:
        """Answer the queued messages, then end threads and processes. Idempotent."""
        if self._loop.is_closed():
            return
        self._threads.shutdown(wait=True)
        self._timer.cancel()
        self.pool.close()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    @property
    def is_full(self) -> bool:
        """Whether the platform should deliver again later."""
        return self._pending.total() >= MAX_PENDING

    def submit(self, message: Incoming) -> bool:
        """Queue a message; False if it is a repeated delivery or the queue is full. Returns at once."""
        with self._lock:
            if message.key in self._recent_keys or self.is_full or self._pending[message.author] >= MAX_PER_PERSON:
                return False
            self._recent_keys[message.key] = None
            while len(self._recent_keys) > MAX_KEYS:
                self._recent_keys.popitem(last=False)
            self._pending[message.author] += 1
        self._threads.submit(self._answer_message, message)
        return True

    def _answer_message(self, message: Incoming) -> None:
        try:
            answer = self.build_answer(message)
            if answer is not None:
                self.platform.reply(message, answer)
        except Exception as error:  # the bot goes on; the log gets the error without the text of messages
            print(f"oomdoctor: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
        finally:
            with self._lock:
                self._pending[message.author] -= 1
                self._pending += Counter()  # drops people without waiting messages

    # -- one message

    def build_answer(self, message: Incoming) -> Outgoing | None:
        """Diagnose the message alone, then its thread, then only its files, until one shows a memory failure; None: stay silent."""
        lang: Lang = "zh" if HAN.search(message.post.text[:MAX_CHARACTERS]) else self.options.lang
        options = parse_options(message.post.text)
        reader = QuestionReader(self, lang)
        own_logs = reader.logs(message.post, "message")
        earlier = [] if message.unprompted else list(self.platform.earlier_posts(message))[-MAX_EARLIER:]
        thread_logs = [log for number, post in enumerate(reversed(earlier), 1) for log in reader.logs(post, f"message-{number}")]
        thread_logs = [*reversed(thread_logs), *own_logs]
        attempts = [own_logs, *([thread_logs] if thread_logs != own_logs else [])]
        attached_logs = [log for log in thread_logs if not log[0].startswith("message")]  # without the text of messages
        attempts += [attached_logs] if attached_logs and len(attached_logs) < len(thread_logs) else []
        lookalike: Outgoing | None = None
        for logs in filter(None, attempts):
            result = self.ask_worker(Question(tuple(logs), lang=lang, **options))
            if isinstance(result, str):
                return None if message.unprompted else self.plain_answer(result, reader)
            relevance, answer = result
            answer = Outgoing(answer.text, answer.title, tuple(reader.notes), answer.patch, lang, answer.tried)
            if relevance == "oom":
                return answer
            lookalike = lookalike or (answer if relevance == "other" else None)
        if message.unprompted:
            return None
        return lookalike or self.plain_answer(phrase("bot.nothing_found").to(lang), reader)

    def plain_answer(self, sentence: str, reader: QuestionReader) -> Outgoing:
        """A single sentence as an answer."""
        text = dialect(self.platform.name).escape(sentence)
        return Outgoing(text, text, tuple(reader.notes), lang=reader.lang)

    def ask_worker(self, question: Question) -> tuple[str, Outgoing] | str:
        """Relevance and message of the worker's answer, or a sentence why there is none."""
        lang = question.lang
        question = replace(question, redact=self.options.redact, form=f"chat.{self.platform.name}")
        try:
            answer = asyncio.run_coroutine_threadsafe(self.pool.answer(question), self._loop).result()
        except Overloaded:
            return phrase("bot.too_busy").to(lang)
        except Stopped:
            return phrase("remote.took_too_long", seconds=f"{self.pool.seconds:g}").to(lang)
        except Lost as error:
            print(f"oomdoctor: {error}", file=sys.stderr, flush=True)
            return phrase("remote.internal").to(lang)
        if answer.wrong:
            return answer.wrong
        data = json.loads(answer.data)
        tried = tried_value(lang, answer.job, [word for word, _ in answer.tried])
        return data["relevance"], Outgoing(answer.page, data["title"], (), data["patch"], tried=tried)


class QuestionReader:
    """Reads texts and files of one question within its limits; `notes` name the files that were not read, and why."""

    def __init__(self, dispatcher: Dispatcher, lang: Lang) -> None:
        self.dispatcher, self.lang = dispatcher, lang
        self.notes: list[str] = []
        self.characters_left, self.files_left, self.bytes_left = MAX_CHARACTERS, MAX_FILES, dispatcher.options.max_mib << 20

    def logs(self, post: Post, log_label: str) -> list[tuple[str, str | bytes]]:
        """The text and the files of a message, each with a label."""
        text = post.text[: self.characters_left]
        self.characters_left -= len(text)
        texts: list[tuple[str, str | bytes]] = [(log_label, text)] if text.strip() else []
        return [*texts, *((label(file.name, "file"), data) for file in post.files if (data := self.read_file(file)) is not None)]

    def read_file(self, file: File) -> bytes | None:
        """A file's bytes; None, with a note, if it is not read."""
        try:
            data = self.fetch(file)
        except FetchError as error:
            self.add_note(str(error), file)
            return None
        self.bytes_left -= len(data)
        return data

    def fetch(self, file: File) -> bytes:
        if file.media.startswith(BINARY_MEDIA):
            raise FetchError("not_text")
        if self.files_left <= 0:
            raise FetchError("too_many")
        self.files_left -= 1
        if file.size > self.bytes_left:
            raise FetchError("too_large")
        return self.dispatcher.platform.fetch(file, self.bytes_left)

    def add_note(self, key: str, file: File) -> None:
        sentence = phrase(f"bot.{key}", name=label(file.name, "?"), most=self.dispatcher.options.max_mib, files=MAX_FILES).to(self.lang)
        text = dialect(self.dispatcher.platform.name).escape(sentence)
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)


def parse_options(text: str) -> dict[str, Any]:
    """Options of a question, from lines of the message that hold nothing else (command lines in a log hold more)."""
    options: dict[str, Any] = {"set": {}}
    for line in text[:MAX_CHARACTERS].splitlines()[:2000]:
        if len(line) > 2000 or not OPTION_LINE.fullmatch(line.strip()):
            continue
        for name, value in OPTION.findall(line):
            key, separator, setting = value.partition("=")
            if name == "set" and separator:
                options["set"][key] = setting
            elif name == "gpus" and value.isascii() and value.isdigit():
                options["gpus"] = int(value[:6])
            elif name in ("gpu", "model"):
                options[name] = value
    return options


def build_pool(options: BotOptions) -> WorkerPool:
    """A pool with the number of workers from the options, by default at most four."""
    return WorkerPool(options.workers or min(os.cpu_count() or 1, 4), options.timeout, MAX_PENDING)
