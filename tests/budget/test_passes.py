"""What happens beside training steps: evaluation that generates, and adapters that are merged when they are saved."""

from __future__ import annotations

from typing import Any

import pytest
from books import book

from diagnose.budget.model.ledger import Moment
from diagnose.budget.moments.role_ledgers import ledgers

#: 28 layers, keys 512 wide, 152064 logits.
JOB: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B",
    "train.framework": "llamafactory",
    "train.stage": "sft",
    "train.finetuning": "lora",
    "lora.rank": 16,
    "train.precision": "bf16",
    "train.load_dtype": "bf16",
    "train.micro_batch_size": 1,
    "train.max_seq_len": 1024,
    "train.gradient_checkpointing": "enabled",
    "model.attention": "flash_attention_2",
    "version.transformers": "4.57.1",
    "version.peft": "0.17.0",
    "eval.enabled": True,
    "eval.batch_size": 64,
    "eval.loss_only": True,
    "parallel.world": 1,
}


def moment(name: str, **changes: Any) -> Moment:
    found = ledgers(book(JOB, **changes))[0].moment(name)
    assert found is not None, name
    return found


def test_evaluation_that_generates_has_a_cache_on_top_of_training() -> None:
    """2 bytes for keys and 2 for values, 28 layers of width 512, 64 rows of 4096 tokens; the states of training stay."""
    made = moment("eval", eval__generates=True, eval__generation_len=4096)
    assert made.only("kv_cache").bytes == 2 * 2 * 28 * 512 * 64 * 4096
    assert made.only("prefill_logits").bytes == 4 * 64 * 152064
    assert made.of("weights", "optimizer_states") == moment("eval").of("weights", "optimizer_states")


def test_a_forward_may_need_more_than_the_cache() -> None:
    """LLaMA-Factory computes no loss where it generates; transformers does, and the larger of the two is told: the logits of 64 rows."""
    changes = {"train__framework": "transformers", "eval__generates": True}
    assert moment("eval", **changes).only("logits_fp32").bytes == 4 * 64 * 1024 * 152064
    assert moment("eval", **changes, eval__generation_len=131072).only("logits_fp32").bytes == 0


@pytest.mark.parametrize(("quantization", "expected"), [("none", {"merge_delta": 4}), ("nf4", {"merge_delta": 4, "merge_base": 2})])
def test_an_adapter_is_merged_one_matrix_at_a_time(quantization: str, expected: dict[str, int]) -> None:
    """fp32 factors make an fp32 product as large as the largest linear; of a quantised base that matrix exists in 16 bits beside it."""
    made = moment("save", log__doing="merge_adapter", model__quantization=quantization)
    for key, width in expected.items():
        assert made.only(key).bytes == width * 3584 * 18944
    assert made.only("weights_whole", "weights_quantized").bytes > 0


def test_nothing_is_merged_otherwise() -> None:
    assert ledgers(book(JOB))[0].moment("save") is None
