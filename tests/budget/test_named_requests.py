"""Requests of which only a text or the figures of a script tell what they were for, computed before they were read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from collected import for_each

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.budget.model.ledger import Attribution
from diagnose.diagnosis import Diagnosis
from diagnose.pipeline import explain

REQUESTS = yaml.load((Path(__file__).parent / "named_requests.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
MESSAGE = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {} (GPU 0; 23.69 GiB total capacity; 22.10 GiB already allocated; "
    "60.00 MiB free; 22.40 GiB reserved in total by PyTorch)\n"
)


def diagnosed(text: str, files: dict[str, str] | None = None) -> Diagnosis:
    """`<448.00 MiB>` stands for a message that asks for so much; a statement behind `>> FILE:FUNCTION ` for a traceback that ends there."""
    log = re.sub(r"<([\d.]+ [MG]iB)>", lambda asked: MESSAGE.format(asked[1]), text)
    frame = 'Traceback (most recent call last):\n  File "\\1", line 10, in \\2\n    \\3\n'
    log = re.sub(r">> ([^:\n]+):(\w+) ([^\n]+)\n", frame, log)
    return explain(log, configs=[ConfigSource(name, content.encode()) for name, content in (files or {}).items()])


def first(text: str, files: dict[str, str] | None = None) -> Attribution | None:
    return next(iter(diagnosed(text, files).attributions), None)


@for_each("case", REQUESTS)
def test_a_request_is_held_against_what_the_text_speaks_of(case: dict[str, Any]) -> None:
    made = first(case["text"], case.get("files"))
    assert made is not None and made.bytes == case["bytes"]


@for_each(
    "text",
    [
        "# I have 70B reasons\n<448.00 MiB>",
        "# tried guanaco-7B, guanaco-13B, guanaco-33B and guanaco-65B\n<228.00 MiB>",
        "# cora and reddit, both\n<27.33 GiB>",
        "# 3 x 4 matrices of 512\n<8.00 GiB>",
        "# about 32 tokens\n<47.98 GiB>",
    ],
)
def test_what_only_looks_like_a_name_is_none(text: str) -> None:
    assert first(text) is None


def test_the_words_of_a_variant_are_not_claimed() -> None:
    """WizardLM has 32,001 words and Llama 32,000: 625.02 and 625.00 MiB print alike."""
    made = first("# wizardLM-13B inference, RTX 3060\n<626.00 MiB>")
    assert made is not None and made.group == "weights" and not made.exact


def test_a_weight_by_its_size_tells_that_it_fails_while_weights_are_made() -> None:
    """Where nothing learns there is no gradient and no state of the same size: 22016 x 8192 x 2 bytes of a Llama of 65B."""
    told = diagnosed("$ torchrun --nproc_per_node 8 example.py --ckpt_dir models/65B --tokenizer_path t\n<344.00 MiB>")
    assert told.attributions[0].exact and told.verdict.phase == "model_load"
    assert [cause.cause for cause in told.judgement.causes][:1] == ["weights"]


@for_each("above", ["# after model.to(cpu), in the test function", "$ python main.py --dim=128 --cpu"])
def test_a_note_or_a_command_above_a_message_is_no_statement(above: str) -> None:
    failed = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 64597662208 bytes"
    assert first(f"{above}\n{failed}\n") is None
