"""Messages of chats: within each platform's limit, readable, and nothing in them calls, links or formats by itself."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SAMPLES

from diagnose import rule_files
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice
from diagnose.phrases import Lang, same
from diagnose.plan.remedies.remedy import Edit
from diagnose.render.formats import RENDERERS
from diagnose.render.markup.chat_within_limit import Platform, chat, dialect
from diagnose.render.parts.view import View
from diagnose.units import Size

LANGS: tuple[Lang, Lang] = ("en", "zh")
PLATFORMS: tuple[Platform, ...] = ("slack", "discord", "feishu")

HOSTILE = [
    "<!here> <!channel> <!everyone> <@U0123> <#C0123> <!subteam^S1>",
    "@everyone @here @channel <@&123456> <@123>",
    "<at id=all></at> <at user_id='all'>all</at>",
    "<https://evil.example|click here> [click](https://evil.example) https://evil.example",
    "``` out of the block ``` and `out of the span`",
    "*bold* _em_ ~gone~ **bold** ~~gone~~ __under__ ||spoiler||",
    "# title\n> quote\n- item\n| a | b |",
    "<font color='red'>x</font> <a href='https://evil.example'>x</a> <text_tag color='red'>x</text_tag>",
]


def saying(text: str) -> Diagnosis:
    """A diagnosis that says a text wherever a stranger's words may stand."""
    sample = SAMPLES["dpo_logits"]()
    remedy = replace(
        sample.outcome.remedies[0],
        title=same(text),
        command=same(text),
        env=(text,),
        edits=(Edit("qwen2vl_dpo.yaml", text, text, text), Edit(text, "key", "1", text)),
    )
    outcome = sample.outcome._replace(remedies=(remedy, *sample.outcome.remedies[1:]))
    return replace(
        sample, verdict=sample.verdict._replace(headline=same(text)), outcome=outcome, notices=(Notice("warning", "x", same(text)),)
    )


@for_each("lang", LANGS)
@for_each("platform", PLATFORMS)
@for_each("name", SAMPLES)
def test_a_message_is_within_the_limit_and_says_the_verdict(name: str, platform: Platform, lang: Lang) -> None:
    message = chat(SAMPLES[name](), platform, lang)
    way = dialect(platform)
    assert 0 < way.length(message.text) <= way.limit and not message.cut


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1, max_size=40), st.sampled_from(PLATFORMS), st.integers(min_value=1, max_value=400))
def test_a_long_diagnosis_is_folded_into_the_limit(text: str, platform: Platform, times: int) -> None:
    """Whatever a log makes it say, the message can be sent."""
    way = dialect(platform)
    assert way.length(chat(saying(text * times), platform).text) <= way.limit


def test_what_was_left_out_is_pointed_at() -> None:
    message = chat(saying("a long word " * 60), "discord", "en")
    assert message.cut and "oomdoctor explain" in message.text.splitlines()[-1]


def outside_code(text: str) -> str:
    """A message without its blocks and spans."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


@for_each("hostile", HOSTILE)
@for_each("platform", PLATFORMS)
def test_nobody_is_called_and_nothing_is_linked(platform: Platform, hostile: str) -> None:
    text = chat(saying(hostile), platform, "en", redact=False).text
    assert "://" not in text and not re.search(r"@(?=\w)", text)
    if platform == "slack":  # its own markup begins with a bare <, wherever it stands
        assert "<" not in text and ">" not in text
    elif platform == "feishu":
        assert "<" not in text
    else:
        assert not re.search(r"(?<!\\)<", outside_code(text))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_block_or_span_cannot_be_left(platform: Platform) -> None:
    text = chat(saying("``` out ``` `x` ```"), platform, "en").text
    fences = [line for line in text.splitlines() if line.startswith("```")]
    assert len(fences) == 2 and all(line.count("`") % 2 == 0 for line in text.splitlines() if line not in fences)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_formatting_is_shown_and_not_done(platform: Platform) -> None:
    text = outside_code(dialect(platform).escape("*bold* ~gone~ _em_ cutoff_len"))
    assert not re.search(r"(?<!\\)[*~]", text) and "cutoff_len" in text


def test_a_patch_goes_beside_the_message() -> None:
    message = chat(SAMPLES["dpo_logits"](), "slack")
    assert message.patch.startswith("--- a/qwen2vl_dpo.yaml")
    assert "+++ b/" not in message.text


def test_a_message_is_masked_unless_told_otherwise() -> None:
    sample = replace(SAMPLES["host_kill"](), notices=(Notice("error", "x", same("/home/inventedalice/x.yaml: no such file")),))
    assert "inventedalice" not in chat(sample, "slack").text
    assert "inventedalice" in chat(sample, "slack", redact=False).text


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_platform_is_described_in_full(platform: Platform) -> None:
    """A new platform is an entry of rules/chats.yaml."""
    assert set(rule_files.table("chats")) == set(PLATFORMS)
    assert dialect(platform).unit in ("bytes", "utf16") and "{}" in dialect(platform).bold


def test_github_folds_the_reasons_and_shows_what_to_do() -> None:
    text = RENDERERS["markdown"](SAMPLES["dpo_logits"](), "en", View())
    shown = text.partition("<details>")[0]
    assert "cutoff_len: 1536" in shown and "[W" in shown
    assert text.count("<details>") == text.count("</details>") >= 3
    assert chat(SAMPLES["dpo_logits"](), "github").text.count("<details>") >= 3


def test_a_comment_on_github_is_never_too_long() -> None:
    from diagnose.render.markup.markdown import COMMENT_LIMIT

    text = RENDERERS["markdown"](saying("words " * 30_000), "en", View(verbose=True))
    assert len(text) <= COMMENT_LIMIT + 1


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_term_shows_its_formula_and_both_of_its_ends(form: str) -> None:
    """Where it is asked for, whatever the form; a page has it anyway."""
    diagnosis = SAMPLES["dpo_logits"]()
    first, *others = diagnosis.ledgers
    moment, *later = first.moments
    wide = moment.terms[0]._replace(size=Size.between(2**30, 3 * 2**30, 2 * 2**30))
    widened = replace(moment, terms=(wide, *moment.terms[1:]))
    diagnosis = replace(diagnosis, ledgers=(replace(first, moments=(widened, *later)), *others))
    text = re.sub(r"\s+", " ", unescape(RENDERERS[form](diagnosis, "en", View(budget=True))))
    assert "2.00 GiB" in text
    assert "1.00 to 3.00 GiB" in text
    for term in (term for ledger in diagnosis.ledgers for moment in ledger.moments for term in moment.terms):
        assert term.numbers in text
