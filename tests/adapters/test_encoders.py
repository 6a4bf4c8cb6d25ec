"""Encoders, and encoders with a decoder: their parameters from config.json, the tokens that each stack sees, what a classifier spares."""

from __future__ import annotations

from typing import Any

import pytest
from books import book
from collected import for_each

from diagnose import catalogue
from diagnose.budget.model.job_roles import roles
from diagnose.budget.model.ledger import Ledger
from diagnose.budget.model.role_setup import Setup, setup
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.budget.terms import encoder_decoder
from diagnose.catalogue import model_of_config
from diagnose.facts import FactBook

JOB: dict[str, Any] = {
    "train.framework": "transformers",
    "version.transformers": "4.57.1",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "fp32",
    "train.load_dtype": "fp32",
    "train.micro_batch_size": 4,
    "train.max_seq_len": 512,
    "train.gradient_checkpointing": "disabled",
    "model.attention": "sdpa",
    "parallel.world": 1,
}
BERT: dict[str, Any] = {**JOB, "model": "google-bert/bert-large-uncased"}
FLAN: dict[str, Any] = {**JOB, "model": "google/flan-t5-xl", "train.max_target_len": 64, "model.attention": "eager"}
WHISPER: dict[str, Any] = {**JOB, "model": "openai/whisper-large-v3"}
DEBERTA: dict[str, Any] = {**JOB, "model": "microsoft/deberta-v3-large", "model.attention": "eager"}


def trained(facts: FactBook) -> Setup:
    return setup(facts, roles(facts)[0])


def ledger(facts: FactBook) -> Ledger:
    return ledgers(facts)[0]


def of(facts: FactBook, moment: str, *keys: str) -> int:
    """Bytes of some terms of a moment."""
    found = ledger(facts).moment(moment)
    assert found is not None
    return found.only(*keys).bytes


#: config.json -> parameters, as published or as transformers counts them.
CONFIGS: tuple[tuple[dict[str, Any], int], ...] = (
    (
        {
            "model_type": "bert",
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "vocab_size": 30522,
            "max_position_embeddings": 512,
            "type_vocab_size": 2,
        },
        109514298,
    ),
    (
        {
            "model_type": "deberta-v2",
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "vocab_size": 128100,
            "max_position_embeddings": 512,
            "relative_attention": True,
            "position_buckets": 256,
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
        435191908,
    ),
    (
        {
            "model_type": "t5",
            "d_model": 2048,
            "d_ff": 5120,
            "d_kv": 64,
            "num_layers": 24,
            "num_decoder_layers": 24,
            "num_heads": 32,
            "vocab_size": 32128,
            "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": False,
        },
        2849757184,
    ),
    (
        {
            "model_type": "bart",
            "d_model": 1024,
            "encoder_layers": 12,
            "decoder_layers": 12,
            "encoder_ffn_dim": 4096,
            "decoder_ffn_dim": 4096,
            "encoder_attention_heads": 16,
            "decoder_attention_heads": 16,
            "vocab_size": 50265,
            "max_position_embeddings": 1024,
        },
        406291456,
    ),
    (
        {
            "model_type": "whisper",
            "d_model": 1280,
            "encoder_layers": 32,
            "decoder_layers": 4,
            "encoder_ffn_dim": 5120,
            "decoder_ffn_dim": 5120,
            "encoder_attention_heads": 20,
            "decoder_attention_heads": 20,
            "vocab_size": 51866,
            "num_mel_bins": 128,
            "max_source_positions": 1500,
            "max_target_positions": 448,
        },
        808878080,
    ),
    (
        {
            "model_type": "vit",
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "image_size": 224,
            "patch_size": 16,
        },
        85798656,
    ),
)


@for_each("config, params", [pytest.param(*pair, id=pair[0]["model_type"]) for pair in CONFIGS])
def test_a_config_adds_up_to_the_published_count(config: dict[str, Any], params: int) -> None:
    """A family whose table of positions, head or second stack is left out would have every state wrong."""
    assert model_of_config(config).params == params


def test_a_classifier_stands_in_place_of_the_head() -> None:
    """BertForSequenceClassification with a label or two: the pooler instead of the head over the vocabulary, and no logits."""
    base = catalogue.model("bert-base-uncased")
    assert base is not None and base.headless_params == 109482240  # the library's own count of BertModel
    assert of(book(BERT), "loss_call", "logits_fp32") == 4 * 4 * 512 * 30522
    assert of(book(BERT, **{"model.head": "classes"}), "loss_call", "logits_fp32") == 0


def test_each_stack_counts_its_own_tokens() -> None:
    """The encoder of a summariser reads 512 tokens, its decoder writes 64: logits are those of what is written."""
    facts = book(FLAN)
    job, other = trained(facts), encoder_decoder.encoder_job(trained(facts))
    assert other is not None and (job.values["T"], other.values["T"]) == (4 * 64, 4 * 512)
    assert of(facts, "loss_call", "logits_fp32") == 4 * 4 * 64 * 32128
    assert of(facts, "layer_backward", "cross_scores") == 24 * 9 * 4 * 32 * 64 * 512
    assert of(facts, "layer_backward", "source_scores") == 24 * 9 * 4 * 32 * 512 * 512


def test_without_the_length_of_targets_nothing_is_said_of_the_sum() -> None:
    facts = book(FLAN, **{"train.max_target_len": None})
    assert "train.max_target_len" in trained(facts).unknown
    assert not ledger(facts).complete


def test_frames_are_as_many_as_the_encoder_has_positions() -> None:
    """Whisper's encoder sees 1500 frames whatever the settings say, and its decoder writes 448 tokens at most."""
    facts = book(WHISPER)
    job, other = trained(facts), encoder_decoder.encoder_job(trained(facts))
    assert other is not None and (job.values["s"], other.values["s"]) == (448, 1500)
    assert ledger(facts).complete


def test_disentangled_attention_keeps_more_than_its_scores() -> None:
    """What queries and keys gave for every distance, and the places where they looked it up, as DeBERTa's layers saved them."""
    assert of(book(DEBERTA), "layer_backward", "scores") == 24 * ((9 * 16 + 1) * 4 * 512**2 + 16 * 512**2 + 8 * 16 * 512 * 4 * 512)


def test_only_the_larger_stack_is_computed_again() -> None:
    """With checkpointing one layer exists at a time: the encoder's, whose rows are longer."""
    found = ledger(book(FLAN, **{"train.gradient_checkpointing": "enabled"})).moment("layer_backward")
    assert found is not None
    keys = {term.key for term in found.terms}
    assert "source_layer_recomputed" in keys and "layer_recomputed" not in keys


def test_adapters_lie_on_both_stacks() -> None:
    """Rank 8 on queries and values: of 24 encoder layers, and twice of 24 decoder layers."""
    job = trained(book(FLAN, **{"train.finetuning": "lora", "lora.rank": 8, "lora.targets": "q,v"}))
    assert job.trainable.count == 8 * 2 * (2048 + 2048) * (24 + 2 * 24)


def test_the_names_of_berts_linears_are_known() -> None:
    job = trained(book(BERT, **{"train.finetuning": "lora", "lora.rank": 8, "lora.targets": "query,value"}))
    assert job.trainable.count == 8 * 2 * (1024 + 1024) * 24
