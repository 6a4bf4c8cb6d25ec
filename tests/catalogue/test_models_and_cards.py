"""Models and cards: every count adds up, every name finds its entry, no name is guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from checkout import ROOT
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose import catalogue, rule_files
from diagnose.catalogue.entries import shape_of
from diagnose.errors import UserError
from diagnose.units import Size

FAMILIES: dict[str, dict[str, Any]] = rule_files.table("models")
ENTRIES = [(family, entry) for family in FAMILIES.values() for entry in family["models"]]
CARDS = [entry for file in rule_files.table("hardware").values() for entry in file.get("cards", ())]


@for_each("family, entry", [pytest.param(*pair, id=pair[1]["id"]) for pair in ENTRIES])
def test_the_dimensions_add_up_to_the_recorded_total(family: dict[str, Any], entry: dict[str, Any]) -> None:
    """A wrong dimension would put every byte of that model's ledger wrong."""
    shape = shape_of(entry, family)
    assert shape.counted == shape.params == entry["total_params"]


def test_the_readme_counts_what_is_there() -> None:
    assert f"{len(ENTRIES)} models and {len(CARDS)} cards" in (ROOT / "README.md").read_text(encoding="utf-8")


@for_each("family, entry", [pytest.param(*pair, id=pair[1]["id"]) for pair in ENTRIES])
def test_every_alias_finds_its_entry(family: dict[str, Any], entry: dict[str, Any]) -> None:
    for name in (entry["id"], *entry["aliases"]):
        found = catalogue.model(name)
        assert found is not None and found.id == entry["id"], name


def test_a_file_is_named_after_its_family() -> None:
    """The reader of a config.json looks families up by model_type, which is the file's name."""
    assert all(stem == family["family"] for stem, family in FAMILIES.items())


@for_each(
    "path, entry",
    [
        ("Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B"),
        ("QWEN/qwen2.5-7b-INSTRUCT", "Qwen/Qwen2.5-7B"),
        ("/data/models/Qwen2.5-7B-Instruct/", "Qwen/Qwen2.5-7B"),
        ("'D:\\models\\Qwen2.5-7B'", "Qwen/Qwen2.5-7B"),
        ("unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit", "Qwen/Qwen2.5-7B"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B"),
        ("someone/Qwen2.5-7B-Instruct-GGUF", "Qwen/Qwen2.5-7B"),
        ("/root/.cache/modelscope/hub/Qwen/Qwen2___5-7B-Instruct", "Qwen/Qwen2.5-7B"),
        ("/c/hub/models--Qwen--Qwen2-VL-7B-Instruct/snapshots/51c47430f97dd7c74aa1fa6825e68a813478097f", "Qwen/Qwen2-VL-7B-Instruct"),
        ("/x/meta-llama/Llama-2-7b-hf/checkpoint-500", "meta-llama/Llama-2-7b-hf"),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-ai/DeepSeek-V2-Lite"),
        ("/models/codellama_13b_sft_v3", "codellama/CodeLlama-13b-hf"),
        ("llama3_70b", "meta-llama/Meta-Llama-3-70B"),
        ("qwen-2.5-7b-instruct", "Qwen/Qwen2.5-7B"),
        ("Mixtral-8x7B", "mistralai/Mixtral-8x7B-v0.1"),
        ("mixtral 8x22b", "mistralai/Mixtral-8x22B-v0.1"),
        ("qwen3-235b", "Qwen/Qwen3-235B-A22B"),
        ("Llama-4-Scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
        ("x/Qwen2.5-7B-Instruct-FP8-dynamic", "Qwen/Qwen2.5-7B"),
        ("x/Qwen2.5-7B-Instruct-quantized.w4a16", "Qwen/Qwen2.5-7B"),
        ("Qwen2-7B-Instruct-dpo-lora-merged", "Qwen/Qwen2.5-7B"),
        ("/out/Qwen2-VL-7B-Instruct/v1-20250102-180445/checkpoint-3000-merged", "Qwen/Qwen2-VL-7B-Instruct"),
    ],
)
def test_a_path_or_a_copy_of_a_model_finds_it(path: str, entry: str) -> None:
    found = catalogue.model(path)
    assert found is not None and found.id == entry


@for_each(
    "path",
    [
        "",
        "/",
        "Qwen",
        "Qwen2.5",
        "qwen2.5-instruct",
        "llama-7b-and-more",
        "saves/our-sft",
        "Llama-2",
        "7B",
        "checkpoint-500",
        "llama_70",
        "qwen-7b-and-sft",
        "mixtral",
        "mistral-small",
        "Mistral-7B-v0.9",
    ],
)
def test_no_model_is_guessed(path: str) -> None:
    """A family without its size, or a name that only begins like one of ours, is unknown."""
    assert catalogue.model(path) is None


def test_no_loose_spelling_names_two_models() -> None:
    """Where two entries could be meant by a short name, it must mean neither."""
    from diagnose.catalogue.models import _without_endings, build_index

    where: dict[str, set[str]] = {}
    for _, entry in ENTRIES:
        for alias in (entry["id"], *entry["aliases"]):
            for name in _without_endings(alias.lower().rpartition("/")[2]):
                where.setdefault(name, set()).add(entry["id"])
    exact = {name.lower() for _, entry in ENTRIES for name in (entry["id"], *entry["aliases"])}
    torn = {name for name, ids in where.items() if len(ids) > 1} - exact
    assert not torn & set(build_index()["names"])


def test_parts_of_a_mixture() -> None:
    """DeepSeek-V2-Lite: 15.7 billion in all; its first layer is dense."""
    lite = catalogue.model("deepseek-ai/DeepSeek-V2-Lite")
    assert lite is not None and lite.experts is not None and lite.latent is not None
    assert lite.layer_params(0) < lite.layer_params(1) == lite.layer_params()
    assert lite.layer_params(0) + 26 * lite.layer_params() + lite.embedding_params + lite.head_params + lite.norm_params == lite.params


def test_a_dense_model_is_its_layers_and_its_stem() -> None:
    qwen = catalogue.model("Qwen/Qwen2.5-7B")
    assert qwen is not None
    assert qwen.params == qwen.L * qwen.layer_params() + qwen.embedding_params + qwen.head_params + qwen.norm_params


# -- a model's own config.json --------------------------------------------------------------------

QWEN = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}
VISION = {
    "depth": 32,
    "embed_dim": 1280,
    "mlp_ratio": 4,
    "num_heads": 16,
    "in_chans": 3,
    "hidden_size": 3584,
    "patch_size": 14,
    "spatial_merge_size": 2,
}
LITE = {
    "model_type": "deepseek_v2",
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "num_hidden_layers": 27,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 102400,
    "tie_word_embeddings": False,
    "attention_bias": False,
}
GEMMA = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_attention_heads": 8,
        "num_hidden_layers": 34,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
    },
    "vision_config": {
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 14,
    },
}
MIXTRAL = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
}
GEMMA4 = {
    "model_type": "gemma4",
    "tie_word_embeddings": True,
    "text_config": {
        "model_type": "gemma4_text",
        "hidden_size": 1536,
        "intermediate_size": 6144,
        "num_attention_heads": 8,
        "num_hidden_layers": 35,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "vocab_size": 262144,
        "global_head_dim": 512,
        "hidden_size_per_layer_input": 256,
        "num_kv_shared_layers": 20,
        "use_double_wide_mlp": True,
        "layer_types": [*["sliding_attention"] * 4, "full_attention"] * 7,
    },
    "vision_config": {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_hidden_layers": 16,
        "patch_size": 16,
        "pooling_kernel_size": 3,
        "position_embedding_size": 10240,
    },
    "audio_config": {"output_proj_dims": 1536},
}
GLM = {
    "model_type": "chatglm",
    "hidden_size": 4096,
    "inner_hidden_size": 16384,
    "num_attention_heads": 32,
    "num_layers": 28,
    "vocab_size": 130528,
    "max_sequence_length": 2048,
    "position_encoding_2d": True,
    "tie_word_embeddings": True,
}
FIRST_QWEN = {
    "model_type": "qwen",
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "kv_channels": 128,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}


@for_each(
    "config, entry",
    [
        (QWEN, "Qwen/Qwen2.5-7B"),
        ({**QWEN, "model_type": "qwen2_vl", "vision_config": VISION}, "Qwen/Qwen2-VL-7B-Instruct"),
        (LITE, "deepseek-ai/DeepSeek-V2-Lite"),
        (GEMMA, "google/gemma-3-4b-pt"),
        (MIXTRAL, "mistralai/Mixtral-8x7B-v0.1"),
        (GEMMA4, "google/gemma-4-E2B"),
        (GLM, "THUDM/chatglm-6b"),
        (FIRST_QWEN, "Qwen/Qwen-7B"),
        (GPT2, "gpt2"),
    ],
)
def test_a_config_counts_to_what_its_entry_counts(config: dict[str, Any], entry: str) -> None:
    """The same model by its own config.json and by the catalogue is the same shape."""
    known, read = catalogue.model(entry), catalogue.model_of_config(config)
    assert known is not None
    assert (read.params, read.text_params, read.tied, read.k, read.norm_kind) == (
        known.params,
        known.text_params,
        known.tied,
        known.k,
        known.norm_kind,
    )


@for_each("gone", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_a_config_without_a_dimension_says_which(gone: str) -> None:
    with pytest.raises(UserError) as told:
        catalogue.model_of_config({key: value for key, value in QWEN.items() if key != gone}, "my/config.json")
    assert gone in str(told.value) and "my/config.json" in str(told.value) and told.value.to("zh") != str(told.value)


@for_each("zero", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_a_config_with_no_layers_or_no_width_says_which(zero: str) -> None:
    with pytest.raises(UserError, match=zero):
        catalogue.model_of_config({**QWEN, zero: 0})


def test_a_latent_config_without_its_ranks_says_which() -> None:
    with pytest.raises(UserError, match="v_head_dim"):
        catalogue.model_of_config({**LITE, "v_head_dim": None})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


def test_layers_that_differ() -> None:
    """Gemma 4 E2B by hand: every fifth layer has heads of 512, the last twenty no keys and values and an MLP twice as wide."""
    model = catalogue.model("google/gemma-4-E2B")
    assert model is not None and model.uneven is not None
    h, f = 1536, 6144
    own, gate = 2 * h * 256, 2 * h * 256 + 5 * h
    assert model.layer_params(0) == 2 * h * 8 * 256 + own + 2 * 256 + 3 * h * f + gate
    assert model.layer_params(4) == 2 * h * 8 * 512 + 2 * own + 2 * 512 + 3 * h * f + gate
    assert model.layer_params(15) == 2 * h * 8 * 256 + 256 + 3 * h * 2 * f + gate
    assert model.layer_params() == 2 * h * 8 * 512 + 512 + 3 * h * 2 * f + gate
    assert model.counted == sum(model.layer_params(index) for index in range(35)) + model.embedding_params + h + model.vision.params  # type: ignore[union-attr]


def test_what_differs_is_written_layer_by_layer_in_later_releases() -> None:
    text = {key: value for key, value in GEMMA4["text_config"].items() if key != "global_head_dim"}  # type: ignore[attr-defined]
    later = {**text, "per_layer_config": {"04": {"head_dim": 512}, "09": {"head_dim": 512}}}
    assert catalogue.model_of_config({**GEMMA4, "text_config": later}) == catalogue.model_of_config(GEMMA4)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(GEMMA4["text_config"])), json_values))  # type: ignore[call-overload]
def test_a_strange_config_of_uneven_layers_is_a_complaint_or_a_shape(changes: dict[str, Any]) -> None:
    """Counting takes no longer with two billion layers than with two."""
    text = json.loads(json.dumps({**GEMMA4["text_config"], **changes}))  # type: ignore[dict-item]
    try:
        shape = catalogue.model_of_config({**GEMMA4, "text_config": text})
    except UserError:
        return
    assert shape.params > 0


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted({*QWEN, *LITE, *GEMMA, *VISION})), json_values))
def test_a_strange_config_is_a_complaint_or_a_shape(changes: dict[str, Any]) -> None:
    """A config.json comes from a stranger: nothing but UserError may come out of reading it."""
    for base in (QWEN, LITE, {**QWEN, "model_type": "qwen2_vl", "vision_config": VISION | changes}):
        try:
            shape = catalogue.model_of_config(json.loads(json.dumps({**base, **changes})))
        except UserError:
            continue
        assert shape.params > 0


# -- cards ------------------------------------------------------------------------------------------


@for_each("entry", CARDS)
def test_every_name_of_a_card_finds_it(entry: dict[str, Any]) -> None:
    for name in (entry["key"], *entry["names"]):
        found = catalogue.card(name)
        assert found is not None and found.key == entry["key"], name


@for_each("entry", CARDS)
def test_every_listed_capacity_finds_its_card(entry: dict[str, Any]) -> None:
    for digits in (*entry["seen"], *entry["recalled"]):
        size = Size.printed(digits, "GiB")
        assert size is not None and entry["key"] in [card.key for card in catalogue.cards_of_capacity(size)]


@for_each(
    "name, keys",
    [
        ("V100", ["V100-16GB", "V100-32GB"]),
        ("v100 32g", ["V100-32GB"]),
        ("A100", ["A100-40GB", "A100-80GB"]),
        ("H100", ["H100-80GB"]),
        ("4090", ["RTX4090-24GB"]),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", []),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", ["RTXPRO6000-96GB"]),
        ("Tesla V100-DGXS-32GB", ["V100-32GB"]),
        ("GPU", []),
        ("", []),
    ],
)
def test_a_name_means_what_it_says_and_no_more(name: str, keys: list[str]) -> None:
    assert sorted(card.key for card in catalogue.cards_named(name)) == keys


def test_no_card_before_ampere_computes_bf16() -> None:
    """Volta and Turing emulate bf16: advice to use it must be rejected there."""
    for entry in CARDS:
        number = entry["compute_capability"]
        if number[0].isdigit():
            assert entry["bf16"] == entry["fa2"] == (float(number) >= 8.0), entry["key"]


def test_cards_that_could_hold_one_tensor() -> None:
    """By the capacity that they print: of the largest sizes there are few, and of more than any has none."""
    holding = catalogue.cards_holding(Size.exactly(100 * 2**30))
    assert "H200-141GB" in holding and "H100-80GB" not in holding
    assert not catalogue.cards_holding(Size.exactly(2**40))
