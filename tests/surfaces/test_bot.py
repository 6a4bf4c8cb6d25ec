"""What every chat bot shares: limits, one answer for each message, what is a log and what is a config. The platform is a list."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from chatting import Kept
from collected import for_each
from serving import CONFIGS, LOG, SHORT

from diagnose.errors import UserError
from diagnose.inputs.config_files import is_config_file
from diagnose.surfaces.bots import bot_command, bot_dispatcher
from diagnose.surfaces.bots.bot_command import BotOptions, FetchError, File, Incoming, Outgoing, Post, SendError
from diagnose.surfaces.bots.bot_dispatcher import Dispatcher, parse_options
from diagnose.surfaces.server.worker_pool import Lost, Overloaded, Stopped, WorkerPool


class Listed:
    """A platform that is a list of what was sent."""

    name: bot_command.Name = "slack"

    def __init__(self, before: Sequence[Post] = (), files: dict[str, bytes] | None = None) -> None:
        self.before, self.files = before, files or {}
        self.sent: list[tuple[str, Outgoing]] = []
        self.fetched: list[str] = []
        self.waits = threading.Event()
        self.waits.set()

    def earlier_posts(self, came: Incoming) -> Sequence[Post]:
        self.waits.wait(20)
        return self.before

    def fetch(self, file: File, most: int) -> bytes:
        self.fetched.append(file.name)
        if file.name not in self.files:
            raise FetchError("not_fetched")
        return self.files[file.name]

    def reply(self, came: Incoming, said: Outgoing) -> None:
        if came.context == "broken":
            raise SendError("the platform is down")
        self.sent.append((came.key, said))


@contextmanager
def opened(platform: Listed, crew: Any, **options: Any) -> Iterator[Dispatcher]:
    desk = Dispatcher(platform, crew, BotOptions("slack", **options))
    desk.open()
    try:
        yield desk
    finally:
        platform.waits.set()
        desk.close()


def told(platform: Listed, crew: Any, post: Post, **options: Any) -> Outgoing:
    """The only answer to a message."""
    with opened(platform, crew, **options) as desk:
        assert desk.submit(Incoming("1", post, None, "somebody"))
    [(_, said)] = platform.sent
    return said


FILES = {"error.log": LOG.encode(), **{config["name"]: config["text"].encode() for config in CONFIGS}}


def test_log_and_configs_are_told_apart(crew: Kept) -> None:
    """In any order, in one message or in several; the plan comes as a patch of the configs."""
    files = tuple(File(name, None) for name in FILES)
    together = told(Listed(files=FILES), crew, Post("why?", files))
    apart = told(Listed([Post("", (each,)) for each in files[::-1]], FILES), crew, Post("why?"))
    assert "4.64 GiB" in together.text and "4.64 GiB" in apart.text
    assert together.patch.startswith("--- ") and together.patch == apart.patch


def test_configs_alone_are_checked(crew: Kept) -> None:
    """With a card in the question: will it fit? Without, one polite sentence."""
    config = b"model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: full\ncutoff_len: 2048\n"
    platform, files = {"train.yaml": config}, (File("train.yaml", None),)
    known = told(Listed(files=platform), crew, Post("will it fit?\n--gpu A100-80GB --gpus 1", files))
    unknown = told(Listed(files=platform), crew, Post("will it fit?", files))
    assert "GiB" in known.text and "no out-of-memory failure" not in known.text
    assert "no out-of-memory failure" in unknown.text


@for_each(
    "text, found",
    [
        ("why?\n--gpu A100-80GB --gpus 8", {"gpu": "A100-80GB", "gpus": 8, "set": {}}),
        (" `--set data.images_per_sample=4` ", {"set": {"data.images_per_sample": "4"}}),
        ("\u2014set train.max_seq_len=2048 --model Qwen/Qwen2.5-7B", {"set": {"train.max_seq_len": "2048"}, "model": "Qwen/Qwen2.5-7B"}),
        ("torchrun train.py --model /etc/passwd --gpus 8", {"set": {}}),
        ("--gpus eight\n--set x", {"set": {}}),
        ("--gpu=a" * 280 + "!`", {"set": {}}),
    ],
)
def test_options_are_lines_of_their_own(text: str, found: dict[str, Any]) -> None:
    """A question of an answer can be answered in the chat; a command line in a log sets nothing."""
    assert parse_options(text) == found


def test_an_option_that_cannot_be_meant_is_said(crew: Kept) -> None:
    assert "no-such-card" in told(Listed(), crew, Post(f"--gpu no-such-card\n{SHORT}")).text


@for_each(
    "name, data, is_one",
    [
        ("train.yaml", b"learning_rate: 1.0e-5\n", True),
        ("broken.yaml", b"a: [1\n", True),
        ("run.sh", b"torchrun train.py --bf16\n", True),
        ("Untitled.py", b"Traceback (most recent call last):\n" + SHORT.encode(), False),
        ("log.json", b'{"message": "CUDA out of memory. Tried to allocate 2.00 GiB"}', False),
        ("error.log", b"learning_rate: 1.0e-5\n", False),
    ],
)
def test_a_config_is_known_by_name_and_content(name: str, data: bytes, is_one: bool) -> None:
    """A snippet of Slack may be called anything."""
    assert is_config_file(name, data) is is_one


def test_files_share_one_allowance(crew: Kept) -> None:
    """So many, and so many bytes together; what is left out is said, in few words."""
    files = {f"{number}.txt": bytes(300 << 10) for number in range(20)}
    platform = Listed(files=files)
    said = told(platform, crew, Post(SHORT, tuple(File(name, None, len(data)) for name, data in files.items())), max_mib=1)
    assert platform.fetched == ["0.txt", "1.txt", "2.txt"]
    assert "2.00 GiB" in said.text and 0 < len(said.notes) <= 3 and "1 MiB" in said.notes[0]


def test_long_messages_are_bounded(crew: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message that asks is read first."""
    monkeypatch.setattr(bot_dispatcher, "MAX_CHARACTERS", 5000)
    said = told(Listed([Post("x" * 10_000)] * 3), crew, Post(SHORT))
    assert "2.00 GiB" in said.text


def test_a_message_is_taken_once_and_the_queue_is_bounded(crew: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """One person cannot keep the others waiting, and all together cannot fill the memory."""
    monkeypatch.setattr(bot_dispatcher, "MAX_PENDING", 5)
    monkeypatch.setattr(bot_dispatcher, "MAX_PER_PERSON", 2)
    platform = Listed()
    platform.waits.clear()
    with opened(platform, crew) as desk:
        assert desk.submit(Incoming("1", Post(SHORT), None, "a")) and not desk.submit(Incoming("1", Post(SHORT), None, "a"))
        assert desk.submit(Incoming("2", Post(SHORT), None, "a")) and not desk.submit(Incoming("3", Post(SHORT), None, "a"))
        assert [desk.submit(Incoming(str(number), Post(SHORT), None, f"b{number}")) for number in range(4, 8)] == [True] * 3 + [False]
        assert desk.is_full
        platform.waits.set()
    assert sorted(key for key, _ in platform.sent) == ["1", "2", "4", "5", "6"] and not desk.is_full


def test_keys_are_forgotten_in_time(crew: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot_dispatcher, "MAX_KEYS", 2)
    platform = Listed()
    with opened(platform, crew) as desk:
        assert [desk.submit(Incoming(key, Post("hello"), None, key)) for key in "abca"] == [True, True, True, True]


def test_what_goes_wrong_is_ours_to_read(crew: Kept, capfd: pytest.CaptureFixture[str]) -> None:
    """One line without what was written; the next message is answered."""
    platform = Listed()
    with opened(platform, crew) as desk:
        desk.submit(Incoming("1", Post("private words"), "broken"))
        desk.submit(Incoming("2", Post(SHORT), None))
    assert [key for key, _ in platform.sent] == ["2"]
    err = capfd.readouterr().err
    assert "the platform is down" in err and "private" not in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("trouble", "said"), [(Overloaded(), "ask again"), (Stopped(), "took longer than 30 seconds"), (Lost("died"), "our mistake")]
)
def test_a_diagnosis_that_fails_is_one_sentence(trouble: Exception, said: str) -> None:
    class Failing(Kept):
        async def start(self) -> None:
            pass

        async def answer(self, asked: Any) -> Any:
            raise trouble

    assert said in told(Listed(), Failing(workers=1, seconds=30), Post(SHORT)).text


def test_a_bot_that_is_stopped_answers_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """In seconds: what is not diagnosed by then is told to ask again."""
    monkeypatch.setattr(bot_dispatcher, "FINISH_SECONDS", 0.1)
    platform, pool = Listed(), WorkerPool(workers=1, seconds=30)
    desk = Dispatcher(platform, pool, BotOptions("slack"))
    desk.open()
    slow = "".join(LOG.replace("rank3", f"rank{number}") for number in range(300))
    for key in "abcdef":
        desk.submit(Incoming(key, Post(slow), None, key))
    begun = time.monotonic()
    desk.stop()
    desk.close()
    assert time.monotonic() - begun < 5
    assert sorted(key for key, _ in platform.sent) == list("abcdef")
    assert "ask again" in platform.sent[-1][1].text


def test_notes_and_sentences_are_harmless(crew: Kept) -> None:
    """A file's name is a stranger's text."""
    name = "x/<!channel>*b*\u202e`~.log"
    said = told(Listed(), crew, Post("", (File(name, None),)))
    assert said.notes and not any(sign in said.notes[0] for sign in ("<", "*", "\u202e", "x/"))


@pytest.mark.parametrize("address", ["http://example.net", "ftp://x", "https://a b", "javascript:1", "https://x/?q=1", "http://127.0.0.1"])
def test_the_address_of_a_service_is_an_address(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Tokens are sent there: encrypted, or not off the machine."""
    monkeypatch.setenv("SLACK_API_URL", address)
    with pytest.raises(UserError):
        bot_command.read_api_url("SLACK_API_URL", "https://slack.com/api")


def test_other_commands_do_not_load_it() -> None:
    """The SDKs take longer to import than a diagnosis."""
    heavy = "[name for name in sys.modules if 'slack' in name or '.bot' in name or name == 'httpx']"
    code = f"import sys, diagnose.surfaces.cli.commands; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
