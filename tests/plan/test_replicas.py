"""Ranks that share a replica are fewer replicas: the rows of an optimizer step stay what they were."""

from __future__ import annotations

import re

import pytest
from workshop import book, edit, judged, reprice

from diagnose import check
from diagnose.plan.pricing.candidate_values import beyond_cards, candidates, is_legal
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.pricer import Bench
from diagnose.plan.remedies.remedy_rules import Choice

AXOLOTL = """\
base_model: Qwen/Qwen2.5-7B
sequence_len: 131072
micro_batch_size: 1
gradient_accumulation_steps: 4
adapter: lora
lora_r: 16
datasets: [{path: x, type: alpaca}]
gradient_checkpointing: true
flash_attention: true
bf16: true
optimizer: adamw_torch
output_dir: out
"""


@pytest.mark.parametrize("held", [4, 6])
def test_context_parallelism_raises_accumulation(held: int) -> None:
    """Eight ranks that see four times fewer rows at a step would train another model than the one that was asked for."""
    text = AXOLOTL.replace("accumulation_steps: 4", f"accumulation_steps: {held}")
    report = check([text], gpu="A100-80GB", gpus=8).to_dict("en")
    remedies: list[dict[str, object]] = report["remedies"]  # type: ignore[assignment]
    edits: list[dict[str, str]] = next(one["edits"] for one in remedies if one["id"] == "sequence_parallel")  # type: ignore[misc]
    to = {edit["key"]: int(edit["to"]) for edit in edits if re.fullmatch(r"\d+", edit["to"])}
    assert to["gradient_accumulation_steps"] == held * to["context_parallel_size"] > held


def test_cards_are_shared_evenly() -> None:
    """Three cards cannot hold rows in two parts each: such a run stops at its start."""
    assert not beyond_cards("parallel.context", 2, bench_of(4))
    assert beyond_cards("parallel.context", 2, bench_of(3))
    assert beyond_cards("parallel.context", 8, bench_of(4))


def test_experts_are_divided_among_what_their_tensor_degree_and_the_pipeline_leave() -> None:
    """Megatron-LM core/parallel_state.py: the ranks are a multiple of expert tensor, expert and pipeline degree."""
    facts = {"parallel__world": "8", "parallel__tensor": "4", "parallel__pipeline": "2", "model__experts": "128"}
    assert not beyond_cards("parallel.expert", 4, bench_with(parallel__expert_tensor="1", **facts))
    assert beyond_cards("parallel.expert", 8, bench_with(parallel__expert_tensor="1", **facts))
    assert beyond_cards("parallel.expert", 2, bench_with(**facts))  # experts are divided like the rest
    assert beyond_cards("parallel.expert", 8, bench_with(parallel__world="8", model__experts="60"))


def test_wider_expert_parallelism_is_what_a_mixture_of_experts_is_told() -> None:
    command = "megatron sft --model Qwen/Qwen3-30B-A3B --tensor_model_parallel_size 4 --packing true --max_length 4096 --tuner_type full"
    report = check([f"NPROC_PER_NODE=8 {command} --recompute_granularity full\n"], gpu="A100-80GB", gpus=8).to_dict("en")
    remedies: list[dict[str, object]] = report["remedies"]  # type: ignore[assignment]
    edits: list[dict[str, str]] = next(one["edits"] for one in remedies if one["id"] == "expert_parallel")  # type: ignore[misc]
    assert {edit["key"]: edit["to"] for edit in edits} == {"--expert_model_parallel_size": "8"}


def bench_of(cards: int) -> Bench:
    """A job on so many cards, of which nothing else is known."""
    return bench_with(parallel__world=str(cards))


def bench_with(**facts: str) -> Bench:
    """A job of which this alone is known."""
    return Job(book(**facts), (), judged(), (), reprice, edit, ()).bench


def test_a_budget_of_tokens_holds_the_longest_row() -> None:
    """verl refuses to start where the cards that share a row cannot hold it."""
    bench = bench_with(rollout__prompt_len="768", rollout__completion_len="16384", parallel__context="2")
    assert (is_legal("train.token_budget", 8576, bench), is_legal("train.token_budget", 8575, bench)) == (True, False)


def test_an_engine_keeps_a_share_that_holds_its_weights() -> None:
    """With less it does not start: 15.2 GB on a card of 24 GiB take six tenths of it."""
    bench = bench_with(model__total_params="7615616512", log__capacity="23.68 GiB", rollout__gpu_memory_utilization="0.9")
    share = candidates("rollout.gpu_memory_utilization", Choice("largest", (), 0.05, 0.2), bench)
    assert (share[0], share[-1]) == (0.85, 0.65)
