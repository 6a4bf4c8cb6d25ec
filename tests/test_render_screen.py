"""The default answer fits one screen, and the card's memory is one bar that says the same without colour, narrow or wide, in Chinese."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SAMPLES

from diagnose.facts import Notice, Witness
from diagnose.phrases import Lang, same
from diagnose.render import RENDERERS, View, bar, card
from diagnose.render.layout import cells
from diagnose.render.strings import HARMFUL

GIB = 2**30
LANGS: tuple[Lang, Lang] = ("en", "zh")
PAINTED = re.compile(r"\x1b\[[\d;]*m")


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_answer_fits_one_screen(name: str, lang: Lang) -> None:
    """About 24 lines at 80 columns, the hardest sample included; the rest is for --verbose."""
    text = RENDERERS["text"](SAMPLES[name](), lang, View())
    assert len(text.splitlines()) <= 28
    assert len(text.splitlines()) < len(RENDERERS["text"](SAMPLES[name](), lang, View(verbose=True)).splitlines())


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_nothing_but_colour(name: str, width: int, lang: Lang) -> None:
    """Who sees no colour, or pipes the answer, reads the same characters."""
    plain, painted = (RENDERERS["text"](SAMPLES[name](), lang, View(width, colour)) for colour in (False, True))
    assert PAINTED.sub("", painted) == plain
    assert max(map(cells, plain.splitlines())) <= width + 2


def test_the_bar_names_every_part_and_shows_what_did_not_fit() -> None:
    shown = card.of(SAMPLES["dpo_logits"](), "en")
    assert shown is not None
    assert {"weights", "gradients", "optimizer", "activations", "logits", "other", "unused", "free", "request"} <= {
        part.kind for part in shown.parts
    }
    line = bar.line(shown, 76)
    assert len(line) == 76 and line.startswith("[W") and line.endswith("!") and "]!" in line
    assert abs(sum(part.bytes for part in shown.parts if part.kind != "request") - shown.edge) < shown.edge // 100


def test_what_torch_allocated_is_not_divided_where_the_ledger_is_contradicted() -> None:
    """A ledger that needs more than was allocated describes another run: the bar keeps to what was printed."""
    from diagnose.facts import Fact

    sample = SAMPLES["dpo_logits"]()
    above = replace(sample, facts=(*sample.facts, Fact("ledger.verdict", "above", "derived", Witness("derived"))))
    shown = card.of(above, "en")
    assert shown is not None and shown.parts[0].kind == "allocated"


@settings(max_examples=200)
@given(st.lists(st.integers(min_value=2, max_value=100 * GIB), min_size=1, max_size=12), st.integers(min_value=16, max_value=160))
def test_every_part_has_a_cell_and_they_fill_the_bar(sizes: list[int], width: int) -> None:
    kinds = list(card.SIGNS)
    shown = card.Card("", tuple(card.Part(kinds[at], size) for at, size in enumerate(sizes)), sum(sizes) // 2)
    given_ = [count for _, count in shown.cells(width)]
    assert sum(given_) == width and min(given_) >= 1
    edge = shown.edge_cell(width)
    assert edge is not None and 0 <= edge <= width
    assert cells(PAINTED.sub("", bar.line(shown, width + 2, colour=True))) == width + 2


def test_the_larger_part_never_has_the_smaller_share_of_the_bar() -> None:
    shown = card.Card("", (card.Part("weights", 50 * GIB), card.Part("logits", 20 * GIB), card.Part("free", GIB)), 71 * GIB)
    counts = [count for _, count in shown.cells(60)]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("hostile", ["\x1b]0;x\x07\x1b[2J", "\u202etxet\u2066", "\x9b31m", "a\rb", "\x08\x08"])
def test_nothing_in_a_file_steers_the_terminal(hostile: str) -> None:
    """Names, lines and values come from strangers; also where a faulty line is shown with its caret."""
    sample = SAMPLES["dpo_logits"]()
    notice = Notice("error", "config.not_yaml", same(f"bad {hostile}"), Witness(f"x{hostile}.yaml", 3, 4, f"ab{hostile}cd: [1, 2"))
    text = RENDERERS["text"](replace(sample, notices=(notice,)), "en", View(verbose=True))
    assert not HARMFUL.search(text)


def test_a_fault_is_shown_with_its_line_and_a_caret() -> None:
    sample = SAMPLES["before_a_run"]()
    notice = Notice("error", "config.not_yaml", same("train.yaml: not valid YAML"), Witness("train.yaml", 12, 9, "显存: [1, 2"))
    text = RENDERERS["text"](replace(sample, notices=(notice,)), "en", View())
    assert "error: train.yaml:12:9: not valid YAML\n   12 | 显存: [1, 2\n      |           ^\n" in text


def test_a_caret_follows_a_long_line() -> None:
    """Of a line that is wider than the terminal the place of the fault is shown."""
    from diagnose.render.pointer import lines

    notice = Notice("error", "config.not_json", same("x"), Witness("a.json", 1, 900, "x" * 899 + "!" + "y" * 900))
    shown, caret = lines(notice, SAMPLES["before_a_run"](), 60)
    assert cells(shown) <= 60 and shown[caret.index("^")] == "!"
