"""What people see, as files: six diagnoses, as text and as Markdown, in both languages. `make accept` rewrites them."""

from __future__ import annotations

import pytest
from samples import SAMPLES
from syrupy.assertion import SnapshotAssertion

from diagnose.phrases import Lang
from diagnose.render.formats import RENDERERS
from diagnose.render.markup import facts_view
from diagnose.render.parts.view import View

EVERYTHING = View(verbose=True, budget=True, rules=True)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("form", ["text", "markdown"])
@pytest.mark.parametrize("name", SAMPLES)
def test_answer(name: str, form: str, lang: Lang, snapshot: SnapshotAssertion) -> None:
    assert RENDERERS[form](SAMPLES[name](), lang, View()) == snapshot


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["dpo_logits", "ppo_states"])
def test_everything(name: str, lang: Lang, snapshot: SnapshotAssertion) -> None:
    """--verbose --explain-budget --explain-all."""
    assert RENDERERS["text"](SAMPLES[name](), lang, EVERYTHING) == snapshot


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_facts(lang: Lang, snapshot: SnapshotAssertion) -> None:
    assert facts_view.as_text(SAMPLES["dpo_logits"](), lang) == snapshot
