"""Settings in pasted blocks that no reader of configs takes are guesses by their names."""

from __future__ import annotations

from typing import Any

import pytest

import diagnose
from diagnose.inputs import pasted_settings
from diagnose.inputs.pasted_page import Block

_READ: dict[str, tuple[str, dict[str, Any]]] = {
    "an element of a list of calls": (
        "TrainConfig(\n    name='a',\n    num_workers=1, batch_size=1, fsdp_devices=1,  # one card\n    steps=20_000,\n),",
        {"data.workers": 1, "train.micro_batch_size": 1},
    ),
    "a file about data": (
        '[general]\nresolution = [1024, 1024]\nbatch_size = 2\ncaption_extension = ".txt"\n',
        {"train.micro_batch_size": 2},
    ),
    "JSON that ends in dots": ('{\n  "micro_batch_size": 4,\n  "gradient_checkpointing": true,\n  ...\n', {"train.micro_batch_size": 4}),
    "only the batch of the evaluation": ("val_dataloader = dict(\n    batch_size=1,\n", {"eval.batch_size": 1}),
    "a traceback": ("Traceback (most recent call last):\n    batch_size=1,\n", {}),
    "the code of a library": ("def pipeline(\n    batch_size=1,\n", {}),
    "a sentence": ("set batch_size=1, then it fails", {}),
}


@pytest.mark.parametrize("kind", _READ)
def test_lines_of_nothing_but_settings_are_read_by_their_names(kind: str) -> None:
    text, expected = _READ[kind]
    found = {fact.name: fact.value for fact in pasted_settings.facts([Block(1, text)], "page.md") if fact.name in expected or not expected}
    assert found == expected


def test_a_batch_of_one_in_a_fragment_is_not_made_smaller() -> None:
    fragment = "    Config(\n        num_workers=1, batch_size=1, devices=1, # one card\n    ),\n"
    diagnosis = diagnose.explain(f"# Training goes CUDA out of memory on a 4090\n\nMy config:\n\n{fragment}\nAny idea?\n")
    batch = [fact for fact in diagnosis.facts if fact.name == "train.micro_batch_size"]
    assert [(fact.value, fact.origin, fact.witness.line) for fact in batch] == [(1, "guessed", 6)]
    assert "Already 1, the lowest" in diagnosis.to_markdown()
