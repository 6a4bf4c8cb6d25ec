"""Logs come from strangers: nothing in them may act on the reader's terminal, page or chat. And every word has its translation."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SAMPLES

from diagnose import rule_files
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang, phrase, same
from diagnose.render.formats import RENDERERS
from diagnose.render.markup.markdown import code, escape, fenced
from diagnose.render.parts.strings import HARMFUL, harmless, map_texts
from diagnose.render.parts.view import View
from diagnose.render.parts.wrapping import cells

LANGS: tuple[Lang, Lang] = ("en", "zh")


@for_each("lang", LANGS)
@for_each("width", [40, 60, 80, 110])
@for_each("name", SAMPLES)
def test_every_line_fits_the_terminal(name: str, width: int, lang: Lang) -> None:
    """At any width from 40 on; a closing mark may hang over by one character."""
    text = RENDERERS["text"](SAMPLES[name](), lang, View(width, verbose=True, budget=True, rules=True))
    assert max(map(cells, text.splitlines())) <= width + 2


@for_each("form", ["text", "markdown"])
@for_each("name", SAMPLES)
def test_no_control_character_gets_out(name: str, form: str) -> None:
    text = RENDERERS[form](SAMPLES[name](), "en", View(verbose=True, rules=True))
    assert not HARMFUL.search(text.replace("@\u200b", "@"))


@for_each(
    "raw, shown",
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("a\rb", "a b"),
        ("\u202eevil", "�evil"),
        ("a\x00b", "a�b"),
        ("显存", "显存"),
    ],
)
def test_terminal_escapes_are_taken_out(raw: str, shown: str) -> None:
    assert harmless(raw) == shown


@settings(max_examples=200)
@given(st.text(max_size=80))
def test_nothing_harmful_survives(text: str) -> None:
    assert not HARMFUL.search(harmless(text))


@for_each("hostile", ["<img src=x>", "[a](http://b)", "**bold**", "# title", "| a | b |", "~~x~~", "![i](u)", "_em_", "&lt;b&gt;"])
def test_markdown_shows_it_and_does_not_act_on_it(hostile: str) -> None:
    shown = escape(hostile)
    assert shown != hostile
    assert re.sub(r"\\(.)", r"\1", shown) == hostile


def test_keys_stay_readable_and_code_stays_code() -> None:
    assert escape("`sequence_len` of cutoff_len") == "`sequence_len` of cutoff_len"


def test_nobody_is_called() -> None:
    assert "@everyone" not in escape("hello @everyone")


def test_a_code_span_or_block_cannot_be_left() -> None:
    assert code("a `b` c").startswith("`` ")
    assert fenced("diff", ["- x", "```", "# y"]).splitlines()[0] == "````diff"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_can_be_a_headline(text: str) -> None:
    """Nothing that a log contains can raise out of a renderer."""
    sample = SAMPLES["host_kill"]()
    hostile: Diagnosis = replace(sample, verdict=sample.verdict._replace(headline=same(text)))
    for form in RENDERERS.values():
        form(hostile, "en", View())


def test_changing_every_text_keeps_every_figure() -> None:
    """The walk that masks and cleans touches texts alone."""
    before = SAMPLES["dpo_logits"]()
    after = map_texts(before, lambda text: text)
    assert after == before
    assert map_texts(before, str.upper).ledgers[0].peak.total == before.ledgers[0].peak.total  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["remedy", "role"])
def test_every_word_of_the_vocabulary_has_a_name_in_both_languages(kind: str) -> None:
    words = rule_files.table("vocabulary")[kind]
    names = [name for group in words.values() for name in group] if isinstance(words, dict) else words
    for name in names:
        text = phrase(f"render.{kind}_{name}")
        assert text.en and text.zh


def test_every_word_of_a_price_and_of_fits_has_a_name() -> None:
    vocabulary = rule_files.table("vocabulary")
    for part, names in vocabulary["price"].items():
        assert all(phrase(f"render.{part}_{name}").zh for name in names)
    for name in vocabulary["fits"]:
        assert phrase(f"render.fits_{name}").zh and phrase(f"render.plan_{name}").zh and phrase(f"render.banner_check_{name}").zh
    for name in vocabulary["moment"]:
        assert phrase(f"moment.{name}").zh
    for name in vocabulary["phase"]:
        assert phrase(f"phase.{name}").zh


@pytest.mark.parametrize("room", ["render", "cli"])
def test_a_phrase_asks_for_the_same_values_in_both_languages(room: str) -> None:
    for name, entry in rule_files.table("phrases")[room].items():
        assert set(re.findall(r"{(\w+)}", entry["en"])) == set(re.findall(r"{(\w+)}", entry["zh"])), name


def test_a_patch_that_is_looked_at_hides_nothing_and_still_applies() -> None:
    """Context lines come from a stranger's file: what hides or turns text is shown as a sign, tabs and blanks stay."""
    from diagnose.render.parts.strings import visible

    assert visible("-\tkey:  1\r\n+\tkey:  2\r\n") == "-\tkey:  1\n+\tkey:  2\n"
    assert visible(" # \u202etxet\x1b[2J\U000e0072") == " # �txet�[2J�"
