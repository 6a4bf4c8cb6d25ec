"""What lies on a card depends on what is trained and how the framework holds it: adapters, quantised bases, frozen layers, fused losses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from books import GIB, book, event

from diagnose.budget import attribute, facts, ledgers
from diagnose.facts import Fact, FactBook, Witness

LLAMA_8B: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "train.framework": "llamafactory",
    "train.stage": "sft",
    "train.precision": "bf16",
    "train.micro_batch_size": 2,
    "train.max_seq_len": 2048,
    "train.gradient_checkpointing": "enabled",
    "parallel.world": 1,
}


def gib(known: FactBook, moment: str, *groups: str) -> float:
    found = ledgers(known)[0].moment(moment)
    assert found is not None, moment
    return (found.of(*groups) if groups else found.total).bytes / GIB


def test_what_a_framework_makes_of_weights_outranks_its_default_load() -> None:
    """LLaMA-Factory loads bf16 and casts what is trained to fp32; a load that somebody asked for is believed."""
    known = book(LLAMA_8B, train__finetuning="full")
    known.learn([Fact("train.load_dtype", "bf16", "default", Witness("default"))])
    assert gib(known, "init", "weights") == pytest.approx(29.92, abs=0.01)
    assert gib(book(LLAMA_8B, train__finetuning="full", train__load_dtype="bf16"), "init", "weights") == pytest.approx(14.96, abs=0.01)


def test_frozen_layers_stay_as_loaded() -> None:
    """2P for all, 2 more for each of the 872 million trained, whose gradients are fp32."""
    known = book(LLAMA_8B, train__finetuning="freeze", model__trainable_params=872448000)
    assert gib(known, "init", "weights") == pytest.approx(14.96 + 1.63, abs=0.01)
    assert gib(known, "optimizer_step", "gradients") == pytest.approx(3.25, abs=0.01)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"model__trainable_params": 20971520}, "lora"),
        ({"model__quantization": "nf4"}, "lora"),
        ({"model__trainable_params": 8030261248}, None),
        ({"model__trainable_params": 1003782656, "fsdp__sharding": "full_shard"}, None),
        ({}, None),
    ],
)
def test_adapters_are_told_by_figures_where_nobody_names_them(said: dict[str, Any], word: str | None) -> None:
    """A few trained parameters, or a quantised base; under FSDP the count may be one rank's shard."""
    known = book(LLAMA_8B, **said)
    assert {made.name: made.value for made in facts(known, ledgers(known), ())}.get("train.finetuning") == word


def test_a_quantised_base_is_whole_on_every_card_unless_its_storage_can_be_flattened() -> None:
    said = {"model__quantization": "nf4", "train__finetuning": "lora", "zero__stage": 3, "parallel__world": 4}
    alone = gib(book(LLAMA_8B, train__framework="trl", **said), "load", "weights")
    assert alone > 3 * gib(book(LLAMA_8B, **said), "load", "weights")
    assert gib(book(LLAMA_8B, version__bitsandbytes="0.42.0", **said), "load", "weights") > 4


def test_a_fused_loss_that_is_asked_for_takes_the_logits_out_of_the_failing_moment() -> None:
    """The loss failed with 16-bit and fp32 logits there; what if it were fused, none are."""
    known = book(LLAMA_8B, train__finetuning="lora", log__phase="loss", log__family="torch_cuda", log__requested="1.96 GiB")
    known.learn([Fact("train.loss_kernel", "none", "default", Witness("default"))])
    assert gib(known, "loss_call", "logits") == pytest.approx(2.94, abs=0.01)
    assert gib(known.changed({"train.loss_kernel": "liger"}), "loss_call", "logits") < 0.3


def test_scores_of_the_layer_in_hand_are_there_under_checkpointing() -> None:
    """Eager attention fails in its softmax: the scores before it are on the card though no layer keeps them."""
    said = {"model__attention": "eager", "train__finetuning": "lora", "log__family": "torch_cuda", "log__allocated": "20.00 GiB"}
    there = gib(book(LLAMA_8B, log__phase="attention", **said), "forward_end", "attention_scores")
    assert there == pytest.approx(2 * 2 * 2 * 32 * 2048 * 2048 / GIB, abs=0.001)


@pytest.mark.parametrize(
    ("requested", "phase", "frame", "more", "key"),
    [
        ("106.00 MiB", "optimizer_step", "torch/optim/adamw.py:_init_group|torch.zeros_like(", {"fsdp__sharding": "full_shard"}, "unit"),
        ("512.00 MiB", "attention", "m.py:forward|torch.nn.functional.scaled_dot_product_attention(", {"model__attention": "sdpa"}, "math"),
    ],
)
def test_tensors_of_sharded_optimizers_and_unfused_attention(
    requested: str, phase: str, frame: str, more: dict[str, Any], key: str
) -> None:
    """One FSDP unit of 218,112,000 parameters over 8 cards in fp32; 2 x 32 x 2048 x 2048 scores in 16 bits."""
    known = book(LLAMA_8B, train__finetuning="full", parallel__world=8, **more)
    best = attribute(known, ledgers(known), event(requested, phase, frame), 0)[0]
    assert (best.key.rpartition("_")[2], best.exact, best.agrees) == (key, True, True)


@pytest.mark.parametrize(
    ("framework", "targets", "padded"),
    [
        ("litgpt", "q_proj,v_proj", ["2*(q + k)"]),
        ("litgpt", "q_proj", ["2*(q)"]),
        ("litgpt", "q_proj,k_proj,v_proj", []),
        ("transformers", "q_proj,v_proj", []),
    ],
)
def test_litgpt_keeps_what_it_pads_adapters_with(framework: str, targets: str, padded: list[str]) -> None:
    """Adapters on some of queries, keys and values: 2 bytes per output of those, in every layer; on all three nothing is padded."""
    adapters = {"train__finetuning": "lora", "lora__rank": 8, "lora__targets": targets, "train__gradient_checkpointing": "disabled"}
    found = ledgers(book(LLAMA_8B, train__framework=framework, **adapters))[0].moment("forward_end")
    assert found is not None
    layers = next(term for term in found.terms if term.key == "layers")
    assert re.findall(r"2\*\(q(?: \+ k)*\)", layers.symbols) == padded


@pytest.mark.parametrize(
    ("framework", "finetuning", "each"), [("torchtune", "full", 2), ("torchtune", "lora", 0), ("transformers", "full", 8)]
)
def test_torchtune_offloads_the_final_norm_as_well(framework: str, finetuning: str, each: int) -> None:
    """Its offload takes all that the forward saves but the input of a head that learns."""
    known = book(
        LLAMA_8B,
        train__framework=framework,
        train__precision="pure_bf16",
        train__finetuning=finetuning,
        lora__rank=8,
        lora__targets="q_proj",
        train__activation_offload=True,
    )
    found = ledgers(known)[0].moment("loss_call")
    assert found is not None and found.only("stem").bytes == each * 4096 * 2 * 2048
