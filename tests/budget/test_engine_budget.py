"""What an engine holds before it runs: figures of published start logs, and what must not be answered."""

from __future__ import annotations

from typing import Any

import pytest
from collected import for_each
from memory.engines import book_of

from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.budget.terms.engine_budget import holding

GIB = 2**30
LLAMA: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B-Instruct", "engine": "vllm", "tp": 1, "gpu": "H100-80GB", "max_len": 8192}


def held(row: dict[str, Any]) -> float:
    book = book_of(row)
    holds = holding(book, ledgers(book)[0].moment("generate"))
    assert holds is not None
    return holds.likely


@for_each(
    "row, printed",
    [
        ({"model": "openai/gpt-oss-120b", "version": "0.10.1"}, 65.97),  # experts in 4 bits, padded
        ({"model": "Qwen/Qwen3-30B-A3B", "tp": 4}, 14.25),
        ({"model": "meta-llama/Llama-3.1-70B-Instruct", "quant": "compressed-w8a8"}, 67.72),
    ],
)
def test_weights_are_those_that_engines_print(row: dict[str, Any], printed: float) -> None:
    loaded = ledgers(book_of(LLAMA | row))[0].moment("load")
    assert loaded is not None
    assert loaded.total.bytes / GIB == pytest.approx(printed, rel=0.005)


def test_the_cache_is_what_weights_and_the_profiled_pass_leave() -> None:
    """Half the bits hold twice as much; two cards hold more than twice; a longer context fewer."""
    one = held(LLAMA)
    assert held(LLAMA | {"cache": "q8"}) == pytest.approx(2 * one)
    assert held(LLAMA | {"tp": 2}) > 2 * one
    assert held(LLAMA | {"max_len": 16384}) == pytest.approx(one / 2)


def test_latent_attention_is_on_every_card() -> None:
    row = LLAMA | {"model": "deepseek-ai/DeepSeek-V3", "gpu": "H200", "tp": 8}
    request = ledgers(book_of(row))[0].moment("generate")
    assert request is not None
    assert request.only("engine_request").bytes == 2 * (512 + 64) * 61 * 8192


def weighed(row: dict[str, Any]) -> float:
    loaded = ledgers(book_of(LLAMA | row))[0].moment("load")
    assert loaded is not None
    return loaded.total.bytes


def test_stages_of_a_pipeline_divide_weights_and_cache() -> None:
    large = {"model": "meta-llama/Llama-3.1-70B-Instruct", "tp": 4}
    assert weighed(large | {"pp": 2}) == pytest.approx(weighed(large) / 2, rel=0.001)
    assert held(LLAMA | large | {"pp": 2}) > 2 * held(LLAMA | large)


def test_what_guesses_ahead_has_weights_and_a_cache() -> None:
    """A model of its own: all of it. MTP: one layer of the model's, here with 256 experts in 8 bits; n-grams: nothing."""
    small = {"draft": "model", "draft_model": "meta-llama/Llama-3.2-1B-Instruct"}
    assert weighed(small) - weighed({}) == 2 * 1235814400
    assert held(LLAMA | small) < held(LLAMA)
    assert weighed({"draft": "ngram"}) == weighed({}) and held(LLAMA | {"draft": "ngram"}) == held(LLAMA)
    deep = {"model": "deepseek-ai/DeepSeek-V3", "quant": "fp8", "tp": 8, "gpu": "H200"}
    assert 8 * (weighed(deep | {"draft": "mtp"}) - weighed(deep)) == pytest.approx(11.6e9, rel=0.02)


@for_each(
    "row",
    [
        {"draft": "model", "draft_model": "unheard-of/1B"},
        {"quant": "some-new-scheme"},
        {"model": "Qwen/Qwen2.5-VL-7B-Instruct"},
        {"model": "unheard-of/model"},
    ],
)
def test_no_verdict_where_storage_tower_or_model_are_unknown(row: dict[str, Any]) -> None:
    assert not ledgers(book_of(LLAMA | row))[0].complete
