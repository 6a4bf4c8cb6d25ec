"""A job written to harm its reader, from its bytes to every form of the answer: told as text, never acted on, and the diagnosis stays."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import pytest
from attacks import ATTACKS, FRAMES, MESSAGE, config, log
from collected import for_each
from pace import within
from sweep import sample

from diagnose import explain
from diagnose.diagnosis import Diagnosis
from diagnose.render.formats import RENDERERS
from diagnose.render.markup.chat_within_limit import Platform, chat
from diagnose.render.parts.strings import HARMFUL
from diagnose.render.parts.view import View

PLATFORMS: tuple[Platform, ...] = ("slack", "discord", "feishu", "github")


@cache
def job(attack: str) -> Diagnosis:
    """The attack in the log and in a config."""
    return explain(log(attack).encode(), configs=[config(attack)])


def prescribed(diagnosis: Diagnosis) -> list[object]:
    """Everything that the answer asks anybody to do."""
    outcome = diagnosis.outcome
    return [(made.id, made.env, made.command, [(edit.key, edit.to) for edit in made.edits]) for made in outcome.remedies]


@pytest.fixture(scope="module")
def calm() -> Diagnosis:
    return job("nothing of note")


@for_each("name", ATTACKS)
def test_nothing_in_a_job_changes_what_is_advised(name: str, calm: Diagnosis) -> None:
    """Orders to a reader, or to a model that reads along, are neither a cause nor a remedy."""
    hostile = job(ATTACKS[name])
    assert hostile.verdict.status == calm.verdict.status
    assert [cause.cause for cause in hostile.judgement.causes] == [cause.cause for cause in calm.judgement.causes]
    assert prescribed(hostile) == prescribed(calm)


@for_each("name", ATTACKS)
@for_each("form", RENDERERS)
def test_no_form_of_the_answer_can_steer_its_reader(form: str, name: str) -> None:
    """No escape sequence, no turned or hidden text in any form; no element, picture or link of the attacker's."""
    text = RENDERERS[form](job(ATTACKS[name]), "en", View(verbose=True, rules=True))
    assert not HARMFUL.search(text.replace("@\u200b", "@"))
    if form == "html":
        assert not re.search(r"<(?:script|img)|<[^>]*\sonerror|href=\"(?:javascript|http://evil)", text)
    if form == "markdown":
        outside = re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        assert not re.search(r"(?<!\\)<(?:script|img)|!\[x\]\(|(?<!\\)\[y\]\(|@(?=everyone)", outside)


@for_each("name, platform", sample(list(product(ATTACKS, PLATFORMS)), len(ATTACKS) + 1))
def test_no_message_can_steer_its_channel(name: str, platform: Platform) -> None:
    text = chat(job(ATTACKS[name]), platform, "en").text
    assert not HARMFUL.search(text.replace("@\u200b", "@")) and "@everyone" not in text


@for_each("bomb", ["\x1b[31m", "\x1b]8;;http://evil.example\x07", "\x1b[", "\u202e", "a\u0300\u0300\u0300"])
def test_megabytes_of_escapes_cost_little_and_hide_nothing(bomb: str, calm: Diagnosis) -> None:
    """A terminal's bomb before the message, on its own line and in the traceback."""
    many = bomb * (2_000_000 // len(bomb))
    with within(20):
        diagnosis = explain(f"{many}\n{FRAMES.format(bomb * 5000)}{MESSAGE}{many}".encode())
        text = RENDERERS["text"](diagnosis, "en", View(verbose=True))
    assert diagnosis.verdict.status == calm.verdict.status and "4.64 GiB" in text
    assert not HARMFUL.search(text) and len(text) < 100_000
